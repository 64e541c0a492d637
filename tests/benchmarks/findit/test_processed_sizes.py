"""Pixels after a processor's resize refer to the size that the processor really gave."""

from __future__ import annotations

from typing import Any

import pytest

from vlmeval_findit.benchmarks.findit import FindItQuery, SpaceInForce, pixel_map
from vlmeval_findit.boxes import ToPixels, Truth, space_from, to_pixels
from vlmeval_findit.protocol import Reply, ReplyRecord

RESIZED = {"kind": "smart_resize", "min_pixels": 3136, "max_pixels": 12845056}
STRIP = (102, 14)


def image(processed: Any, original: tuple[int, int] = STRIP) -> dict[str, Any]:
    return {"original": list(original), "sent": list(original), "processed": processed}


def map_of(images: Any, recorded: Any = RESIZED, space: Any = RESIZED) -> ToPixels:
    """Return the map for a strip of 102 x 14 pixels, asked with some images."""
    query = FindItQuery(0, "cat", *STRIP, ("a.png",), Truth((), ()))
    reply = Reply(0, "[]", recorded=ReplyRecord(space=recorded, images=tuple(images)))
    return pixel_map(SpaceInForce(space_from(space), "a test"), query, reply)


BY_FORMULA = to_pixels(space_from(RESIZED), *STRIP)  # 112 x 28


@pytest.mark.parametrize(
    "images",
    [
        [image([168, 28])],
        [image([280, 280], (640, 480)), image([168, 28])],  # The object first, then the scene
    ],
)
def test_the_recorded_size_decides(images: Any) -> None:
    assert map_of(images) == ToPixels(102 / 168, 14 / 28)


@pytest.mark.parametrize(
    ("images", "recorded"),
    [
        ([], RESIZED),
        ([{"original": [102, 14], "sent": [102, 14]}], RESIZED),  # A server says no size
        ([image([168, 28], (640, 480))], RESIZED),  # Another image
        ([image([168, 28])], None),
        ([image([168, 28])], {"kind": "grid1000"}),  # The space was given anew
        ([image([0, 28])], RESIZED),
        ([image("wide")], RESIZED),
        ([image([168])], RESIZED),
    ],
)
def test_without_a_size_of_this_image_the_formula_does(images: Any, recorded: Any) -> None:
    assert map_of(images, recorded) == BY_FORMULA


def test_other_spaces_do_not_depend_on_the_processor() -> None:
    grid = {"kind": "grid1000"}
    expected = to_pixels(space_from(grid), *STRIP)
    assert map_of([image([168, 28])], grid, grid) == expected


@pytest.mark.parametrize("size", [STRIP, (14, 102), (9, 400), (640, 480), (28, 29)])
def test_it_is_what_the_processor_of_transformers_gives(size: tuple[int, int]) -> None:
    """The recorded sizes need no formula of ours; ours is the release's for all but thin strips."""
    theirs = pytest.importorskip("transformers.models.qwen2_vl.image_processing_qwen2_vl")
    w, h = size
    given = theirs.smart_resize(h, w, 28, RESIZED["min_pixels"], RESIZED["max_pixels"])[::-1]
    query = FindItQuery(0, "cat", w, h, ("a.png",), Truth((), ()))
    reply = Reply(0, "[]", recorded=ReplyRecord(space=RESIZED, images=(image([*given], size),)))
    found = pixel_map(SpaceInForce(space_from(RESIZED), "a test"), query, reply)
    assert found == pytest.approx((w / given[0], h / given[1], 0, 0))
    formula = to_pixels(space_from(RESIZED), w, h)
    if min(size) > 14:
        assert found == pytest.approx(formula)
    elif 102 in size:
        assert found != pytest.approx(formula)
