"""COCO files as tools write them: what stands beside the box is honoured, or named."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from custom_data import coco_values, make_images
from hypothesis import given
from hypothesis import strategies as st

from vlmeval_findit.data import (
    CROWD,
    IGNORED,
    AnnotationError,
    BoxForm,
    Fate,
    ReaderOptions,
    Samples,
    Units,
    around_turned,
    read_coco,
)
from vlmeval_findit.data.custom import coco

Values = dict[str, Any]


def read(folder: Path, change: Callable[[Values], object], **options: Any) -> Samples:
    """Read the small file, changed."""
    values: Values = coco_values()
    change(values)
    path = folder / "instances.json"
    path.write_text(json.dumps(values))
    return read_coco(path, make_images(folder / "images"), ReaderOptions(**options))


def refusal(folder: Path, change: Callable[[Values], object]) -> str:
    with pytest.raises(AnnotationError) as error:
        read(folder, change)
    return str(error.value)


def entries(samples: Samples, fate: Fate) -> dict[str, int]:
    return {entry.what: entry.count for entry in samples.ledger if entry.fate is fate}


def single(samples: Samples) -> list[tuple[str, Any, list[tuple[float, ...]], list[str]]]:
    """Return image, label, corners and why each is ignored, of queries with one label."""
    return [
        (q.images[0], q.label, [box.corners for box in q.boxes], [box.ignored for box in q.boxes])
        for q in samples.queries
        if isinstance(q.label, str)
    ]


def annotation(at: int, **keys: Any) -> Callable[[Values], None]:
    """Return a change of one annotation."""
    return lambda values: values["annotations"][at].update(keys)


def image(at: int, **keys: Any) -> Callable[[Values], None]:
    return lambda values: values["images"][at].update(keys)


# --- every key is accounted for -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda v: v.update(splits=["val"]), "the file: splits"),
        (image(0, split="train"), "images: split"),
        (annotation(0, score=0.9), "annotations: score"),
        (annotation(0, attributes={"colour": "red"}), "attributes of annotations: colour"),
        (lambda v: v["categories"][0].update(merged=True), "categories: merged"),
    ],
)
def test_a_key_that_no_reader_knows_is_named(tmp_path, change: Any, what: str) -> None:
    samples = read(tmp_path, change)
    assert entries(samples, Fate.NOT_READ) == {what: 1}
    (entry,) = (each for each in samples.ledger if each.fate is Fate.NOT_READ)
    assert entry.first.startswith(str(tmp_path / "instances.json"))


def test_keys_of_the_format_itself_are_not_needed(tmp_path) -> None:
    def change(values: Values) -> None:
        values |= {"info": {}, "licenses": []}
        values["images"][0] |= {"license": 1, "date_captured": ""}

    samples = read(tmp_path, change)
    assert entries(samples, Fate.NOT_READ) == {}
    assert entries(samples, Fate.READ) == {"images": 3, "boxes": 4}
    assert {"annotations: id": 4, "images: license": 1}.items() <= entries(
        samples, Fate.NOT_NEEDED
    ).items()


# --- what does not count --------------------------------------------------------------------------


@pytest.mark.parametrize("value", [1, True])
@pytest.mark.parametrize(("key", "why"), [("ignore", IGNORED), ("iscrowd", CROWD)])
def test_flags_that_say_not_to_count(tmp_path, key: str, why: str, value: Any) -> None:
    samples = read(tmp_path, annotation(0, **{key: value}))
    assert ("one.jpg", "cat", [(60, 40, 120, 80), (10, 5, 40.5, 25.25)], ["", why]) in single(
        samples
    )
    for absent in (0, False, None):
        samples = read(tmp_path, annotation(0, **{key: absent}))
        assert samples.counts.ignored == 0


def test_classes_that_are_not_annotated_exhaustively_are_not_asked(tmp_path) -> None:
    def change(values: Values) -> None:
        values["images"][0]["not_exhaustive_category_ids"] = [7, 99]
        values["images"][0]["neg_category_ids"] = []
        values["images"][1]["not_exhaustive_category_ids"] = []
        values["images"][2]["neg_category_ids"] = [3]

    samples = read(tmp_path, change)
    assert [(row[0], row[1]) for row in single(samples)] == [
        ("one.jpg", "traffic light"),
        ("sub/two.png", "traffic light"),
        ("three.jpg", "traffic light"),
    ]
    why = "boxes in images where not every instance of their label is annotated"
    assert entries(samples, Fate.LEFT_OUT) == {why: 2}


def test_images_without_objects_are_queries_with_nothing_to_find(tmp_path) -> None:
    samples = read(tmp_path, lambda v: None)
    assert ("three.jpg", "cat", [], []) in single(samples)
    samples = read(tmp_path, lambda v: None, negatives=False)
    assert {"images without an object, which make no query": 1} == entries(samples, Fate.LEFT_OUT)


def test_lvis_names_its_images_by_addresses(tmp_path) -> None:
    def change(values: Values) -> None:
        name = values["images"][1].pop("file_name")
        values["images"][1]["coco_url"] = f"http://images.example.org/coco/{name}"

    assert "sub/two.png" in read(tmp_path, change).sizes


# --- rotation, masks, sizes -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("angle", "box"),
    [
        (0.0, (10, 20, 50, 30)),
        (360.0, (10, 20, 50, 30)),
        (90.0, (25, 5, 35, 45)),
        (-90.0, (25, 5, 35, 45)),
        (180.0, (10, 20, 50, 30)),
        (45.0, (12.322, 7.322, 47.678, 42.678)),
    ],
)
def test_a_rotated_box_becomes_the_upright_box_around_it(
    tmp_path, angle: float, box: tuple[float, ...]
) -> None:
    assert around_turned((10, 20, 50, 30), angle) == pytest.approx(box, abs=1e-3)
    turned = annotation(3, bbox=[10, 20, 40, 10], attributes={"rotation": angle, "occluded": False})
    samples = read(tmp_path, turned)
    (row,) = (row for row in single(samples) if row[0] == "sub/two.png")
    assert row[2][0] == pytest.approx(box, abs=1e-3)
    is_noted = "rotated boxes that became the upright boxes around them" in entries(
        samples, Fate.NOTED
    )
    assert is_noted is (angle % 360 != 0)


def test_a_rotation_of_unknown_meaning_is_refused_with_its_box(tmp_path) -> None:
    samples = read(tmp_path, annotation(0, rotation=30))
    (thing,) = samples.boxless
    assert thing.why == "has a rotation, which is not read: state an upright box"


def rectangle(x1: float, y1: float, x2: float, y2: float) -> list[list[float]]:
    return [[x1, y1, x2, y1, x2, y2, x1, y2]]


def test_masks_show_that_boxes_are_corners(tmp_path) -> None:
    """[x1, y1, x2, y2] in place of [x, y, width, height]."""

    def change(values: Values) -> None:
        for row in values["annotations"]:
            x, y, w, h = row["bbox"]
            corners = [x, y, x + w, y + h]
            row |= {"bbox": corners, "segmentation": rectangle(*corners)}

    why = (
        "bbox should be [x, y, width, height], but the masks of 3 annotations fit [x1, y1, x2, y2]"
    )
    assert why in refusal(tmp_path, change)


MASKED = {  # A box, and the corners of its mask
    "corners": ([10, 20, 60, 60], (10, 20, 60, 60)),
    "nearly corners": ([10, 20, 65, 60], (10, 20, 60, 60)),
    "sides": ([10, 20, 50, 40], (10, 20, 60, 60)),
    "nearly sides": ([10, 20, 55, 40], (10, 20, 60, 60)),
    "both": ([0, 0, 60, 40], (0, 0, 60, 40)),
    "neither": ([10, 20, 50, 40], (10, 20, 30, 60)),
}
"""Nearly: off by a tenth of the mask's width, which is as much as a box may be."""


@pytest.mark.parametrize(
    ("boxes", "is_refused"),
    [
        (("corners",), True),
        (("nearly corners",), True),
        (("corners", "neither"), True),
        (("corners", "corners", "sides"), True),
        (("corners", "sides"), False),
        (("corners", "nearly sides"), False),
        (("corners", "both"), False),
        (("both",), False),
        (("neither",), False),
    ],
)
def test_more_masks_fit_corners_than_sides(
    tmp_path, boxes: tuple[str, ...], is_refused: bool
) -> None:
    def change(values: Values) -> None:
        first = values["annotations"][0]
        first.pop("area", None)
        annotations = []
        for at, name in enumerate(boxes):
            bbox, mask = MASKED[name]
            annotations.append({**first, "id": at, "bbox": bbox, "segmentation": rectangle(*mask)})
        values["annotations"] = annotations

    if is_refused:
        assert "annotations fit [x1, y1, x2, y2]" in refusal(tmp_path, change)
    else:
        read(tmp_path, change)


@pytest.mark.parametrize(
    ("of_corners", "of_neither", "is_refused"),
    [(1, 0, False), (2, 0, True), (2, 2, True), (2, 3, False), (3, 2, True), (5, 6, False)],
)
def test_areas_show_that_boxes_are_corners(
    tmp_path, of_corners: int, of_neither: int, is_refused: bool
) -> None:
    """Two at least, and half of all that are no area of [x, y, width, height] either."""

    def change(values: Values) -> None:
        first = values["annotations"][0]
        values["annotations"] = [
            {
                **first,
                "id": at,
                "bbox": [10 + at, 20, 110 + at, 220],
                "area": 20000 if at < of_corners else 5000,
            }
            for at in range(of_corners + of_neither)
        ]

    if is_refused:
        assert f"the areas of {of_corners} annotations fit [x1" in refusal(tmp_path, change)
    else:
        read(tmp_path, change)


def test_a_mask_must_roughly_fill_its_box(tmp_path) -> None:
    fits = annotation(3, segmentation=rectangle(5, 9, 44, 86))
    assert entries(read(tmp_path, fits), Fate.NOTED) == {}
    bbox, mask = MASKED["nearly sides"]
    barely = annotation(3, bbox=bbox, segmentation=rectangle(*mask), area=None)
    assert entries(read(tmp_path, barely), Fate.NOTED) == {}
    smaller = annotation(3, segmentation=rectangle(4, 8, 30, 88))
    noted = {"boxes that are not the boxes around their masks": 1}
    assert entries(read(tmp_path, smaller), Fate.NOTED) == noted


@pytest.mark.parametrize(
    ("area", "is_kept", "is_noted"),
    [
        (3200, False, False),
        (3201.5, False, False),
        (2000, True, False),
        (3361, True, False),
        (3362, True, True),
        (0, False, False),
        (-9, False, False),
        (True, False, False),
        (None, False, False),
        ("2000", False, False),
        (float("nan"), False, False),
        (float("inf"), False, False),
    ],
)
def test_an_area_other_than_its_box_is_kept(
    tmp_path, area: Any, is_kept: bool, is_noted: bool
) -> None:
    """The box is 40 x 80; a mask is smaller, and nothing is larger but by a line of pixels."""
    samples = read(tmp_path, annotation(3, area=area))
    box = ("sub/two.png", "traffic light", (4.0, 8.0, 44.0, 88.0))
    assert samples.areas == ({box: area} if is_kept else {})
    noted = {"annotations whose area is larger than their box": 1}
    assert entries(samples, Fate.NOTED) == (noted if is_noted else {})


@pytest.mark.parametrize(
    ("keys", "size"),
    [
        ({"width": 0, "height": 0}, None),
        ({"width": None, "height": 80}, None),
        ({"width": 120.0, "height": 80.0}, (120, 80)),
        ({}, (120, 80)),
    ],
)
def test_sizes_as_exporters_fill_them(tmp_path, keys: Values, size: Any) -> None:
    samples = read(tmp_path, image(0, **keys))
    assert samples.sizes["one.jpg"] == size
    noted = entries(samples, Fate.NOTED)
    assert ("images without a stated size: they are measured" in noted) is (size is None)


@pytest.mark.parametrize("bbox", [None, [], [1, 2, 3], ["1", 2, 3, 4], [1, 2, 3, True], "1 2 3 4"])
def test_a_value_that_is_no_box_is_listed_as_bad(tmp_path, bbox: Any) -> None:
    samples = read(tmp_path, annotation(0, bbox=bbox))
    more = ": numbers, not text" if bbox == ["1", 2, 3, 4] else ""
    bad = {thing.where: thing.why for thing in samples.boxless}
    assert bad == {
        f"{tmp_path}/instances.json, annotations[0]": (
            f"bbox: {bbox!r:.60} should be [x, y, width, height]{more}"
        )
    }


# --- ids and names --------------------------------------------------------------------------------


def with_text_ids(values: Values) -> None:
    for row in values["images"]:
        row["id"] = f"img-{row['id']}"
    for row in values["categories"]:
        row["id"] = str(row["id"])
    for row in values["annotations"]:
        row["image_id"] = f"img-{row['image_id']}"
        row["category_id"] = str(row["category_id"])


def test_ids_may_be_texts(tmp_path) -> None:
    samples = read(tmp_path, with_text_ids)
    assert single(samples) == single(read(tmp_path, lambda values: None))
    assert samples.image_ids["one.jpg"] == "img-501"
    assert samples.category_ids == {"cat": "7", "traffic light": "3"}


def _images_with_texts(values: dict[str, Any]) -> None:
    for each in values["images"]:
        each["id"] = str(each["id"])


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (
            annotation(0, category_id="7"),
            "category_id: unknown id '7'; 7 exists: write both as the same type",
        ),
        (image(0, id="501"), "image ids are numbers, as 77, and texts, as '501'"),
        (_images_with_texts, "image_id: unknown id 501; '501' exists: write both as the same type"),
        (annotation(0, image_id=1), "annotations[0], image_id: unknown id 1"),
        (annotation(0, image_id=[501]), "image_id: [501] should be a whole number or a text"),
        (lambda v: v["categories"][0].update(name="traffic light"), "7 and 3 have one name"),
        (
            lambda v: v.pop("categories"),
            "no categories; a COCO file has images",
        ),
        (lambda v: v.update(images={}), "images: should be a list"),
    ],
)
def test_what_contradicts_itself_is_refused(tmp_path, change: Any, why: str) -> None:
    assert why in refusal(tmp_path, change)


def test_a_class_that_only_names_the_project_is_left_out(tmp_path) -> None:
    project = {"id": 0, "name": "cat", "supercategory": "none"}
    samples = read(tmp_path, lambda values: values["categories"].insert(0, project))
    assert single(samples) == single(read(tmp_path, lambda values: None))
    assert entries(samples, Fate.LEFT_OUT) == {"class 0 that no box has: Roboflow's project": 1}


def test_images_are_found_under_encoded_names_without_their_folder(tmp_path) -> None:
    samples = read(tmp_path, image(0, file_name="/data/upload/1/one%2Ejpg"))
    assert "one.jpg" in samples.sizes


def test_annotations_may_stand_before_images(tmp_path) -> None:
    def reverse(values: Values) -> None:
        for key in list(values)[::-1]:
            values[key] = values.pop(key)

    assert single(read(tmp_path, reverse)) == single(read(tmp_path, lambda values: None))


# --- many at once ---------------------------------------------------------------------------------

KEYS = {
    "area": [0, 800, 800.5, 1200, 3200, 1e300, -1, None, "800", float("nan"), float("inf")],
    "attributes": [{}, {"rotation": 30}, {"rotation": 0, "occluded": True}],
    "bbox": [[10, 5, 40.0, 20], [10, 5, 20, 60], [1, 1, 0, 0], [1, 2, 3], None],
    "bbox_mode": [0, 1],
    "category_id": [3, 99, "7"],
    "ignore": [0, 1, "no"],
    "iscrowd": [0, 1, 2],
    "rotation": [0, 5],
    "score": [0.5],
    "segmentation": [[], [[10, 5, 50, 5, 50, 25, 10, 25]], {"size": [80, 120], "counts": "x"}],
}
CHANGES = st.dictionaries(st.sampled_from(sorted(KEYS)), st.integers(0, 9), max_size=2)


@given(st.lists(CHANGES, min_size=1, max_size=6), st.booleans(), st.sampled_from([None, *BoxForm]))
def test_annotations_read_together_are_as_each_alone(
    tmp_path_factory, changes: list[dict[str, int]], masks: bool, form: BoxForm | None
) -> None:
    folder = tmp_path_factory.mktemp("coco")
    values = coco_values()
    row = {**values["annotations"][0], "area": 800, "iscrowd": 0}
    values["annotations"] = []
    for at, of_row in enumerate(changes):
        chosen = {key: KEYS[key][place % len(KEYS[key])] for key, place in of_row.items()}
        values["annotations"].append({**row, "id": at, **chosen})
    path = folder / "instances.json"
    path.write_text(json.dumps(values))
    images = make_images(folder / "images")

    def outcome() -> object:
        try:
            samples = read_coco(path, images, ReaderOptions(masks=masks, form=form))
        except AnnotationError as error:
            return str(error)
        return (samples.queries, samples.areas, samples.boxless, samples.ledger.as_json())

    together = outcome()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(coco._AnnotationReader, "_are_plain", lambda *given: False)
        assert outcome() == together


@pytest.mark.parametrize("key", ["images", "annotations", "categories"])
def test_an_object_instead_of_a_list_is_refused(tmp_path, key: str) -> None:
    assert f", {key}: should be a list" in refusal(tmp_path, lambda v: v.update({key: {"a": 1}}))


# --- size -----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_memory_holds_boxes_not_the_files_text(tmp_path) -> None:
    """Of 30 MB of polygons, whose masks are left out."""
    values = coco_values()
    outline = [[round(10 + at % 17 * 1.137, 3) for at in range(1500)]]
    row = {**values["annotations"][0], "segmentation": outline}
    values["annotations"] = [
        {**row, "id": at, "bbox": [10, 5, 20 + at / 1000, 20]} for at in range(3000)
    ]
    path = tmp_path / "large.json"
    path.write_text(json.dumps(values))
    size = path.stat().st_size
    assert size > 25_000_000
    tracemalloc.start()
    samples = read_coco(path, tmp_path, ReaderOptions(masks=False))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert samples.counts.boxes == 3000
    assert peak < size / 2
    assert samples.units is Units.PIXELS
