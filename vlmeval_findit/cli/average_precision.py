"""``run_findit.py ap``: COCO's average precision with all confidences equal, as papers have it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click

from ..analysis import ConfidenceError, load_scored_dataset, measure_unranked
from ..coords import NotBoxesError
from ..core import EXIT_SOME_FAILED, as_called
from ..leaderboard import (
    UnrankedRun,
    explain_unranked,
    of_answered_calls,
    of_one_scorer,
    to_json,
    unranked_table,
)
from ..scoring import Run, load_runs
from .command_base import Command, json_option, results_argument, say
from .printing import print_lines, print_table, write_json


@click.command(
    cls=Command,
    examples=[
        "python run_findit.py run --data FindIt_Scenes_mini_multilabel_xyxy_json --model "
        "FindIt-Nano --limit 10",
        "python run_findit.py ap outputs",
    ],
)
@results_argument
@json_option
def command(runs: tuple[Path, ...], json_file: Path | None) -> int:
    """Print COCO's mAP of runs with all confidences equal, as tables of ODinW-13 have it.

    That value depends on the order of equal boxes, so its lowest, expected and highest one over all
    orders stand beside it. Needs no model. Failed calls are answers without a box.
    """
    answered, unanswered = of_answered_calls(load_runs(runs))
    scored, others = of_one_scorer(answered)
    for other in (*unanswered, *others):
        say(f"{other.run.path}: left out: {as_called(other.reason)}", file=sys.stderr)
    measured = []
    for run in scored:
        found = _measured(run, len(scored) == 1)
        if found is not None:
            measured.append(found)
    if not measured:
        if json_file is not None:
            say(f"{json_file} is not written: no run is left", file=sys.stderr)
        return EXIT_SOME_FAILED
    of_models = _by_model(measured)
    for of_model in of_models:
        table = unranked_table(of_model)
        say(table.title)
        print_table(table, "--json FILE")
        say()
    print_lines(explain_unranked(measured).lines, "docs/design/statistics.md")
    if json_file is not None:
        tables = [to_json(unranked_table(of_model)) for of_model in of_models]
        write_json(json_file, {"tables": tables, "runs": [asdict(run) for run in measured]})
    return 0


def _measured(run: Run, is_only: bool) -> UnrankedRun | None:
    """Measure a run; None: it is left out, which is said, unless it is the only one."""
    try:
        precision = measure_unranked(load_scored_dataset(run), run.rows)
    except (NotBoxesError, ConfidenceError) as error:
        if is_only:
            raise
        say(f"{run.path}: left out: {error}", file=sys.stderr)
        return None
    return UnrankedRun(run.model, run.variant.format, run.board_dataset, precision)


def _by_model(runs: Sequence[UnrankedRun]) -> list[list[UnrankedRun]]:
    """Return the runs of each model in each format, in their order."""
    of_models: dict[tuple[str, str], list[UnrankedRun]] = {}
    for run in runs:
        of_models.setdefault((run.model, run.format), []).append(run)
    return list(of_models.values())
