"""What a call takes of a journal: bytes on disk, and seconds and memory to open it.

The records are those of short replies as our engine writes them.  The floor, measured in the same
run, is ``json.loads`` of every line.  Seconds are those of the processor.  ``FINDIT_MILLION=1``
beside ``--benchmark-enable`` opens a million calls.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from measured import seconds

from vlmeval_findit.engine.journal.view import JournalView
from vlmeval_findit.engine.journal.writer import Journal

FEW, CALLS, MILLION = 400, 50_000, 1_000_000

OPENING, MEMORY = 2.5, 300
"""Opening takes at most so many times as long as parsing every line, and so many bytes a call."""

FORMATS = 40


def hashed(*said: object) -> str:
    return hashlib.sha256(repr(said).encode()).hexdigest()


SETTINGS = {"max_new_tokens": 1024, "image_folder": "Scale", "checkpoint": hashed("checkpoint")}
MADE_BY = {"package": "0.3.0", "model": "org/Model-7B", "revision": hashed("revision")[:40]}


def record(at: int) -> dict[str, Any]:
    """One call of a large sweep: variants of one picture come together."""
    row, variant = divmod(at, FORMATS)
    said = random.Random(at)
    tokens = {"prompt": 300 + said.randrange(40), "completion": 18 + said.randrange(12)}
    words, images = hashed("words", row, variant), [hashed("image", row // 10)]
    return {
        "key": hashed(words, images),
        "model": "M",
        "settings": SETTINGS,
        "dataset": f"FindIt_Scale_{variant}",
        "row": row,
        "prompt_sha256": words,
        "image_sha256": images,
        "reply": json.dumps({"bbox_2d": [said.randrange(1000) for _ in range(4)]}),
        "extra_records": json.dumps({"findit": {"finish_reason": "stop", "tokens": tokens}}),
        "seconds": round(said.random(), 6),
        "made_by": MADE_BY,
        "error": None,
    }


def written(path: Path, calls: int) -> None:
    with Journal(path, reserve=0) as journal:
        for start in range(0, calls, 1000):
            journal.append(record(at) for at in range(start, min(start + 1000, calls)))


def parse(path: Path) -> None:
    with path.open("rb") as f:
        for raw in f:
            json.loads(raw)


_OPENS = """
import re, sys
from pathlib import Path
from vlmeval_findit.engine.journal.view import JournalView
peak = lambda: int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
before = peak()
with JournalView(Path(sys.argv[1])):
    print((peak() - before) * 1024)
"""


def memory_of_opening(path: Path) -> int:
    """Bytes that another process takes to open a journal."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", _OPENS, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=env)
    return int(done.stdout)


def test_a_call_in_a_journal(
    tmp_path: Path, measures: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    calls = FEW if not measures else MILLION if os.environ.get("FINDIT_MILLION") else CALLS
    path = tmp_path / "calls.jsonl"
    appending = seconds(lambda: written(path, calls), repeat=1)
    size = path.stat().st_size
    parsing = seconds(lambda: parse(path), repeat=1)
    opening = seconds(lambda: JournalView(path).close(), repeat=1)
    memory = memory_of_opening(path)
    keys = [record(at)["key"] for at in range(0, calls, max(1, calls // 2000))]
    with Journal(path, reserve=0) as journal:
        serving = seconds(lambda: [journal.serves(one, logprobs=False) for one in keys])
        reading = seconds(lambda: [journal.get(one) for one in keys])
    with capsys.disabled():
        print(
            f"\n{calls:,} calls: {size / calls:.0f} bytes a call; "
            f"opened in {opening:.2f} s, {opening / parsing:.2f} times the floor, with "
            f"{memory / calls:.0f} bytes of memory a call; in µs a call: made and appended "
            f"{1e6 * appending / calls:.1f}, serves {1e6 * serving / len(keys):.1f}, read "
            f"{1e6 * reading / len(keys):.1f}"
        )
    if measures:
        assert opening <= OPENING * parsing
        assert memory <= MEMORY * calls
