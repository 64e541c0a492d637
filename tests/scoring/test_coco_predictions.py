"""Boxes of other programs: every common shape of the same boxes is scored alike, or asked about."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import custom_data
import numpy as np
import pytest
from custom_data import ANNOTATIONS, CATEGORIES, IMAGE_IDS
from every_pair import every_pair
from PIL import Image

from vlmeval_findit.cli import main
from vlmeval_findit.marks import packed_mask
from vlmeval_findit.scoring import Run, load_run
from vlmeval_findit.storage import RunFiles

DATA = "FindIt_Mine_xyxy_json"
VARIANTS = (DATA, "FindIt_Mine_multilabel_cxcywh_text", "FindIt_Mine_multilabel_xywh_json_nested")
Result = dict[str, Any]
Out = pytest.CaptureFixture[str]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    custom_data.data_folder(tmp_path, monkeypatch)
    images = custom_data.make_images(tmp_path / "images")
    path = custom_data.write_coco(images)
    assert main(["data", "import", str(path), "--image-root", str(images), "--name", "Mine"]) == 0
    return images


def right() -> list[Result]:
    """Return the true boxes as COCO's results."""
    return [
        {"image_id": IMAGE_IDS[image], "category_id": category, "bbox": box, "score": 1.0}
        for _, image, category, box in ANNOTATIONS
    ]


def scored(predictions: Path) -> Run:
    return load_run(RunFiles(predictions).provenance)


class Written(NamedTuple):
    """A file of results, and the flags with which it is read."""

    name: str
    content: bytes
    flags: Sequence[str] = ()


def as_json(value: object, *flags: str) -> Written:
    return Written("det.json", json.dumps(value).encode(), flags)


def as_lines(results: Sequence[Result]) -> bytes:
    return "\n".join(map(json.dumps, results)).encode() + b"\n"


def each(change: Callable[[Result], Mapping[str, Any]], *flags: str) -> Written:
    return as_json([{**change(result)} for result in right()], *flags)


FILES = {number: name for name, number in IMAGE_IDS.items()}


def file_of(result: Result) -> str:
    return FILES[result["image_id"]]


def without(result: Result, *keys: str, **more: Any) -> Result:
    return {key: value for key, value in result.items() if key not in keys} | more


def corners(result: Result) -> list[float]:
    x, y, width, height = result["bbox"]
    return [x, y, x + width, y + height]


def outline(result: Result) -> list[float]:
    x1, y1, x2, y2 = corners(result)
    return [x1, y1, x2, y1, x2, y2, x1, y2]


def own_ids() -> dict[str, Any]:
    images = [{"id": at, "file_name": name} for at, name in enumerate(IMAGE_IDS)]
    categories = [{"id": at, "name": name} for at, name in enumerate(CATEGORIES.values())]
    image = {name: at for at, name in enumerate(IMAGE_IDS)}
    category = {number: at for at, number in enumerate(CATEGORIES)}
    results = [
        {
            **result,
            "image_id": image[file_of(result)],
            "category_id": category[result["category_id"]],
        }
        for result in right()
    ]
    return {"images": images, "categories": categories, "annotations": results}


WRONG = {"image_id": 501, "category_id": 7, "bbox": [0, 0, 9, 9], "score": 0.2}

SHAPES: dict[str, Callable[[], Written]] = {
    "as COCO has them": lambda: as_json(right()),
    "gzip": lambda: Written("det.json.gz", gzip.compress(json.dumps(right()).encode())),
    "lines": lambda: Written("det.jsonl", as_lines(right())),
    "lines, gzip": lambda: Written("det.jsonl.gz", gzip.compress(as_lines(right()))),
    "lines called JSON": lambda: Written("det.json", as_lines(right())),
    "below annotations": lambda: as_json({"annotations": right()}),
    "below predictions": lambda: as_json({"predictions": right()}),
    "ids of its own": lambda: as_json(own_ids()),
    "ids as text": lambda: each(lambda r: {**r, "image_id": str(r["image_id"])}),
    "ids with a point": lambda: each(lambda r: {**r, "image_id": float(r["image_id"])}),
    "class ids as text": lambda: each(lambda r: {**r, "category_id": str(r["category_id"])}),
    "file names": lambda: each(lambda r: {**r, "image_id": file_of(r)}),
    "paths": lambda: each(lambda r: {**r, "image_id": f"/data/val/{file_of(r)}"}),
    "paths of Windows": lambda: each(
        lambda r: {**r, "image_id": "C:\\val\\" + file_of(r).replace("/", "\\")}
    ),
    "names without suffix": lambda: each(lambda r: {**r, "image_id": Path(file_of(r)).stem}),
    "names in capitals": lambda: each(lambda r: {**r, "image_id": file_of(r).upper()}),
    "key file_name": lambda: each(lambda r: without(r, "image_id", file_name=file_of(r))),
    "classes by name": lambda: each(
        lambda r: {**r, "category_id": CATEGORIES[r["category_id"]]}
    ),
    "key category_name": lambda: each(
        lambda r: without(r, "category_id", category_name=CATEGORIES[r["category_id"]].upper())
    ),
    "nested class": lambda: each(
        lambda r: without(r, "category_id", category={"name": CATEGORIES[r["category_id"]]})
    ),
    "nested class id": lambda: each(
        lambda r: without(r, "category_id", category={"id": r["category_id"], "name": "?"})
    ),
    "null id, and a name": lambda: each(
        lambda r: {**r, "category_id": None, "label": CATEGORIES[r["category_id"]]}
    ),
    "no scores": lambda: each(lambda r: without(r, "score")),
    "null scores": lambda: each(lambda r: {**r, "score": None}),
    "scores of another name": lambda: each(lambda r: without(r, "score", conf=0.5)),
    "a threshold": lambda: as_json([*right(), WRONG], "--min-score", "0.5"),
    "a threshold that is a score": lambda: as_json([*right(), WRONG], "--min-score", "1"),
    "corners": lambda: each(lambda r: {**r, "bbox": corners(r)}, "--box", "corners"),
    "key box": lambda: each(lambda r: without(r, "bbox", box=r["bbox"])),
    "an image of another set": lambda: as_json(
        [*right(), {**WRONG, "image_id": 5}], "--leave-out-unknown", "--min-score", "0"
    ),
    "a class of another set": lambda: as_json(
        [*right(), {**WRONG, "category_id": 5, "score": 1.0}], "--leave-out-unknown"
    ),
    "masks beside": lambda: each(lambda r: {**r, "segmentation": {"size": [1, 1], "counts": "x"}}),
    "polygons": lambda: each(lambda r: without(r, "bbox", segmentation=[outline(r)])),
    "a polygon alone": lambda: each(lambda r: without(r, "bbox", segmentation=outline(r))),
    "polygons, corners": lambda: each(
        lambda r: without(r, "bbox", mask=[outline(r)]), "--box", "corners"
    ),
    "polygons in two parts": lambda: each(
        lambda r: without(r, "bbox", segmentation=[outline(r)[:6], outline(r)[2:]])
    ),
    "a box and no mask": lambda: each(lambda r: {**r, "segmentation": []}),
    "sides stated": lambda: as_json(right(), "--box", "sides"),
}  # fmt: skip


def convert(written: Written, folder: Path, data: str = DATA) -> int:
    folder.mkdir(exist_ok=True)
    path = folder / written.name
    path.write_bytes(written.content)
    return main(["score", str(path), "--convert", "--data", data, *written.flags])


@pytest.mark.sees("score --box")
@every_pair("shape, data", SHAPES, VARIANTS, fast=10)
def test_every_shape_of_the_right_boxes_scores_100(
    shape: str, data: str, folder: Path, tmp_path: Path
) -> None:
    assert convert(SHAPES[shape](), tmp_path / "out", data) == 0
    (path,) = (tmp_path / "out").glob(f"det*_{data}.json")
    run = scored(path)
    assert (run.metric_values["F1@0.5"], run.metric_values["Adherence"]) == (100.0, 100.0)
    assert run.metric_values["mIoU"] > 99.9


REFUSED: dict[str, tuple[Callable[[], Written], str]] = {
    "unknown image": (
        lambda: as_json([*right(), {**WRONG, "image_id": 5}]),
        "image 5 is not in the set (1 box). The set has images 501 (one.jpg), 77 (sub/two.png)",
    ),
    "classes counted from 0": (
        lambda: as_json([*right(), {**WRONG, "category_id": 0}]),
        "class 0 is not in the set (1 box)",
    ),
    "nothing known": (lambda: each(lambda r: {**r, "image_id": "x.jpg"}), "image 'x.jpg' is not"),
    "no class": (lambda: each(lambda r: without(r, "category_id")), "a box without class"),
    "corners, not said": (
        lambda: each(lambda r: {**r, "bbox": corners(r)}),
        "left, top, right and bottom: --box corners",
    ),
    "scores, no threshold": (
        lambda: as_json([*right(), WRONG]),
        "scores are from 0.2 to 1, and F1 counts every box. Say from which score on a box counts, "
        "as chosen on other images: --min-score 0.6 (4 of 5 boxes)",
    ),
    "some scores": (
        lambda: as_json([*right(), without(WRONG, "score")]),
        "entry 5: no score, and other boxes have one",
    ),
    "a threshold, no scores": (
        lambda: each(lambda r: without(r, "score"), "--min-score", "0.5"),
        "no box has a score. Leave --min-score out",
    ),
    "a score in words": (lambda: each(lambda r: {**r, "score": "high"}), "entry 1, score: should"),
    "three numbers": (lambda: each(lambda r: {**r, "bbox": [1, 2, 3]}), "entry 1, bbox: should be"),
    "not a number": (
        lambda: Written("det.jsonl", as_lines([{**WRONG, "bbox": [1, 2, 3, float("nan")]}] * 2)),
        "line 1, bbox: should be four numbers",
    ),
    "a negative side": (
        lambda: each(lambda r: {**r, "bbox": [50, 50, -10, -10]}, "--box", "sides"),
        "has a negative side",
    ),
    "a right border left of the left one": (
        lambda: each(lambda r: {**r, "bbox": [50, 50, 40, 60]}, "--box", "corners"),
        "has a negative side",
    ),
    "a polygon that leaves its image": (
        lambda: each(lambda r: without(r, "bbox", segmentation=[[5, 5, 190, 5, 9, 60]])),
        "entry 1, segmentation: the mask leaves its image of 120 x 80 pixels",
    ),
    "a mask of another size": (
        lambda: each(
            lambda r: without(r, "bbox", segmentation={"size": [2, 2], "counts": [1, 3]})
        ),
        "entry 1, segmentation: the mask is of 2 x 2 pixels, and its image of 120 x 80: write",
    ),
    "broken run lengths": (
        lambda: each(lambda r: without(r, "bbox", mask={"size": [80, 120], "counts": "~"})),
        "entry 1, mask: not run lengths of COCO",
    ),
    "no objects": (lambda: as_json([1, 2]), "entry 1: should be an object, not 1"),
    "cut gzip": (
        lambda: Written("det.json.gz", gzip.compress(json.dumps(right()).encode())[:-9]),
        "damaged gzip file",
    ),
    "a cut line": (
        lambda: Written("det.jsonl", as_lines(right())[:-9]),
        "line 4: not JSON",
    ),
    "other keys": (lambda: as_json([{"a": 1}]), "in no layout that is read"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_clear_is_asked(name: str, folder: Path, tmp_path: Path, capsys: Out) -> None:
    make, says = REFUSED[name]
    assert convert(make(), tmp_path / "out") == 2
    assert says in " ".join(capsys.readouterr().err.split())
    assert len(list((tmp_path / "out").iterdir())) == 1, "nothing is written"


def in_one(*boxes: list[float]) -> list[dict[str, Any]]:
    """Return results in the image of 120 x 80 pixels."""
    return [{**right()[0], "bbox": box} for box in boxes]


_AS_CORNERS = [[2, 2, 30, 30], [5, 5, 40, 40], [1, 10, 50, 40], [10, 2, 60, 35]]
LEAVING: dict[str, tuple[list[dict[str, Any]], str]] = {
    "rounded": ([*right(), *in_one([60, 40, 61.9, 40])], ""),
    "few, and one is no corners": ([*right(), *in_one([60, 40, 70, 40], [60, 40, 30, 20])], ""),
    "a quarter": (
        in_one([60, 40, 30, 20], [70, 40, 30, 20], [80, 40, 30, 20], [60, 40, 70, 40]),
        "1 of 4 boxes lies outside its image, if",
    ),
    "wholly, to the right": (
        [*right() * 3, *in_one([130, 10, 20, 20])],
        "1 of 13 boxes lies outside its image, 1 of them wholly, if",
    ),
    "wholly, above": (
        [*right() * 3, *in_one([10, -30, 20, 20])],
        "1 of 13 boxes lies outside its image, 1 of them wholly, if",
    ),
    "corners fit all": (
        in_one(*_AS_CORNERS, [60, 30, 100, 70]),
        "1 of 5 boxes lies outside its image, if numbers are left, top, width and height, as COCO "
        "has them; if they are left, top, right and bottom, 0. The first",
    ),
    "corners fit more": (
        in_one(*_AS_CORNERS, *_AS_CORNERS, [60, 30, 100, 70], [61, 30, 99, 70], [60, 60, 9, 9]),
        "2 of 11 boxes lie outside their images, if numbers are left, top, width and height, as "
        "COCO has them; if they are left, top, right and bottom, 1. The first",
    ),
}


@pytest.mark.parametrize("name", LEAVING)
def test_boxes_that_leave_their_images_are_asked_about(
    name: str, folder: Path, tmp_path: Path, capsys: Out
) -> None:
    results, says = LEAVING[name]
    assert convert(as_json(results), tmp_path / "out") == (2 if says else 0)
    assert says in " ".join(capsys.readouterr().err.split())
    assert convert(as_json(results, "--box", "sides"), tmp_path / "said") == 0


@pytest.mark.sees("score --min-score", "score --leave-out-unknown")
def test_what_does_not_count_is_said(folder: Path, tmp_path: Path, capsys: Out) -> None:
    others = [{**WRONG, "image_id": 77, "score": 1.0}, {**WRONG, "image_id": 9, "score": 1.0}]
    written = as_json([*right(), WRONG, *others], "--min-score", "0.5", "--leave-out-unknown")
    capsys.readouterr()
    assert convert(written, tmp_path / "out") == 0
    out = capsys.readouterr().out
    assert "5 boxes count; 1 has a score below 0.5" in out
    assert "left out: image 9, not in the set (1 box)" in out
    assert "1 box of classes that no row asks of their image" in out
    assert "det-from-0.5" in out


OUTSIDE = {"bbox": [90, 90, 99, 99]}  # Of an image of 120 x 80 pixels
WORDS = {
    "one box outside": (
        lambda: as_json([{**right()[0], **OUTSIDE}]),
        "1 of 1 box lies outside its image",
    ),
    "two outside": (
        lambda: as_json([{**each, **OUTSIDE} for each in right()[:2]]),
        "2 of 2 boxes lie outside their images",
    ),
    "one of two outside": (
        lambda: as_json([right()[0], {**right()[1], **OUTSIDE}]),
        "1 of 2 boxes lies outside its image",
    ),
    "one box counts": (
        lambda: as_json([right()[0], WRONG], "--min-score", "0.5"),
        "1 box counts; 1 has a score below 0.5",
    ),
    "an empty list": (lambda: as_json([]), "det.json: an empty list: nothing was found"),
    "a number": (lambda: as_json(7), "should be a list of objects, and is 7"),
    "where it is": (lambda: as_json(right()), "det.json: written as"),
}  # fmt: skip


@pytest.mark.parametrize("name", WORDS)
def test_words_agree_with_their_numbers(
    name: str, folder: Path, tmp_path: Path, capsys: Out
) -> None:
    make, says = WORDS[name]
    written = make()
    capsys.readouterr()
    convert(written, tmp_path / "out")
    captured = capsys.readouterr()
    assert says in " ".join((captured.out + captured.err).split())


def test_boxes_around_masks_are_counted(folder: Path, tmp_path: Path, capsys: Out) -> None:
    width, height = custom_data.SIZES["one.jpg"]
    nothing = {"size": [height, width], "counts": [height * width]}
    first, *others = right()
    results = [without(first, "bbox", segmentation=[outline(first)]), *others]
    results.append(without(WRONG, "bbox", segmentation=nothing, score=1.0))
    capsys.readouterr()
    assert convert(as_json(results), tmp_path / "out") == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "1 box around masks" in out
    assert "1 empty mask: no box" in out
    (path,) = (tmp_path / "out").glob(f"det_{DATA}.json")
    assert scored(path).metric_values["F1@0.5"] == 100.0


@pytest.mark.parametrize("stems", [("000012", "7"), ("a", "b")])
def test_sets_of_other_formats_know_images_by_their_names(
    stems: Sequence[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    custom_data.data_folder(tmp_path, monkeypatch)
    lines = ["filename,width,height,class,xmin,ymin,xmax,ymax"]
    for stem in stems:
        Image.new("RGB", (100, 80)).save(tmp_path / f"{stem}.jpg")
        lines.append(f"{stem}.jpg,100,80,cat,10,20,60,70")
    (tmp_path / "boxes.csv").write_text("\n".join(lines) + "\n")
    assert main(["data", "import", str(tmp_path / "boxes.csv"), "--name", "Mine"]) == 0
    names: list[list[object]] = [[f"{stem}.jpg" for stem in stems], [*stems]]
    if stems[0].isdigit():
        names.append([int(stem) for stem in stems])
    for images in names:
        results = [
            {"image_id": image, "category": "Cat", "bbox": [10, 20, 50, 50]} for image in images
        ]
        assert convert(as_json(results), tmp_path / "out") == 0
    (path,) = (tmp_path / "out").glob(f"det_{DATA}.json")
    assert scored(path).metric_values["F1@0.5"] == 100.0


@pytest.mark.parametrize("units", ["pixels", "percent"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_boxes_are_in_the_coordinates_of_the_imported_file(
    orientation: int, units: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    custom_data.data_folder(tmp_path, monkeypatch)
    exif = Image.Exif()
    exif[0x0112] = orientation
    Image.new("RGB", (120, 80)).save(tmp_path / "a.jpg", exif=exif)
    size = (80, 120) if orientation > 4 else (120, 80)
    scale = [100 / side for side in size] if units == "percent" else [1, 1]
    box = [8 * scale[0], 12 * scale[1], 32 * scale[0], 24 * scale[1]]
    image = {"id": 1, "file_name": "a.jpg", "width": size[0], "height": size[1]}
    truth = {
        "images": [image],
        "categories": [{"id": 1, "name": "cat"}],
        "annotations": [{"id": 1, "image_id": 1, "category_id": 1, "bbox": box, "iscrowd": 0}],
    }
    (tmp_path / "truth.json").write_text(json.dumps(truth))
    words = ["data", "import", str(tmp_path / "truth.json"), "--name", "Mine", "--units", units]
    assert main([*words, "--exif", "turned"]) == 0
    mask = np.zeros((size[1], size[0]))
    mask[12:36, 8:40] = 1
    lengths = {"size": [size[1], size[0]], "counts": packed_mask(mask).packed}
    for at, answer in enumerate(({"bbox": box}, {"segmentation": lengths})):
        out = tmp_path / f"out{at}"
        assert convert(as_json([{"image_id": 1, "category_id": 1, **answer}]), out) == 0
        (path,) = out.glob(f"det_{DATA}.json")
        assert scored(path).metric_values["mIoU"] > 99.9


def test_an_export_is_read_again_as_it_was(folder: Path, tmp_path: Path) -> None:
    results = [*right(), {**WRONG, "score": 1.0}]
    del results[1]
    assert convert(as_json(results), tmp_path / "out") == 0
    (path,) = (tmp_path / "out").glob(f"det_{DATA}.json")
    assert main(["export", str(path), "--to", "coco", "--out", str(tmp_path / "coco")]) == 0
    (exported,) = (tmp_path / "coco").glob("*_coco_results.json")
    assert main(["score", str(exported), "--convert", "--data", DATA]) == 0
    (again,) = (tmp_path / "coco").glob(f"*{DATA}.json")
    before = scored(path).metric_values
    assert scored(again).metric_values == before
    assert 0 < before["F1@0.5"] < 100
