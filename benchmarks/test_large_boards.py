"""Seconds and memory of ``score``, ``leaderboard``, ``errors`` and ``report`` over many runs.

Each is another process, and its seconds are those of the processor. Measured are 100 and 300 runs
of 1,000 rows, and those that ``FINDIT_BOARD_RUNS`` names (``FINDIT_BOARD_RUNS=1000``)::

    pytest benchmarks/test_large_boards.py --benchmark-enable -s
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from many_runs import FORMATS, make_runs

# ru_maxrss is of no use here: a process starts with what its parent had.
pytestmark = pytest.mark.skipif(
    not Path("/proc/self/status").is_file(), reason="no /proc says how much memory was used"
)

RUNS, LEAST = (100, 300), (8,)
"""Numbers of runs of a board with and without measuring."""

ROWS, FEW_ROWS = 1000, 40

MOST = {
    "score": (0.03, 0.55),
    "leaderboard": (0.25, 0.03),
    "errors": (0.08, 0.15),
    "report": (0.12, 0.04),
}
"""MiB and seconds a run, at most: 1,000 fit 400 MiB, and take minutes.  Seconds are 1.5 times those
of a machine with other work."""

HOW = {
    "score": "--space grid1000",
    "leaderboard": "--out {folder}/board",
    "errors": "--by label --json {folder}/errors.json",
    "report": "--out {folder}/report.html",
}
"""Further arguments; the last is the output, except of ``score``."""

_COMMAND = """
import sys, time
from pathlib import Path
from vlmeval_findit.cli import main

status = main(sys.argv[1:])
lines = Path("/proc/self/status").read_text().splitlines()
peak = next(line.split()[1] for line in lines if line.startswith("VmHWM:"))
print(status, time.process_time(), int(peak) / 2**10)
"""


class Cost(NamedTuple):
    runs: int
    seconds: float
    mib: float


def cost(what: str, folder: Path, runs: int, rows: int, formats: int) -> Cost:
    """Return the cost of a command over runs, every model in a number of formats."""
    folder_of_runs = make_runs(folder, runs, rows, FORMATS[:formats])
    how = [word.format(folder=folder) for word in HOW[what].split()]
    out = Path(how[-1])
    command = [sys.executable, "-c", _COMMAND, what, str(folder_of_runs), *how]
    at_hand = {"FINDIT_TABLES": str(folder), "FINDIT_IMAGES": f"Pascal={folder / 'pictures'}"}
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, env={**os.environ, **at_hand}
    )
    status, seconds, mib = done.stdout.splitlines()[-1].split()
    assert status == "0"
    assert len(list(folder_of_runs.glob("*_score.csv"))) == (runs if what == "score" else 0)
    if what == "leaderboard":
        assert len((out / "formats.csv").read_text().splitlines()) == 1 + runs
    elif what == "errors":
        assert len(json.loads(out.read_text("utf-8"))) == runs
    elif what == "report":
        assert f" of {runs * rows:,} answers" in out.read_text("utf-8")
        assert "Runs without a gallery" not in out.read_text("utf-8")
    return Cost(runs, float(seconds), float(mib))


@pytest.mark.parametrize("what", MOST)
@pytest.mark.parametrize("formats", [len(FORMATS), 1], ids="{} formats a model".format)
def test_a_run_more_costs_little(
    what: str, formats: int, tmp_path: Path, measures: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    if formats == 1 and not measures:
        pytest.skip("measures only with --benchmark-enable")
    named = [int(number) for number in os.environ.get("FINDIT_BOARD_RUNS", "").split()]
    sizes = sorted({*RUNS, *named}) if measures else LEAST
    rows = ROWS if measures else FEW_ROWS
    costs = []
    for runs in sizes:
        folder = tmp_path / str(runs)
        folder.mkdir()
        costs.append(cost(what, folder, runs, rows, formats))
    with capsys.disabled():
        print(f"\n{what}, runs of {rows:,} rows, models in {formats} formats:")
        for each in costs:
            print(f"  {each.runs:>5} runs: {each.seconds:6.1f} s, {each.mib:6.0f} MiB")
    if not measures:
        return
    first, last = costs[0], costs[-1]
    more = last.runs - first.runs
    mib = (last.mib - first.mib) / more
    seconds = (last.seconds - first.seconds) / more
    with capsys.disabled():
        print(
            f"  {first.seconds - seconds * first.runs:.1f} s + {seconds:.3f} s a run, "
            f"{first.mib - mib * first.runs:.0f} MiB + {mib:.2f} MiB a run"
        )
    most_mib, most_seconds = MOST[what]
    assert mib < most_mib
    assert seconds < most_seconds
