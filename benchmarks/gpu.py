"""Measure models on a GPU, in eight minutes, with nothing but torch, transformers and this clone.

    python benchmarks/gpu.py                        # all sections, the most important first
    python benchmarks/gpu.py --section shape oom    # some
    python benchmarks/gpu.py --small                # on the CPU, with small numbers: does it work?

Each section is a process of its own (``gpu_sections.py``): its rows are printed as they come, and
what happens to one leaves the others alone. The table comes last, with the main figure at its end.
With ``$OUT`` the numbers are written there as JSON, with the log. VLMEvalKit is not needed.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = Path(__file__).with_name("gpu_sections.py")

SECTIONS: Mapping[str, tuple[float, str]] = {
    "smoke": (120, "FindIt-Nano as users get it"),
    "turns": (430, "FindIt and the plain loop by turns, with the spread"),
    "shape": (230, "random weights of Qwen3-VL-2B's shape, against a plain loop"),
    "nano": (70, "FindIt-Nano"),
    "family_turns": (150, "the same of tiny checkpoints of the families"),
    "oom": (60, "memory runs out: a tiny Qwen3-VL with large pictures"),
    "families": (110, "tiny checkpoints of the families"),
    "sigterm": (60, "SIGTERM in a batch of FindIt-Nano, then the run again"),
    "prefix": (70, "one prefill for all questions about an image"),
    "dual": (40, "dual encoders"),
    "two": (60, "two runs of FindIt-Nano at the same time"),
}
"""The most seconds of each section on a GPU, and what it measures; the most important first."""

GRACE = 10.0
"""Seconds after its time in which a section may end its last measurement."""


@dataclass(frozen=True, slots=True)
class Row:
    """What was measured, or why it was not."""

    case: str
    dtype: str = ""
    batch: int | None = None
    rate: float | None = None  # queries a second
    allocated: float | None = None  # most MiB of tensors
    reserved: float | None = None  # most MiB that torch held for them
    like_single: str = ""  # replies equal to those of one query at a time
    like_cpu: str = ""  # replies equal to those of the CPU
    note: str = ""
    failed: bool = False

    def __str__(self) -> str:
        numbers = [
            "" if self.batch is None else f"{self.batch}",
            "" if self.rate is None else f"{self.rate:.2f}",
            "" if self.allocated is None else f"{self.allocated:,.0f}",
            "" if self.reserved is None else f"{self.reserved:,.0f}",
        ]
        return _line(self.case, self.dtype, *numbers, self.like_single, self.like_cpu, self.note)


def _line(*cells: str) -> str:
    widths = (26, 8, 5, 9, 7, 7, 7, 6, 0)
    sides = "<<>>>>>><"
    shown = [
        f"{cell:{side}{width}}" for cell, side, width in zip(cells, sides, widths, strict=True)
    ]
    return " ".join(shown).rstrip()


HEAD = _line("", "dtype", "batch", "queries/s", "MiB", "held", "=single", "=CPU", "")


class Section:
    """A section in its process."""

    def __init__(self, name: str, seconds: float, small: bool, env: Mapping[str, str]) -> None:
        self._name = name
        self._seconds = seconds
        self._log = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115
        command = [sys.executable, str(SCRIPT), name, f"--until={time.monotonic() + seconds}"]
        self._process = subprocess.Popen(
            [*command, "--small"] if small else command,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            env=dict(env),
            start_new_session=True,
        )

    def rows(self) -> Iterator[Row]:
        """Yield its rows; the last says so if it failed or was stopped."""
        late = threading.Timer(self._seconds + GRACE, self._kill)
        late.start()
        assert self._process.stdout is not None
        try:
            for line in self._process.stdout:
                yield Row(**json.loads(line))
            status = self._process.wait()
        finally:
            late.cancel()
            self._kill()
        if status == -signal.SIGKILL:
            yield Row(self._name, note=f"not reached: stopped after {self._seconds:.0f} s")
        elif status:
            yield Row(self._name, note=f"failed: exit status {status}, see the log", failed=True)

    def log(self) -> str:
        self._log.seek(0)
        return self._log.read()

    def _kill(self) -> None:
        """End it with all that it started."""
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return


def head(small: bool) -> str:
    """Return what was measured on: card, driver, versions."""
    versions = {"Python": platform.python_version()}
    for name in ("torch", "transformers", "tokenizers"):
        versions[name] = metadata.version(name)
    program = shutil.which("nvidia-smi")
    card = "the CPU, small numbers" if small else "a card that nvidia-smi does not name"
    if program is not None and not small:
        asks = [program, "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"]
        card = subprocess.run(asks, capture_output=True, text=True, check=False).stdout.strip()
    return f"{card}; " + ", ".join(f"{name} {version}" for name, version in versions.items())


def environment(folder: Path, small: bool) -> dict[str, str]:
    """Return the variables of a section: this clone, its helpers, and a data folder of its own."""
    (folder / "lmu").mkdir(exist_ok=True)
    paths = [str(ROOT), str(ROOT / "tests" / "support"), os.environ.get("PYTHONPATH", "")]
    return {
        **{k: v for k, v in os.environ.items() if not k.startswith("FINDIT_")},
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "LMUData": str(folder / "lmu"),
        "TMPDIR": str(folder),
        "HF_HUB_OFFLINE": "1",
        "TQDM_DISABLE": "1",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "TOKENIZERS_PARALLELISM": "false",
        **({"CUDA_VISIBLE_DEVICES": ""} if small else {}),
    }


def measure(
    names: Sequence[str], minutes: float, small: bool
) -> Iterator[tuple[str, Row, str | None]]:
    """Yield the rows of sections with their names; the last of each with the section's log."""
    end = time.monotonic() + 60 * minutes
    with tempfile.TemporaryDirectory(prefix="findit-gpu-", ignore_cleanup_errors=True) as folder:
        env = environment(Path(folder), small)
        for name in names:
            left = end - time.monotonic() - GRACE
            if left < GRACE:
                yield name, Row(name, note="not reached: no time is left"), ""
                continue
            seconds = left if small else min(left, SECTIONS[name][0])
            section = Section(name, seconds, small, env)
            started = time.monotonic()
            for row in section.rows():
                yield name, row, None
            spent = f"{time.monotonic() - started:.0f} s"
            yield name, Row(f"{name}: whole section", note=spent), section.log()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--section", nargs="+", choices=SECTIONS, default=list(SECTIONS))
    parser.add_argument("--minutes", type=float, default=8.0, help="for everything (8)")
    parser.add_argument("--small", action="store_true", help="on the CPU, with small numbers")
    options = parser.parse_args(arguments)
    title = head(options.small)
    print(f"{title}\n{HEAD}", flush=True)
    rows: dict[str, list[Row]] = {name: [] for name in options.section}
    logs: dict[str, str] = {}
    for name, row, log in measure(options.section, options.minutes, options.small):
        rows[name].append(row)
        print(row, flush=True)
        if log is not None:
            logs[name] = log
            write_out(title, rows, logs)
            if any(each.failed for each in rows[name]):
                print(log[-1500:], flush=True)
    print(f"\n{title}\n{HEAD}")
    for name, of_section in reversed(rows.items()):
        print(f"--- {name}: {SECTIONS[name][1]}")
        print("\n".join(map(str, of_section)))
    failed = sum(row.failed for of_section in rows.values() for row in of_section)
    print(f"{failed} failed" if failed else "nothing failed")
    return 1 if failed else 0


def write_out(title: str, rows: Mapping[str, Sequence[Row]], logs: Mapping[str, str]) -> None:
    """Write numbers and logs into ``$OUT``, if it is set."""
    if "OUT" not in os.environ:
        return
    folder = Path(os.environ["OUT"])
    numbers = {name: [asdict(row) for row in of_section] for name, of_section in rows.items()}
    whole = json.dumps({"on": title, "sections": numbers}, indent=1)
    (folder / "gpu.json").write_text(whole, encoding="utf-8")
    text = "\n".join(f"=== {name}\n{log}" for name, log in logs.items())
    (folder / "gpu.log").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
