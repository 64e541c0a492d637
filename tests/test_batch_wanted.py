"""What a run wants of a batch service is kept small, and made again as it was."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest
from plan_memory import cells
from test_plan import cells_of

from vlmeval_findit.benchmarks.findit.grid import Axes
from vlmeval_findit.engine.backend import single_calls, work_of
from vlmeval_findit.engine.batch_wanted import Wanted
from vlmeval_findit.engine.calls import ImageHashes
from vlmeval_findit.engine.plan import ItemSizes, Plan, WorkItem, make_plan, work_items
from vlmeval_findit.engine.run import Tables


def pieces(plan: Plan, shared_from: int = 2) -> list[WorkItem]:
    whole = work_items(plan.calls, ItemSizes(shared_from=shared_from))
    return [one for unit in whole for one in single_calls(unit)]


@pytest.mark.parametrize("shared_from", [2, 1000])
def test_calls_are_made_again_as_they_were(shared_from: int) -> None:
    axes = Axes(("xyxy", "all", "cxcywh"), keys=("bbox_2d",))
    asked = cells_of(Tables(skip_missing=False), ["Demo", "Demo_multilabel", "Demo_refexp"], axes)
    made = pieces(make_plan([*asked, asked[0]], ImageHashes()), shared_from)
    assert any(len(unit.calls[0].wanted_by) > 1 for unit in made)
    wanted = Wanted(iter(made))
    assert list(wanted) == [unit.calls[0].key for unit in made]
    assert [wanted[key] for key in wanted] == made
    assert [work_of(wanted[key]) for key in wanted] == list(map(work_of, made))
    assert wanted.first == made[0]
    del wanted[made[0].calls[0].key]
    assert wanted.first == made[1]
    assert len(wanted) == len(wanted.keys()) == len(made) - 1
    assert not Wanted([])


def test_what_is_kept_of_a_call_is_small(tmp_path: Path) -> None:
    plan = make_plan(cells(tmp_path, 5), ImageHashes())
    made = len(pieces(plan))
    tracemalloc.start()
    try:
        wanted = Wanted(
            one for unit in work_items(plan.calls, ItemSizes()) for one in single_calls(unit)
        )
        size = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert len(wanted) == made == 5000
    assert size < 260 * made, "679 bytes where whole calls are kept"
