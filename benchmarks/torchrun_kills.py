"""Kill processes of torchrun, restart them with others, and check what is left.

``python torchrun_kills.py FOLDER`` lets VLMEvalKit's loop ask a model about two datasets of 19 rows
in processes of torchrun, which are killed, hang, come late, or change in number.  Each variant is a
run that goes on from what the last left, until a run is through.  No answer in a journal may be
lost, and no more may be asked twice than was in flight at the ends of processes.

Prints a line of JSON for each variant.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SUPPORT = ROOT / "tests" / "support"
sys.path[:0] = [str(ROOT), str(SUPPORT)]

from engine_fakes import answered_keys  # noqa: E402
from host_runs import environment  # noqa: E402
from paths import python_path  # noqa: E402

DATASETS = ("FindIt_Demo_xyxy_json", "FindIt_Demo_xywh_json")
ROWS = 19
TOO_LONG = 180  # seconds of a run


@dataclass(frozen=True)
class Variant:
    """A run: its processes, what befalls them (of ``killed_ranks.py``).

    ``torchrun`` gets a signal after so many calls.
    """

    name: str
    fakes: Mapping[str, str] = field(default_factory=dict)
    processes: int = 2
    torchrun: tuple[signal.Signals, int] | None = None
    is_whole: bool = False


def killed(when: str, **fakes: str) -> Mapping[str, str]:
    return {"FAKE_KILLED": when, **fakes}


VARIANTS = (
    Variant("the first process before its first call", killed("0:0")),
    Variant("the second before its first call", killed("1:0")),
    Variant("the first before its second call", killed("0:1")),
    Variant("the second before its second call", killed("1:1")),
    Variant("the first before its third call", killed("0:2")),
    Variant("the second before its third call", killed("1:2")),
    Variant("the second is late", {"FAKE_LATE": "1:3"}, is_whole=True),
    Variant("the first, by SIGTERM", killed("0:1", FAKE_SIGNAL="TERM")),
    Variant("the second, by SIGINT", killed("1:1", FAKE_SIGNAL="INT")),
    Variant("the second, by SIGSEGV", killed("1:1", FAKE_SIGNAL="SEGV")),
    Variant("torchrun, by SIGTERM", torchrun=(signal.SIGTERM, 2)),
    Variant("torchrun, by SIGINT", torchrun=(signal.SIGINT, 2)),
    Variant("four processes, none", processes=4, is_whole=True),
    Variant("the datasets in the other order", killed("1:1", FAKE_BACKWARDS="1")),
    Variant("three processes, the third", killed("2:1"), processes=3),
    Variant("one process", killed("0:1"), processes=1),
    Variant("the second hangs", {"FAKE_HANGS": "1:1", "FAKE_PATIENCE": "15"}),
    Variant("the first hangs", {"FAKE_HANGS": "0:1", "FAKE_PATIENCE": "15"}),
    Variant("one process, none", processes=1, is_whole=True),
    Variant("the first before it writes", {"FAKE_KILLED_WRITING": "0:0"}),
    Variant("the first after it wrote", {"FAKE_KILLED_WRITING": "0:1"}),
    Variant("the second near its end", killed("1:8")),
    Variant("three processes, none", processes=3, is_whole=True),
    Variant("three processes, the first in the midst", killed("0:4"), processes=3),
    Variant("torchrun, by SIGKILL", torchrun=(signal.SIGKILL, 2)),
)


class Folder:
    """What the runs of some variants have left."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(parents=True)

    def asked(self) -> list[str]:
        lines = []
        for path in self.path.glob("asked.*"):
            lines += path.read_text().splitlines()
        return lines

    def answers(self) -> set[str]:
        keys = []
        for name in DATASETS:
            journal = self.path / f"Mine_{name}_calls.jsonl"
            if journal.exists():
                keys += answered_keys(journal)
        assert len(keys) == len({*keys}), "an answer is stored twice"
        return {*keys}

    def check_whole(self) -> None:
        assert len({*self.asked()}) == len(self.answers()) == 2 * ROWS
        for name in DATASETS:
            rows = json.loads((self.path / f"Mine_{name}.json").read_text())
            assert [row["index"] for row in rows] == [*range(ROWS)]
        assert not list(self.path.glob("*.tmp*")), "a part of a file is left"


def run(variant: Variant, folder: Folder, lmu: Path) -> tuple[int, str]:
    """Run a variant; return torchrun's status and what was said."""
    more = {"FINDIT_SPACE": "grid1000", "PRED_FORMAT": "json", "CUDA_VISIBLE_DEVICES": ""}
    if not variant.is_whole:
        more["FAKE_PAUSE"] = "0.4"  # so that calls are left to the runs after it
    count = str(variant.processes)
    command = [
        *(sys.executable, "-m", "torch.distributed.run", "--standalone"),
        *("--nproc-per-node", count),
        *(str(SUPPORT / "killed_ranks.py"), str(folder.path)),
    ]
    before = len(folder.asked())
    output = folder.path / "output.txt"
    with output.open("wb") as f:
        process = subprocess.Popen(
            command,
            stdout=f,
            stderr=subprocess.STDOUT,
            env=environment(lmu, PYTHONPATH=python_path(), **more, **variant.fakes),
        )
    if variant.torchrun is not None:
        number, calls = variant.torchrun
        while process.poll() is None and len(folder.asked()) < before + calls:
            time.sleep(0.01)
        process.send_signal(number)
    if variant.torchrun is not None and variant.torchrun[0] == signal.SIGKILL:
        process.wait()
        wait_for_orphans(folder)
    try:
        status = process.wait(TOO_LONG)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        raise AssertionError(f"no end after {TOO_LONG} s") from None
    return status, output.read_text(errors="replace")


def wait_for_orphans(folder: Folder) -> None:
    """Wait until processes that torchrun left behind have asked nothing for a while."""
    before = -1
    while before != len(folder.asked()):
        before = len(folder.asked())
        time.sleep(8)


def check(variant: Variant, folder: Folder, lmu: Path) -> dict[str, object]:
    """Run a variant, check what is left, and return figures."""
    asked, answers = len(folder.asked()), folder.answers()
    start = time.monotonic()
    status, said = run(variant, folder, lmu)
    assert answers <= folder.answers(), "an answer is lost"
    assert (status == 0) == variant.is_whole, f"status {status}: {said[-3000:]}"
    made = len(folder.asked()) - asked
    stored = len(folder.answers()) - len(answers)
    assert made - stored <= variant.processes, f"{made} calls, {stored} answers"
    if variant.is_whole:
        folder.check_whole()
    return {
        "status": status,
        "calls": made,
        "answers": stored,
        "seconds": round(time.monotonic() - start),
    }


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--begin", default=VARIANTS[0].name, help="with this variant")
    given = parser.parse_args(arguments)
    lmu = given.folder / "lmu"
    rounds = 0
    folder = Folder(given.folder / "0")
    begin = [variant.name for variant in VARIANTS].index(given.begin)
    for variant in VARIANTS[begin:]:
        figures: dict[str, object] = {}
        try:
            figures = check(variant, folder, lmu)
        except AssertionError as error:
            figures = {"wrong": str(error)}
        print(json.dumps({"variant": variant.name, **figures}), flush=True)
        if variant.is_whole or "wrong" in figures:
            rounds += 1
            folder = Folder(given.folder / str(rounds))


if __name__ == "__main__":
    main(sys.argv[1:])
