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

from vlmeval_findit.benchmarks.findit.annotation_tables import write_table
from vlmeval_findit.benchmarks.findit.findit_query import FindItQuery
from vlmeval_findit.boxes.records import Truth

CANVAS = file_on_page("docs/how-to/benchmarks.md", "canvas.py")

NAME = "FindIt_Pascal_xyxy_json"
SIZES = {(400, 100): (100.0, 20.0, 300.0, 60.0), (100, 400): (10.0, 100.0, 90.0, 300.0)}
"""Pictures, and the box of each."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    queries = [
        FindItQuery(at, "dog", *size, (f"{at}.jpg",), Truth((box,), (0,)))
        for at, (size, box) in enumerate(SIZES.items())
    ]
    write_table(tmp_path, "Pascal", queries, {"source": "made up"})
    monkeypatch.setenv("FINDIT_TABLES", str(tmp_path))
    return tmp_path


def predicted(folder: Path, replies: list[str]) -> Path:
    path = folder / f"Mine_{NAME}.json"
    rows = [{"index": at, "prediction": reply} for at, reply in enumerate(replies)]
    path.write_text(json.dumps(rows))
    return path


def test_the_recipe_scores_boxes_of_a_padded_canvas(folder: Path) -> None:
    """A image of 400 x 100 is 1280 x 320 there, from (0, 200); one of 100 x 400 180 x 720."""
    (folder / "canvas.py").write_text(CANVAS, encoding="utf-8")
    boxes = [[320, 264, 960, 392], [550 + 18, 180, 550 + 162, 540]]
    predicted(folder, [json.dumps([{"bbox": box}]) for box in boxes])
    env = {**os.environ, "PYTHONPATH": str(ROOT), "LMUData": str(folder)}
    words = ["score", f"Mine_{NAME}.json", "--space", "canvas", "--plugin", "canvas.py"]
    done = subprocess.run(
        [sys.executable, str(ROOT / "run_findit.py"), *words],
        cwd=folder, env=env, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    (row,) = csv.DictReader((folder / f"Mine_{NAME}_score.csv").open(encoding="utf-8"))
    assert float(row["mIoU"]) == pytest.approx(100)
    assert json.loads(next(folder.glob("*_provenance.json")).read_text())["spaces"] == [
        {"kind": "canvas", "source": "setting"}
    ]
