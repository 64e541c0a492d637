"""Counts by cell and image equal counts call by call, with every request built."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import astuple, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from vlmeval_findit.benchmarks.findit import parse
from vlmeval_findit.engine import Call, CellBuilder, Journal, JournalView, Plan
from vlmeval_findit.models import OPUS_5_5, ChatModel, ImageToSend, Load, chat_model, load_of
from vlmeval_findit.sweeps import CallGroup, GroupCounts, count_calls, opened_journals

QUESTIONS = [
    "FindIt_Demo_xyxy_json",
    "FindIt_Demo_xyxy_json_bbox_2d_constrained",
    "FindIt_Demo_multilabel_cxcywh_json",
    "FindIt_Demo_insdet_xyxy_json",
    "FindIt_Demo_xyxy_json",
]
"""One image, or references before it; the last asks nothing new."""

CLAUDE = chat_model("Claude-Opus-5.5", "openrouter")
CHATS: dict[str, ChatModel | None] = {
    "GPT-5.4": chat_model("GPT-5.4", "openrouter"),
    "Claude-Opus-5.5": replace(CLAUDE, prices=replace(OPUS_5_5, least=9)),
    "Qwen3-VL": chat_model("Qwen3-VL", space={"kind": "grid1000", "scene_max_size": 40}),
    "FullImage": None,
}


def groups() -> list[CallGroup]:
    tables = CellBuilder(skip_missing=None)
    return [
        CallGroup(
            name,
            tuple(tables.cell(name, parse(variant), 6, logprobs=True) for variant in QUESTIONS),
            chat,
            share=0.5,
        )
        for name, chat in CHATS.items()
    ]


def counted_slowly(group: CallGroup, finished: JournalView | None) -> GroupCounts:
    """Return the same by making every call and every request."""
    calls = list(Plan(group.cells).calls())
    left = [call for call in calls if not (finished and finished.serves(call.key, logprobs=True))]
    load = None if group.chat is None else load_slowly(left, group.chat).paid(group.share)
    queries = sum(len(cell.rows) for cell in group.cells)
    images = len({path for call in calls for path in call.images})
    done = len(calls) - len(left)
    counts = len(group.cells), queries, images, len(calls), done
    return GroupCounts(group.name, *counts, submitted=0, load=load)


def load_slowly(calls: Sequence[Call], chat: ChatModel) -> Load:
    several = Counter(call.image_sha256 for call in calls)
    seen, total = Counter[Any](), Load()
    for call in calls:
        variant, over = call.cell.variant, call.image_sha256
        is_first = not seen[over]
        seen[over] += 1
        limit = chat.max_tokens(variant)
        asked = chat.request(call.message, variant)
        item = load_of(asked, call.message, chat.space(variant), limit)
        if not is_first:
            item = replace(item, tokens_again=item.tokens_beginning)
        if chat.prices is not None:
            price = chat.prices.first if is_first else chat.prices.another
            stored = item.tokens_beginning if several[over] > 1 else 0
            usd = price(item.tokens_in, stored), limit * chat.prices.answered / 1e6
            item = replace(item, usd_in=usd[0], usd_out_at_most=usd[1])
        total += item
    return total


def rounded(counts: Sequence[GroupCounts]) -> list[GroupCounts]:
    """Dollars are added up in another order."""
    loads = [item.load and Load(*(round(n, 9) for n in astuple(item.load))) for item in counts]
    return [replace(item, load=load) for item, load in zip(counts, loads, strict=True)]


def record(call: Call, number: int) -> dict[str, Any]:
    """Return an answer with or without log-probabilities, or a failure."""
    error = "no" if number % 4 == 0 else None
    answer = {"reply": "[]", "extra_records": None}
    return {"key": call.key, "error": error, "logprobs": number % 4 > 1, **answer}


def counted(asked: Sequence[CallGroup], journal: Path) -> Sequence[GroupCounts]:
    with opened_journals(lambda cell: journal) as view_of:
        return count_calls(asked, view_of).counts


def test_the_count_is_that_of_every_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The same few photographs are in most of the requests.
    monkeypatch.setattr(ImageToSend, "encoded", cache(ImageToSend.encoded))
    asked, journal = groups(), tmp_path / "calls.jsonl"
    slow = [counted_slowly(group, None) for group in asked]
    assert rounded(counted(asked, journal)) == rounded(slow)
    with Journal(journal) as written:
        for group in asked:
            written.append(map(record, list(Plan(group.cells).calls())[::2], range(99)))
    with JournalView(journal) as view:
        slow = [counted_slowly(group, view) for group in asked]
    assert all(0 < counts.finished < counts.calls for counts in slow)
    monkeypatch.setattr(JournalView, "get", None)  # no reply is read
    assert rounded(counted(asked, journal)) == rounded(slow)
