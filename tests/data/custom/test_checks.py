"""Whatever a reader makes: what does not suit its family is refused with its place."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from vlmeval_findit.benchmarks.findit import Family
from vlmeval_findit.boxes import Corners
from vlmeval_findit.data import (
    CROWD,
    DIFFICULT,
    AnnotatedBox,
    AnnotationError,
    Fate,
    Ledger,
    Sample,
    Samples,
    check_samples,
    usable_boxes,
)

BOX = AnnotatedBox((10.0, 20.0, 50.0, 60.0), "a.json, boxes[0]")
QUERY = Sample(("a.jpg",), "cat", (BOX,), "a.json, line 1")
REFERENCES = replace(QUERY, support=("r.jpg",))
CLIP = replace(QUERY, images=("a.jpg", "b.jpg"))


def check(family: Family, *queries: Sample, frames: int | None = None) -> None:
    check_samples(Samples(Path("a.json"), Path("images"), family, queries, frames=frames))


@pytest.mark.parametrize(
    ("family", "query"),
    [
        (Family.OBJDET, QUERY),
        (Family.OBJDET, replace(QUERY, boxes=())),
        (Family.OBJDET, replace(QUERY, label=("cat", "dog"), boxes=(BOX, BOX))),
        (Family.REFEXP, replace(QUERY, boxes=(BOX, replace(BOX, ignored=DIFFICULT)))),
        (Family.REFEXP_ALL, replace(QUERY, boxes=(BOX, BOX))),
        (Family.INSDET, REFERENCES),
        (Family.OBJDET_VIDEO, CLIP),
        (Family.INSDET_VIDEO, replace(CLIP, support=("r.jpg",))),
    ],
)
def test_every_family_has_its_shape(family: Family, query: Sample) -> None:
    check(family, query)


@pytest.mark.parametrize(
    ("family", "query", "why"),
    [
        (Family.OBJDET, replace(QUERY, label=("cat", "cat")), "duplicate label"),
        (
            Family.REFEXP,
            replace(QUERY, boxes=(BOX, BOX)),
            "2 boxes, but refexp is about exactly one object",
        ),
        (
            Family.REFEXP,
            replace(QUERY, boxes=(replace(BOX, ignored=DIFFICULT),)),
            "0 boxes, but refexp is about exactly one object",
        ),
        (Family.INSDET, QUERY, "no reference images"),
        (Family.INSDET_VIDEO, CLIP, "no reference images"),
        (Family.OBJDET, REFERENCES, "has reference images"),
        (Family.OBJDET, CLIP, "2 images, but objdet shows one"),
        (Family.OBJDET, replace(QUERY, label="a\nb"), "'a\\nb' is not plain text on one line"),
        (Family.OBJDET, replace(QUERY, caption="a\tb"), "'a\\tb' is not plain text on one line"),
    ],
)
def test_another_shape_is_refused(family: Family, query: Sample, why: str) -> None:
    with pytest.raises(AnnotationError) as refused:
        check(family, QUERY if family is Family.REFEXP else query, query)
    assert str(refused.value) == f"a.json, line 1: {why}"


def test_a_name_of_a_clip_holds_four_digits_of_frames() -> None:
    long = replace(CLIP, images=tuple(f"{at}.jpg" for at in range(10_000)))
    check(Family.OBJDET_VIDEO, replace(long, images=long.images[:9999]))
    check(Family.OBJDET_VIDEO, long, frames=9999)
    with pytest.raises(AnnotationError, match="10000 frames are more than 9999"):
        check(Family.OBJDET_VIDEO, long)


# --- a box and its image --------------------------------------------------------------------------


class Filled:
    """A mask of an image of 100 x 80 that fills a box of it; None: nothing."""

    width = 100
    height = 80

    def __init__(self, *extent: float) -> None:
        self.extent = extent or None


@pytest.mark.parametrize(
    ("corners", "mask", "why"),
    [
        # An edge may be a pixel outside of its image, as tools round.
        ((-1.0, -1.0, 101.0, 81.0), None, None),
        ((-1.1, 0.0, 9.0, 9.0), None, "leaves a.jpg, which is 100x80"),
        ((0.0, -1.1, 9.0, 9.0), None, "leaves a.jpg, which is 100x80"),
        ((0.0, 0.0, 101.1, 9.0), None, "leaves a.jpg, which is 100x80"),
        ((0.0, 0.0, 9.0, 81.1), None, "leaves a.jpg, which is 100x80"),
        ((5.0, 5.0, 5.0, 9.0), None, r"has no area\b(?!:)"),
        ((5.0, 5.0, 9.0, 5.0), None, r"has no area\b(?!:)"),
        ((90.0, 20.0, 20.5, 50.0), None, "has no area: x2, 20.5, lies left of x1, 90"),
        ((5.0, 50.0, 9.0, 20.0), None, "has no area: y2, 20, lies above y1, 50"),
        ((90.0, 50.0, 9.0, 20.0), None, "has no area: x2, 9, lies left of x1, 90"),
        # A mask is in its box, but for a tenth of a side or two pixels, and fills half of it.
        (BOX.corners, (10, 20, 50, 60), None),
        (BOX.corners, (6, 16, 54, 64), None),
        (BOX.corners, (5, 20, 50, 60), "contradicts the box"),
        (BOX.corners, (10, 20, 50, 65), "contradicts the box"),
        (BOX.corners, (10, 20, 26, 60), None),
        (BOX.corners, (10, 20, 25, 60), "contradicts the box"),
        (BOX.corners, (10, 45, 50, 60), "contradicts the box"),
        ((10.0, 20.0, 20.0, 30.0), (8, 18, 22, 32), None),
        ((10.0, 20.0, 20.0, 30.0), (7, 20, 20, 30), "contradicts the box"),
        (BOX.corners, (), None),
    ],
)
def test_a_box_lies_in_its_image_and_around_its_mask(
    corners: tuple[float, ...], mask: tuple[float, ...] | None, why: str | None
) -> None:
    box = replace(BOX, corners=corners, mask=None if mask is None else Filled(*mask))
    query = replace(QUERY, boxes=(box,))
    sizes = {"a.jpg": (100, 80)}
    ledger = Ledger()
    if why is None:
        assert usable_boxes([query], sizes, False, ledger) == (query,)
        return
    with pytest.raises(AnnotationError, match=f"boxes.0.: .*{why}"):
        usable_boxes([query], sizes, False, ledger)
    other = replace(QUERY, boxes=(box, replace(BOX, where="a.json, boxes[1]")))
    kept = usable_boxes([query, other], sizes, True, ledger)
    assert [[each.where for each in query.counted] for query in kept] == [["a.json, boxes[1]"]]
    # The object is still there: an answer that finds it is no error.
    assert [each.where for each in kept[0].boxes if each.ignored] == ["a.json, boxes[0]"]
    assert [(each.what, each.count) for each in ledger if each.fate is Fate.LEFT_OUT] == [
        ("boxes that cannot be used: --leave-out-bad-boxes", 1),
        ("queries all of whose boxes cannot be used", 1),
    ]


def test_classes_without_a_bad_box_stay_asked() -> None:
    """Those that are not there, and ignored objects of a class that is asked about no more."""
    good = replace(BOX, label="cat")
    bad = AnnotatedBox((5.0, 5.0, 5.0, 9.0), "a.json, boxes[1]", "dog")
    crowd = AnnotatedBox(BOX.corners, "a.json, boxes[2]", "dog", ignored=CROWD)
    query = replace(QUERY, label=("bird", "cat", "dog"), boxes=(good, bad, crowd))
    (kept,) = usable_boxes([query], {"a.jpg": (100, 80)}, True, Ledger())
    assert kept.label == ("bird", "cat")
    # Without an area it may be anywhere.
    assert [(box.where, bool(box.ignored)) for box in kept.boxes] == [
        ("a.json, boxes[0]", False),
        ("a.json, boxes[2]", True),
        ("a.json, boxes[1]", True),
    ]


@pytest.mark.parametrize(
    ("corners", "inside"),
    [
        ((-30.0, 20.0, 80.0, 70.0), (0, 20, 80, 70)),
        ((10.0, -30.0, 80.0, 70.0), (10, 0, 80, 70)),
        ((10.0, 20.0, 130.0, 70.0), (10, 20, 100, 70)),
        ((10.0, 20.0, 80.0, 110.0), (10, 20, 80, 80)),
        ((-9.0, -9.0, 130.0, 110.0), (0, 0, 100, 80)),
    ],
    ids=["left", "top", "right", "bottom", "all"],
)
def test_a_box_is_cut_off_at_each_border(corners: Corners, inside: Corners) -> None:
    query = replace(QUERY, boxes=(BOX, replace(BOX, corners=corners, where="a.json, boxes[1]")))
    sizes = {"a.jpg": (100, 80)}
    ledger = Ledger()
    (clipped,) = usable_boxes([query], sizes, False, ledger, clip=True)
    assert [box.corners for box in clipped.boxes] == [BOX.corners, inside]
    assert [each.count for each in ledger] == [1]
    assert usable_boxes([clipped], sizes, False, Ledger()) == (clipped,)
