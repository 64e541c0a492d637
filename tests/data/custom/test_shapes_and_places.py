"""What has no plain box: shapes with an upright box, objects without one, names that are taken."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import custom_data
import one_truth
import other_formats
import pytest
from few_fast import few_fast
from one_truth import Picture, Thing, draw

from vlmeval_findit.benchmarks.findit import FindItQuery, find_table, read_table
from vlmeval_findit.cli import main

pytestmark = pytest.mark.usefixtures("data_root")

CAT = (10.0, 20.0, 110.0, 220.0)
PICTURE = Picture("a.png", [Thing("cat", CAT)], (640, 480))
Change = Callable[[Any], object]


def imports(path: Path, *flags: str) -> int:
    return main(["data", "import", str(path), "--name", "Mine", "--replace", *flags])


def rows() -> dict[str, FindItQuery]:
    return {row.label: row for row in read_table(find_table("Mine"))}


def changed(writer: one_truth.Writer, folder: Path, change: Change | tuple[str, str]) -> Path:
    """Write a picture with a cat; change the JSON, or put a text in place of another in XML."""
    folder.mkdir()
    draw(folder, "a.png")
    path = writer(folder, [PICTURE])
    file = next(each for each in sorted(folder.iterdir()) if each.suffix in (".json", ".xml"))
    if isinstance(change, tuple):
        assert change[0] in file.read_text()
        file.write_text(file.read_text().replace(*change))
        return path
    value = json.loads(file.read_text())
    change(value)
    file.write_text(json.dumps(value))
    return path


def shape(**keys: Any) -> Change:
    """Return a change that adds a shape of labelme."""
    return lambda value: value["shapes"].append({"label": "dog", **keys})


def region(**keys: Any) -> Change:
    """Return a change that adds a region of VIA."""
    added = {"shape_attributes": keys, "region_attributes": {"label": "dog"}}
    return lambda v: next(iter(v["_via_img_metadata"].values()))["regions"].append(added)


def result(kind: str, labels: tuple[str, ...] = ("dog",), **keys: Any) -> Change:
    """Return a change that adds a region of Label Studio."""
    added = {"type": kind, "original_width": 640, "original_height": 480}
    added |= {"value": {**keys, kind: [*labels]}}  # type: ignore[dict-item]
    return lambda tasks: tasks[0]["annotations"][0]["result"].append(added)


def annotation(**keys: Any) -> Change:
    """Return a change that adds an annotation of COCO."""

    def add(value: Any) -> None:
        value["categories"].append({"id": 7, "name": "dog"})
        value["annotations"].append({"image_id": 0, "category_id": 7, **keys})

    return add


def element(text: str) -> tuple[str, str]:
    """Return a change that adds a shape of CVAT."""
    return ("</image>", f"{text}</image>")


PENTAGON = [[300, 100], [380, 120], [400, 160], [360, 200], [310, 180]]
FLAT = [number for point in PENTAGON for number in point]
AROUND = (300, 100, 400, 200)


@pytest.mark.parametrize(
    ("writer", "change", "box"),
    [
        (one_truth.coco, annotation(segmentation=[FLAT]), AROUND),
        (one_truth.coco, annotation(segmentation=[FLAT], bbox=None), AROUND),
        (one_truth.coco, annotation(segmentation=[FLAT[:6], FLAT[4:]], bbox=[]), AROUND),
        (
            one_truth.coco,
            annotation(segmentation={"size": [480, 640], "counts": [482, 3, 306715]}),
            (1, 2, 2, 5),
        ),
        (one_truth.coco, annotation(bbox=[300, 100, 400, 200], bbox_mode=0), AROUND),
        (one_truth.coco, annotation(bbox=[300, 100, 100, 100], bbox_mode=1), AROUND),
        (one_truth.labelme, shape(points=PENTAGON, shape_type="polygon"), AROUND),
        (one_truth.labelme, shape(points=PENTAGON[:4], shape_type="rotation"), AROUND),
        (one_truth.labelme, shape(points=PENTAGON[:4], shape_type="oriented_rectangle"), AROUND),
        (one_truth.labelme, shape(points=[[350, 150], [350, 200]], shape_type="circle"), AROUND),
        (one_truth.via, region(name="circle", cx=350, cy=150, r=50), AROUND),
        (one_truth.via, region(name="ellipse", cx=350, cy=150, rx=50, ry=50, theta=1.2), AROUND),
        (
            one_truth.via,
            region(name="ellipse", cx=350, cy=150, rx=20, ry=50, theta=1.5707963267948966),
            (300, 130, 400, 170),
        ),
        (
            one_truth.via,
            region(name="polygon", all_points_x=FLAT[::2], all_points_y=FLAT[1::2]),
            AROUND,
        ),
        (
            one_truth.cvat,
            element('<ellipse label="dog" cx="350" cy="150" rx="20" ry="50" rotation="90"/>'),
            (300, 130, 400, 170),
        ),
        (
            one_truth.cvat,
            element('<mask label="dog" rle="0, 8" left="300" top="100" width="100" height="100"/>'),
            AROUND,
        ),
        (
            one_truth.cvat,
            element('<box label="dog" xtl="330" ytl="100" xbr="370" ybr="200" rotation="90"/>'),
            (300, 130, 400, 170),
        ),
        (
            one_truth.label_studio,
            result("rectanglelabels", x=62.5, y=31.25, width=-15.625, height=10.4167),
            (300, 150, 400, 200),
        ),
        (
            one_truth.label_studio,
            result("labels", x=50, y=50, width=10, height=10),
            (320, 240, 384, 288),
        ),
        (
            one_truth.label_studio,
            result("labels", points=[[50, 50], [60, 50], [60, 60]]),
            (320, 240, 384, 288),
        ),
        (
            one_truth.label_studio,
            result("ellipselabels", x=50, y=50, radiusX=10, radiusY=5, rotation=90),
            (296, 176, 344, 304),
        ),
    ],
)
def test_a_shape_becomes_its_upright_box(
    tmp_path,
    writer: one_truth.Writer,
    change: Change | tuple[str, str],
    box: tuple[float, ...],
    capsys,
) -> None:
    assert imports(changed(writer, tmp_path / "set", change)) == 0, capsys.readouterr().err
    assert rows()["dog"].truth.boxes[0] == pytest.approx(box, abs=1e-2)


BOXLESS: list[tuple[one_truth.Writer, Change | tuple[str, str]]] = [
    (one_truth.coco, lambda v: v["annotations"].extend(no_boxes(v["annotations"][0]))),
    (one_truth.labelme, lambda v: v["shapes"].extend(points_of_labelme())),
    (one_truth.via, lambda v: (region_of_cat("point")(v), region_of_cat("polyline")(v))),
    (
        one_truth.cvat,
        element('<points label="cat" points="1,2"/><polyline label="cat" points="1,2;3,4"/>'),
    ),
    (one_truth.label_studio, lambda v: (keypoint(v), keypoint(v))),
    (one_truth.voc, ("</annotation>", "<object><name>cat</name></object>" * 2 + "</annotation>")),
]


def no_boxes(like: dict[str, Any]) -> list[dict[str, Any]]:
    return [{**like, "bbox": bbox} for bbox in (None, [1, 2, 3])]


def points_of_labelme() -> list[dict[str, Any]]:
    return [{"label": "cat", "points": [[x, 9]], "shape_type": "point"} for x in (5, 70)]


def region_of_cat(name: str) -> Change:
    added = {"shape_attributes": {"name": name}, "region_attributes": {"label": "cat"}}
    return lambda v: next(iter(v["_via_img_metadata"].values()))["regions"].append(added)


def keypoint(tasks: Any) -> None:
    result("keypointlabels", labels=("cat",), x=5, y=5, width=1)(tasks)


@pytest.mark.parametrize(("writer", "change"), BOXLESS)
def test_an_object_without_a_box_is_counted_and_ignored(
    tmp_path, writer: one_truth.Writer, change: Change | tuple[str, str], capsys
) -> None:
    """Two of one label are two, and no answer that may have found one is an error."""
    path = changed(writer, tmp_path / "set", change)
    assert imports(path) == 2
    assert "2 of 3 boxes cannot be used" in capsys.readouterr().err
    assert imports(path, "--leave-out-bad-boxes") == 0
    output = capsys.readouterr().out
    assert "cannot be used: --leave-out-bad-boxes (2)" in output
    assert "repeat" not in output
    truth = rows()["cat"].truth
    assert truth.boxes[0] == pytest.approx(CAT)
    assert {(region.box, region.crowd) for region in truth.ignored} == {((0, 0, 640, 480), True)}
    assert imports(path, "--leave-out-bad-boxes", "--drop-class", "cat") == 2


def test_queries_of_objects_without_boxes_are_left_out(tmp_path, capsys) -> None:
    point = {"label": "dog", "points": [[5, 9]], "shape_type": "point"}
    path = changed(one_truth.labelme, tmp_path / "set", lambda v: v["shapes"].append(point))
    assert imports(path, "--leave-out-bad-boxes") == 0
    assert list(rows()) == ["cat"]
    assert "left out: queries all of whose boxes cannot be used (1)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (result("rectanglelabels", labels=(), x=50, y=50, width=10, height=10), "has no label"),
        (result("brushlabels", rle=[1, 2]), "brushlabels has no box"),
    ],
)
def test_one_region_never_refuses_an_export(tmp_path, change: Change, why: str, capsys) -> None:
    path = changed(one_truth.label_studio, tmp_path / "set", change)
    assert imports(path) == 2
    assert f"1 of 2 boxes cannot be used: {path}, [0], annotations[0], result[1]: " in (
        error := capsys.readouterr().err
    )
    assert why in error
    assert imports(path, "--leave-out-bad-boxes") == 0


def test_relations_and_parts_of_a_region_are_not_needed(tmp_path, capsys) -> None:
    def add(tasks: Any) -> None:
        regions = tasks[0]["annotations"][0]["result"]
        regions[0]["id"] = "r1"
        regions.append({"type": "relation", "from_id": "r1", "to_id": "r1"})
        for kind in ("rectangle", "textarea"):
            regions.append({"type": kind, "id": "r1", "value": {"text": ["x"]}})

    assert imports(changed(one_truth.label_studio, tmp_path / "set", add)) == 0
    output = capsys.readouterr().out
    assert "not read" not in output
    assert "relations between regions" in output


# --- numbers that say what others are -------------------------------------------------------------


@pytest.mark.sees("data import --box")
@pytest.mark.parametrize("count", [2, 5, 40])
def test_areas_say_that_boxes_are_corners(tmp_path, count: int, capsys) -> None:
    corners = [(10.0 + at, 20.0 + at, 60.0 + 2 * at, 90.0 + at) for at in range(count)]
    folder = tmp_path / "set"
    folder.mkdir()
    draw(folder, "a.png")
    things = [Thing(f"thing {at}", box) for at, box in enumerate(corners)]
    path = one_truth.coco(folder, [Picture("a.png", things)])
    value = json.loads(path.read_text())
    for row, (x1, y1, x2, y2) in zip(value["annotations"], corners, strict=True):
        row |= {"bbox": [x1, y1, x2, y2], "area": (x2 - x1) * (y2 - y1)}
    path.write_text(json.dumps(value))
    assert imports(path) == 2
    assert f"the areas of {count} annotations fit [x1, y1, x2, y2]" in capsys.readouterr().err
    assert imports(path, "--box", "corners") == 0
    assert rows()["thing 1"].truth.boxes[0] == corners[1]
    assert imports(path, "--box", "sides") == 0


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ({"area": 10**400}, "annotations[1], area: "),
        ({"segmentation": {"size": [480, 640], "counts": [10**400]}}, "is no run length"),
        ({"segmentation": {"size": [480, 640], "counts": [9, -2, 307193]}}, "-2 is no run length"),
        ({"segmentation": {"size": [480, 640], "counts": [2.5, 307197.5]}}, "2.5 is no run length"),
        ({"segmentation": {"size": [480.5, 640], "counts": [1]}}, "480.5 is no side"),
        ({"segmentation": {"size": [10**400, 640], "counts": [1]}}, "is no side"),
        ({"bbox": [10**400, 1, 2, 3]}, "should be [x, y, width, height]"),
        ({"bbox_mode": [4]}, "bbox_mode: [4] should be 0 or 1"),
    ],
)
def test_numbers_that_nothing_holds_are_refused(
    tmp_path, keys: dict[str, Any], why: str, capsys
) -> None:
    path = changed(
        one_truth.coco, tmp_path / "set", annotation(**{"bbox": [300, 100, 50, 50], **keys})
    )
    assert imports(path) == 2
    error = capsys.readouterr().err
    assert "coco.json, annotations[1]" in error
    assert why in error


# --- odd JSON -------------------------------------------------------------------------------------

_ODD = (None, 5, -1, "text", [], {}, True, [None], {"a": 1}, 10**400, -0.5)


def _places(value: Any, way: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    ways = [way]
    if isinstance(value, dict):
        for key, inner in value.items():
            ways += _places(inner, (*way, key))
    if isinstance(value, list):
        for at, inner in enumerate(value[:1]):
            ways += _places(inner, (*way, at))
    return ways


def _with(value: Any, way: tuple[Any, ...], new: Any) -> Any:
    if not way:
        return new
    inner = _with(value[way[0]], way[1:], new)
    if isinstance(value, dict):
        return {**value, way[0]: inner}
    return [inner if at == way[0] else each for at, each in enumerate(value)]


@pytest.mark.parametrize(
    "writer",
    few_fast(
        [
            one_truth.createml,
            one_truth.labelme,
            *(
                pytest.param(writer, marks=pytest.mark.slow)
                for writer in (
                    one_truth.coco,
                    one_truth.bdd100k,
                    one_truth.hf_metadata,
                    one_truth.via,
                    one_truth.label_studio,
                    one_truth.swift,
                )
            ),
        ],
        1,
    ),
)
def test_odd_json_is_read_or_refused_with_its_place(
    tmp_path, writer: one_truth.Writer, capsys
) -> None:
    """Every value in place of every other: exit 0, or 2 with one message; never an exception."""
    draw(tmp_path, "a.png")
    flagged = [Thing("cat", CAT, {"iscrowd": 0})]
    written = writer(tmp_path, [Picture("a.png", flagged, (640, 480), {"split": "val"})])
    file = written if written.is_file() else tmp_path / "a.json"
    value = json.loads(file.read_text())
    for way in _places(value):
        for new in _ODD:
            file.write_text(json.dumps(_with(value, way, new)))
            status = imports(file)
            error = capsys.readouterr().err
            assert status in (0, 2), (way, new)
            assert (status == 2) is error.startswith("error: "), (way, new)


@pytest.mark.parametrize(
    ("file", "text", "status"),
    [
        ("x.json", '{"frames": [], "images": [], "annotations": [], "categories": []}', 2),
        ("x.json", '[{"_via_img_metadata": {}}]', 2),
        ("x.json", '{"_via_img_metadata": null}', 2),
        ("x.json", '{"info": 1, "info": [2], "images": 5}', 2),
        (
            "metadata.jsonl",
            '{"file_name": "a.png", "objects": '
            '{"bbox": [[1, 2, 30, 40]], "category": ["x"], "iscrowd": null}}',
            0,
        ),
    ],
)
def test_json_of_two_formats_is_told(tmp_path, file: str, text: str, status: int, capsys) -> None:
    draw(tmp_path, "a.png")
    (tmp_path / file).write_text(text)
    assert imports(tmp_path / file) == status
    assert ("error: " in capsys.readouterr().err) is (status == 2)


# --- names that are taken -------------------------------------------------------------------------


@pytest.mark.parametrize("stem", ["train", "Test", "notes", "README", "val", "readme.v2"])
@pytest.mark.parametrize("beside", [True, False])
def test_a_text_called_like_an_image_is_its_label_file(
    tmp_path, stem: str, beside: bool, capsys
) -> None:
    folder = tmp_path / "set"
    images, labels = (folder, folder) if beside else (folder / "images", folder / "labels")
    for name in (stem, "dog"):
        draw(images, f"{name}.jpg")
        labels.mkdir(exist_ok=True)
        (labels / f"{name}.txt").write_text("0 0.5 0.5 0.2 0.2\n")
    (folder / "data.yaml").write_text("names: [cat]")
    (labels / "notes.md").write_text("remember")
    assert imports(folder) == 0
    assert "boxes (2)" in capsys.readouterr().out


def test_names_of_classes_may_be_labels_of_an_image(tmp_path, capsys) -> None:
    folder = tmp_path / "set"
    for name in ("classes", "dog"):
        draw(folder, f"{name}.jpg")
    (folder / "dog.txt").write_text("0 0.5 0.5 0.2 0.2\n")
    (folder / "classes.txt").write_text("cat\n")
    assert imports(folder) == 2
    assert "are these names of classes, or the labels of classes?" in capsys.readouterr().err
    (folder / "data.yaml").write_text("names: [cat]")
    (folder / "classes.txt").write_text("0 0.5 0.5 0.2 0.2\n")
    assert imports(folder) == 0
    assert "boxes (2)" in capsys.readouterr().out


@pytest.mark.parametrize("labels", ["fu\u0308r", "F\u00dcR"])
def test_labels_of_names_that_are_alike_are_found(tmp_path, labels: str) -> None:
    folder = tmp_path / "set"
    folder.mkdir()
    custom_data.write_yolo(folder)
    (folder / "images" / "one.jpg").rename(folder / "images" / "f\u00fcr.jpg")
    (folder / "labels" / "one.txt").rename(folder / "labels" / f"{labels}.txt")
    assert imports(folder) == 0
    assert "f\u00fcr.jpg" in {row.images[0] for row in read_table(find_table("Mine"))}
    kitti = other_formats.kitti(tmp_path / "kitti") / "training"
    (kitti / "image_2" / "one.jpg").rename(kitti / "image_2" / "f\u00fcr.jpg")
    (kitti / "label_2" / "one.txt").rename(kitti / "label_2" / f"{labels}.txt")
    assert imports(kitti) == 0


def test_lists_of_kitti_say_what_its_splits_are(tmp_path) -> None:
    folder = other_formats.kitti(tmp_path / "set")
    (folder / "ImageSets").mkdir()
    (folder / "ImageSets" / "train.txt").write_text("three\nsub/two\n")
    (folder / "ImageSets" / "val.txt").write_text("one\n")
    for flags, read in (
        ((), "one"),
        (("--split", "training"), "one"),
        (("--split", "train"), "two"),
    ):
        assert imports(folder, *flags) == 0
        assert {Path(row.images[0]).stem for row in read_table(find_table("Mine"))} >= {read}
