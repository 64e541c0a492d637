"""From a reply to a row: as every benchmark scores single answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from toy_benchmark import LETTERS, Query

from vlmeval_findit.protocol.dataset_variant import Task
from vlmeval_findit.protocol.replies import Recorded, Reply
from vlmeval_findit.protocol.scored_row import ScoredRow
from vlmeval_findit.protocol.settings import Settings

CUT, THINKING = Recorded(finish_reason="length"), Recorded(ends_in_thought=True)


def row(text: str, recorded: Recorded) -> ScoredRow:
    query = Query(index=3, images=("a.jpg",), cluster="herd", right="B", size="small")
    task: Any = Task("Letters_Zoo_plain", LETTERS.parse("Letters_Zoo_plain"), Path(), {3: query})
    (built,) = LETTERS.score_batch("M", task, [Reply(3, text, recorded)], Settings(), None).rows
    return built


@pytest.mark.parametrize(
    ("text", "recorded", "reason", "sums"),
    [
        ("B", Recorded(), None, (1, 1, 1, 1)),
        ("(A)", Recorded(), None, (1, 1, 1, 0)),
        ("<think>A?</think>B", Recorded(), None, (1, 1, 1, 1)),
        ("a cow", Recorded(), "no letter", (1, 1, 0, 0)),
        ("the anim", CUT, "truncated", (1, 1, 0, 0)),
        ("B", CUT, None, (1, 1, 1, 1)),
        (" \n", Recorded(), "empty", (1, 1, 0, 0)),
        ("<think>B", Recorded(), "truncated while thinking", (1, 1, 0, 0)),
        ("", THINKING, "truncated while thinking", (1, 1, 0, 0)),
        ("Failed to obtain answer", Recorded(), "failed call", (1, 0, 0, None)),
        ("B", Recorded(call={"error": "HTTP 500"}), "failed call", (1, 0, 0, None)),
    ],
)
def test_a_reply_becomes_a_row(
    text: str, recorded: Recorded, reason: str | None, sums: tuple[int | None, ...]
) -> None:
    built = row(text, recorded)
    assert (built.index, built.source, built.reason) == (3, "herd", reason)
    assert built.failed is (reason == "failed call")
    assert tuple(map(built.sums.get, ("asked", "answered", "readable", "right"))) == sums
