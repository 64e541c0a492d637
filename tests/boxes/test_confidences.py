"""Confidences of boxes by the probabilities of the tokens of a reply."""

from __future__ import annotations

import math

import numpy as np
import pytest

from vlmeval_findit.boxes import CONFIDENCE_DEFINITIONS, Confidences, ReplyFormat, confidences, read
from vlmeval_findit.protocol import TokenLogprobs

TEXT = ReplyFormat("text", "xyxy")
JSON = ReplyFormat("json", "xyxy")
LABELLED = ReplyFormat("json", "xyxy", multilabel=True)


def by_token(how: ReplyFormat, *pieces: tuple[str, float]) -> Confidences:
    """Return the confidences of a reply, given its tokens and their probabilities."""
    text = "".join(piece for piece, _ in pieces)
    ends = np.cumsum([len(piece) for piece, _ in pieces]).tolist()
    known = TokenLogprobs.rounded(ends, [math.log(p) for _, p in pieces])
    return confidences(text, how, read(text, how), known)


def test_what_each_definition_is_made_of() -> None:
    actual = by_token(
        LABELLED,
        ('[{"', 0.9), ('label": "', 1.0), ("c", 0.5), ("at", 0.8), ('", "bbox": [', 1.0),
        ("1", 0.5), (", ", 1.0), ("2", 0.25), (", ", 1.0), ("3, ", 1.0), ("4", 1.0),
        ("]}", 1.0), (', {"', 0.6), ('label": "', 1.0), ("dog", 0.7), ('", "bbox": [', 0.3),
        ("5", 1.0), (", ", 1.0), ("6", 1.0), (", 7", 0.9), (", ", 1.0), ("8", 1.0),
        ("]}]", 0.99), ("", 0.5),
    )  # fmt: skip
    assert list(actual) == list(CONFIDENCE_DEFINITIONS)
    expected = {
        "mean": [0.125 ** (1 / 4), 0.9 ** (1 / 4)],
        "minimum": [0.25, 0.9],
        "product": [0.125, 0.9],
        "label": [0.4, 0.7],
        "going-on": [0.9, 0.6],
        "together": [0.9 * 0.4 * 0.125 ** (1 / 4), 0.6 * 0.7 * 0.9 ** (1 / 4)],
    }
    for name, values in expected.items():
        assert actual[name] == pytest.approx(values, abs=1e-4), name


def test_a_token_counts_once_though_it_says_two_numbers() -> None:
    actual = by_token(TEXT, ("[", 1.0), ("1, 2, 3", 0.5), (", 4]", 0.8))
    assert actual["mean"] == pytest.approx([math.sqrt(0.4)], abs=1e-4)
    assert "label" not in actual, "nothing says one"


def test_a_box_can_end_where_nothing_separates_it() -> None:
    how = ReplyFormat("text", "xyxy", multilabel=True)
    actual = by_token(how, ("cat", 0.3), (": [", 1.0), ("1, 2, 3, 4", 1.0), ("]", 1.0))
    assert actual["going-on"] == pytest.approx([0.3], 1e-3)


@pytest.mark.parametrize(
    ("ends", "logprobs", "mean"),
    [
        ((), (), None),
        ((5,), (0.0,), None),
        ((11, 11), (-1.0, -9.0), math.exp(-1)),
        ((12,), (-9999.0,), 0.0),
        ((99,), (0.5,), 1.0),
    ],
    ids=["no tokens", "tokens that stop before", "to the last number", "nought", "above one"],
)
def test_odd_tokens(ends: tuple[int, ...], logprobs: tuple[float, ...], mean: float | None) -> None:
    """``[1, 2, 3, 4]``: a record that does not cover the numbers gives no confidence."""
    reply = "[1, 2, 3, 4]"
    actual = confidences(reply, TEXT, read(reply, TEXT), TokenLogprobs(ends, logprobs))
    assert actual.get("mean", [None]) == [pytest.approx(mean, abs=1e-6) if mean else mean]


def test_boxes_keep_their_places_where_another_has_none() -> None:
    reply = '[{"bbox": [true, 2, 3, 4]}, {"bbox": [5, 6, 7, 8]}]'
    actual = by_token(JSON, *((character, math.exp(-0.5)) for character in reply))
    assert actual["mean"] == [None, pytest.approx(math.exp(-0.5), abs=1e-6)]
    assert "going-on" not in actual, "the first box is somewhere in between"
