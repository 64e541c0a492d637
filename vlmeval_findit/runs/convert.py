"""Files of other programs as prediction files: from there on they are scored like any run."""

from __future__ import annotations

from pathlib import Path
from shlex import quote

from .. import benchmarks
from ..core.predictions import PredictionError, holds_rows, write_rows


def convert_file(path: Path, dataset: str | None) -> Path:
    """Make ``<stem>_<dataset>.json`` beside a file that the dataset's benchmark can read.

    Raises:
        PredictionError: no dataset is named, or a file of that name with other replies is there.
        ValueError: the file is in no layout that the benchmark knows.
    """
    if dataset is None:
        raise PredictionError(f"{path}: say with --dataset what it is about")
    question = benchmarks.parse(dataset)
    task = benchmarks.load(question.name)
    replies = benchmarks.benchmark_of(question).convert(path, task)
    target = path.with_name(f"{path.stem}_{question.name}.json")
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
