"""An answer to a query with nothing to find has one of six outcomes; an ignored object is found."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from few_fast import every_nth_fast
from hypothesis import given, settings
from hypothesis import strategies as st

import vlmeval_findit as findit
from benchmarks.reply_corpus import FIRST, entries_of
from vlmeval_findit.benchmarks.findit import NegativeOutcome
from vlmeval_findit.boxes import Truth

OF_CORPUS = [entry.reply for entry in entries_of(FIRST)]
PIECES = [
    "[]",
    "{}",
    "[1, 2, 3, 4]",
    "[1, 2",
    "dog",
    "No.",
    " ",
    "bbox: 1 2 3 4",
    "```",
    "<think>",
    "9",
]
FORMATS = ("xyxy_json", "xyxy_text", "point_json", "cxcywh_json_nested")
CROWD = findit.truth([], ignored=[[0, 0, 320, 240]])


def outcomes(replies: Sequence[str | None], how: str, truth: Truth) -> list[list[str]]:
    """Return the outcomes that each reply has."""
    truths = [truth] * len(replies)
    scored = findit.score(replies, truths, how, sizes=(640, 480), space="grid1000")
    names = [outcome.sum for outcome in NegativeOutcome]
    return [[name for name in names if row.sums.get(name)] for row in scored.queries]


@pytest.mark.parametrize("how", every_nth_fast(FORMATS, 2))
def test_a_reply_of_the_corpus_has_one_outcome(how: str) -> None:
    replies = [*OF_CORPUS, "", None]
    assert {len(each) for each in outcomes(replies, how, findit.truth([]))} == {1}


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(st.sampled_from(PIECES), max_size=5).map("".join), min_size=1),
    st.sampled_from(FORMATS),
)
def test_a_random_reply_has_one_outcome(replies: list[str], how: str) -> None:
    assert {len(each) for each in outcomes(replies, how, findit.truth([]))} == {1}


@pytest.mark.parametrize("how", every_nth_fast(FORMATS, 2))
def test_a_query_of_ignored_objects_has_none(how: str) -> None:
    replies = [*OF_CORPUS, "[]", "[0, 0, 500, 500]", "[900, 900, 999, 999]", "No.", "", None]
    assert not any(outcomes(replies, how, CROWD))
