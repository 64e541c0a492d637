"""The coordinate space of docs/how-to/benchmarks.md, and letterboxes."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from pages import file_on_page
from paths import ROOT

from vlmeval_findit.benchmarks.findit import FindItQuery, write_table
from vlmeval_findit.boxes import Truth

CANVAS = file_on_page("docs/how-to/benchmarks.md", "canvas.py")

NAME = "FindIt_Pascal_xyxy_json"

# Pictures, and the box of each
SIZES = {(400, 100): (100.0, 20.0, 300.0, 60.0), (100, 400): (10.0, 100.0, 90.0, 300.0)}


def test_the_recipe_scores_boxes_of_a_padded_canvas(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An image of 400 x 100 is 1280 x 320 there, from (0, 200); one of 100 x 400 180 x 720."""
    queries = [
        FindItQuery(at, "dog", *size, (f"{at}.jpg",), Truth((box,), (0,)))
        for at, (size, box) in enumerate(SIZES.items())
    ]
    write_table(tmp_path, "Pascal", queries, {"source": "made up"})
    monkeypatch.setenv("FINDIT_TABLES", str(tmp_path))
    (tmp_path / "canvas.py").write_text(CANVAS, encoding="utf-8")
    boxes = [[320, 264, 960, 392], [550 + 18, 180, 550 + 162, 540]]
    rows = [
        {"index": at, "prediction": json.dumps([{"bbox": box}])} for at, box in enumerate(boxes)
    ]
    (tmp_path / f"Mine_{NAME}.json").write_text(json.dumps(rows))
    env = {**os.environ, "PYTHONPATH": str(ROOT), "LMUData": str(tmp_path)}
    words = ["score", f"Mine_{NAME}.json", "--space", "canvas", "--plugin", "canvas.py"]
    done = subprocess.run(
        [sys.executable, str(ROOT / "run_findit.py"), *words],
        cwd=tmp_path, env=env, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    (row,) = csv.DictReader((tmp_path / f"Mine_{NAME}_score.csv").open(encoding="utf-8"))
    assert float(row["mIoU"]) == pytest.approx(100)
    assert json.loads(next(tmp_path.glob("*_provenance.json")).read_text())["spaces"] == [
        {"kind": "canvas", "source": "setting"}
    ]
