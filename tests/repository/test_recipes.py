"""The recipes of docs/architecture.md for benchmarks of counts and of masks, to the letter."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from host_runs import environment, require_host
from recipes import ROOT, recipe

pytestmark = pytest.mark.host


def followed(title: str, replies: list[str], folder: Path) -> str:
    """Follow a recipe in a folder; what its commands printed."""
    require_host()
    files, commands = recipe(title)
    for name, content in files.items():
        (folder / name).write_text(content, encoding="utf-8")
    (folder / "run_findit.py").symlink_to(ROOT / "run_findit.py")
    said = [{"index": at, "prediction": reply} for at, reply in enumerate(replies)]
    (folder / "replies.json").write_text(json.dumps(said))
    assert [" check " in one for one in commands[:3]] == [False, False, True]
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    done = subprocess.run(
        ["bash", "-ec", "\n".join(commands)],
        cwd=folder,
        env=environment(folder / "lmu", PATH=path, PYTHONPATH=str(ROOT)),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "all right" in done.stdout
    return done.stdout


def board_of(folder: Path) -> tuple[dict[str, Any], str]:
    """The first row of a leaderboard, and its text."""
    (row, *_) = csv.DictReader(next(folder.glob("board/*/leaderboard.csv")).open(encoding="utf-8"))
    return row, next(folder.glob("board/*/leaderboard.md")).read_text(encoding="utf-8")


def test_counts_have_a_mean_error_with_its_unit_and_direction(tmp_path: Path) -> None:
    replies = ["3", "There are 2.", "many", "5", "5", "6"]
    said = followed("Add a benchmark of counts", replies, tmp_path)
    assert "right replies: Accuracy 100.0, MAE 0.0" in said
    row, text = board_of(tmp_path)
    # 3 of 6 are right; of the 5 that are read the errors are 0, 1, 3, 0 and 0.
    assert float(row["Accuracy"]) == pytest.approx(50)
    assert float(row["MAE"]) == pytest.approx(4 / 5)
    low, high = float(row["MAE low"]), float(row["MAE high"])
    assert low < 4 / 5 < high
    assert f"**0.8** <sub>{low:.1f}–{high:.1f}</sub>" in text
    assert "## MAE (objects, lower is better)" in text
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "MAE (objects, lower is better)" in page
    assert "2 said" in page


def test_masks_have_a_mean_over_the_classes_of_an_image(tmp_path: Path) -> None:
    cat = [5, 5, 55, 5, 30]
    replies = [json.dumps({"cat": [*cat, 55 - 5 * at]}) for at in range(5)]
    said = followed("Add a benchmark of masks", [*replies, "no idea"], tmp_path)
    assert "right replies: Image IoU 100.0, mIoU 100.0" in said
    row, text = board_of(tmp_path)
    # Images 1, 3 and 5 have a dog, which is never found; image 5 has no answer.
    assert float(row["Image IoU"]) == pytest.approx(100 * (1 + 0.5 + 1 + 0.5 + 1 + 0) / 6)
    assert float(row["mIoU"]) == pytest.approx(100 * (5 / 6 + 0) / 2)
    assert float(row["mIoU low"]) < float(row["mIoU"]) < float(row["mIoU high"])
    assert "by slices of" not in text, "the headline has no figure of a class"
    slices = csv.DictReader((tmp_path / "board/Regions/slices.csv").open(encoding="utf-8"))
    by_class = {one["value"]: float(one["IoU"]) for one in slices}
    assert by_class == pytest.approx({"cat": 100 * 5 / 6, "dog": 0})
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "[5, 5, 55, 5, 30, 45]" in page.replace(".0", ""), "its outline is drawn"
