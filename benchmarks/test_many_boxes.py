"""A query of very many boxes: seconds and memory, against those of the table of all its pairs.

``python -m pytest benchmarks/test_many_boxes.py --benchmark-enable -s`` measures 20,000
boxes against 2,000 objects; the table takes six gigabytes. Without the flag a smaller query is
matched as a test.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = """
import json, sys, time
import numpy as np
import scipy.optimize, scipy.sparse.csgraph  # their import is not measured
from vlmeval_findit.boxes import matching
from vlmeval_findit.boxes.answer_kinds import AnswerKind
from vlmeval_findit.boxes.error_types import JudgedAnswer, classify_errors
from vlmeval_findit.boxes.box_records import ParsedReply, Truth

kind, way, boxes, objects = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
chance = np.random.default_rng(1)

def side(count):
    near = chance.random((count, 4)) * 100
    if kind == "copies":
        return [(0.0, 0.0, 10.0, 10.0)] * count
    if kind == "over each other":
        return [*map(tuple, (near + [0, 0, 1000, 1000]).tolist())]
    corner = chance.random((count, 2)) * 1000
    return [*map(tuple, np.concatenate([corner, corner + near[:, 2:] / 10 + 1], 1).tolist())]

answered, true = side(boxes), side(objects)
labels = ["cat", "dog"] if kind == "apart, two labels" else None
reading = ParsedReply(answered, [labels[i % 2] for i in range(boxes)] if labels else [], [], None)
truth = Truth(tuple(true), (0,) * objects,
              tuple(labels[i % 2] for i in range(objects)) if labels else ())
matching._PAIRS = boxes * objects if way == "table" else min(matching._PAIRS, boxes * objects - 1)
start = time.process_time()
(matched,) = matching.match([reading], [truth])
seconds = time.process_time() - start
if way == "sparse":
    classify_errors([JudgedAnswer(matched, reading, truth, AnswerKind.BOXES)])
classified = time.process_time() - start - seconds
peak = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(json.dumps({"seconds": seconds, "classified": classified, "mib": int(peak) / 1024,
                  "tp": matched.tp, "total": sum(matched.ious) + sum(matched.labels_agree)}))
"""


def measured(kind: str, way: str, boxes: int, objects: int) -> dict[str, Any]:
    command = [sys.executable, "-c", SCRIPT, kind, way, str(boxes), str(objects)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads the peak from Linux")
@pytest.mark.parametrize("kind", ["apart", "apart, two labels", "over each other", "copies"])
def test_very_many_boxes(kind: str, measures: bool, capsys: pytest.CaptureFixture[str]) -> None:
    size = (20_000, 2_000) if measures else (3_000, 300)
    sparse, table = (measured(kind, way, *size) for way in ("sparse", "table"))
    assert sparse["total"] == pytest.approx(table["total"], abs=1e-2)
    assert sparse["tp"] == table["tp"]
    if not measures:
        return
    with capsys.disabled():
        print(
            f"\n{kind}: {sparse['seconds']:.1f} s of the processor and {sparse['mib']:.0f} MiB, "
            f"by the table {table['seconds']:.1f} s and {table['mib']:.0f} MiB; "
            f"errors are classified in {sparse['classified']:.1f} s"
        )
    assert sparse["seconds"] < table["seconds"] * 0.8
    assert sparse["mib"] < table["mib"] / 8
