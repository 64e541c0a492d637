"""Counts by cell and image equal counts call by call, with every request built."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import astuple, replace
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from vlmeval_findit.benchmarks.findit.benchmark import BENCHMARK
from vlmeval_findit.benchmarks.findit.box_prompts import message
from vlmeval_findit.benchmarks.findit.dataset_names import parse
from vlmeval_findit.core.benchmark_protocol import PromptSet
from vlmeval_findit.core.folders import Folder
from vlmeval_findit.core.question import Task
from vlmeval_findit.engine.calls import Call, Cell, Images, Prompts
from vlmeval_findit.engine.journal.view import JournalView
from vlmeval_findit.engine.journal.writer import Journal
from vlmeval_findit.engine.plan import Plan
from vlmeval_findit.models.http.chat import (
    ChatModel,
    chat_model,
)
from vlmeval_findit.models.http.spending import Load, load_of
from vlmeval_findit.models.prices import OPUS_5_5
from vlmeval_findit.sweeps.call_counts import CallGroup, GroupCounts, count_calls

QUESTIONS = [
    "FindIt_Demo_xyxy_json",
    "FindIt_Demo_xyxy_text",
    "FindIt_Demo_xyxy_json_bbox_2d_constrained",
    "FindIt_Demo_multilabel_cxcywh_json",
    "FindIt_Demo_insdet_xyxy_json",
    "FindIt_iGround_xyxy_json",
]
"""One image, references before it, and frames of a video."""

LABELS = ["cat", 'the "left" one', "Größe\n…", "\u2028 猫 \U0001f408", "lone \ud83d", ""]

CHATS = [
    chat_model("GPT-5.4", "openrouter"),
    chat_model("Claude-Opus-5.5", "openrouter"),
    replace(chat_model("Claude-Opus-5.5", "openrouter"), prices=replace(OPUS_5_5, least=9)),
    chat_model("Gemini-2.5-Flash", "google"),
    chat_model("Qwen3-VL", space={"kind": "grid1000", "scene_max_size": 40}),
    chat_model("Own", space="pixels", max_tokens=99),
]


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of several kinds, two of them the same image, one damaged; others are missing."""
    folder = tmp_path_factory.mktemp("pictures")
    for name, size in (("a.png", (64, 48)), ("b.png", (300, 20)), ("wide.png", (2100, 8))):
        Image.radial_gradient("L").resize(size).convert("RGB").save(folder / name)
    Image.open(folder / "a.png").save(folder / "a.jpg")
    Image.open(folder / "b.png").convert("L").save(folder / "grey.png")
    (folder / "again.png").write_bytes((folder / "a.png").read_bytes())
    (folder / "torn.png").write_bytes((folder / "a.png").read_bytes()[:99])
    return folder


def cell_of(
    model: str, name: str, folder: Path, draw: random.Random, images: Images | None = None
) -> Cell:
    """Some rows over some images."""
    variant = parse(name)
    whole = ["a.png", "again.png", "a.jpg", "b.png", "grey.png", "wide.png"]
    actual = draw.choice([whole, [*whole, "torn.png", "missing.png"]])
    (query, *_) = BENCHMARK.load("FindIt_Demo_xyxy_json").queries.values()
    queries = {
        at: replace(
            query,
            index=at,
            label=draw.choice(LABELS),
            images=tuple(draw.choices(actual, k=variant.frames)),
            support=tuple(draw.choices(actual, k=draw.randint(0, 2))),
        )
        for at in range(draw.randint(0, 12))
    }
    task = Task(name, variant, folder / "none.tsv", queries)
    prompts = Prompts(task, Folder("Demo", folder, "test"), PromptSet("test", message), images)
    return Cell(model, prompts, tuple(queries), ())


def groups_of(folder: Path, draw: random.Random) -> list[CallGroup]:
    """Models over cells that some of them share, some with other settings."""
    images = Images()
    shared = [cell_of("", draw.choice(QUESTIONS), folder, draw, images) for _ in range(4)]
    groups = []
    for at, chat in enumerate((*CHATS, None)):
        cells = [
            replace(item, model=f"M{at}", settings={"seed": draw.choice([0, 0, 1])})
            for item in draw.choices(shared, k=draw.randint(0, 5))
        ]
        groups.append(CallGroup(f"M{at}", tuple(cells), chat, share=draw.choice([1.0, 0.5])))
    return groups


def all_calls(group: CallGroup) -> list[Call]:
    """Those of every row."""
    return [Call("", cell, at) for cell in group.cells for at in range(len(cell.rows))]


def counted_slowly(group: CallGroup, finished: JournalView | None) -> GroupCounts:
    """Return the same by making every call and every request."""
    calls = list(Plan(group.cells).calls())
    left = [
        call
        for call in calls
        if finished is None or not finished.serves(call.key, logprobs=call.cell.logprobs)
    ]
    load = None if group.chat is None else load_slowly(left, group.chat).paid(group.share)
    done = len(calls) - len(left)
    queries = sum(len(cell.rows) for cell in group.cells)
    images = len({path for call in all_calls(group) for path in call.images})
    return GroupCounts(group.name, len(group.cells), queries, images, len(calls), done, load)


def load_slowly(calls: Sequence[Call], chat: ChatModel) -> Load:
    pictures = Counter(call.image_sha256 for call in calls)
    seen, total = Counter[Any](), Load()
    for call in calls:
        question, over = call.cell.question, call.image_sha256
        place, seen[over] = seen[over], seen[over] + 1
        space = chat.space(question)
        try:
            asked = chat.request(call.message, question)
        except OSError:
            continue
        limit = chat.max_tokens(question)
        item = load_of(asked, call.message, space, limit)
        if place:
            item = replace(item, tokens_again=item.tokens_beginning)
        if chat.prices is not None:
            price = chat.prices.another if place else chat.prices.first
            stored = item.tokens_beginning if pictures[over] > 1 else 0
            usd = price(item.tokens_in, stored), limit * chat.prices.answered / 1e6
            item = replace(item, usd_in=usd[0], usd_out_at_most=usd[1])
        total += item
    return total


def rounded(counts: Sequence[GroupCounts]) -> list[GroupCounts]:
    """Dollars are added up in another order."""
    loads = [item.load and Load(*(round(n, 9) for n in astuple(item.load))) for item in counts]
    return [replace(item, load=load) for item, load in zip(counts, loads, strict=True)]


@pytest.mark.parametrize("seed", range(6))
def test_the_count_is_that_of_every_call(
    seed: int, pictures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = random.Random(seed)
    groups = groups_of(pictures, draw)
    actual = count_calls(groups, tmp_path / "none" / "calls.jsonl")
    assert rounded(actual.counts) == rounded([counted_slowly(item, None) for item in groups])
    files = {path for item in groups for call in all_calls(item) for path in call.images}
    assert actual.images == len(files)
    assert actual.missing == sum(not path.is_file() for path in files)
    # Of some calls the journal has answers, of some with log-probabilities, of some failures.
    journal = tmp_path / "calls.jsonl"
    asks = [[replace(c, logprobs=draw.random() < 0.5) for c in item.cells] for item in groups]
    groups = [replace(item, cells=tuple(c)) for item, c in zip(groups, asks, strict=True)]
    with Journal(journal) as written:
        for group in groups:
            calls = list(Plan(group.cells).calls())
            written.append([record(call, draw) for call in calls if draw.random() < 0.6])
    with JournalView(journal) as view:
        slow = [counted_slowly(item, view) for item in groups]
    with monkeypatch.context() as patch:
        patch.setattr(JournalView, "get", None)  # no reply is read
        assert rounded(count_calls(groups, journal).counts) == rounded(slow)
    assert seed or any(0 < item.finished < item.calls for item in slow)


def record(call: Call, draw: random.Random) -> dict[str, Any]:
    return {
        "key": call.key,
        "model": call.cell.model,
        "settings": dict(call.cell.settings),
        "prompt_sha256": call.prompt_sha256,
        "image_sha256": list(call.image_sha256),
        "reply": "[]",
        "extra_records": None,
        "error": draw.choice([None, None, "no"]),
        **draw.choice([{}, {"logprobs": True}]),
    }
