"""From a reply to a row: as every benchmark scores single answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from toy_benchmark import LETTERS, Query

from vlmeval_findit.protocol import LoadedDataset, Reply, ReplyRecord, ScoredRow, Settings

CUT = ReplyRecord(finish_reason="length")
THINKING = ReplyRecord(ends_in_thought=True)


def row(text: str, recorded: ReplyRecord) -> ScoredRow:
    query = Query(index=3, images=("a.jpg",), cluster="herd", right="B", size="small")
    dataset: Any = LoadedDataset(
        "Letters_Zoo_plain", LETTERS.parse("Letters_Zoo_plain"), Path(), {3: query}
    )
    (built,) = LETTERS.score_batch("M", dataset, [Reply(3, text, recorded)], Settings(), None).rows
    return built


@pytest.mark.parametrize(
    ("text", "recorded", "reason", "sums"),
    [
        ("B", ReplyRecord(), None, (1, 1, 1, 1)),
        ("(A)", ReplyRecord(), None, (1, 1, 1, 0)),
        ("<think>A?</think>B", ReplyRecord(), None, (1, 1, 1, 1)),
        ("a cow", ReplyRecord(), "no letter", (1, 1, 0, 0)),
        ("the anim", CUT, "truncated", (1, 1, 0, 0)),
        ("B", CUT, None, (1, 1, 1, 1)),
        (" \n", ReplyRecord(), "empty", (1, 1, 0, 0)),
        ("<think>B", ReplyRecord(), "truncated while thinking", (1, 1, 0, 0)),
        ("", THINKING, "truncated while thinking", (1, 1, 0, 0)),
        ("Failed to obtain answer", ReplyRecord(), "failed call", (1, 0, 0, None)),
        ("B", ReplyRecord(call={"error": "HTTP 500"}), "failed call", (1, 0, 0, None)),
    ],
)
def test_a_reply_becomes_a_row(
    text: str, recorded: ReplyRecord, reason: str | None, sums: tuple[int | None, ...]
) -> None:
    built = row(text, recorded)
    assert (built.index, built.source, built.reason) == (3, "herd", reason)
    assert built.failed is (reason == "failed call")
    assert tuple(map(built.sums.get, ("asked", "answered", "readable", "right"))) == sums
