"""``run_findit.py marks --best``: the marks that models see best, from scored stage 1 runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..benchmarks.vpbench import best_marks
from ..leaderboard.best_marks import Figures, find_best_marks
from ..runs.scored_run import load_runs


def write_best_marks(runs: Sequence[Path], at_least: int) -> int:
    """Write the file that stage 2 asks by, and print what it says."""
    found = find_best_marks(load_runs(runs), at_least)
    where = best_marks.write(found.values())
    for one in found.models:
        best = one.best
        print(f"{one.model}: {best.name}")
        print(f"  {_line(one.shapes)}\n  {_line(one.colours)}")
        print(f"  of {', '.join(run.path.name for run in one.runs)}")
    for left in found.apart:
        print(f"not counted: {left.run.path}: {left.reason}")
    print(f"good for all: {', '.join(found.good_shapes)}; {', '.join(found.good_colours)}")
    print(where)
    return 0


def _line(figures: Figures) -> str:
    return ", ".join(
        f"{name} {seen.accuracy:.1f} % of {seen.questions}" for name, seen in figures.items()
    )
