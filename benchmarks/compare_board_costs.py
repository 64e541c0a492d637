"""Measure two versions of FindIt over the same runs: processor and memory of board and report.

Each command is a process of its own. The versions take turns, and a yardstick (always the same
work of Python) runs in every turn: where its seconds differ much, the machine had other work::

    git archive --prefix=old/ COMMIT | tar x -C /tmp
    python benchmarks/compare_board_costs.py /tmp/old . --runs 1000 --turns 5

The runs are made by the first version, which the others must be able to read. A turn before the
measured ones compiles all modules, and keeps what a version keeps for its user.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

_ROWS = 1000
_WORDS = {"leaderboard": ("--out", "board"), "report": ("--out", "report.html")}
_COMMAND = "import sys; from vlmeval_findit.cli import main; sys.exit(main(sys.argv[1:]))"
_YARDSTICK = """
import json
text = json.dumps([{"at": at, "name": str(at), "values": [at / 7] * 9} for at in range(20_000)])
for _ in range(12):
    json.loads(text)
"""
_MAKE = """
import sys
from pathlib import Path
from many_runs import make_runs
make_runs(Path.cwd(), int(sys.argv[1]), int(sys.argv[2]))
"""


class Cost(NamedTuple):
    seconds: float  # Of the processor, of user and system
    mib: float


def measure(code: str, words: Sequence[str], folder: Path, env: Mapping[str, str]) -> Cost:
    """Run a program in a folder; return its cost.

    Raises:
        SystemExit: it failed.
    """
    with tempfile.TemporaryFile() as out:
        command = [sys.executable, "-c", code, *words]
        started = subprocess.Popen(command, cwd=folder, env=env, stdout=out, stderr=out)
        _, status, used = os.wait4(started.pid, 0)
        started.returncode = os.waitstatus_to_exitcode(status)
        if started.returncode != 0:
            out.seek(0)
            sys.exit(f"{' '.join(words)}: {out.read().decode('utf-8', 'replace')}")
    return Cost(used.ru_utime + used.ru_stime, used.ru_maxrss / 2**10)


def environment(tree: Path, folder: Path) -> dict[str, str]:
    """Return the environment of a version over the tables and images of a folder."""
    paths = [tree, tree / "tests" / "support", tree / "tests"]
    environ = dict(os.environ)
    environ.pop("PYTHONDONTWRITEBYTECODE", None)
    return {
        **environ,
        "PYTHONPYCACHEPREFIX": str(folder / "compiled"),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "PYTHONPATH": os.pathsep.join(map(str, paths)),
        "FINDIT_TABLES": str(folder),
        "FINDIT_IMAGES": f"Pascal={folder / 'pictures'}",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("trees", type=Path, nargs="+", help="folders with a version each")
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--turns", type=int, default=5)
    options = parser.parse_args()
    trees = [tree.absolute() for tree in options.trees]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        made = [str(options.runs), str(_ROWS)]
        measure(_MAKE, made, folder, environment(trees[0], folder))
        print(f"{options.runs} runs of {_ROWS:,} rows, {options.turns} turns")
        measure_turns(trees, folder, 1)
        costs = measure_turns(trees, folder, options.turns)
    for (what, tree), of_turns in costs.items():
        seconds = sorted(cost.seconds for cost in of_turns)
        mib = median(cost.mib for cost in of_turns)
        spread = f"{seconds[0]:.2f} to {seconds[-1]:.2f}"
        print(f"{what:12} {tree:40} {median(seconds):6.2f} s ({spread}) {mib:6.0f} MiB")


def measure_turns(
    trees: Sequence[Path], folder: Path, turns: int
) -> dict[tuple[str, str], list[Cost]]:
    """Return the costs of each command by its name and its version, and of the yardstick."""
    costs: dict[tuple[str, str], list[Cost]] = {}
    for _ in range(turns):
        yardstick = measure(_YARDSTICK, [], folder, dict(os.environ))
        costs.setdefault(("yardstick", ""), []).append(yardstick)
        for what, words in _WORDS.items():
            for tree in trees:
                env = environment(tree, folder)
                cost = measure(_COMMAND, [what, "many", *words], folder, env)
                costs.setdefault((what, str(tree)), []).append(cost)
    return costs


if __name__ == "__main__":
    main()
