"""Samples: what every reader returns."""

from __future__ import annotations

from pathlib import Path

from vlmeval_findit.boxes.box_records import Ignored, Truth
from vlmeval_findit.data.annotated_samples import (
    CROWD,
    DIFFICULT,
    AnnotatedBox,
    Counts,
    Sample,
    detection_samples,
)

CAT, DOG = (1.0, 2.0, 3.0, 4.0), (5.0, 6.0, 7.0, 8.0)


def test_objects_are_asked_for_by_label_and_by_image() -> None:
    objects = [
        ("b.jpg", AnnotatedBox(CAT, "1", "cat")),
        ("a.jpg", AnnotatedBox(DOG, "2", "dog")),
        ("b.jpg", AnnotatedBox(DOG, "3", "dog")),
        ("b.jpg", AnnotatedBox(CAT, "4", "dog", ignored=CROWD)),
        ("a.jpg", AnnotatedBox(CAT, "5", "cat", ignored=DIFFICULT)),
    ]
    sizes = dict.fromkeys(("a.jpg", "b.jpg", "empty.jpg"))
    samples = detection_samples(Path("f"), Path(), sizes, objects, backgrounds=["empty.jpg"])
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
        ("a.jpg", ("dog",), ["2"]),
        ("empty.jpg", ("cat",), []),
    ]
    assert samples.left_out == {f"{DIFFICULT} in images with nothing else of their label": 1}
    assert samples.counts == Counts(images=3, boxes=3, queries=3, classes=0, ignored=2)


def test_the_truth_of_several_labels_and_of_each() -> None:
    boxes = (AnnotatedBox(CAT, "1", "cat"), AnnotatedBox(DOG, "2", "dog"))
    boxes += (AnnotatedBox(DOG, "3", "dog", ignored=CROWD),)
    both = Sample(("a.jpg",), ("cat", "dog"), boxes, "f")
    crowd = Ignored(DOG, 0, "dog", crowd=True)
    assert both.truth == Truth((CAT, DOG), (0, 0), ("cat", "dog"), ignored=(crowd,))
    cat, dog = both.by_label()
    assert cat.truth == Truth((CAT,), (0,))
    assert dog.truth == Truth((DOG,), (0,), ignored=(crowd._replace(label=""),))
