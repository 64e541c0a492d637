"""Questions about marks: evenly spread, answerable, and right by another reckoning."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

cv2 = pytest.importorskip("cv2", reason="marks are drawn by opencv-python")

from training.vp_questions.asking import ShownQuestion  # noqa: E402
from training.vp_questions.images import (  # noqa: E402
    AnnotatedImage,
    scene_images,
)
from training.vp_questions.making import mark_rows, questions  # noqa: E402
from training.vp_questions.wording import ABSENT  # noqa: E402
from vlmeval_findit.benchmarks.vpbench.vp_query import QuestionKind, VPQuery, is_absent, kind_of  # noqa: E402
from vlmeval_findit.marks.style import COLOURS, CONTRAST, STYLES, Shape  # noqa: E402


def even(values: list[Any], among: int) -> bool:
    """Whether each of so many values is there as often as the others or once more."""
    counts = Counter(values)
    many = [*counts.values(), *[0] * (among - len(counts))]
    return len(many) == among and max(many) - min(many) <= 1


COUNT = 48


@pytest.fixture(scope="module")
def source() -> list[AnnotatedImage]:
    return scene_images("Scenes_mini", 50)


@pytest.fixture(scope="module")
def shown(source: list[AnnotatedImage]) -> list[ShownQuestion]:
    return list(questions(source, COUNT, 3))


@pytest.fixture(scope="module")
def asked(shown: list[ShownQuestion]) -> list[VPQuery]:
    return mark_rows([each.posed for each in shown], 3, "Scenes_mini")


Find = Callable[[str], AnnotatedImage]


@pytest.fixture(scope="module")
def find(source: list[AnnotatedImage]) -> Find:
    images = {image.name: image for image in source}
    return images.__getitem__


def test_a_set_follows_its_plan(asked: list[VPQuery]) -> None:
    assert len(asked) == COUNT
    assert even([query.answer for query in asked], 4)
    assert even([query.kind for query in asked], 4)
    assert sum(query.absent for query in asked) == COUNT // 8
    shapes = Counter(shape for query in asked for shape in query.shapes)
    assert set(shapes) == {shape.value for shape in Shape}
    assert min(shapes.values()) >= COUNT // 16, "a few images do not do for every shape"
    seen = {value for query in asked for value in query.properties}
    assert seen >= {*COLOURS, CONTRAST, "round", "square", "open", "filled", "loose", "outlined"}
    assert {int(query.amount) for query in asked} == {1, 2, 3, 4}


def test_every_wording_agrees_with_its_row(asked: list[VPQuery]) -> None:
    for query in asked:
        options = dict(query.options)
        assert kind_of(query.question) is query.kind, query.question
        assert is_absent(query.question, options[query.answer]) is query.absent
        assert len(set(options.values())) == len(options) in (2, 4)


def changed(each: ShownQuestion, find: Find) -> Any:
    before = find(each.posed.image).read().pixels
    return (each.pixels != before).any(axis=2)


def pieces(mask: Any) -> int:
    return int(cv2.connectedComponents(mask.astype(np.uint8), connectivity=8)[0]) - 1


def test_the_answer_is_the_marked_object(shown: list[ShownQuestion], find: Find) -> None:
    seen = 0
    for each in shown:
        if each.posed.slot.kind is not QuestionKind.REFERENCE or each.posed.right == ABSENT:
            continue
        seen += 1
        drawn = changed(each, find)
        (target,) = each.posed.marked
        assert each.posed.right == target.label
        for other in find(each.posed.image).objects:
            x1, y1, x2, y2 = map(int, other.box)
            if other.label in each.posed.wrong:
                assert not drawn[y1:y2, x1:x2].any(), "a wrong option lies under the mark too"
            elif other.label == target.label and other != target:
                assert not drawn[y1:y2, x1:x2].any(), "two of its class lie under the mark"
    assert seen > COUNT / 8


PLACES = {
    2: (("top left", "top right"), ("bottom left", "bottom right")),
    3: (
        ("top left", "top centre", "top right"),
        ("centre left", "centre", "centre right"),
        ("bottom left", "bottom centre", "bottom right"),
    ),
}


def test_the_field_is_that_of_the_centre(shown: list[ShownQuestion], find: Find) -> None:
    seen = Counter[str]()
    for each in shown:
        if each.posed.slot.kind is QuestionKind.LOCALISATION and each.posed.right != ABSENT:
            image, (target,) = find(each.posed.image), each.posed.marked
            sides = 3 if "nine" in each.posed.question else 2
            x = (target.box[0] + target.box[2]) / 2 / image.width
            y = (target.box[1] + target.box[3]) / 2 / image.height
            assert each.posed.right == PLACES[sides][int(y * sides)][int(x * sides)]
            seen[each.posed.right] += 1
    assert len(seen) >= 7, "fields are asked for in turn"
    assert max(seen.values()) <= 4


def test_as_many_are_counted_as_are_drawn_in_that_colour(
    source: list[AnnotatedImage], find: Find
) -> None:
    answers = set()
    for each in questions(source, 40, 0, (Shape.POINT, Shape.TAG)):
        if each.posed.slot.kind is not QuestionKind.COUNTING:
            continue
        drawn = changed(each, find)
        assert pieces(drawn) == each.posed.amount
        named = [colour for colour in COLOURS if f" {colour} " in each.posed.question]
        style = each.posed.slot.style
        if named and STYLES[style.shape][style.variant].words in each.posed.question:
            right = (each.pixels == COLOURS[named[0]]).all(axis=2)
            number, parts = cv2.connectedComponents(drawn.astype(np.uint8), connectivity=8)
            counted = sum(right[parts == part].mean() > 0.3 for part in range(1, number))
            assert counted == (0 if each.posed.right == ABSENT else int(each.posed.right))
            answers.add(each.posed.right)
    assert len(answers) >= 3
