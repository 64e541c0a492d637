"""What a run wants of a batch service is kept small, and made again as it was."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest
from plan_memory import cells
from test_plan import cells_of

from vlmeval_findit.benchmarks.findit.grid import Axes
from vlmeval_findit.engine.backend import single_calls, work_of
from vlmeval_findit.engine.batch_backend import PendingCalls
from vlmeval_findit.engine.calls import ImageHashes
from vlmeval_findit.engine.plan import ItemSizes, Plan, WorkItem, make_plan, work_items
from vlmeval_findit.engine.run import Tables


def single_items(plan: Plan, shared_from: int = 2) -> list[WorkItem]:
    whole = work_items(plan.calls, ItemSizes(shared_from=shared_from))
    return [one for item in whole for one in single_calls(item)]


@pytest.mark.parametrize("shared_from", [2, 1000])
def test_calls_are_made_again_as_they_were(shared_from: int) -> None:
    axes = Axes(("xyxy", "all", "cxcywh"), keys=("bbox_2d",))
    asked = cells_of(Tables(skip_missing=False), ["Demo", "Demo_multilabel", "Demo_refexp"], axes)
    made = single_items(make_plan([*asked, asked[0]], ImageHashes()), shared_from)
    assert any(len(item.calls[0].wanted_by) > 1 for item in made)
    pending = PendingCalls(made)
    assert list(pending) == [item.calls[0].key for item in made]
    assert [pending.item(key) for key in pending] == made
    assert [work_of(pending.item(key)) for key in pending] == list(map(work_of, made))
    assert pending.first == made[0].calls[0]


def test_what_is_kept_of_a_call_is_small(tmp_path: Path) -> None:
    plan = make_plan(cells(tmp_path, 5), ImageHashes())
    made = len(single_items(plan))
    tracemalloc.start()
    try:
        whole = work_items(plan.calls, ItemSizes())
        pending = PendingCalls(one for item in whole for one in single_calls(item))
        size = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert len(pending) == made == 5000
    assert size < 260 * made, "679 bytes where whole calls are kept"
