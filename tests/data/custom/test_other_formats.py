"""Formats of other tools: those that are read say what COCO says, the others are named."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import custom_data
import other_formats
import pytest

from vlmeval_findit.data import (
    CROWD,
    AnnotationError,
    ClassRules,
    Fate,
    ReaderOptions,
    Samples,
    import_samples,
    read_coco,
    recognise,
)

pytestmark = pytest.mark.usefixtures("data_root")


def read(path: Path, options: ReaderOptions | None = None) -> Samples:
    options = options or ReaderOptions()
    layout = recognise(path, options.split)
    return layout.format.read(layout.path, layout.images, options)


def told(samples: Samples) -> dict[str, int]:
    """Return what the ledger says that was not read, was left out, or is noted."""
    fates = (Fate.NOT_READ, Fate.LEFT_OUT, Fate.NOTED)
    return {entry.what: entry.count for entry in samples.ledger if entry.fate in fates}


# --- formats that are read ------------------------------------------------------------------------


@pytest.mark.parametrize("write", other_formats.DETECTIONS)
def test_the_same_data_gives_the_same_queries(tmp_path, write: Callable[[Path], Path]) -> None:
    (tmp_path / "coco").mkdir()
    images = custom_data.make_images(tmp_path / "coco")
    coco = read_coco(custom_data.write_coco(images), images)
    renames = {"traffic_light": "traffic light"} if write is other_formats.kitti else {}
    options = ReaderOptions(
        classes=ClassRules(rename=renames), split="training" if renames else None
    )
    samples = read(write(tmp_path / "set"), options)

    def queries(of: Samples) -> dict[object, list[tuple[float, ...]]]:
        return {
            (query.images, query.label): sorted(
                tuple(round(n * 1.0, 6) for n in _pixels(box.corners, query.images[0], of))
                for box in query.boxes
            )
            for query in of.queries
        }

    assert queries(samples) == queries(coco)
    assert samples.counts.boxes == len(custom_data.ANNOTATIONS)
    assert told(samples) == {}
    assert len(import_samples("Other", samples).tables) == 2


def _pixels(corners: Sequence[float], image: str, samples: Samples) -> list[float]:
    if samples.units.value == "pixels":
        return [*corners]
    size = custom_data.SIZES[image] * 2
    return [number * side / samples.units.scale for number, side in zip(corners, size, strict=True)]


def test_ms_swift_asks_for_each_expression_about_all_its_boxes(tmp_path) -> None:
    custom_data.make_images(tmp_path)
    objects: list[dict[str, Any]] = [
        {"ref": ["a", "b", "a"], "bbox": [[1, 2, 3, 4], [5, 6, 7, 8], [9, 9, 20, 20]]},
        {"ref": ["all"], "bbox": [[1, 2, 3, 4], [5, 6, 7, 8]]},
    ]
    names = ("one.jpg", "three.jpg")
    path = other_formats.as_lines(
        tmp_path / "train.jsonl",
        [
            {"messages": [], "images": [name], "objects": each, "colour": 1}
            for name, each in zip(names, objects, strict=True)
        ],
    )
    samples = read(path)
    found = {(q.images[0], q.label): [box.corners for box in q.boxes] for q in samples.queries}
    assert found == {
        ("one.jpg", "a"): [(1, 2, 3, 4), (9, 9, 20, 20)],
        ("one.jpg", "b"): [(5, 6, 7, 8)],
        ("three.jpg", "all"): [(1, 2, 3, 4), (5, 6, 7, 8)],
    }
    assert told(samples) == {"lines: colour": 2}


@pytest.mark.parametrize(
    ("objects", "why"),
    [
        ({"ref": ["a", "b"], "bbox": [[1, 2, 3, 4]]}, "which box is whose"),
        ({"ref": ["a"], "bbox": [[1, 2]]}, r"boxes\[0\]"),
        ({"ref": ["a"], "bbox": [[1, 2, 3, 4]], "bbox_type": "px"}, "should be real or norm1"),
        ({"ref": ["a"], "bbox": [[1, 2, 3, 4]], "image_id": [2]}, "1 images, but an object is in"),
    ],
)
def test_ms_swift_that_is_not_clear_is_refused(tmp_path, objects: Any, why: str) -> None:
    custom_data.make_images(tmp_path)
    line = {"messages": [], "images": ["one.jpg"], "objects": objects}
    with pytest.raises(AnnotationError, match=why):
        read(other_formats.as_lines(tmp_path / "a.jsonl", [line]))


R, B = "<ref-object>", "<bbox>"


@pytest.mark.parametrize(
    ("question", "answer", "refs", "expressions"),
    [
        (f"Find {R}", f"{B}{B}", ["cat"], ["cat", "cat"]),
        ("Describe it", f"{R}{B} and {R}{B} play", ["cat", "dog"], ["cat", "dog"]),
        ("Describe it", f"{B} is {R}, {B} is {R}", ["cat", "dog"], ["cat", "dog"]),
        ("Describe it", f"{R}: {B}{B}; {R}: {B}", ["cat", "dog"], ["cat", "cat", "dog"]),
        (
            f"What is {B}?",
            R,
            [
                "cat",
            ],
            ["cat"],
        ),
        (
            f"Find {R}",
            f'[{{"bbox_2d": {B}, "label": "{R}"}}, {{"bbox_2d": {B}, "label": "{R}"}}]',
            ["animals", "cat", "dog"],
            ["cat", "dog"],
        ),
        (f"Find {R}, not {R}", B, ["cat", "dog"], None),
        (f"Find {R} and {R}", f"{B}{B}", ["cat", "dog"], None),
        ("Describe it", f"{R} {B} {R}", ["cat", "dog"], None),
        ("Describe it", f"{B} {R} {B}", ["cat", "dog"], None),
    ],
)
@pytest.mark.parametrize("as_text", [False, True])
def test_ms_swifts_boxes_have_the_names_beside_them(
    tmp_path, question: str, answer: str, refs: list[str], expressions: list[str] | None, as_text
) -> None:
    custom_data.make_images(tmp_path)
    boxes = [[at, 2, at + 9, 9] for at in range(answer.count(B) + question.count(B))]
    objects: Any = {"ref": refs, "bbox": boxes}
    objects = json.dumps(objects) if as_text else objects
    messages = [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
    lines: list[Any] = [
        {"messages": messages, "images": ["one.jpg"]},
        {"messages": messages, "images": [{"path": "/far/one.jpg", "bytes": None}]},
        {"messages": [], "images": ["one.jpg"], "objects": {"ref": [], "bbox": [[1, 2]]}},
    ]
    lines[1]["objects"] = objects
    path = other_formats.as_lines(tmp_path / "train.jsonl", lines)
    if expressions is None:
        with pytest.raises(AnnotationError, match=r"line 2, objects: .* which box is whose"):
            read(path)
        return
    samples = read(path)
    as_list = other_formats.as_json(tmp_path / "train.json", lines[1:])
    truths = [(query.images, query.label, query.truth) for query in samples.queries]
    of_list = read(as_list).queries
    assert [(query.images, query.label, query.truth) for query in of_list] == truths
    found = {box.corners[0]: query.label for query in samples.queries for box in query.boxes}
    assert [found[at] for at in range(len(boxes))] == expressions
    assert told(samples) == {
        "lines without objects: no grounding": 1,
        "lines without an expression (ref)": 1,
        "images that lie in another folder than their names say": len({*expressions}),
    }


def test_ms_swift_says_its_units(tmp_path) -> None:
    custom_data.make_images(tmp_path)
    objects = {"ref": ["a"], "bbox": [[0.1, 0.2, 0.5, 0.5]], "bbox_type": "norm1"}
    lines = [{"images": ["one.jpg"], "objects": objects, "messages": []}]
    assert read(other_formats.as_lines(tmp_path / "a.jsonl", lines)).units.value == "fractions"
    lines.append({"images": ["three.jpg"], "objects": {**objects, "bbox_type": "real"}})
    with pytest.raises(AnnotationError, match="line 2: bbox_type is not that of"):
        read(other_formats.as_lines(tmp_path / "a.jsonl", lines))


def _change(path: Path, change: Callable[[Any], None]) -> None:
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value))


def _label_studio_task(datasets: Any) -> None:
    datasets[0]["colour"] = 1
    datasets[0]["annotations"][0]["mood"] = 1
    datasets[0]["annotations"][0]["result"][0]["weather"] = 1
    datasets[1]["annotations"][0]["was_cancelled"] = True
    datasets[0]["annotations"][0]["result"].append({"type": "choices", "value": {"choices": ["x"]}})


def _via_image(value: Any) -> None:
    image = next(iter(value["_via_img_metadata"].values()))
    image["colour"] = 1
    image["regions"][0]["mood"] = 1
    image["regions"][0]["region_attributes"]["weather"] = "sun"


def _createml_image(images: Any) -> None:
    images[0]["colour"] = 1
    images[0]["annotations"][0]["mood"] = 1
    images[0]["annotations"][0]["coordinates"]["depth"] = 1


def _bdd_frame(frames: Any) -> None:
    frames[0]["colour"] = 1
    frames[0]["labels"][0]["mood"] = 1
    frames[0]["labels"][0]["box2d"]["z"] = 1
    frames[0]["labels"][0]["attributes"] = {"rainy": True}
    frames[0]["labels"].append({"category": "lane", "poly2d": []})


def _labelme_file(value: Any) -> None:
    value["colour"] = 1
    value["shapes"][0]["mood"] = 1
    value["shapes"][0]["flags"] = {"unsure": True, "sure": False}


@pytest.mark.parametrize(
    ("write", "file", "change", "expected"),
    [
        (
            other_formats.labelme,
            "one.json",
            _labelme_file,
            {"files: colour": 1, "shapes: mood": 1, "flags of shapes: unsure": 1},
        ),
        (
            other_formats.label_studio,
            "project.json",
            _label_studio_task,
            {
                "tasks: colour": 1,
                "annotations: mood": 1,
                "regions: weather": 1,
                "regions of the type choices": 1,
                "tasks that nobody annotated": 1,
            },
        ),
        (
            other_formats.via,
            "via.json",
            _via_image,
            {"images: colour": 1, "regions: mood": 1, "attributes of regions: weather": 1},
        ),
        (
            other_formats.createml,
            "createml.json",
            _createml_image,
            {"images: colour": 1, "annotations: mood": 1, "coordinates: depth": 1},
        ),
        (
            other_formats.bdd100k,
            "det_val.json",
            _bdd_frame,
            {
                "frames: colour": 1,
                "labels: mood": 1,
                "box2d: z": 1,
                "attributes of labels: rainy": 1,
                "labels: poly2d": 1,
                "labels without a box: lanes and areas": 1,
            },
        ),
    ],
)
def test_what_is_not_known_is_in_the_ledger(
    tmp_path,
    write: Callable[[Path], Path],
    file: str,
    change: Callable[[Any], None],
    expected: dict[str, int],
) -> None:
    path = write(tmp_path / "set")
    _change(tmp_path / "set" / file, change)
    assert told(read(path)) == expected


def test_cvats_other_shapes_are_counted(tmp_path) -> None:
    folder = other_formats.cvat(tmp_path / "set")
    path = folder / "annotations.xml"
    text = path.read_text().replace('name="one', 'subset="Validation" mood="1" name="one')
    text = text.replace('name="sub', 'subset="Train" name="sub').replace(
        'name="three', 'subset="Train" name="three'
    )
    text = text.replace("</image>", '<tag label="day"/><points label="cat" points="1,2"/></image>')
    path.write_text(text)
    samples = read(folder)
    assert {query.images[0] for query in samples.queries} == {"one.jpg"}
    assert told(samples) == {
        "images of the subset Train": 2,
        "images: mood": 1,
        "tags of images": 1,
    }
    with pytest.raises(AnnotationError, match="is a <points>, which has no box"):
        import_samples("Points", samples)


def test_labelme_polygons_have_masks_and_groups_are_one_object(tmp_path) -> None:
    folder = other_formats.labelme(tmp_path / "set")
    parts = [
        {"label": "cat", "points": [[10, 10], [20, 10], [20, 20]], "group_id": 3},
        {"label": "cat", "points": [[40, 40], [60, 40], [60, 50]], "group_id": 3},
        {"label": "cat", "points": [[70, 20], [73, 24]], "shape_type": "circle"},
        {"label": "cat", "points": [[1, 1]], "shape_type": "point"},
    ]
    _change(folder / "one.json", lambda value: value.update(shapes=parts))
    samples = read(folder)
    (query,) = [q for q in samples.queries if q.images == ("one.jpg",) and q.label == "cat"]
    assert [box.corners for box in query.boxes[:2]] == [(10, 10, 60, 50), (65, 15, 75, 25)]
    mask = query.boxes[0].mask
    assert mask is not None
    assert mask.covers(18, 12)
    assert mask.covers(58, 42)
    assert not mask.covers(30, 30)
    (point,) = samples.boxless
    assert (point.image, point.label) == ("one.jpg", "cat")
    assert point.why == "is a point, which has no box"


def test_turned_boxes_of_label_studio_become_upright_ones(tmp_path) -> None:
    path = other_formats.label_studio(tmp_path / "set")

    def turn(datasets: Any) -> None:
        region = datasets[0]["annotations"][0]["result"][0]
        region["value"] |= {"x": 50, "y": 25, "width": 10, "height": 5, "rotation": 90}

    _change(path, turn)
    # 120 x 80 pixels: 12 x 4 about (60, 20) is (56, 20, 60, 32).
    (box,) = [
        box
        for query in read(path).queries
        for box in query.boxes
        if isinstance(query.label, str)
        and box.where.endswith("json, [0], annotations[0], result[0]")
    ]
    assert box.corners == pytest.approx((100 * 56 / 120, 25, 50, 40))


def test_annotations_of_several_people_are_refused(tmp_path) -> None:
    path = other_formats.label_studio(tmp_path / "set")
    _change(path, lambda datasets: datasets[0]["annotations"].append({"result": []}))
    with pytest.raises(AnnotationError, match="2 annotations, of one image by several people"):
        read(path)


def test_crowds_of_bdd100k_are_ignored(tmp_path) -> None:
    path = other_formats.bdd100k(tmp_path / "set")
    _change(path, lambda frames: frames[0]["labels"][0].update(attributes={"crowd": True}))
    samples = read(path)
    assert [b.ignored for q in samples.queries for b in q.boxes if b.ignored] == [CROWD] * 2


def test_numbers_of_categories_need_names(tmp_path) -> None:
    path = other_formats.hf_metadata(tmp_path / "set")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        line["objects"]["category"] = [7 for _ in line["objects"]["category"]]
    other_formats.as_lines(path, lines)
    with pytest.raises(AnnotationError, match="type --rename-class 7=NAME"):
        read(path)
    samples = read(path, ReaderOptions(classes=ClassRules(rename={"7": "cat"})))
    assert {query.label for query in samples.queries if isinstance(query.label, str)} == {"cat"}


def test_results_in_kittis_format_are_no_labels(tmp_path) -> None:
    folder = other_formats.kitti(tmp_path / "set")
    path = folder / "training" / "label_2" / "one.txt"
    path.write_text("Car 0 0 1.8 10 10 50 50 1 1 1 1 1 1 1 0.9\n")
    with pytest.raises(AnnotationError, match=r"one\.txt, line 1: has a score"):
        read(folder, ReaderOptions(split="training"))


def test_via_needs_one_attribute_that_is_the_label(tmp_path) -> None:
    path = other_formats.via(tmp_path / "set")

    def rename(value: Any) -> None:
        for image in value["_via_img_metadata"].values():
            for region in image["regions"]:
                region["region_attributes"] = {"kind": "a", "age": "old"}

    _change(path, rename)
    with pytest.raises(AnnotationError, match=r"which attribute .* there are kind, age"):
        read(path)


# --- formats that are only named ------------------------------------------------------------------

FOREIGN: list[tuple[str, Any, str, str]] = [
    # A file, what is in it, its name, and a part of the way
    (
        "res.json",
        [{"image_id": 4, "category_id": 1, "bbox": [1, 2, 3, 4], "score": 0.5}],
        "COCO results list",
        "name the instances file",
    ),
    (
        "anns.json",
        [{"id": 1, "image_id": 4, "category_id": 1, "bbox": [1, 2, 3, 4]}],
        "list of COCO annotations",
        '"categories"',
    ),
    (
        "pan.json",
        {"images": [], "annotations": [{"image_id": 1, "segments_info": []}], "categories": []},
        "COCO panoptic",
        "instances_",
    ),
    (
        "cap.json",
        {"images": [{"id": 1}], "annotations": [{"image_id": 1, "id": 2, "caption": "a cat"}]},
        "COCO captions",
        "instances_",
    ),
    (
        "annotations/default.json",
        {"info": {}, "categories": {"label": {"labels": []}}, "items": [{"id": "a"}]},
        "datumaro",
        "-if datumaro -f coco_instances",
    ),
    (
        "set.json",
        [{"file_name": "a.png", "annotations": [{"bbox": [1, 2, 3, 4], "category_id": 0}]}],
        "Detectron2's list of images",
        "then: data import FILE.jsonl --name NAME",
    ),
    ("samples.json", {"samples": [{"filepath": "data/a.png"}]}, "FiftyOne's samples.json", "COCO"),
    ("v.json", {"project": {}, "config": {}, "view": {}, "file": {}}, "VIA 3", "COCO"),
    (
        "min.json",
        [{"image": "/data/a.png", "id": 1, "label": [], "annotator": 1, "annotation_id": 2}],
        "JSON_MIN",
        "Export as JSON or COCO",
    ),
    ("lb.ndjson", '{"data_row": {"id": "x"}, "projects": {}}', "Labelbox", "COCO"),
    (
        "train.jsonl",
        '{"id": 1, "image": "a.png", "conversations": [{"from": "human", "value": "where?"}]}',
        "conversations",
        "--units thousandths",
    ),
    ("train.json", [{"messages": [{"role": "user"}], "images": ["a.png"]}], "conversations", ""),
    (
        "pg.jsonl",
        '{"image": "a.png", "prefix": "detect cat", "suffix": "<loc0001>"}',
        "PaliGemma",
        "expression",
    ),
    (
        "fl.jsonl",
        '{"image": "a.png", "prefix": "<OD>", "suffix": "cat<loc_16><loc_42><loc_176><loc_469>"}',
        r"Florence-2 \(<loc_1>: x1, y1, x2, y2 in thousandths",
        "--units thousandths",
    ),
    (
        "pg2.jsonl",
        '{"image": "a.png", "prefix": "detect cat", "suffix": "<loc0042><loc0016><loc0469>"}',
        "PaliGemma .*: y1, x1, y2, x2 in 1/1024",
        "in the order x1, y1, x2, y2, divided by 1024), into",
    ),
    (
        "region_descriptions.json",
        [{"id": 1, "regions": [{"region_id": 2, "phrase": "a cat", "x": 1, "y": 2}]}],
        "regions of Visual Genome",
        "--box sides",
    ),
    (
        "objects.json",
        [{"image_id": 1, "objects": [{"names": ["cat"], "x": 1, "y": 2, "w": 3, "h": 4}]}],
        "objects of Visual Genome",
        "--box sides",
    ),
    (
        "val_sceneGraphs.json",
        {"2407890": {"width": 6, "height": 4, "objects": {"7": {"name": "cat", "x": 1}}}},
        "scene graphs of GQA",
        "--box sides",
    ),
    (
        "sa_1.json",
        {"image": {"file_name": "sa_1.jpg"}, "annotations": [{"bbox": [1, 2, 3, 4], "area": 9}]},
        "SA-1B",
        "--box sides",
    ),
    ("scale.json", [{"task_id": "a", "response": {"annotations": []}}], "tasks of Scale", "left"),
    (
        "x_gtFine_polygons.json",
        {"imgHeight": 4, "imgWidth": 6, "objects": [{"label": "car", "polygon": [[1, 2]]}]},
        "Cityscapes",
        "the boxes around the polygons",
    ),
    (
        "vertex.jsonl",
        '{"imageGcsUri": "gs://b/a.png", "boundingBoxAnnotations": [{"displayName": "cat"}]}',
        "Vertex AI",
        "--units fractions",
    ),
    (
        "azure.jsonl",
        '{"image_url": "AmlDatastore://a.png", "label": [{"label": "cat", "topX": 0.1}]}',
        "Azure Machine Learning",
        "--units fractions",
    ),
    ("sly/meta.json", {"classes": [], "tags": []}, "Supervisely", "Name its folder, which has"),
    ("g.json", [{"box_2d": [1, 2, 3, 4], "label": "cat"}], "Gemini", "label"),
    ("q.jsonl", '{"image": "a.png", "expression": "cat", "bbox_2d": [1, 2, 3, 4]}', "Qwen", ""),
    ("gt/gt.txt", "1,1,794.2,47.5,71.2,174.8,1,1,0.8\n", "MOT", "-if mot_seq"),
    ("a.txt", "0 0.5 0.5 0.25 0.25\n", "label file of YOLO", "Name the folder"),
    ("a.xml", "<annotation><object><bndbox><xmin>1", "a file of VOC", "Name the folder"),
    (
        "a.xml",
        "<annotation><imagesize><nrows>4</nrows></imagesize></annotation>",
        "LabelMe's XML",
        "-if label_me",
    ),
    ("via.csv", "filename,file_size,region_shape_attributes\n", "VIA's CSV", "as JSON"),
    ("set.zip", "PK", "an archive", "Unpack it"),
    ("data-00000-of-00001.arrow", "ARROW1", "Arrow of datasets", ".to_parquet('test.parquet')"),
]


@pytest.mark.parametrize(("file", "content", "name", "way"), FOREIGN)
@pytest.mark.parametrize("in_folder", [False, True])
def test_an_unsupported_format_is_named_with_a_way_to_convert(
    tmp_path, file: str, content: Any, name: str, way: str, in_folder: bool
) -> None:
    path = tmp_path / "set" / file
    path.parent.mkdir(parents=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    if in_folder and "Name the folder" in way:
        return
    with pytest.raises(AnnotationError, match=name) as refusal:
        recognise(tmp_path / "set" if in_folder else path, None)
    assert way in str(refusal.value)
    assert "did you mean" not in str(refusal.value)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.jsonl", '{"captions": [], "photo": "a.png", "rects": []}'),
        ("a.json", '{"photos": []}'),
        ("a.json", "[1, 2]"),
        ("a.json", "[]"),
        ("a.csv", "a.png,10,10,50,50,7\n"),
        ("a.csv", "photo,left_side\n"),
        ("a.doc", "text"),
        ("a.txt", "something\n"),
    ],
)
def test_an_unknown_file_is_told_what_is_expected(tmp_path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(AnnotationError) as refusal:
        read(path)
    message = str(refusal.value)
    assert message.startswith(str(path))
    assert "did you mean" not in message
    assert any(word in message for word in ("images", "image,", "boxes", "should be .json"))
