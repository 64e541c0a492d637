"""``run_findit.py demo``: two real models, the best format of each, a report, a wrong space.

Needs no network and no download.
"""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path

import click

from ..benchmarks.findit import PREFIX
from ..benchmarks.findit.annotation_tables import load_task
from ..core.command import install
from ..core.run_files import PROVENANCE, RunFiles, run_of
from ..models.table import NANO, NANO_PX, SHIPPED
from ..runs.format_file import BestFormats
from . import main
from .options import PATH, Command
from .printing import print_rows

FORMAT = "xyxy_json_bbox_2d"
"""What all are asked first."""
SCENES = (
    "Scenes_mini",
    "Scenes_mini_multilabel",
    "Scenes_mini_refexp",
    "Scenes_mini_described",
    "Scenes_mini_insdet",
    "Scenes_mini_video_f4",
)
PHOTOGRAPHS = (
    "Demo",
    "Demo_multilabel",
    "Demo_refexp",
    "Demo_described",
    "Demo_insdet",
    "Demo_video_f8",
)
MODELS = (*SHIPPED, "FullImage")
OTHERS = {"VPBench_Scenes_mini": "RandomOption", "SelfRetrieval_Scenes_mini": "SceneDescriber"}
"""Other benchmarks, with what FindIt-Nano is held against: who guesses, and who knows."""
WRONG = "grid1000"
"""Not the space of FindIt-Nano-px."""
NEEDED = ("vlmeval", "torch", "transformers", "cv2", "skimage", "sklearn")
"""What it imports, or takes photographs of, beyond a light installation."""


@click.command(cls=Command, examples=["python run_findit.py demo"])
@click.option("--work-dir", type=PATH, default=Path("outputs/demo"), metavar="DIR")
def command(work_dir: Path) -> int:
    """Run two real models from prompts to a report: no network, no GPU, no download.

    The best format of each, a baseline, a leaderboard, a report, and what a wrong space does.
    """
    _refuse_without(NEEDED)
    runs, searched = work_dir / "runs", work_dir / "search"
    for path in (runs, searched):
        path.mkdir(parents=True, exist_ok=True)

    scenes, photographs = (_queries(tables) for tables in (SCENES, PHOTOGRAPHS))
    print(
        f"1. {', '.join(MODELS)} through VLMEvalKit: {scenes} queries of rendered scenes, "
        f"{photographs} of photographs, asked as {FORMAT}"
    )
    print_rows(_run(asked_as(FORMAT), MODELS, runs))

    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    best = work_dir / "best_formats.yaml"
    table = ["--data", SCENES[0], "--out", str(best), "--work-dir", str(searched)]
    journal = ["--journal", str(work_dir / "search_calls.jsonl")]
    for model in SHIPPED:
        print(f"\n2. Which format does {model} answer best in? Every one, on the first 50 scenes:")
        status = main(["search", "--model", model, *table, *journal])
        if status:
            return status

    own = {model: BestFormats(best).models[model]["FindIt"] for model in SHIPPED}
    for model, form in own.items():
        if form != FORMAT:
            print(f"\n3. {model} as it likes it, asked as {form}:")
            print_rows(_run(asked_as(form), (model,), runs))

    print(f"\n4. {NANO} beyond boxes: letters about marks, captions that tell two scenes apart:")
    for name, other in OTHERS.items():
        print_rows(_run([name], (NANO, other), runs))

    print("\n5. Leaderboard and report:")
    # Some of the search's cells are among the runs already.
    there = {path.name for path in _predictions(runs)}
    found = [path for path in _predictions(searched) if path.name not in there]
    both = [str(runs), *map(str, found)]
    main(["leaderboard", *both, "--out", str(work_dir / "leaderboard")])
    status = main(["report", *both, "--out", str(work_dir / "report.html")])

    print(f"\n6. {NANO_PX} says pixels. What if they are taken for thousandths ({WRONG})?")
    main(["coords", str(_file(runs, NANO_PX, asked_as(own[NANO_PX])[0])), "--space", WRONG])
    return status


def asked_as(form: str) -> list[str]:
    """The datasets of scenes and photographs in a format."""
    return [f"{PREFIX}{table}_{form}" for table in (*SCENES, *PHOTOGRAPHS)]


def _queries(tables: Iterable[str]) -> int:
    return sum(len(load_task(f"{PREFIX}{table}_{FORMAT}").queries) for table in tables)


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


def _run(names: Sequence[str], models: Sequence[str], runs: Path) -> list[dict[str, str]]:
    """Run models through VLMEvalKit and read the score files.

    Raises:
        ValueError: VLMEvalKit did not run through; the message has the end of its log.
    """
    command = [sys.executable, "-m", "vlmeval_findit", "--data", *names]
    command += ["--model", *models, "--work-dir", str(runs)]
    log = runs.with_name("demo.log")
    with log.open("w", encoding="utf-8") as f:
        done = subprocess.run(command, stdout=f, stderr=subprocess.STDOUT, check=False)
    files = [RunFiles(_file(runs, model, name)).score for name in names for model in models]
    if done.returncode or not all(path.is_file() for path in files):
        tail = "\n".join(log.read_text(encoding="utf-8").splitlines()[-15:])
        raise ValueError(f"the demonstration did not run through; the end of {log}:\n{tail}")
    rows: list[dict[str, str]] = []
    for path in files:
        with path.open(encoding="utf-8", newline="") as f:
            rows += csv.DictReader(f)
    return rows


def _file(runs: Path, model: str, name: str) -> Path:
    """The predictions of a run."""
    return runs / model / f"{model}_{name}.json"


def _predictions(folder: Path) -> list[Path]:
    """The scored prediction files below a folder."""
    return sorted(run_of(path).predictions for path in folder.rglob(f"*{PROVENANCE}"))
