"""Boards of many runs: a few are answered and scored, the others mix their rows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scored_runs import CallResult, World, failing, query, speaking

from vlmeval_findit.protocol import add_up
from vlmeval_findit.scoring import read_details_line, write_sums
from vlmeval_findit.storage import RunFiles, run_of

FORMATS = ("xyxy_json", "xyxy_text", "yxyx_json", "cxcywh_json")
"""Of every model."""

_ASKED = f"FindIt_Pascal_{FORMATS[0]}"


def make_runs(folder: Path, runs: int, rows: int, formats: Sequence[str] = FORMATS) -> Path:
    """Write a folder of scored runs, two rows a picture; every model has all formats.

    Four models are asked and scored.  Each row of a run is that of one of them, drawn at random, so
    that no two runs are alike and all rows are real.
    """
    world = World(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FINDIT_TABLES", str(folder))
        patch.setenv("FINDIT_IMAGES", f"Pascal={folder / 'pictures'}")
        times = ("day", "night", "dusk")
        queries = [query(at, picture=f"{at // 2}.jpg") for at in range(rows)]
        world.table("Pascal", [replace(q, tags={"time": times[q.index % 3]}) for q in queries])
        scored = [
            world.predict(f"Asked{at}", _ASKED, answer, folder="asked")
            for at, answer in enumerate(_answers())
        ]
    out = folder / "many"
    out.mkdir()
    random = np.random.default_rng(0)
    lines = [RunFiles(path).details.read_text("utf-8").splitlines(True) for path in scored]
    sums = [[read_details_line(line).sums for line in of] for of in lines]
    for at in range(runs):
        share = random.dirichlet(np.ones(len(lines)))
        drawn = random.choice(len(lines), size=rows, p=share)
        name = f"Model{at // len(formats):04}_FindIt_Pascal_{formats[at % len(formats)]}.json"
        mixed = [lines[model][row] for row, model in enumerate(drawn)]
        totals = add_up(sums[model][row] for row, model in enumerate(drawn))
        _write(out / name, scored[0], mixed, totals)
    return out


def _answers() -> Sequence[CallResult]:
    return speaking(_ASKED, 0.95, 6), speaking(_ASKED, 0.6, 12), speaking(_ASKED, 0.2, 25), failing


def _write(to: Path, like: Path, details: Sequence[str], totals: dict[str, float]) -> None:
    model, _, variant = to.stem.partition("_")
    values = json.loads(run_of(like).provenance.read_text("utf-8"))
    values |= {"model": model, "dataset": variant, "totals": totals}
    values["variant"]["name"] = variant
    values["predictions"]["file"] = to.name
    files = RunFiles(to)
    files.predictions.hardlink_to(like)
    files.details.write_text("".join(details), "utf-8")
    write_sums(files)
    files.provenance.write_text(json.dumps(values), "utf-8")
