"""A predicted mask becomes its tight box: the same in every form, in files and in replies."""

from __future__ import annotations

import base64
import io
import json
import resource
import struct
import zlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from textwrap import wrap
from typing import Any

import numpy as np
import pytest
from few_fast import every_nth_fast
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from scored_runs import World, query

from vlmeval_findit.analysis import reading_notes
from vlmeval_findit.boxes import Corners, ImageExtent, ReplyFormat, parse_leniently, read
from vlmeval_findit.leaderboard import make_board, remarks
from vlmeval_findit.marks import (
    MASK_KEYS,
    MaskError,
    box_of_mask,
    pack_several,
    packed_mask,
    read_masks,
    rle_of,
)

SIZE = (40, 30)
HOW = ReplyFormat("json", "xyxy", key="bbox_2d")

Pixels = tuple[int, int, int, int]
boxes = st.tuples(st.integers(0, 19), st.integers(0, 14), st.integers(20, 40), st.integers(15, 30))


def pixels(box: Pixels | None, size: tuple[int, int] = SIZE) -> np.ndarray[Any, Any]:
    """Return a mask of a frame, so that its box is no run."""
    mask = np.zeros(size[::-1], np.uint8)
    if box is not None:
        x1, y1, x2, y2 = box
        mask[y1:y2, [x1, x2 - 1]] = 1
        mask[[y1, y2 - 1], x1:x2] = 1
    return mask


def png(mask: np.ndarray[Any, Any]) -> str:
    file = io.BytesIO()
    Image.fromarray(255 * mask).save(file, "PNG")
    return base64.b64encode(file.getvalue()).decode()


def counts(mask: np.ndarray[Any, Any]) -> dict[str, Any]:
    packed = packed_mask(mask)
    return {"size": [*mask.shape], "counts": [*packed.counts]}


def ring(box: Pixels) -> list[list[int]]:
    x1, y1, x2, y2 = box
    return [[x1, y1], [x2, y1], [x2, y2], [x1, y2]]


def flat(box: Pixels) -> list[int]:
    return [number for point in ring(box) for number in point]


# Of a mask of pixels
RASTERS: Mapping[str, Callable[[np.ndarray[Any, Any]], Any]] = {
    "run lengths": counts,
    "packed run lengths": lambda mask: {
        "size": [*mask.shape],
        "counts": packed_mask(mask).packed,
    },
    "data address": lambda mask: f"data:image/png;base64,{png(mask)}",
    "base64": png,
    "base64 in lines": lambda mask: "\n".join(wrap(png(mask), 76)),
}
# Of a box
OUTLINES: Mapping[str, Callable[[Pixels], Any]] = {
    "polygons": lambda box: [flat(box)],
    "a polygon": flat,
    "two polygons": lambda box: [flat(box)[:6], flat(box)[2:]],
    "points": ring,
    "points by name": lambda box: [{"x": x, "y": y} for x, y in ring(box)],
    "polygons of points": lambda box: [ring(box)[:3], ring(box)[1:]],
}
FORMS = (*RASTERS, *OUTLINES)


def in_form(form: str, box: Pixels) -> Any:
    return RASTERS[form](pixels(box)) if form in RASTERS else OUTLINES[form](box)


def of_file(value: Any, size: tuple[int, int] = SIZE) -> Corners | None:
    """Return the box that a file's mask becomes; MaskError where it is refused."""
    return box_of_mask(value, size, Path("nowhere")).box


def of_reply(text: str, how: ReplyFormat = HOW, extent: ImageExtent | None = None) -> Any:
    """Return the boxes of a reply's masks; None where nothing is read."""
    found = read_masks(text, how, SIZE, extent or ImageExtent(*SIZE), ("cup",))
    return None if found is None else found.reading.boxes


REPLIES: Mapping[str, Callable[[Any], str]] = {
    "alone": lambda mask: json.dumps({"mask": mask}),
    "in a list": lambda mask: json.dumps([{"label": "cup", "mask": mask}]),
    "in words": lambda mask: f"Here it is:\n```json\n{json.dumps([{'mask': mask}])}\n```\nDone.",
    "in a wrapper": lambda mask: json.dumps({"objects": [{"mask": mask, "score": 0.9}]}),
    "no box beside": lambda mask: json.dumps({"bbox_2d": None, "mask": mask}),
    "in Python": lambda mask: repr([{"label": "cup", "mask": mask}]),
    "in tags": lambda mask: f"<mask>{mask if isinstance(mask, str) else json.dumps(mask)}</mask>",
}


@settings(deadline=None, max_examples=15)
@given(boxes)
def test_a_mask_is_one_box_in_all_forms_and_places(box: Pixels) -> None:
    for form in FORMS:
        mask = in_form(form, box)
        assert of_file(mask) == box, form
        for place, reply in REPLIES.items():
            assert of_reply(reply(mask)) == (box,), (form, place)


@pytest.mark.parametrize("key", MASK_KEYS)
@pytest.mark.parametrize("form", FORMS)
def test_every_key_of_files_is_one_of_replies(form: str, key: str) -> None:
    mask = in_form(form, (3, 4, 30, 20))
    assert of_reply(json.dumps({key: mask})) == ((3, 4, 30, 20),)


@pytest.mark.parametrize("form", FORMS)
def test_numbers_are_those_of_the_run(form: str) -> None:
    """What has a size is converted, what has none counts as the run's numbers."""
    mask = in_form(form, (4, 3, 36, 27))
    (found,) = of_reply(json.dumps({"mask": mask}), extent=ImageExtent(1000, 1000))
    assert found == pytest.approx((100, 100, 900, 900) if form in RASTERS else (4, 3, 36, 27))


@pytest.mark.parametrize("form", FORMS)
def test_no_order_of_polygons_is_guessed(form: str) -> None:
    mask = json.dumps({"mask": in_form(form, (4, 3, 36, 27))})
    found = of_reply(mask, ReplyFormat("json", "yxyx"))
    has_order = form in RASTERS or form == "points by name"
    assert found == (((4, 3, 36, 27),) if has_order else None)


# --- empty, absent, cut, of another size ----------------------------------------------------------


@pytest.mark.parametrize("form", [*RASTERS, "no polygon", "a polygon of nothing"])
def test_an_empty_mask_is_no_box_and_is_counted(form: str) -> None:
    mask = RASTERS[form](pixels(None)) if form in RASTERS else ([] if "no" == form[:2] else [[]])
    assert of_file(mask) is None
    found = read_masks(json.dumps({"mask": mask}), HOW, SIZE, ImageExtent(*SIZE))
    assert found is not None
    assert (found.reading.boxes, found.empty) == ((), 1)


def test_null_is_no_mask() -> None:
    assert of_reply('{"mask": null}') is None


@pytest.mark.parametrize("form", RASTERS)
def test_a_mask_of_another_size_is_not_read(form: str) -> None:
    mask = RASTERS[form](pixels((1, 2, 20, 20), (41, 30)))
    with pytest.raises(MaskError, match="the mask is of 41 x 30 pixels, and its image of 40 x 30"):
        of_file(mask)
    assert of_reply(json.dumps({"mask": mask})) is None


@pytest.mark.parametrize("form", every_nth_fast(FORMS, 2))
@pytest.mark.parametrize("place", REPLIES)
def test_nothing_cut_off_is_completed(form: str, place: str) -> None:
    """A reply that ends within its mask has none."""
    mask = in_form(form, (3, 4, 30, 20))
    reply = REPLIES[place](mask)
    written = next(each for each in (json.dumps(mask), repr(mask), str(mask)) if each in reply)
    begin = reply.index(written)
    for cut in range(begin, len(reply), 7):
        found = of_reply(reply[:cut])
        whole = cut >= begin + len(written)
        assert found is None or (whole and found == ((3, 4, 30, 20),)), reply[:cut]


def cut_short(value: Any) -> Any:
    """Return a mask whose own text breaks off."""
    if isinstance(value, str):
        return value[: len(value) // 2]
    kept = value["counts"]
    return {**value, "counts": kept[: len(kept) // 2]}


@pytest.mark.parametrize("form", RASTERS)
def test_a_mask_that_breaks_off_is_refused(form: str) -> None:
    mask = cut_short(RASTERS[form](pixels((3, 4, 30, 20))))
    with pytest.raises(MaskError):
        of_file(mask)
    assert of_reply(json.dumps({"mask": mask})) is None


# --- hostile --------------------------------------------------------------------------------------


def bomb(width: int, height: int) -> str:
    """Return a PNG in base64 that says a size and unpacks to nothing of it."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        checksum = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + checksum

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    body = zlib.compress(b"\0" * 1_000_000, 9)
    parts = chunk(b"IHDR", head) + chunk(b"IDAT", body) + chunk(b"IEND", b"")
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + parts).decode()


FAR = 2**31 - 1
HOSTILE: Mapping[str, Any] = {
    "a picture of 900 megapixels": bomb(30_000, 30_000),
    "a picture of 4 terapixels": bomb(2**21, 2**21),
    "run lengths of an exabyte": {"size": [FAR, FAR], "counts": [FAR * FAR]},
    "run lengths beyond 64 bits": {"size": [30, 40], "counts": [10**30]},
    "a side beyond 64 bits": {"size": [10**30, 40], "counts": [1200]},
    "a negative run": {"size": [30, 40], "counts": [-1200, 2400]},
    "packed runs, one negative": {"size": [30, 40], "counts": "P\\2j0"},
    "packed runs of 60 bits": {"size": [30, 40], "counts": "oooooooooooo7" * 3},
    "no numbers": {"size": ["a", "b"], "counts": [1]},
    "sides without end": {"size": [float("inf"), 40], "counts": [1]},
    "a polygon without end": [[0, 0, float("inf"), 0, 9, 9]],
    "a polygon of long numbers": [[0, 0, 10**400, 0, 9, 9]],
    "two points": [[1, 2, 3, 4]],
    "an odd number": [[1, 2, 3, 4, 5]],
    "deep lists": [[[[[[1, 2, 3, 4, 5, 6]]]]]],
    "a name": "../../etc/passwd",
    "a place of the machine": "/dev/zero",
    "a web page": "data:image/png;base64," + base64.b64encode(b"<html>").decode(),
    "no base64": "data:image/png;base64,!!!!",
    "a number": 7,
    "yes": True,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_masks_cost_nothing_and_are_not_read(name: str) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for size in (SIZE, (30_001, 30_000)):
        with pytest.raises(MaskError):
            of_file(HOSTILE[name], size)
    # A reply may not name a file, either.
    assert of_reply(json.dumps({"mask": HOSTILE[name]})) is None
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 200_000, "kilobytes"


def test_negative_runs_are_no_run_lengths() -> None:
    runs = np.array([1300, -200, 100])
    (packed,) = pack_several(runs, np.array([len(runs)]))
    with pytest.raises(ValueError, match="not within the image"):
        rle_of({"size": [30, 40], "counts": packed})


# --- a box, if there is one -----------------------------------------------------------------------

GRID = "<seg>0,0,0,0;0,1,1,0;0,1,1,0;0,0,0,0</seg>"
POLYGON = '{"mask": [[1, 2, 5, 2, 5, 9]]}'


@pytest.mark.parametrize(
    "reply",
    [
        f"The mask is not {POLYGON}",
        f"For example: {POLYGON}",
        f"There is no cup. {POLYGON}",
        "[[1, 2, 5, 2, 5, 9]]",
        "<mask>[1, 2, 3, 4], [5, 6, 7, 8]</mask>",
        "<mask>a cup</mask>",
        GRID,
        '{"image_mask": [[1, 2, 5, 2, 5, 9]]}',
        '{"mask": "<seg_12><seg_90>"}',
    ],
)
def test_what_does_not_say_a_mask_is_none(reply: str) -> None:
    assert of_reply(reply) is None


LABELS = replace(HOW, multilabel=True)


def test_labels_and_frames_are_read_as_beside_boxes() -> None:
    masks = [
        {"label": label, "frame_idx": frame, "mask": RASTERS["run lengths"](pixels((1, 2, 30, 20)))}
        for frame, label in enumerate(("cup", "dog"), 1)
    ]
    how = replace(LABELS, frames=2)
    extent = ImageExtent(*SIZE)
    found = read_masks(json.dumps(masks), how, SIZE, extent, ("cup", "dog"))
    assert found is not None
    assert (found.reading.labels, found.reading.frames) == (("cup", "dog"), (0, 1))
    unlabelled = json.dumps([{"mask": [[1, 2, 5, 2, 5, 9]]}])
    assert read_masks(unlabelled, LABELS, SIZE, extent, ("cup", "dog")) is None
    for form in (ReplyFormat("text", "cxcywh"), ReplyFormat("json", "xywh", structure="nested")):
        found = read_masks(POLYGON, form, SIZE, extent)
        assert found is not None
        assert found.reading.boxes == ((1, 2, 5, 9),)
    assert read_masks(POLYGON, ReplyFormat("json", "point", key="point"), SIZE, extent) is None


def test_florence_has_a_list_of_polygons_an_object() -> None:
    one = [[1, 2, 5, 2, 5, 9], [1, 2, 6, 2, 6, 4]]
    two = [[11, 12, 15, 12, 15, 19]]
    reply = str({"<SEGMENTATION>": {"polygons": [one, two], "labels": ["", ""]}})
    assert of_reply(reply) == ((1, 2, 6, 9), (11, 12, 15, 19))


@pytest.mark.parametrize("form", FORMS)
def test_neither_reading_of_boxes_knows_masks(form: str) -> None:
    """The score and the lenient reading are what they were; a box is the answer if there is one."""
    for reply in REPLIES.values():
        text = reply(in_form(form, (3, 4, 30, 20)))
        strict = read(text, HOW)
        assert not strict.boxes
        lenient = parse_leniently(text, HOW, strict, ImageExtent(*SIZE), ("cup",))
        # Four upright corners with names are a box wherever they stand.
        assert lenient is None or form == "points by name"


# --- in a score, on a board -----------------------------------------------------------------------

NAME = "FindIt_Pascal_xyxy_json"
# The first object of query 0, in pixels of 200 x 100
FIRST = (10, 10, 50, 60)


def mask_reply(form: str) -> str:
    mask = RASTERS[form](pixels(FIRST, (200, 100))) if form in RASTERS else OUTLINES[form](FIRST)
    return json.dumps([{"mask": mask}])


def test_masks_in_replies_are_counted_and_in_no_score(world: World) -> None:
    nothing = json.dumps([{"mask": counts(pixels(None, (200, 100)))}])
    mask = counts(pixels(FIRST, (200, 100)))
    second = [600, 200, 900, 900]
    with_boxes = [
        [{"bbox": second, "mask": mask}],
        [{"bbox": second}, {"mask": mask}],  # does not adhere
        [{"Box": second, "mask": mask}],  # only lenient parsing finds the box
    ]
    replies = [mask_reply("run lengths"), mask_reply("base64"), nothing]
    replies += map(json.dumps, with_boxes)
    world.table("Pascal", [replace(query(0, f"{i}.jpg"), index=i) for i in range(len(replies))])
    run = world.run("M", NAME, lambda item, _: replies[item.index])
    assert run.sums["tp"] == 2
    assert run.sums["mask_boxes"] == 2
    (line,) = [note for note in reading_notes(run) if "mask" in note]
    assert line.startswith(
        "2 boxes around masks in replies, which no score counts: F1@0.5 would be"
    )
    assert line.endswith("1 empty mask in replies")
    assert run.rows[0].details["masks"]["boxes"] == [[10, 10, 50, 60]]
    assert not any("masks" in row.details for row in run.rows[3:])
    notes = dict(remarks(make_board([run])))
    assert notes["Masks"] == [f"M on {NAME}: {line}"]
