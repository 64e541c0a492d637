"""ScreenSpot-Pro and RefSpatial-Bench: from the folder, as published, to the authors' own score."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import published_stand_ins as published
import pytest
from PIL import Image
from published_stand_ins import known
from scored_runs import World
from test_importing import all_images_are_there, import_set, meta

from vlmeval_findit.benchmarks.findit import DATASETS, Family, find_table, read_table
from vlmeval_findit.cli import main
from vlmeval_findit.data import Counts, load_dataset
from vlmeval_findit.marks import packed_mask
from vlmeval_findit.protocol import add_up, metric_values
from vlmeval_findit.scoring import Run
from vlmeval_findit.storage import custom_datasets_file

pytestmark = pytest.mark.usefixtures("data_root")


WIDTH, HEIGHT = 200, 100
Rows = list[dict[str, Any]]


def grey(path: Path, size: tuple[int, int] = (WIDTH, HEIGHT)) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, (90, 90, 90)).save(path)


def answered(tmp_path, name: str, points: Mapping[int, Sequence[tuple[int, int]]]) -> Run:
    """Make a run that answers these points, in pixels; an empty list for other rows."""

    def answer(query: Any, random: object) -> str:
        known = points.get(query.index, ())
        return json.dumps([{"point_2d": [x * 1000 / WIDTH, y * 1000 / HEIGHT]} for x, y in known])

    return World(tmp_path).run("M", name, answer)


# --- ScreenSpot-Pro -------------------------------------------------------------------------------


def screenspot() -> dict[str, Rows]:
    size = {"img_size": [WIDTH, HEIGHT], "instruction_cn": "做"}
    word = {"img_filename": "word_macos/shot one.png", "platform": "macos", **size}
    word |= {"application": "word", "group": "Office"}
    blender = {"img_filename": "blender_windows/two.png", "platform": "windows", **size}
    blender |= {"application": "blender", "group": "Creative"}
    rows = [
        {"id": f"it_{at}", "instruction": f"do {at}", "bbox": box, "ui_type": kind, **more}
        for at, (box, kind, more) in enumerate(
            [
                ([10, 10, 30, 20], "text", word),
                ([100, 50, 104, 54], "icon", word),
                ([0, 0, 4, 4], "icon", blender),
                ([150, 80, 200, 100], "text", blender),
            ]
        )
    ]
    return {"word_macos": rows[:2], "blender_windows": rows[2:]}


def write_screenspot(folder: Path, rows: dict[str, Rows] | None = None) -> Path:
    (folder / "annotations").mkdir(parents=True)
    for name, variants in (rows or screenspot()).items():
        (folder / "annotations" / f"{name}.json").write_text(json.dumps(variants))
    grey(folder / "images" / "word_macos" / "shot one.png")
    grey(folder / "images" / "blender_windows" / "two.png")
    return folder


def as_screenspot(rows: Rows, points: Mapping[str, tuple[int, int]]) -> float:
    """The authors' accuracy: relative points in relative boxes, their edges included."""
    correct = 0
    for row in rows:
        # No point is "wrong_format" to them, which is not correct either.
        if (point := points.get(row["instruction"])) is not None:
            x1, y1, x2, y2 = row["bbox"]
            correct += x1 / WIDTH <= point[0] / WIDTH <= x2 / WIDTH and (
                y1 / HEIGHT <= point[1] / HEIGHT <= y2 / HEIGHT
            )
    return 100 * correct / len(rows)


def test_screenspot_pro(tmp_path, monkeypatch) -> None:
    folder = write_screenspot(tmp_path / "set")
    known(monkeypatch, "ScreenSpot-Pro", counts=Counts(queries=4))
    assert import_set("ScreenSpot-Pro", folder) == 0
    assert meta("ScreenSpot-Pro")["licence"] == "MIT, as copies of its card say"
    name = "FindIt_ScreenSpot-Pro_point_json_point_2d"
    assert all_images_are_there(name)
    assert DATASETS["ScreenSpot-Pro"].family is Family.REFEXP
    queries = load_dataset(name).queries
    assert queries[0].tags == {
        "ui_type": "icon", "group": "Creative", "application": "blender", "platform": "windows"
    }  # fmt: skip
    points = {0: [(4, 4)], 1: [(149, 90)], 2: [(20, 15)], 3: []}
    run = answered(tmp_path, name, points)
    rows = [row for variants in screenspot().values() for row in variants]
    by_words = {queries[at].label: many[0] for at, many in points.items() if many}
    assert as_screenspot(rows, by_words) == 50
    assert run.metric_values["Pointing accuracy"] == run.metric_values["Points inside"] == 50
    for kind, value in (("ui_type", "icon"), ("group", "Office")):
        sums = add_up(row.sums for row in run.rows if row.slices[kind] == value)
        accuracy = metric_values(run.benchmark.metrics, sums)["Pointing accuracy"]
        assert accuracy == as_screenspot([row for row in rows if row[kind] == value], by_words)
    # The authors use the first of several points; here the others cost.
    several = answered(tmp_path / "more", name, {**points, 2: [(20, 15), (99, 99)]})
    assert several.metric_values["Pointing accuracy"] == pytest.approx(40)


def test_instructions_that_cannot_be_used(tmp_path, capsys) -> None:
    for at, (changed, why) in enumerate(
        [
            ({"bbox": [1, 2]}, "word_macos.json[1], bbox: [1, 2] should be [x1, y1, x2, y2]"),
            ({"img_size": [200]}, "img_size: [200] should be [width, height]"),
            ({"img_size": [400, 200]}, "one.png is 400x200 here, 200x100 before"),
        ]
    ):
        rows = screenspot()
        rows["word_macos"][1] |= changed
        folder = write_screenspot(tmp_path / str(at), rows)
        assert import_set("ScreenSpot-Pro", folder, "--partial") == 2
        assert why in capsys.readouterr().err
        assert not custom_datasets_file().exists()


# --- ScreenSpot, ScreenSpot-V2 --------------------------------------------------------------------


def clicks(screen: str) -> Rows:
    source = "ios" if screen == "mobile" else "windows"
    shared = {"img_filename": f"{screen}_1.png", "data_source": source}
    boxes = {"open": ([10, 10, 20, 10], "text"), "close": ([150, 80, 50, 20], "icon")}
    return [
        {"instruction": f"{what} the {screen}", "bbox": box, "data_type": kind, **shared}
        for what, (box, kind) in boxes.items()
    ]


def write_clicks(folder: Path, end: str, images: str) -> Path:
    folder.mkdir()
    for screen in ("desktop", "mobile", "web"):
        (folder / f"screenspot_{screen}{end}.json").write_text(json.dumps(clicks(screen)))
        grey(folder / images / f"{screen}_1.png")
    return folder


@pytest.mark.parametrize(
    ("row", "end", "images"),
    [("ScreenSpot", "", "screenspot_imgs"), ("ScreenSpot-V2", "_v2", "screenspotv2_image")],
)
def test_both_screenspots(tmp_path, monkeypatch, row: str, end: str, images: str, capsys) -> None:
    folder = write_clicks(tmp_path / "set", end, images)
    assert import_set(row, folder) == 2
    assert "6 queries, published are 1,272" in capsys.readouterr().err
    known(monkeypatch, row, counts=Counts(queries=6))
    assert import_set(row, folder) == 0
    name = f"FindIt_{row}_point_json_point_2d"
    assert all_images_are_there(name)
    queries = load_dataset(name).queries
    assert queries[3].label == "close the mobile"
    assert queries[3].truth.boxes == ((150, 80, 200, 100),)
    assert queries[3].tags == {"screen": "mobile", "data_type": "icon", "data_source": "ios"}
    run = answered(tmp_path, name, {0: [(11, 11)], 1: [(11, 11)], 2: [(30, 20)]})
    assert run.metric_values["Pointing accuracy"] == pytest.approx(100 * 2 / 6)


def test_screenspot_of_the_hub(tmp_path, monkeypatch) -> None:
    rows = [
        {
            "file_name": "mobile_1.png",
            "image": {"bytes": published.picture(5), "path": None},
            "bbox": [0.05, 0.1, 0.15, 0.2 + at / 2],
            "instruction": f"tap {at}",
            "data_type": "icon",
            "data_source": "ios",
        }
        for at in range(2)
    ]
    known(monkeypatch, "ScreenSpot", counts=Counts(queries=2, images=1))
    assert import_set("ScreenSpot", published.write_parquet(tmp_path / "hub", "test", rows)) == 0
    name = "FindIt_ScreenSpot_point_json_point_2d"
    assert all_images_are_there(name)
    boxes = [query.truth.boxes[0] for query in load_dataset(name).queries.values()]
    assert boxes == [pytest.approx((10, 10, 30, 20)), pytest.approx((10, 10, 30, 70))]


def test_screenshots_that_are_not_there(tmp_path, capsys) -> None:
    folder = write_clicks(tmp_path / "set", "_v2", "elsewhere")
    assert import_set("ScreenSpot-V2", folder, "--partial") == 2
    assert f"{folder}/screenspotv2_image is missing" in capsys.readouterr().err


# --- RefSpatial-Bench -----------------------------------------------------------------------------


def variant(at: int, step: int) -> dict[str, Any]:
    return {
        "id": at,
        "object": f"the cup  number {at}",
        "prompt": f"Please point to cup {at}.",
        "rgb_path": f"image/{at}.png",
        "mask_path": f"mask/{at}.png",
        "category": "location",
        "step": step,
    }


def write_refspatial(
    folder: Path, parts: Sequence[str] = ("Location", "Placement", "Unseen")
) -> Path:
    ring, corner = np.zeros((2, HEIGHT, WIDTH), dtype=np.uint8)
    # With a hole: the middle of its box is not in it.
    ring[20:60, 40:100] = 255
    ring[30:50, 50:90] = 0
    corner[90:, 150:] = 255
    # Not all of their masks are of one channel, or only 0 and 255.
    colours = np.dstack([ring // 85, np.zeros_like(corner), corner])
    for part in parts:
        (folder / part / "mask").mkdir(parents=True)
        for at, mask in enumerate((ring, corner, colours)):
            grey(folder / part / "image" / f"{at}.png")
            Image.fromarray(mask).save(folder / part / "mask" / f"{at}.png")
        rows = [variant(0, 1), variant(1, 3), variant(2, 3)]
        (folder / part / "question.json").write_text(json.dumps(rows))
    return folder


def as_refspatial(folder: Path, points: Mapping[int, Sequence[tuple[int, int]]]) -> float:
    """Compute the authors' accuracy: the mean over questions of the mean over points."""
    means = []
    for row in json.loads((folder / "question.json").read_text()):
        mask = np.array(Image.open(folder / row["mask_path"])) / 255.0
        mask = mask[:, :, 0] if mask.ndim == 3 else mask
        height, width = mask.shape
        inside = [
            mask[y, x] > 0 if 0 <= x < width and 0 <= y < height else 0
            for x, y in points[row["id"]]
        ]
        means.append(np.mean(inside) if inside else 0.0)
    return 100 * float(np.mean(means))


def test_refspatial(tmp_path, monkeypatch, capsys) -> None:
    folder = write_refspatial(tmp_path / "set")
    assert import_set("RefSpatial", folder, "--only", "Location") == 2
    assert "3 queries, published are 100" in capsys.readouterr().out
    counts = dict.fromkeys(("Location", "Placement", "Unseen"), Counts(queries=3))
    known(monkeypatch, "RefSpatial", parts=counts)
    assert import_set("RefSpatial", folder) == 0
    assert {*DATASETS} >= {f"RefSpatial_{part}" for part in counts}
    name = "FindIt_RefSpatial_Location_point_json_point_2d"
    assert all_images_are_there(name)
    queries = load_dataset(name).queries
    assert queries[0].label == "the cup number 0"
    assert queries[0].tags == {"category": "location", "step": "1"}
    assert queries[0].truth.boxes == queries[2].truth.boxes == ((40, 20, 100, 60),)
    assert queries[1].truth.boxes == ((150, 90, 200, 100),)
    cases: tuple[tuple[dict[int, list[tuple[int, int]]], float | None], ...] = (
        ({0: [(45, 25)], 1: [(160, 95)], 2: [(70, 40)]}, None),
        # In the hole, next to the mask, its last pixel
        ({0: [(70, 40)], 1: [(149, 95)], 2: [(99, 59)]}, None),
        # Behind the last pixels; an empty list
        ({0: [(100, 30)], 1: [(200, 100)], 2: []}, None),
        # Of several points, the authors' accuracy is the share inside, and ours counts one.
        ({0: [(45, 25), (46, 26), (70, 40)], 1: [(160, 95), (161, 96)], 2: []}, 100 * 2 / 6),
    )
    for at, (points, pointing) in enumerate(cases):
        run = answered(tmp_path / str(at), name, points)
        published = as_refspatial(folder / "Location", points)
        assert run.metric_values["Points inside"] == pytest.approx(published)
        expected = published if pointing is None else pointing
        assert run.metric_values["Pointing accuracy"] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda mask, row: row.pop("mask_path"), "question.json[1]: mask_path is missing"),
        (lambda mask, row: row.update(mask_path="../mask.png"), "climbs out of its folder"),
        (lambda mask, row: grey(mask, (20, 10)), "the mask is 20x10, but image/1.png 200x100"),
        (lambda mask, row: Image.new("L", (9, 9)).save(mask), "the mask mask/1.png is empty"),
        (lambda mask, row: mask.write_text("x"), "mask_path: "),
    ],
)
def test_questions_that_cannot_be_used(
    tmp_path, change: Callable[[Path, dict[str, Any]], object], why: str, capsys
) -> None:
    folder = write_refspatial(tmp_path / "set", ["Location"])
    path = folder / "Location" / "question.json"
    rows = json.loads(path.read_text())
    change(folder / "Location" / "mask" / "1.png", rows[1])
    path.write_text(json.dumps(rows))
    assert import_set("RefSpatial", folder, "--only", "Location", "--partial") != 0
    assert why in capsys.readouterr().out
    assert not custom_datasets_file().exists()


# --- import of JSON lines -------------------------------------------------------------------------

NOTCH = [0, 0, 20, 10]


def test_boxes_of_json_lines_may_have_masks(tmp_path, capsys) -> None:
    grey(tmp_path / "images" / "a.png")
    mask = np.zeros((HEIGHT, WIDTH), dtype=np.uint8)
    mask[0:10, 0:11] = 255
    Image.fromarray(mask).save(tmp_path / "half.png")
    size = [HEIGHT, WIDTH]
    runs = {"size": size, "counts": [0, 10, *([90, 10] * 10), HEIGHT * WIDTH - 1010]}
    packed = {"size": size, "counts": packed_mask(mask).packed}
    boxes = [
        NOTCH,
        {"box": NOTCH},
        *({"box": NOTCH, "mask": m} for m in ("half.png", runs, packed)),
    ]
    lines = [
        {"image": "a.png", "expression": f"number {at}", "boxes": [box]}
        for at, box in enumerate(boxes)
    ]
    path = tmp_path / "mine.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    images = ["--image-root", str(tmp_path / "images")]
    assert main(["data", "import", str(path), *images, "--name", "Mine"]) == 0
    run = answered(tmp_path, "FindIt_Mine_point_json_point_2d", {at: [(12, 5)] for at in range(5)})
    # In every box, and in none of the masks.
    assert [row.sums["pointed"] for row in run.rows] == [1, 1, 0, 0, 0]
    bad = {"image": "a.png", "expression": "it"}
    for mask, why in (
        ({"size": size}, "boxes[0], mask: {'size': [100, 200]} is neither"),
        ({"size": size, "counts": "99"}, "the runs of a mask come to"),
        ({"size": [2, 2], "counts": [0, 4]}, "the mask is 2x2, but a.png 200x100"),
        ("/etc/passwd", "has an absolute path"),
    ):
        path.write_text(json.dumps({**bad, "boxes": [{"box": NOTCH, "mask": mask}]}))
        assert main(["data", "import", str(path), *images, "--name", "Bad"]) == 2
        assert why in capsys.readouterr().err
    labelled = {"box": NOTCH, "label": "cat", "mask": "half.png"}
    path.write_text(json.dumps({"image": "a.png", "labels": ["cat", "dog"], "boxes": [labelled]}))
    assert main(["data", "import", str(path), *images, "--name", "Two"]) == 0
    for table in ("Two", "Two_multilabel"):
        assert any(query.truth.masks for query in read_table(find_table(table))), table
