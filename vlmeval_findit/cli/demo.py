"""``run_findit.py demo``: a real model, its best format, a report; no network, no download."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from ..benchmarks.findit.task import load_task
from ..core.extras import install
from ..core.run_files import PROVENANCE, RunFiles, run_of
from . import leaderboard, report, search
from .parsing import Parser
from .printing import print_rows

FORMAT = "xyxy_json_bbox_2d"
SCENES = tuple(
    f"FindIt_{table}_{FORMAT}"
    for table in (
        "Scenes_mini",
        "Scenes_mini_multilabel",
        "Scenes_mini_refexp",
        "Scenes_mini_insdet",
    )
)
PHOTOGRAPHS = tuple(
    f"FindIt_{table}_{FORMAT}"
    for table in (
        "Demo",
        "Demo_multilabel",
        "Demo_refexp",
        "Demo_described",
        "Demo_insdet",
        "Demo_video_f8",
    )
)
NANO = "FindIt-Nano"
MODELS = (NANO, "OpenCV-Detector", "FullImage")
NEEDED = ("vlmeval", "torch", "transformers", "cv2", "skimage", "sklearn")
"""What it imports, or takes photographs of, beyond a light installation."""


def main(argv: Sequence[str]) -> int:
    """The model that ships with the package and two baselines, from prompts to a report."""
    parser = Parser(prog="run_findit.py demo", description=__doc__)
    parser.add_argument("--work-dir", type=Path, default=Path("outputs/demo"))
    work_dir: Path = parser.parse_args(argv).work_dir
    _refuse_without(NEEDED)
    runs, searched = work_dir / "runs", work_dir / "search"
    for path in (runs, searched):
        path.mkdir(parents=True, exist_ok=True)

    names = (*SCENES, *PHOTOGRAPHS)
    queries = [len(load_task(name).queries) for name in names]
    print(
        f"1. {', '.join(MODELS)} through VLMEvalKit: {sum(queries[: len(SCENES)])} queries of "
        f"rendered scenes, {sum(queries[len(SCENES) :])} of photographs, asked as {FORMAT}"
    )
    print_rows(_run(names, runs, work_dir / "demo.log"))

    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    print(f"\n2. Which format does {NANO} answer best in? Every one, on the first 50 scenes:")
    best = work_dir / "best_formats.yaml"
    table = ["--dataset", "Scenes_mini", "--out", str(best), "--work-dir", str(searched)]
    status = search.main(
        ["--model", NANO, *table, "--journal", str(work_dir / "search_calls.jsonl")]
    )
    if status:
        return status

    print("\n3. Leaderboard and report:")
    # One of the search's cells is among the runs already.
    found = [path for path in _predictions(searched) if not path.stem.endswith(names)]
    both = [str(runs), *map(str, found)]
    leaderboard.main([*both, "--out", str(work_dir / "leaderboard")])
    return report.main([*both, "--out", str(work_dir / "report.html")])


def _refuse_without(needed: Sequence[str]) -> None:
    """Before minutes of work: everything that the demonstration imports.

    Raises:
        ValueError: something is not installed; the message names the extra.
    """
    absent = [name for name in needed if find_spec(name) is None]
    if absent:
        raise ValueError(
            f"the demonstration needs {', '.join(absent)}: {install('demo')} "
            "(score, leaderboard and report need nothing more)"
        )


def _run(names: Sequence[str], runs: Path, log: Path) -> list[dict[str, str]]:
    """Run all models through VLMEvalKit and read the score files.

    Raises:
        ValueError: VLMEvalKit did not run through; the message has the end of its log.
    """
    command = [sys.executable, "-m", "vlmeval_findit", "--data", *names]
    command += ["--model", *MODELS, "--work-dir", str(runs)]
    with log.open("w", encoding="utf-8") as f:
        done = subprocess.run(command, stdout=f, stderr=subprocess.STDOUT, check=False)
    files = [RunFiles(runs / m / f"{m}_{name}.json").score for name in names for m in MODELS]
    if done.returncode or not all(path.is_file() for path in files):
        tail = "\n".join(log.read_text(encoding="utf-8").splitlines()[-15:])
        raise ValueError(f"the demonstration did not run through; the end of {log}:\n{tail}")
    rows: list[dict[str, str]] = []
    for path in files:
        with path.open(encoding="utf-8", newline="") as f:
            rows += csv.DictReader(f)
    return rows


def _predictions(folder: Path) -> list[Path]:
    """The scored prediction files below a folder."""
    return sorted(run_of(path).predictions for path in folder.rglob(f"*{PROVENANCE}"))
