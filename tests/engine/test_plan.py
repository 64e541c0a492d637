"""From lists of values to cells, from cells to calls, from calls to units."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from few_fast import every_nth_fast

from vlmeval_findit.benchmarks.findit import (
    AnswerFormat,
    FormatAxes,
    Views,
    all_tables,
    formats,
    message,
    variants,
)
from vlmeval_findit.engine import (
    Call,
    Cell,
    CellBuilder,
    Journal,
    Plan,
    Prompts,
    calls_left,
    work_items,
)
from vlmeval_findit.protocol import PromptSet, image, text
from vlmeval_findit.storage import Folder


def cells_of(*tables: str, axes: FormatAxes) -> list[Cell]:
    builder = CellBuilder(skip_missing=False)
    asked = variants([all_tables()[name] for name in tables], formats(axes))
    return [builder.cell("FullImage", variant, None, {}) for variant in asked]


def asked_as(*representations: str) -> list[Cell]:
    """Return cells over the demonstration, one for each representation, as JSON."""
    return cells_of("Demo", axes=FormatAxes(representations, ("json",)))


@pytest.fixture
def plan() -> Plan:
    axes = FormatAxes(("xyxy", "all", "cxcywh"), keys=("bbox_2d",))
    return Plan(cells_of("Demo", "Demo_multilabel", "Demo_refexp", axes=axes))


def test_frames_that_a_table_does_not_have_are_left_out() -> None:
    requested = [AnswerFormat("xyxy", "json")]
    tables = [all_tables()[name] for name in ("Pascal", "iGround", "RoboTools")]
    built = variants(tables, requested, Views(frames=(1, 8, 64)))
    assert [(cell.dataset, cell.frames) for cell in built] == [
        ("Pascal", 1), ("iGround", 1), ("iGround", 8),
        ("RoboTools", 1), ("RoboTools", 8), ("RoboTools", 64),
    ]  # fmt: skip
    assert [cell.frames for cell in variants(tables, requested)] == [1, 8, 64]


# --- calls ----------------------------------------------------------------------------------------


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """Return a folder of files, the first two of the same content."""
    for name, content in [("a", b"same"), ("b", b"same"), ("c", b"other")]:
        (tmp_path / name).write_bytes(content)
    return tmp_path


def over(folder: Path, cell: Cell, names: Sequence[str], words: Any = message) -> Cell:
    """Return a cell that asks the same of some images, one per row."""
    query = cell.dataset.queries[0]
    queries = {at: replace(query, index=at, images=(name,)) for at, name in enumerate(names)}
    dataset = replace(cell.dataset, queries=queries)
    prompts = Prompts(dataset, Folder("Demo", folder, "test"), PromptSet("test", words))
    return replace(cell, prompts=prompts, rows=tuple(queries))


def test_images_of_the_same_content_are_asked_about_once(pictures: Path) -> None:
    """Wherever they lie: who comes first makes the call, and all that wait for it have it."""
    asked, other = asked_as("xyxy", "yxyx")
    cells = [
        over(pictures, other, "b"),
        over(pictures, asked, "b"),
        over(pictures, asked, "caba"),
        over(pictures, other, "ca"),
    ]
    actual = [(call.images[0].name, call.row, call.needed_by) for call in Plan(cells).calls()]
    assert actual == [("b", 0, (0, 3)), ("b", 0, (1, 2)), ("c", 0, (2,)), ("c", 0, (3,))]
    keys = list(cells[2].call_keys())
    assert keys[0] != keys[1] == keys[2] == keys[3]


def test_a_cell_waits_for_each_of_its_calls_once(pictures: Path) -> None:
    (asked,) = asked_as("xyxy")
    cells = [over(pictures, asked, "aba"), over(pictures, asked, "bc")]
    with Journal(pictures / "calls.jsonl") as journal:
        plan = Plan(cells, journal)
        _, second = plan.calls()
        left = calls_left(plan, {second.key, "of others"})
    assert left == (2, 2, (1, 2), frozenset(), {second.key})


@pytest.mark.parametrize("settings", [{}, {"é": 1.5, "a": [None, "}"]}, {"n": {3: 1, 10: 2}}])
def test_a_key_is_the_hash_of_its_record(settings: Mapping[str, Any], tmp_path: Path) -> None:
    words = 'é "\n\\ \ud83d'
    reported = json.dumps([["text", words], ["image", ""], ["text", ""]], separators=(",", ":"))
    folder = tmp_path / 'no "\u00fc"'
    folder.mkdir()
    (folder / "a").write_bytes(b"content")
    for names in ("a", "-"):  # the second cannot be read
        cell = over(folder, asked_as("xyxy")[0], names, lambda query, variant: (
            text(words), image(query.images[0]), text("")
        ))  # fmt: skip
        cell = replace(cell, model='a "model"', settings=settings)
        (key,) = cell.call_keys()
        call = Call(key, cell, 0)
        assert call.prompt_sha256 == hashlib.sha256(reported.encode()).hexdigest()
        depends = [cell.model, settings, call.prompt_sha256, call.image_sha256]
        whole = json.dumps(depends, sort_keys=True, separators=(",", ":"))
        assert key == hashlib.sha256(whole.encode()).hexdigest()


# --- items ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("window", [1, 2, 3, 4, 7, 1000])
def test_items_hold_every_call_once_in_order(plan: Plan, window: int, tmp_path: Path) -> None:
    whole = list(Plan(plan.cells, window=window))
    assert [call for item in whole for call in item.calls] == list(plan.calls())
    assert max(len(item.calls) for item in whole) <= window
    with Journal(tmp_path / "calls.jsonl") as journal:
        for answered, left in ((whole[:5], whole[5:]), (whole[5:], [])):
            keys = [call.key for item in answered for call in item.calls]
            answer = {"error": None, "logprobs": False, "reply": "[]"}
            journal.append({"key": key, **answer} for key in keys)
            assert list(Plan(plan.cells, journal, window)) == left


@pytest.mark.parametrize("window", every_nth_fast(range(1, 24), 4))
def test_calls_over_one_image_part_only_if_they_must(plan: Plan, window: int) -> None:
    calls = list(plan.calls())
    items = list(work_items(calls, window))
    for content, count in Counter(call.image_sha256 for call in calls).items():
        holding = [item for item in items if content in {c.image_sha256 for c in item.calls}]
        assert len(holding) <= math.ceil(count / window)
    for item, following in pairwise(items):
        first = [c for c in following.calls if c.image_sha256 == following.calls[0].image_sha256]
        assert len(item.calls) + len(first) > window, "no item is smaller than it must be"


def test_calls_know_whether_others_show_their_images() -> None:
    calls = list(Plan(asked_as("xyxy")).calls())
    shown = Counter(call.image_sha256 for call in calls)
    assert {call.shares_images for call in calls} == {True, False}
    assert all(call.shares_images == (shown[call.image_sha256] > 1) for call in calls)


def test_items_with_earlier_failures_come_last(plan: Plan, tmp_path: Path) -> None:
    whole = list(Plan(plan.cells, window=4))
    failed, answered_since = whole[0].calls[1], whole[1].calls[0]
    lines = [
        {"key": failed.key, "error": "HTTP 400: no", "logprobs": False, "reply": ""},
        {"key": answered_since.key, "error": "HTTP 503", "logprobs": False, "reply": ""},
        {"key": answered_since.key, "error": None, "logprobs": False, "reply": "[]"},
    ]
    with Journal(tmp_path / "calls.jsonl") as journal:
        journal.append(lines)
        left = list(Plan(plan.cells, journal, 4))
    assert left[-1] == whole[0], "not torn: a model in this process gets what it got before"
    assert left[0].calls == whole[1].calls[1:]
    assert left[1:-1] == whole[2:]
