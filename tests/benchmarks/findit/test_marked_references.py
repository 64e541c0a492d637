"""Marked reference pictures: which picture shows the object, what is drawn, and when."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from engine_fakes import FakeBackends, FakeModel, demo_sweep, files, go
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from vlmeval_findit.benchmarks.findit import marked_references as marked_pictures
from vlmeval_findit.benchmarks.findit.annotation_tables import load_task
from vlmeval_findit.benchmarks.findit.findit_query import FindItQuery, Sighting
from vlmeval_findit.benchmarks.findit.marked_references import (
    LONGEST,
    MarkedReference,
    ReferenceOrigin,
    marked,
    path_of,
    references,
    window,
)
from vlmeval_findit.benchmarks.findit.variant import MARKS
from vlmeval_findit.boxes.records import Truth
from vlmeval_findit.core.folders import FolderError

BOX = (40.0, 30.0, 60.0, 50.0)
RED = [255, 0, 0]


def query(index: int, label: str, image: str, **fields: Any) -> FindItQuery:
    """A query whose box says which one it is of."""
    box = (float(index), 0.0, 90.0, 50.0)
    given = {"images": (image,), "truth": Truth((box,), (0,)), "support": (f"shot{index}.png",)}
    return FindItQuery(index, label, 100, 100, **{**given, **fields})


# --- which picture --------------------------------------------------------------------------------


def test_the_picture_that_a_shot_was_taken_from_comes_first() -> None:
    seen = (Sighting("a.jpg", BOX), Sighting("c.jpg", BOX), Sighting("d.jpg", BOX))
    queries = [query(0, "cup", "a.jpg", sightings=seen), query(1, "cup", "b.jpg")]
    assert references(queries, is_video=False) == [
        MarkedReference("c.jpg", BOX, ReferenceOrigin.SHOT),  # not a.jpg: that is the scene
        MarkedReference("a.jpg", (0.0, 0.0, 90.0, 50.0), ReferenceOrigin.OTHER_SCENE),
    ]


def test_else_the_next_query_that_is_about_it_elsewhere() -> None:
    queries = [
        query(0, "cup", "a.jpg"),
        query(1, "pen", "b.jpg"),
        query(2, "cup", "a.jpg"),  # the same scene
        query(3, "cup", "c.jpg"),
        query(4, "cup", "d.jpg", truth=Truth((), ())),
        query(5, "cup", "e.jpg", truth=Truth(((100.0, 0.0, 120.0, 9.0),), (0,))),  # outside
        query(6, "fork", "a.jpg", support=()),
    ]
    found = references(queries, is_video=False)
    assert [one and (one.picture, one.origin) for one in found] == [
        ("c.jpg", ReferenceOrigin.OTHER_SCENE),
        ("shot1.png", ReferenceOrigin.WHOLE_SHOT),
        ("c.jpg", ReferenceOrigin.OTHER_SCENE),
        ("a.jpg", ReferenceOrigin.OTHER_SCENE),
        ("a.jpg", ReferenceOrigin.OTHER_SCENE),
        ("a.jpg", ReferenceOrigin.OTHER_SCENE),
        None,
    ]
    assert found[1] == MarkedReference("shot1.png", None, ReferenceOrigin.WHOLE_SHOT)


def test_a_frame_of_the_same_video_is_the_same_scene() -> None:
    frames = tuple(f"v1/rgb/{n:05}.png" for n in range(3))
    later = tuple(f"v1/rgb/{n:05}.png" for n in range(7, 9))
    other = ("v2/rgb/00000.png", "v2/rgb/00001.png")
    queries = [
        query(0, "cup", "", images=frames),
        query(1, "cup", "", images=later),
        query(2, "cup", "", images=other, truth=Truth((BOX,), (1,))),
    ]
    found = references(queries, is_video=True)
    assert [one and one.picture for one in found] == [other[1], other[1], frames[0]]
    assert found[0] == MarkedReference(other[1], BOX, ReferenceOrigin.OTHER_SCENE)
    assert references(queries, is_video=False)[0] == MarkedReference(
        later[0], (1.0, 0.0, 90.0, 50.0), ReferenceOrigin.OTHER_SCENE
    )


TABLES = st.lists(
    st.builds(
        lambda label, image, sightings: (label, image, sightings),
        st.sampled_from("AB"),
        st.sampled_from("abc"),
        st.lists(st.sampled_from("abc"), max_size=2),
    ),
    max_size=8,
)


@given(TABLES)
def test_no_reference_shows_the_scene_that_is_asked_about(rows: Any) -> None:
    queries = [
        query(at, label, image, sightings=tuple(Sighting(name, BOX) for name in sightings))
        for at, (label, image, sightings) in enumerate(rows)
    ]
    for asked, found in zip(queries, references(queries, is_video=False), strict=True):
        assert found is not None
        assert found.picture != asked.images[0]
        if found.origin is ReferenceOrigin.SHOT:
            assert Sighting(found.picture, BOX) in asked.sightings
        if found.origin is ReferenceOrigin.OTHER_SCENE:
            assert found.box is not None
            other = queries[int(found.box[0])]
            assert (other.images[0], other.label) == (found.picture, asked.label)
            between = (queries * 2)[asked.index + 1 : (queries * 2).index(other, asked.index + 1)]
            assert all(q.label != asked.label or q.images == asked.images for q in between)
        if found.origin is ReferenceOrigin.WHOLE_SHOT:
            same = [q.images for q in queries if q.label == asked.label]
            assert set(same) == {asked.images}


# --- what is drawn --------------------------------------------------------------------------------


@given(st.integers(1, 9000), st.floats(0, 1), st.floats(0, 1))
def test_a_window_holds_its_object_and_lies_in_the_picture(size: int, a: float, b: float) -> None:
    low, high = sorted((a * size, b * size))
    first, last = window(low, high, size)
    assert 0 <= first <= low + 0.5
    assert high - 0.5 <= last <= size
    assert last - first == min(max(round(3 * (high - low)), 256), size)


def scenery(width: int, height: int) -> Image.Image:
    """A picture whose pixels say where they are."""
    y, x = np.mgrid[:height, :width]
    pixels = np.stack([x % 200, y % 200, (x // 64 + y // 64) % 2 * 90], axis=2)
    return Image.fromarray(pixels.astype(np.uint8))


CHECKSUMS = {
    "box": "5801db6d0110aeae",
    "oval": "bddc33c9b2d9c62a",
    "arrow": "347a8328d083401b",
    "tag": "70a07fbdd27c6b94",
    "point": "2442370eb687d8a6",
}


@pytest.mark.parametrize("mark", MARKS)
def test_the_pixels_of_a_mark(mark: str) -> None:
    """After a change that is meant, raise ``RECIPE`` and write the checksum anew."""
    assert marked_pictures.RECIPE == 1
    drawn = marked(scenery(700, 500), (300.0, 200.0, 360.0, 290.0), mark)
    assert drawn.shape == (270, 256, 3)
    assert sha256(drawn.tobytes()).hexdigest()[:16] == CHECKSUMS[mark]


def test_a_large_scene_is_shown_around_the_object_and_shrunk() -> None:
    scene = scenery(2000, 1500)
    drawn = marked(scene, (500.0, 500.0, 900.0, 700.0), "box")
    assert drawn.shape == (512, LONGEST, 3)
    left, top, right, bottom = 341, 171, 683, 341  # from x 100, y 300, by 1024 / 1200
    assert drawn[top, 500].tolist() == drawn[bottom, 500].tolist() == RED
    assert drawn[250, left].tolist() == drawn[250, right].tolist() == RED
    untouched = scene.crop((100, 300, 1300, 900)).resize((1024, 512), Image.Resampling.BICUBIC)
    inside = np.s_[top + 8 : bottom - 8, left + 8 : right - 8]
    assert (drawn[inside] == np.asarray(untouched)[inside]).all()


@pytest.mark.parametrize("mark", MARKS)
@pytest.mark.parametrize("box", [(0.0, 0.0, 96.0, 96.0), (-5.0, 90.0, 30.0, 200.0), None])
def test_a_mark_is_seen_wherever_the_object_is(mark: str, box: Any) -> None:
    drawn = marked(Image.new("RGB", (96, 96)), box, mark)
    red = (drawn == RED).all(axis=2).sum()
    assert red > 100, "more than a few pixels at the edge"
    assert (drawn.shape == (96, 96, 3)) == (box is not None and mark != "arrow")


def test_other_references_have_other_files() -> None:
    one = MarkedReference("a.jpg", BOX, ReferenceOrigin.SHOT)
    others = (
        one._replace(picture="b.jpg"),
        one._replace(box=None),
        one._replace(box=(40.0, 30.0, 60.0, 51.0)),
    )
    paths = {path_of(reference, mark) for reference in (one, *others) for mark in MARKS}
    assert len(paths) == 4 * len(MARKS)
    assert path_of(one, "box") == path_of(one._replace(origin=ReferenceOrigin.OTHER_SCENE), "box")


# --- when it is drawn -----------------------------------------------------------------------------

DEMO = "FindIt_Demo_insdet_xyxy_json_vp-box"


@pytest.fixture
def images(tmp_path: Path, lmu_data: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the demonstration's pictures, without marked ones."""
    load_task("FindIt_Demo_insdet_xyxy_json")
    folder = tmp_path / "Demo"
    shutil.copytree(lmu_data / "images" / "Demo", folder, ignore=shutil.ignore_patterns("vp"))
    monkeypatch.setenv("FINDIT_IMAGES", f"Demo={folder}")
    return folder


def test_the_demonstration_marks_the_other_photograph_or_the_shot(images: Path) -> None:
    queries = list(load_task(DEMO).queries.values())
    assert [q.tags["reference"] for q in queries] == [ReferenceOrigin.SHOT.value] * 4 + [
        ReferenceOrigin.WHOLE_SHOT.value
    ] * 3
    plain = load_task("FindIt_Demo_insdet_xyxy_json").queries
    assert [q.truth for q in queries] == [q.truth for q in plain.values()]
    assert all(q.tags == {} for q in plain.values())
    sizes = [Image.open(images / q.support[0]).size for q in queries]
    assert sizes[0] == (256, 256), "of a photograph of 741 x 497"
    # The headlight, in the photograph that is not asked about.
    left, top = window(509, 561, 741)[0], window(122, 189, 497)[0]
    drawn = np.asarray(Image.open(images / queries[0].support[0]))
    assert drawn[122 - top, 535 - left].tolist() == RED


def test_a_picture_is_drawn_once_and_anew_after_its_source(
    images: Path, watch_decoding: Callable[[ModuleType], list[str]]
) -> None:
    decoded = watch_decoding(marked_pictures)
    names = [q.support[0] for q in load_task(DEMO).queries.values()]
    assert len(decoded) == len(set(decoded)), "every source once"
    before = {name: (images / name).read_bytes() for name in names}
    decoded.clear()
    assert [q.support[0] for q in load_task(DEMO).queries.values()] == names
    assert decoded == []
    source = images / "photos" / "motorcycle_left.png"
    Image.new("RGB", (741, 497), (0, 0, 255)).save(source)
    os.utime(source, ns=(2**62, 2**62))
    load_task(DEMO)
    assert decoded == ["motorcycle_left.png"]
    changed = [name for name in names if (images / name).read_bytes() != before[name]]
    assert changed == names[:3]


def test_what_cannot_be_read_is_named_and_the_others_are_drawn(
    images: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (images / "photos" / "motorcycle_left.png").unlink()
    queries = load_task(DEMO).queries
    assert [(images / q.support[0]).is_file() for q in queries.values()] == [False] * 3 + [True] * 4
    assert "1 pictures cannot be marked with a red box; the first: " in caplog.text
    assert "motorcycle_left.png is missing" in caplog.text


def test_a_folder_that_cannot_be_written_to_is_named(images: Path) -> None:
    (images / "vp").write_text("in the way")
    with pytest.raises(
        FolderError, match=r"vp/box/\w+\.png cannot be written .*FINDIT_IMAGES=Demo"
    ):
        load_task(DEMO)


def test_rendered_shots_are_marked_where_they_are() -> None:
    queries = load_task("FindIt_Scenes_mini_insdet_xyxy_json_vp-oval").queries
    assert {q.tags["reference"] for q in queries.values()} == {ReferenceOrigin.SHOT.value}
    assert len({q.support for q in queries.values()}) == len(queries) == 50


# --- asked ----------------------------------------------------------------------------------------

MARKED = "models: FullImage\ndatasets: Demo_insdet\nrepresentations: xyxy\noutputs: [text, json]\n"


def test_a_sweep_over_marks_shows_every_variant_its_own_pictures(tmp_path: Path) -> None:
    shown: dict[str, set[str]] = {}

    class Seeing(FakeModel):
        def generate(self, message: Any, dataset: str) -> Any:
            paths = [part["value"] for part in message if part["type"] == "image"]
            shown.setdefault(dataset, set()).update(Path(p).parent.name for p in paths[:-1])
            return super().generate(message, dataset)

    sweep = demo_sweep(tmp_path, MARKED + "marks: [none, box, oval]\n")
    model = Seeing()
    results = go(sweep, FakeBackends(model))
    assert model.calls == 7 * 2 * 3
    assert shown == {
        f"FindIt_Demo_insdet_xyxy_{output}{mark}": {folder}
        for output in ("text", "json")
        for mark, folder in (("", "supports"), ("_vp-box", "box"), ("_vp-oval", "oval"))
    }
    assert [r.question.format_cell[1] for r in results] == [
        "text", "text vp-box", "text vp-oval", "json bbox", "json bbox vp-box", "json bbox vp-oval",
    ]  # fmt: skip
    sums = {key for key in results[1].sums if "[" in key}
    assert "asked[reference=another scene]" not in sums
    assert {"tp[reference=where the shot is from]", "tp[reference=the shot as a whole]"} <= sums
    assert not any("[" in key for key in results[0].sums)
    before = files(tmp_path / "out")
    again = FakeModel()
    assert [r.sums for r in go(sweep, FakeBackends(again))] == [r.sums for r in results]
    assert again.calls == 0
    assert files(tmp_path / "out") == before
