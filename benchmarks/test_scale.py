"""What a call costs of ours in a large sweep, first and when it is started again, by stage.

One model answers at once as it is asked, one at once and always in the same words.  The floor,
measured in the same run, is what keeping the lines cannot do without: ``json.dumps`` of every
record, and one write of it.  Seconds are those of the processor: other processes of the machine are
not its fault.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest
from engine_fakes import FakeBackends, FakeModel, Message, demo_sweep, go, records
from measured import peak_mib
from scale_runs import BOX, GRID, SIZE, Seconds, import_table, stages_timed

from vlmeval_findit.benchmarks import parse
from vlmeval_findit.boxes.writing import BoxToWrite, write

ROWS, LEAST = 500, 20
"""Rows of the table when it is measured, and when it is only run; each is asked in 40 formats."""


TARGET = 2.0
"""A finished sweep that is started again takes at most so many times the floor."""


class AtOnce(FakeModel):
    """Answers without a thought, and only sometimes as it is asked."""

    first_at_most = 54.0
    """A first sweep takes at most so many times the floor, on a machine that is not idle."""

    def generate(self, message: Message, dataset: str) -> str:
        self.calls += 1
        return self.reply(dataset)

    def reply(self, dataset: str) -> str:
        return "[10, 20, 300, 900]"


class AsAsked(AtOnce):
    """Finds everything, and says so as it is asked."""

    first_at_most = 42.0

    def reply(self, dataset: str) -> str:
        return right_answer(dataset)


@cache
def right_answer(dataset: str) -> str:
    """The box in thousandths, in the format that is asked for."""
    x1, y1, x2, y2 = (1000 * at / side for at, side in zip(BOX, SIZE * 2, strict=True))
    return write([BoxToWrite((x1, y1, x2, y2))], parse(dataset).reply, digits=2)


def forget_peak() -> None:
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def floor(lines: list[dict[str, object]], path: Path) -> float:
    """Seconds to write the same lines, one write each."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    start = time.process_time()
    for line in lines:
        os.write(file, json.dumps(line).encode())
    took = time.process_time() - start
    os.close(file)
    return took


@pytest.mark.parametrize("kind", [AsAsked, AtOnce])
def test_cost_of_a_call_by_stage(
    kind: type[AtOnce],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    measures: bool,
    capsys: pytest.CaptureFixture[str],
) -> None:
    import_table(tmp_path, ROWS if measures else LEAST, monkeypatch)
    go(demo_sweep(tmp_path / "warm", GRID, limit=1), FakeBackends(kind()))
    sweep, told = demo_sweep(tmp_path, GRID), []
    for name in ("first", "again"):
        model = kind()
        forget_peak()
        before, start = peak_mib(), time.process_time()
        with stages_timed(monkeypatch) as stages:
            results = go(sweep, FakeBackends(model))
        told.append((name, time.process_time() - start, stages, before, peak_mib(), model.calls))
    lines = list(records(sweep.journal))
    calls = len(lines)
    assert [one[-1] for one in told] == [calls, 0]
    bare = floor(lines, tmp_path / "floor.jsonl")
    with capsys.disabled():
        size = sum(one.stat().st_size for one in sweep.journal.parent.glob("calls.jsonl*")) / calls
        adherent = sum(result.sums["adherent"] for result in results) / calls
        print(f"\n{len(results)} cells, {calls:,} calls, {size:.0f} bytes of journal a call")
        print(f"{kind.__name__}: {100 * adherent:.0f} % of the answers adhere to the format")
        print(f"floor (json.dumps and write of the same lines): {1e6 * bare / calls:.1f} µs a call")
        for name, seconds, stages, before, peak, _ in told:
            print(
                f"{name}: {1e6 * seconds / calls:.1f} µs a call, {seconds / bare:.2f} times the "
                f"floor; memory {before:.0f} to {peak:.0f} MiB\n"
                f"  {by_stage(stages, seconds, calls)}"
            )
    if measures:
        first, again = (seconds for _, seconds, *_ in told[:2])
        assert first <= kind.first_at_most * bare
        assert again <= TARGET * bare


def by_stage(stages: Seconds, whole: float, calls: int) -> str:
    parts = {**stages, "all else": whole - sum(stages.values())}
    return ", ".join(f"{name} {1e6 * took / calls:.1f}" for name, took in parts.items())
