"""A page of runs whose details are read again, run after run."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from pathlib import Path

import pytest
from scored_runs import World, speaking

from vlmeval_findit.cli import main
from vlmeval_findit.protocol import RowTable, ScoredRow
from vlmeval_findit.report import board_charts, gallery_choice
from vlmeval_findit.scoring import Run, read_details

PASCAL = "FindIt_Pascal_xyxy_json_bbox_2d"
TEXT = "FindIt_Pascal_xyxy_text"


def rows_in_memory() -> int:
    rows = (thing for thing in gc.get_objects() if isinstance(thing, ScoredRow))
    return sum(bool(row.details) for row in rows)


@pytest.mark.slow
def test_the_details_of_one_run_are_held_at_a_time(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for model in "ABCDE":
        world.predict(model, PASCAL, speaking(PASCAL, 0.5))
    held: list[int] = []
    met: list[Run] = []
    gc.freeze()  # Objects of other tests do not count

    def counting(run: Run, places: Sequence[int] | None = None) -> Sequence[ScoredRow]:
        met.append(run)
        details = read_details(run, places)
        gc.collect()
        held.append(rows_in_memory())
        return details

    monkeypatch.setattr(board_charts, "read_details", counting)
    monkeypatch.setattr(gallery_choice, "read_details", counting)
    out = tmp_path / "report.html"
    assert main(["report", str(world.runs), "--out", str(out), "--cards", "15"]) == 0
    assert len(held) == len(met) == 2 * 5
    assert all(isinstance(run.rows, RowTable) for run in met)
    # No more than the cards of the page; then all rows of a run beside them.
    assert max(held[:5]) <= 15
    assert max(held[5:]) <= 15 + 12
