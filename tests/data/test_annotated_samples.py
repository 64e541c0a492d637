"""Samples: what every reader returns."""

from __future__ import annotations

from vlmeval_findit.boxes import Ignored, Truth
from vlmeval_findit.data import CROWD, AnnotatedBox, Sample

CAT = (1.0, 2.0, 3.0, 4.0)
DOG = (5.0, 6.0, 7.0, 8.0)


def test_the_truth_of_several_labels_and_of_each() -> None:
    boxes = (AnnotatedBox(CAT, "1", "cat"), AnnotatedBox(DOG, "2", "dog"))
    boxes += (AnnotatedBox(DOG, "3", "dog", ignored=CROWD),)
    both = Sample(("a.jpg",), ("cat", "dog"), boxes, "f")
    crowd = Ignored(DOG, 0, "dog", crowd=True)
    assert both.truth == Truth((CAT, DOG), (0, 0), ("cat", "dog"), ignored=(crowd,))
    cat, dog = both.by_label()
    assert cat.truth == Truth((CAT,), (0,))
    assert dog.truth == Truth((DOG,), (0,), ignored=(crowd._replace(label=""),))
