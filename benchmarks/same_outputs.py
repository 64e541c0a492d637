"""Write boards, reports, comparisons and exports of the same runs, to compare two versions of them.

The runs are random folders (``tests/support/random_folders.py``), the same for every version::

    PYTHONPATH=OLD_CLONE python benchmarks/same_outputs.py old
    PYTHONPATH=.         python benchmarks/same_outputs.py new
    diff -r old new

Times, checksums and paths are replaced by their names, sheets are written as text, and pages a tag
a line. Whatever differs is a number, a word or a sign that a user sees.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import re
import shutil
import sys
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "tests" / "support"))

import pytest  # noqa: E402
from random_folders import RandomFolder, make_folder  # noqa: E402

_SEEDS = 8
_SECOND = "2026-11-01T12:00:00+00:00"
_ASKED_OR_SCORED = re.compile(r'("(?:asked|scored)_at": )"[^"]*"')
_CHANGING = (
    (re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d)?)?( UTC|\+00:00)?"), "TIME"),
    (re.compile(r'("time": ")\d{12}'), r"\1TIME"),
    (re.compile(r"\b[0-9a-f]{12,64}\b"), "CHECKSUM"),
    (re.compile(r"reviewed([- ])[0-9a-f]{8}"), r"reviewed\1DIGEST"),
)


def _plain(text: str, folder: Path) -> str:
    """Return a text without what differs between two equal results."""
    text = text.replace(str(folder), "FOLDER")
    for pattern, name in _CHANGING:
        text = pattern.sub(name, text)
    return text


def _sheets(path: Path) -> str:
    from openpyxl import load_workbook

    lines = []
    for sheet in load_workbook(path):
        lines.append(f"# {sheet.title}")
        for row in sheet.iter_rows(values_only=True):
            lines.append("\t".join("" if cell is None else str(cell) for cell in row))
    return "\n".join(lines)


def _page(path: Path) -> str:
    text = re.sub(r"data:[a-z/+]+;base64,[^\"')]*", "PICTURE", path.read_text("utf-8"))
    text = re.sub(r"<style>.*?</style>", "<style>", text, flags=re.DOTALL)
    text = re.sub(r"<script>.*?</script>", "<script>", text, flags=re.DOTALL)
    return text.replace("><", ">\n<").replace('],["', '],\n["')


def _command(*words: str) -> str:
    """Return what a command prints, and its status."""
    from vlmeval_findit.cli import main

    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        status = main(list(words))
    return f"{out.getvalue()}status {status}\n"


class Tracker:
    """Keeps what a tracker gets."""

    def __init__(self) -> None:
        self.records: list[Mapping[str, Any]] = []

    def has(self, key: str) -> bool:
        return False

    def log(self, tracked: Any) -> None:
        self.records.append({"run": tracked.name, **tracked.metric_values, **tracked.params})

    def log_curve(self, curve: Any) -> None:
        self.records.append({"curve": curve.name, "points": curve.points})


def _tracked(made: RandomFolder) -> str:
    from vlmeval_findit.export import trackers
    from vlmeval_findit.scoring import load_runs

    tracker = Tracker()
    lines = list(trackers.log_new(load_runs([made.runs]), tracker, 0))
    return "\n".join([*lines, json.dumps(tracker.records, indent=1, default=str)])


def _frames(made: RandomFolder) -> str:
    import vlmeval_findit as findit

    with contextlib.redirect_stderr(io.StringIO()):
        scores = findit.load_scores(made.runs, reviews=made.reviews)
    return str(scores.to_csv(index=False))


def _compared(made: RandomFolder) -> str:
    """Compare the models of two folders, each with its neighbour."""
    from vlmeval_findit.scoring import load_runs

    texts = []
    runs = load_runs([made.runs])
    for left, right in pairwise(runs):
        texts.append(_command("compare", str(left.path), str(right.path)))
    return "\n".join(texts)


def _errors(made: RandomFolder) -> str:
    return _command("errors", str(made.runs))


_TEXTS: Mapping[str, Callable[[RandomFolder], str]] = {
    "tracked.txt": _tracked,
    "frames.csv": _frames,
    "compared.txt": _compared,
    "errors.txt": _errors,
}


def at_one_time(runs: Path) -> None:
    """Let all runs begin and be scored in one second: else the clock says which of two counts."""
    for path in (*runs.rglob("*_provenance.json"), *runs.rglob("*_identity.json")):
        text = path.read_text("utf-8")
        path.write_text(_ASKED_OR_SCORED.sub(rf'\1"{_SECOND}"', text), "utf-8")


def write_outputs(made: RandomFolder, folder: Path, out: Path) -> None:
    """Write all outputs of a folder of runs as texts."""
    out.mkdir(parents=True)
    files = folder / "files"
    printed = {}
    for name, how in (("board", []), ("reviewed", ["--reviews", str(made.reviews)])):
        printed[f"{name}.txt"] = _command(
            "leaderboard", str(made.runs), "--out", str(files / name), *how
        )
        page = files / f"{name}.html"
        printed[f"{name}-page.txt"] = _command("report", str(made.runs), "--out", str(page), *how)
        printed[f"{name}.html"] = _page(page)
    booktabs = ["--style", "booktabs", "--out", str(files / "booktabs")]
    printed["booktabs.txt"] = _command("leaderboard", str(made.runs), *booktabs)
    for target in ("hub", "coco"):
        place = ["--to", target, "--out", str(files / target)]
        printed[f"{target}.txt"] = _command("export", str(made.runs), *place)
    texts = {**printed, **{name: write(made) for name, write in _TEXTS.items()}}
    for path in sorted(files.rglob("*")):
        name = str(path.relative_to(files)).replace("/", "-")
        if path.suffix == ".xlsx":
            texts[f"{name}.txt"] = _sheets(path)
        elif path.suffix in (".csv", ".md", ".tex", ".json") and "hub/runs" not in str(path):
            texts[name] = path.read_text("utf-8")
    for name, text in texts.items():
        (out / name).write_text(_plain(text, folder), "utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("out", type=Path, help="a new folder, for a folder of texts a seed")
    parser.add_argument("--seeds", type=int, default=_SEEDS)
    options = parser.parse_args()
    out = options.out.absolute()
    for seed in range(options.seeds):
        folder = out / "made"
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("LMUData", str(folder / "lmu"))
            (folder / "lmu").mkdir(parents=True)
            patch.chdir(folder)
            made = make_folder(folder, seed, patch)
            at_one_time(made.runs)
            write_outputs(made, folder, out / f"{seed:03}")
        shutil.rmtree(folder)
        print(f"{seed:03}: {len(list((out / f'{seed:03}').iterdir()))} texts", flush=True)


if __name__ == "__main__":
    main()
