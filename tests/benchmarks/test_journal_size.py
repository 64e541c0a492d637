"""What a call takes of a sealed journal: bytes on disk, and seconds and memory to open it.

The records are those of short replies as our engine writes them.  The floor, measured in the same
run, is reading every line, as a journal without segments is opened.  Seconds are those of the
processor.  A second journal, ten times as large, shows what grows with the number of calls.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from measured import seconds

from vlmeval_findit.engine.calls import _sha256
from vlmeval_findit.engine.journal import writer as journal_module
from vlmeval_findit.engine.journal.segments import folder_of, segments_of
from vlmeval_findit.engine.journal.writer import Journal

CALLS, FEW = 5_000, 400
"""Calls of the smaller journal when it is measured, and when it is only run."""

BYTES, OPENING, GROWTH_MIB = 300, 0.05, 4
"""A call on disk at most; opening, of the time that reading every line takes, at most; memory of
opening ten times as many calls at most more."""

FORMATS = 40


def hashed(*said: object) -> str:
    return hashlib.sha256(repr(said).encode()).hexdigest()


SETTINGS = {"max_new_tokens": 1024, "image_folder": "Scale", "checkpoint": hashed("checkpoint")}
MADE_BY = {"package": "0.3.0", "model": "org/Model-7B", "revision": hashed("revision")[:40]}


def record(at: int) -> dict[str, Any]:
    """One call of a large sweep: variants of one picture come together."""
    row, variant = divmod(at, FORMATS)
    said = random.Random(at)
    words, images = hashed("words", row, variant), [hashed("image", row // 10)]
    return {
        "key": _sha256(["M", SETTINGS, words, images]),
        "model": "M",
        "settings": SETTINGS,
        "dataset": f"FindIt_Scale_{variant}",
        "row": row,
        "prompt_sha256": words,
        "image_sha256": images,
        "reply": json.dumps({"bbox_2d": [said.randrange(1000) for _ in range(4)]}),
        "extra_records": None,
        "tokens": {"prompt": 300 + said.randrange(40), "completion": 18 + said.randrange(12)},
        "finish_reason": "stop",
        "seconds": round(said.random(), 6),
        "error": None,
        "made_by": MADE_BY,
    }


def made(path: Path, calls: int) -> tuple[float, float]:
    """Write a journal; microseconds of the processor a call, and those of them for records."""
    start = time.process_time()
    for at in range(calls):
        record(at)
    floor = time.process_time() - start
    start = time.process_time()
    with Journal(path, reserve=0) as journal:
        for at in range(calls):
            journal.append([record(at)])
    return 1e6 * (time.process_time() - start - floor) / calls, 1e6 * floor / calls


def bytes_of(path: Path) -> dict[str, int]:
    found = {"live": path.stat().st_size, "segments": 0, "keys": 0}
    for one in folder_of(path).iterdir():
        found["keys" if one.suffix == ".keys" else "segments"] += one.stat().st_size
    return found


def plain(path: Path, calls: int) -> Path:
    """The same journal without segments."""
    other = path.with_name("plain.jsonl")
    with Journal(other, reserve=0) as journal:
        for start in range(0, calls, 1000):
            journal.append(record(at) for at in range(start, start + 1000))
    return other


def peak_of_opening(path: Path, calls: int) -> float:
    """MiB that a process takes to open a journal and to look up a thousand calls of it, beside what
    it takes to open an empty one."""

    def peak(of: Path) -> float:
        done = subprocess.run(
            [sys.executable, "-c", _OPENS, str(of), str(calls), str(journal_module.SEGMENT)],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        return int(done.stdout) / 1024

    return peak(path) - peak(path.with_name("empty.jsonl"))


_OPENS = """
import re, sys
from pathlib import Path
from vlmeval_findit.engine.journal import writer as journal
from test_journal_size import record
path, calls, journal.SEGMENT = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
with journal.Journal(path, reserve=0) as opened:
    for at in range(0, calls, max(1, calls // 1000)):
        known = opened.serves(record(at)["key"], confidences=False)
        assert known == (path.name != "empty.jsonl")
print(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
"""


@pytest.fixture
def calls(measures: bool, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    # So that the smaller one has several segments too.
    monkeypatch.setattr(journal_module, "SEGMENT", 1 << 20 if measures else 40_000)
    return CALLS if measures else FEW


def told_of(path: Path, calls: int) -> str:
    """Make a journal, and say what a call of it takes."""
    appended, floor = made(path, calls)
    keys = [record(at)["key"] for at in range(0, calls, max(1, calls // 2000))]
    with Journal(path, reserve=0) as journal:
        serving = seconds(lambda: [journal.serves(one, confidences=False) for one in keys])
        reading = seconds(lambda: [journal[one] for one in keys])
    opened = seconds(lambda: Journal(path, reserve=0).close())
    sizes = bytes_of(path)
    assert sum(sizes.values()) / calls <= BYTES
    return (
        f"{calls:,} calls, {len(segments_of(path))} segments: "
        f"{sum(sizes.values()) / calls:.0f} bytes a call "
        f"({', '.join(f'{name} {size / calls:.0f}' for name, size in sizes.items())}); "
        f"append {appended:.1f} us beside {floor:.1f} to make the record, "
        f"serves {1e6 * serving / len(keys):.1f} us, read {1e6 * reading / len(keys):.1f} us; "
        f"opened in {1e3 * opened:.1f} ms"
    )


def test_a_call_in_a_sealed_journal(
    calls: int, tmp_path: Path, measures: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    each = (calls, 10 * calls) if measures else (calls,)
    paths = [tmp_path / f"{many}.jsonl" for many in each]
    told = [told_of(path, many) for path, many in zip(paths, each, strict=True)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(journal_module, "SEGMENT", 1 << 40)
        other = plain(paths[0], calls)
        every = seconds(lambda: Journal(other, reserve=0).close()) / calls
    opened = [seconds(lambda path=path: Journal(path, reserve=0).close()) for path in paths]
    ratios = [one / (every * many) for one, many in zip(opened, each, strict=True)]
    peaks = [peak_of_opening(path, many) for path, many in zip(paths, each, strict=True)]
    with capsys.disabled():
        print("", *told, sep="\n")
        print(
            f"reading every line: {1e6 * every:.1f} us a call; opening with an index takes of that"
        )
        print(f"{[round(one, 4) for one in ratios]}; memory {[round(one, 1) for one in peaks]} MiB")
    if measures:
        assert ratios[-1] <= OPENING
        assert peaks[1] - peaks[0] <= GROWTH_MIB
