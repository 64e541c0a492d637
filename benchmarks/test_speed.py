"""The speed of scoring (against its floor), of tables, and of a large run.

``python -m pytest benchmarks --benchmark-enable`` prints the times; without the flag the same
code runs once as a test. Time is noisy, so the target is a ratio of two times of a run.
"""

from __future__ import annotations

import gc
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from conformance.findit import Case, load_cases, score_cases

from vlmeval_findit.benchmarks.findit import prepare_subset, tables_of
from vlmeval_findit.boxes import BoxToWrite, write
from vlmeval_findit.data import load_dataset

pytestmark = pytest.mark.shared

TARGET = 5
"""Most times the floor that scoring takes, everything included."""

_NUMBER = r"(\d+(?:\.\d+)?)"
_BARE_BOX = re.compile(r"\[\s*" + r"\s*,\s*".join([_NUMBER] * 4) + r"\s*\]")


@pytest.fixture(scope="module")
def loaded(cases: Path, subsets: Path) -> list[Case]:
    return [case for _, case in load_cases(cases, subsets)]


def floor(cases: list[Case]) -> None:
    """Do the least that reading needs: json.loads, or the pattern of four numbers."""
    for case in cases:
        if case.reply_format.output == "text":
            _BARE_BOX.findall(case.response)
            continue
        try:
            json.loads(case.response)
        except ValueError:
            continue


def best(*functions: Callable[[], object], rounds: int) -> list[float]:
    """Return the least seconds of each function, run in turns.

    Objects of other tests are hidden from the garbage collector: it would visit all of them in the
    middle of a measurement.
    """
    gc.collect()
    gc.freeze()
    seconds = [float("inf")] * len(functions)
    for _ in range(rounds):
        for i, function in enumerate(functions):
            start = time.perf_counter()
            function()
            seconds[i] = min(seconds[i], time.perf_counter() - start)
    gc.unfreeze()
    return seconds


def test_scoring_against_its_floor(
    loaded: list[Case], measures: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    score_cases(loaded)  # Readers and patterns are created once
    rounds = 51 if measures else 5
    scored, bare = best(lambda: score_cases(loaded), lambda: floor(loaded), rounds=rounds)
    per_reply = 1e6 / len(loaded)
    with capsys.disabled():
        print(
            f"\nscoring {scored * per_reply:.1f} µs a reply, floor {bare * per_reply:.1f} µs, "
            f"ratio {scored / bare:.1f} (target: at most {TARGET})"
        )
    assert not measures or scored <= TARGET * bare


def test_score_5184_cases(benchmark, loaded: list[Case]) -> None:
    assert len(benchmark(score_cases, loaded)) == len(loaded)


def test_floor_of_5184_cases(benchmark, loaded: list[Case]) -> None:
    benchmark(floor, loaded)


def test_prepare_all_subsets(benchmark, measures: bool, subsets: Path, tmp_path: Path) -> None:
    def prepare() -> int:
        made = [prepare_subset(subsets, tmp_path, *table) for table in tables_of(None)]
        return sum(table.path.stat().st_size for table in made)

    start = time.perf_counter()
    size = benchmark.pedantic(prepare, rounds=1)
    assert len(list(tmp_path.glob("*.tsv"))) == 20
    assert size < 10e6
    assert not measures or time.perf_counter() - start < 10


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads the peak from Linux")
def test_score_a_thousand_multilabel_videos(
    subsets: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    measures: bool,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Run the command, start-up included: under 2 s and 500 MB."""
    monkeypatch.setenv("FINDIT_TABLES", str(tmp_path))
    for table in tables_of(["iGround_multilabel"]):
        prepare_subset(subsets, tmp_path, *table)
    name = "FindIt_iGround_multilabel_f8_xyxy_json"
    path = tmp_path / f"Qwen3-VL_{name}.json"
    path.write_text(json.dumps(perfect_predictions(name)))
    code = (
        "import re, sys, time; from vlmeval_findit.cli import main\n"
        "status = main(sys.argv[1:])\n"
        # Not getrusage: its peak is that of the parent process, if that is larger.
        "peak = re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1]\n"
        "print(time.process_time(), int(peak) / 1024)\n"
        "sys.exit(status)"
    )
    command = [sys.executable, "-c", code, "score", str(path)]
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    wall = time.perf_counter() - start
    # Processor time, so that other processes do not matter.
    seconds, mib = map(float, done.stdout.splitlines()[-1].split())
    with capsys.disabled():
        print(
            f"\nscore of 1,000 multi-label videos: {wall:.2f} s, "
            f"of the processor {seconds:.2f} s, {mib:.0f} MiB"
        )
    assert "1000/1000" in done.stdout
    assert not measures or seconds < 2
    assert mib < 500


def perfect_predictions(name: str) -> list[dict[str, object]]:
    """Return the ground truth as a model on a 1000 grid would answer it."""
    dataset = load_dataset(name)
    rows = []
    for query in dataset.queries.values():
        size = (query.width, query.height) * 2
        truth = zip(query.truth.boxes, query.truth.labels, query.truth.frames, strict=True)
        boxes = [
            BoxToWrite(tuple(1000 * n / s for n, s in zip(box, size, strict=True)), label, frame)
            for box, label, frame in truth
        ]
        rows.append({"index": query.index, "prediction": write(boxes, dataset.variant.reply)})
    return rows
