"""Queries made of annotated objects: the same for every format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from vlmeval_findit.data import (
    CROWD,
    DIFFICULT,
    IGNORED,
    AnnotatedBox,
    AnnotationError,
    ClassRules,
    Counts,
    Detections,
    Fate,
    Ledger,
    ReaderOptions,
    Samples,
    detection_samples,
)

CAT = (1.0, 2.0, 3.0, 4.0)
DOG = (5.0, 6.0, 7.0, 8.0)


def samples_of(
    objects: Sequence[tuple[str, AnnotatedBox]],
    rules: ClassRules | None = None,
    sizes: Mapping[str, Any] | None = None,
    **more: Any,
) -> Samples:
    """Make samples of objects in images without a stated size."""
    images = dict.fromkeys(image for image, _ in objects) if sizes is None else sizes
    classes = more.pop("classes", ())
    options = ReaderOptions(
        classes=rules or ClassRules(), all_classes=more.pop("all_classes", False)
    )
    found = Detections(Path("f"), Path(), images, objects, classes, **more)
    return detection_samples(found, options, Ledger())


def left_out(samples: Samples) -> dict[str, int]:
    return {each.what: each.count for each in samples.ledger if each.fate is Fate.LEFT_OUT}


def asked(samples: Samples) -> list[tuple[str, Any, list[str]]]:
    """Return image, label and the places of the boxes of every query."""
    return [(q.images[0], q.label, [box.where for box in q.boxes]) for q in samples.queries]


def test_objects_are_asked_for_by_label_and_by_image() -> None:
    objects = [
        ("b.jpg", AnnotatedBox(CAT, "1", "cat")),
        ("a.jpg", AnnotatedBox(DOG, "2", "dog")),
        ("b.jpg", AnnotatedBox(DOG, "3", "dog")),
        ("b.jpg", AnnotatedBox(CAT, "4", "dog", ignored=CROWD)),
        ("a.jpg", AnnotatedBox(CAT, "5", "cat", ignored=DIFFICULT)),
        ("only.jpg", AnnotatedBox(CAT, "6", "cat", ignored=CROWD)),
    ]
    sizes = dict.fromkeys(("a.jpg", "b.jpg", "empty.jpg", "only.jpg"))
    samples = samples_of(objects, sizes=sizes)
    asked = [
        (query.images[0], query.label, [box.where for box in query.boxes])
        for query in samples.queries
    ]
    assert asked == [
        ("b.jpg", "cat", ["1"]),
        ("a.jpg", "dog", ["2"]),
        ("b.jpg", "dog", ["3", "4"]),
        ("empty.jpg", "cat", []),
        ("b.jpg", ("cat", "dog"), ["1", "3", "4"]),
        ("a.jpg", ("dog",), ["2", "5"]),
        ("empty.jpg", ("cat",), []),
    ]
    assert left_out(samples) == {f"{CROWD} that no query is about": 1}
    assert "ignored boxes (2)" in samples.ledger.lines()[0]
    assert samples.counts == Counts(images=4, boxes=3, queries=3, classes=0, ignored=3)


def test_an_object_that_stands_twice_counts_once_and_is_named() -> None:
    objects = [
        ("a.jpg", AnnotatedBox(CAT, "1", "cat")),
        ("a.jpg", AnnotatedBox(CAT, "2", "cat")),
        ("a.jpg", AnnotatedBox(CAT, "3", "dog")),
        ("b.jpg", AnnotatedBox(CAT, "4", "cat")),
        ("b.jpg", AnnotatedBox(CAT, "5", "cat", ignored=IGNORED)),
        ("a.jpg", AnnotatedBox((1.0, 2.0, 3.0, 4.5), "6", "cat")),
    ]
    samples = samples_of(objects)
    single = [row for row in asked(samples) if isinstance(row[1], str)]
    assert single == [
        ("a.jpg", "cat", ["1", "6"]),
        ("a.jpg", "dog", ["3"]),
        ("b.jpg", "cat", ["4", "5"]),
    ]
    assert left_out(samples) == {"boxes that repeat image, label and corners of another": 1}


@pytest.mark.parametrize(
    "name", ["DontCare", "ignored regions", "__ignore__", "Ignore", "Don't care"]
)
def test_a_class_that_says_ignore_needs_a_decision(name: str) -> None:
    objects = [("a.jpg", AnnotatedBox(CAT, "1", "car")), ("a.jpg", AnnotatedBox(DOG, "2", name))]
    with pytest.raises(AnnotationError, match="--ignore-class") as error:
        samples_of(objects)
    assert "--drop-class" in str(error.value)
    as_it_is = samples_of(objects, ClassRules(rename={name: name}))
    assert ("a.jpg", name, ["2"]) in asked(as_it_is)
    dropped = samples_of(objects, ClassRules(drop=(name,)))
    assert asked(dropped) == [("a.jpg", "car", ["1"]), ("a.jpg", ("car",), ["1"])]
    ignored = samples_of(objects, ClassRules(ignore=(name,)))
    assert asked(ignored) == [("a.jpg", "car", ["1", "2"]), ("a.jpg", ("car",), ["1", "2"])]
    for query in ignored.queries:
        (region,) = query.truth.ignored
        assert (region.box, region.crowd) == (DOG, True)


def test_an_ignored_region_counts_for_every_label() -> None:
    objects = [
        ("a.jpg", AnnotatedBox(CAT, "1", "cat")),
        ("a.jpg", AnnotatedBox(CAT, "2", "dog")),
        ("a.jpg", AnnotatedBox(DOG, "3", "DontCare")),
        ("b.jpg", AnnotatedBox(DOG, "4", "DontCare")),
    ]
    samples = samples_of(objects, ClassRules(ignore=("DontCare",)))
    assert asked(samples) == [
        ("a.jpg", "cat", ["1", "3"]),
        ("a.jpg", "dog", ["2", "3"]),
        ("b.jpg", "cat", ["4"]),
        ("a.jpg", ("cat", "dog"), ["1", "2", "3", "3"]),
        ("b.jpg", ("cat",), ["4"]),
    ]
    assert [query.counted for query in samples.queries if query.images == ("b.jpg",)] == [(), ()]


def test_every_class_that_is_asked_about_has_ignored_boxes() -> None:
    """Whether an object of it is there or not."""
    objects = [
        ("a.jpg", AnnotatedBox(CAT, "1", "cat")),
        ("a.jpg", AnnotatedBox(CAT, "2", "dog", ignored=CROWD)),
        ("a.jpg", AnnotatedBox(DOG, "3", "DontCare")),
        ("b.jpg", AnnotatedBox(DOG, "4", "dog")),
        ("c.jpg", AnnotatedBox(CAT, "5", "cat", ignored=DIFFICULT)),
    ]
    samples = samples_of(objects, ClassRules(ignore=("DontCare",)), all_classes=True)
    assert asked(samples) == [
        ("a.jpg", "cat", ["1", "3"]),
        ("a.jpg", "dog", ["2", "3"]),
        ("b.jpg", "cat", []),
        ("b.jpg", "dog", ["4"]),
        ("c.jpg", "cat", ["5"]),
        ("c.jpg", "dog", []),
        ("a.jpg", ("cat", "dog"), ["1", "3", "2", "3"]),
        ("b.jpg", ("cat", "dog"), ["4"]),
        ("c.jpg", ("cat", "dog"), ["5"]),
    ]
    assert left_out(samples) == {}


def test_classes_are_renamed_and_joined() -> None:
    objects = [
        ("a.jpg", AnnotatedBox(CAT, "1", "n01")),
        ("a.jpg", AnnotatedBox(DOG, "2", "n02")),
        ("a.jpg", AnnotatedBox(CAT, "3", "n02")),
    ]
    samples = samples_of(objects, ClassRules(rename={"n01": "cat", "n02": "cat", "n03": "cow"}))
    assert asked(samples) == [("a.jpg", "cat", ["1", "2"]), ("a.jpg", ("cat",), ["1", "2"])]


@pytest.mark.parametrize(
    ("rules", "why"),
    [
        (ClassRules(ignore=("Cta",)), "--ignore-class Cta: unknown class"),
        (ClassRules(drop=("cta",)), "did you mean cat"),
        (ClassRules(rename={"cta": "x"}), "--rename-class cta=x: unknown class"),
        (ClassRules(drop=("cat",), ignore=("cat",)), "leave one of them out"),
    ],
)
def test_a_rule_of_an_unknown_class_is_refused(rules: ClassRules, why: str) -> None:
    with pytest.raises(AnnotationError, match=why):
        samples_of([("a.jpg", AnnotatedBox(CAT, "1", "cat"))], rules)


@pytest.mark.parametrize("name", ["bowl, ceramic", "+", "Cat"])
def test_a_label_with_a_comma_spoils_only_its_query(name: str) -> None:
    objects = [
        ("a.jpg", AnnotatedBox(CAT, "1", "cat")),
        ("a.jpg", AnnotatedBox(DOG, "2", name)),
        ("b.jpg", AnnotatedBox(DOG, "3", "cat")),
    ]
    samples = samples_of(objects)
    assert asked(samples) == [
        ("a.jpg", "cat", ["1"]),
        ("a.jpg", name, ["2"]),
        ("b.jpg", "cat", ["3"]),
        ("b.jpg", ("cat",), ["3"]),
    ]
    (why,) = left_out(samples)
    assert "queries for all labels of an image: the label" in why


def test_labels_that_are_not_annotated_exhaustively_are_not_asked() -> None:
    objects = [("a.jpg", AnnotatedBox(CAT, "1", "cat")), ("a.jpg", AnnotatedBox(DOG, "2", "dog"))]
    samples = samples_of(
        objects,
        sizes=dict.fromkeys(("a.jpg", "b.jpg", "c.jpg")),
        not_exhaustive={"a.jpg": frozenset(["cat"])},
        absent={"b.jpg": ["dog"]},
    )
    assert asked(samples) == [
        ("a.jpg", "dog", ["2"]),
        ("b.jpg", "dog", []),
        ("a.jpg", ("dog",), ["2"]),
        ("b.jpg", ("dog",), []),
    ]
    assert left_out(samples) == {
        "boxes in images where not every instance of their label is annotated": 1,
        "images without objects for which no label is known to be absent": 1,
    }
