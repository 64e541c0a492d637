"""From lists of values to cells, from cells to calls, from calls to units."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from vlmeval_findit.benchmarks.findit.box_prompts import message
from vlmeval_findit.benchmarks.findit.grid import (
    AnswerFormat,
    FormatAxes,
    Views,
    all_tables,
    formats,
    variants,
)
from vlmeval_findit.core.benchmark_protocol import PromptSet
from vlmeval_findit.core.folders import Folder
from vlmeval_findit.core.question import image, text
from vlmeval_findit.engine.calls import Call, Cell, CellBuilder, Prompts
from vlmeval_findit.engine.journal.writer import Journal
from vlmeval_findit.engine.plan import ItemSizes, Plan, calls_left, unanswered, work_items

Settings = Mapping[str, Any]


@pytest.fixture
def tables() -> CellBuilder:
    return CellBuilder(skip_missing=False)


def cells_of(
    tables: CellBuilder, names: list[str], axes: FormatAxes, model: str = "FullImage"
) -> list[Cell]:
    actual = variants([all_tables()[name] for name in names], formats(axes))
    return [tables.cell(model, variant, None, {}) for variant in actual]


@pytest.fixture
def plan(tables: CellBuilder) -> Plan:
    axes = FormatAxes(("xyxy", "all", "cxcywh"), keys=("bbox_2d",))
    return Plan(cells_of(tables, ["Demo", "Demo_multilabel", "Demo_refexp"], axes))


# --- cells ----------------------------------------------------------------------------------------


def test_frames_that_a_table_does_not_have_are_left_out() -> None:
    requested = [AnswerFormat("xyxy", "json")]
    both = [all_tables()["Pascal"], all_tables()["iGround"], all_tables()["RoboTools"]]
    built = variants(both, requested, Views(frames=(1, 8, 64)))
    assert [(v.dataset, v.frames) for v in built] == [
        ("Pascal", 1), ("iGround", 1), ("iGround", 8),
        ("RoboTools", 1), ("RoboTools", 8), ("RoboTools", 64),
    ]  # fmt: skip
    assert [v.frames for v in variants(both, requested)] == [1, 8, 64]


# --- calls ----------------------------------------------------------------------------------------


def over(folder: Path, cell: Cell, names: Sequence[str], first: int = 0) -> Cell:
    """Return a cell that asks the same of some images, one per row, counted from ``first``."""
    query = cell.task.queries[0]
    queries = {at: replace(query, index=at, images=(name,)) for at, name in enumerate(names, first)}
    task = replace(cell.task, queries=queries)
    prompts = Prompts(task, Folder("Demo", folder, "test"), PromptSet("test", message))
    return replace(cell, prompts=prompts, rows=tuple(queries))


def test_images_of_the_same_content_are_asked_about_once(
    tables: CellBuilder, tmp_path: Path
) -> None:
    """Wherever they lie: who comes first makes the call, and all that wait for it have it."""
    for name, content in [("a", b"same"), ("b", b"same"), ("c", b"other")]:
        (tmp_path / name).write_bytes(content)
    asked, other = cells_of(tables, ["Demo"], FormatAxes(("xyxy", "yxyx"), ("json",)))
    within = Plan([over(tmp_path, asked, ["a", "b", "c", "b"])])
    assert [(call.row, call.images[0].name) for call in within.calls()] == [(0, "a"), (2, "c")]
    keys = list(within.cells[0].call_keys())
    assert keys[0] == keys[1] == keys[3] != keys[2]
    cells = [
        over(tmp_path, other, ["b"]),
        over(tmp_path, asked, ["b"]),
        over(tmp_path, asked, ["c", "a"]),
        over(tmp_path, other, ["c", "a"]),
    ]
    actual = [(call.images[0].name, call.row, call.needed_by) for call in Plan(cells).calls()]
    assert actual == [("b", 0, (0, 3)), ("b", 0, (1, 2)), ("c", 0, (2,)), ("c", 0, (3,))]


def test_a_cell_waits_for_each_of_its_calls_once(tables: CellBuilder, tmp_path: Path) -> None:
    for name, content in [("a", b"same"), ("b", b"same"), ("c", b"other")]:
        (tmp_path / name).write_bytes(content)
    (asked,) = cells_of(tables, ["Demo"], FormatAxes(("xyxy",), ("json",)))
    cells = [over(tmp_path, asked, ["a", "b", "a"]), over(tmp_path, asked, ["b", "c"])]
    with Journal(tmp_path / "calls.jsonl") as journal:
        plan = Plan(cells, unanswered(journal, False))
        _, second = plan.calls()
        left = calls_left(plan, journal, {second.key, "of others"})
    assert left == (2, 2, (1, 2), frozenset(), {second.key})


@pytest.mark.parametrize("settings", [{}, {"é": 1.5, "a": [None, "}"]}, {"n": {3: 1, 10: 2}}])
def test_a_key_is_the_hash_of_its_record(
    tables: CellBuilder, settings: Settings, tmp_path: Path
) -> None:
    (cell,) = cells_of(tables, ["Demo"], FormatAxes(("xyxy",), ("json",)))
    words = 'é "\n\\ \ud83d'
    reported = json.dumps([["text", words], ["image", ""], ["text", ""]], separators=(",", ":"))
    for folder in (cell.prompts.folder, Folder("Demo", tmp_path / 'no "\u00fc"', "test")):
        prompts = Prompts(cell.task, folder, PromptSet("test", lambda query, variant: (
            text(words), image(query.images[0]), text("")
        )))  # fmt: skip
        item = replace(cell, model='a "model"', prompts=prompts, settings=settings)
        call = Call(list(item.call_keys())[3], item, 3)
        assert call.prompt_sha256 == hashlib.sha256(reported.encode()).hexdigest()
        depends = [item.model, settings, call.prompt_sha256, call.image_sha256]
        whole = json.dumps(depends, sort_keys=True, separators=(",", ":"))
        assert call.key == hashlib.sha256(whole.encode()).hexdigest()


def test_a_key_changes_with_all_that_an_answer_depends_on(
    tables: CellBuilder, tmp_path: Path
) -> None:
    (cell,) = cells_of(tables, ["Demo"], FormatAxes(("xyxy",), ("json",)))

    def keys(other: Cell) -> set[str]:
        return set(other.call_keys())

    same = keys(cell)
    assert keys(replace(cell, model="Other")).isdisjoint(same)
    assert keys(replace(cell, settings={**cell.settings, "seed": 1})).isdisjoint(same)

    def reworded(query, variant):
        *parts, last = message(query, variant)
        return (*parts, last._replace(value=last.value + " Please."))

    asked = Prompts(cell.task, cell.prompts.folder, PromptSet("test", reworded))
    assert keys(replace(cell, prompts=asked)).isdisjoint(same)
    moved = tmp_path / "elsewhere"
    shutil.copytree(cell.prompts.folder.path, moved)

    def moved_prompts() -> Prompts:
        return Prompts(cell.task, Folder("Demo", moved, "test"), PromptSet("test", message))

    assert keys(replace(cell, prompts=moved_prompts())) == same, "the content counts, not the place"
    first = cell.task.queries[0].images[0]
    with (moved / first).open("ab") as f:
        f.write(b"\0")
    changed = keys(replace(cell, prompts=moved_prompts()))
    assert 0 < len(same - changed) < len(same)


# --- items ----------------------------------------------------------------------------------------


def test_items_hold_every_call_once_in_order(plan: Plan) -> None:
    cut = list(Plan(plan.cells, sizes=ItemSizes(variants=4, batch=3)))
    assert [call for unit in cut for call in unit.calls] == list(plan.calls())
    assert max(len(unit.calls) for unit in cut) == 4
    for unit in cut:
        if unit.shares_images:
            assert len({call.scene for call in unit.calls}) == 1
        else:
            assert len({call.cell for call in unit.calls}) == 1


def test_few_calls_over_one_image_are_part_of_a_batch(tables: CellBuilder) -> None:
    """The demonstration asks two or three labels of most of its photographs."""
    cells = cells_of(tables, ["Demo"], FormatAxes(("xyxy",), ("json",)))
    calls = list(Plan(cells).calls())
    assert [len(u.calls) for u in work_items(calls, ItemSizes(batch=8, shared_from=8))] == [8, 8, 3]
    shared = [unit for unit in work_items(calls, ItemSizes(batch=8)) if unit.shares_images]
    assert len(shared) > 3


def test_remaining_calls_stay_in_their_items(plan: Plan) -> None:
    sizes = ItemSizes(variants=4, batch=3)
    whole = list(Plan(plan.cells, sizes=sizes))
    left = {call.key for unit in whole[5:] for call in unit.calls}
    assert list(Plan(plan.cells, left.__contains__, sizes)) == whole[5:]
    assert not list(Plan(plan.cells, lambda key: False, sizes))
