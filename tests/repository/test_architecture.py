"""The recipe of docs/architecture.md, to the letter: a benchmark of letters in one folder."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from host_runs import require_host
from PIL import Image
from recipes import ROOT, recipe

pytestmark = pytest.mark.host

FILES, COMMANDS = recipe("Add a benchmark")
COLOURS = ("red", "green", "blue", "white")
REPLIES = ("A", "B.", "(C)", "A", "nothing of it", "D")
"""Right, right, right, wrong, not readable, wrong: rows 0 to 5 have the answers ABCBAA."""
ANSWERS = "ABCBAA"


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package with the recipe's folder in it, data, and everything that it makes."""
    require_host()
    folder = tmp_path_factory.mktemp("house")
    ignored = shutil.ignore_patterns("__pycache__", "*.safetensors")
    shutil.copytree(ROOT / "vlmeval_findit", folder / "vlmeval_findit", ignore=ignored)
    shutil.copy(ROOT / "run_findit.py", folder)
    before = set(folder.rglob("*.py"))
    for name, content in FILES.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        assert path not in before
        path.write_text(content, encoding="utf-8")
    make_data(folder)
    return folder


def make_data(folder: Path) -> None:
    pictures = folder / "pictures"
    pictures.mkdir()
    with (folder / "Colours_Small.tsv").open("w", encoding="utf-8", newline="") as f:
        rows = csv.writer(f, delimiter="\t")
        rows.writerow(("index", "images", "cluster", "options", "answer"))
        for index, answer in enumerate(ANSWERS):
            shade = np.full((32, 48, 3), 40 * index, np.uint8)
            Image.fromarray(shade).save(pictures / f"{index}.png")
            name = f"{index}.png"
            rows.writerow((index, json.dumps([name]), name, json.dumps(COLOURS), answer))
    said = [{"index": at, "prediction": reply} for at, reply in enumerate(REPLIES)]
    (folder / "replies.json").write_text(json.dumps(said))


def run(house: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A command as a user types it, in the folder of the house."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(house),
        "LMUData": str(house / "lmu"),
        "FINDIT_TABLES": str(house),
        "FINDIT_IMAGES": f"Colours={house / 'pictures'}",
    }
    (house / "lmu").mkdir(exist_ok=True)
    return subprocess.run(
        [sys.executable, *words], cwd=house, env=environment, capture_output=True, text=True
    )


@pytest.fixture(scope="module")
def lived_in(house: Path) -> Path:
    """The house after all commands of the recipe: what is done once may be done twice."""
    assert COMMANDS[0] == "python run_findit.py check Colours_Small"
    for command in COMMANDS:
        for _ in range(2):
            done = run(house, *command.split()[1:])
            assert done.returncode == 0, done.stdout + done.stderr
    return house


def test_the_recipe_runs(lived_in: Path) -> None:
    metric_values = next((lived_in / "runs").rglob("Replay_Colours_Small_score.csv"))
    (row,) = csv.DictReader(metric_values.open(encoding="utf-8"))
    assert row["Accuracy"] == "50.0000"
    assert row["Readable"] == "83.3333"
    details = next((lived_in / "runs").rglob("*_details.jsonl")).read_text().splitlines()
    reasons = [json.loads(line)["reason"] for line in details]
    assert reasons == [None, None, None, None, "no letter", None]


def test_the_leaderboard_has_its_metrics_and_slices(lived_in: Path) -> None:
    board = lived_in / "board" / "Colours"
    (row, *_) = csv.DictReader((board / "leaderboard.csv").open(encoding="utf-8"))
    assert row["model"] == "Replay"
    assert float(row["Accuracy"]) == pytest.approx(50.0)
    assert "F1@0.5" not in row
    slices = list(csv.DictReader((board / "slices.csv").open(encoding="utf-8")))
    by_colour = {one["value"]: float(one["Accuracy"]) for one in slices if one["slice"] == "colour"}
    assert by_colour == pytest.approx({"red": 33.3333, "green": 50.0, "blue": 100.0})


def test_the_report_draws_letters(lived_in: Path) -> None:
    (page,) = lived_in.glob("report*.html")
    text = page.read_text(encoding="utf-8")
    assert "Colours" in text
    assert "B. green" in text


def test_an_unknown_table_is_refused_with_the_nearest(house: Path) -> None:
    done = run(house, "run_findit.py", "--data", "Colours_Smal", "--model", "Replay=replies.json")
    assert done.returncode != 0
    assert "did you mean Small?" in done.stderr + done.stdout


def test_nothing_else_was_touched(house: Path) -> None:
    """The recipe adds a folder: every other file is that of the repository."""
    ours = {path.relative_to(ROOT) for path in (ROOT / "vlmeval_findit").rglob("*.py")}
    there = {path.relative_to(house) for path in (house / "vlmeval_findit").rglob("*.py")}
    added = {Path(name) for name in FILES}
    assert there - ours == added
    for name in ours:
        assert (ROOT / name).read_bytes() == (house / name).read_bytes(), name
