"""``run_findit.py calibration``: average precision and calibration by token probabilities."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import click

from ..coords.run_check import NotBoxesError
from ..core.command import SOME_FAILED
from ..core.formatting import printable
from ..core.settings import settings_from
from ..leaderboard.run_tables import calibration_table, legend, ranking_table
from ..runs.coco_boxes import NoConfidenceError
from ..runs.prediction_names import prediction_files
from ..runs.run_calibration import CalibrationResult, measure_calibration
from ..runs.run_score import score_file
from ..runs.sample_scores import add_agreement, sample_files
from ..runs.score_files import settings_of_score
from .options import (
    Command,
    data_name_option,
    force_option,
    json_option,
    runs_argument,
    space_option,
)
from .printing import print_lines, print_table, write_json


@click.command(cls=Command, examples=["python run_findit.py calibration outputs"])
@runs_argument
@data_name_option
@space_option
@force_option
@json_option
def command(
    runs: tuple[Path, ...],
    dataset: str | None,
    space: str | None,
    force: bool,
    json_file: Path | None,
) -> int:
    """Print average precision and calibration of boxes by the probabilities of their tokens.

    Boxes are ranked by each definition of confidence and in the order of the replies. With several
    samples of a query, their agreement is a confidence of the boxes in the first.
    Needs no model. Of several runs those without --logprobs and --samples are left out.
    """
    settings = settings_from({"space": space, "force": force})
    results: list[CalibrationResult] = []
    paths = prediction_files(runs)
    for path in paths:
        try:
            run, *others = (
                score_file(each, settings_of_score(each, settings), dataset)
                for each in sample_files(path)
            )
            if others:
                rows = add_agreement(run.rows, [other.rows for other in others])
                run = replace(run, rows=rows)
            result = measure_calibration(run, path)
        except NotBoxesError as error:
            print(f"{path}: left out: {error}", file=sys.stderr)
            continue
        except NoConfidenceError:
            if len(paths) == 1:
                raise
            print(f"{path}: left out: not asked with --logprobs or --samples", file=sys.stderr)
            continue
        results.append(result)
        print(f"{printable(result.model)} on {result.dataset}")
        print(f"{result.boxes} boxes in {result.queries} replies about {result.images} images")
        for table in (ranking_table(result), calibration_table(result)):
            print()
            print_table(table, "--json FILE")
        print()
    if not results:
        return SOME_FAILED
    print_lines(legend(results).lines, "docs/design/statistics.md")
    if json_file is not None:
        write_json(json_file, [result.as_dict() for result in results])
    return 0
