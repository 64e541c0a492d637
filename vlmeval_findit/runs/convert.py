"""Files of other programs, and runs over the same table, as prediction files of a dataset."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from shlex import quote

from .. import benchmarks
from ..core.predictions import PredictionError, holds_rows, write_rows
from ..core.question import AnyTask
from ..core.settings import settings_from
from .open_predictions import Predictions, open_predictions


def convert_file(path: Path, dataset: str | None) -> Path:
    """Make ``<model>_<dataset>.json`` beside a file, which is then scored like any run.

    Raises:
        PredictionError: no dataset is named, the file is a run over another table or in another
            format, or a file of that name with other replies is there.
        IdentityError: the file is a run, and something contradicts what it recorded.
        ValueError: the file is in no layout that the benchmark knows.
    """
    if dataset is None:
        raise PredictionError(f"{path}: say with --data what it is about")
    task = benchmarks.load(dataset)
    question = task.question
    named = benchmarks.name_after_model(path.stem)
    if named is None or benchmarks.parse(named[1]) == question:
        model, replies = path.stem, benchmarks.benchmark_of(question).convert(path, task)
    else:
        run = _run_over(path, task)
        model, replies = run.model, run.replies
    target = path.with_name(f"{model}_{question.name}.json")
    rows = [
        {
            "index": reply.index,
            "prediction": reply.text,
            "extra_records": reply.recorded.as_json(),
        }
        for reply in replies
    ]
    if target.exists() and not holds_rows(target, rows):
        raise PredictionError(
            f"{target}: is there with other replies, and may be a run's; to score it: "
            f"python run_findit.py score {quote(str(target))}; to convert {path.name} anew, move "
            "it away first"
        )
    write_rows(target, lambda: rows)
    return target


def _run_over(path: Path, task: AnyTask) -> Predictions:
    """Open a run over the task's table in its format; each reply records the run's space."""
    run = open_predictions(path, settings_from({}))
    asked, wanted = run.task.question, task.question
    if (asked.table, asked.format) != (wanted.table, wanted.format):
        raise PredictionError(
            f"{path}: is a run over {asked.table} in {asked.format}, and {wanted.name} is over "
            f"{wanted.table} in {wanted.format}: name with --data one that differs in neither"
        )
    space = run.identity.space if run.identity else None
    replies = [
        replace(one, recorded=replace(one.recorded, space=one.recorded.space or space))
        for one in run.replies
    ]
    return replace(run, replies=replies)
