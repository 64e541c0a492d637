"""Convert the files of other programs to prediction files."""

from __future__ import annotations

from pathlib import Path

from .. import benchmarks
from ..storage import PredictionError, holds_rows, write_rows
from .prediction_names import score_command


def convert_file(path: Path, named: str | None) -> Path:
    """Make ``<model>_<dataset>.json`` next to a file, which is then scored like any run.

    Raises:
        PredictionError: no dataset is named, or a file of that name with other replies is there.
        ValueError: the file is in no layout that the benchmark knows.
    """
    if named is None:
        raise PredictionError(f"{path}: name its dataset with --data")
    dataset = benchmarks.load(named)
    variant = dataset.variant
    replies = benchmarks.benchmark_of(variant).convert(path, dataset)
    target = path.with_name(f"{path.stem}_{variant.name}.json")
    rows = [
        {"index": reply.index, "prediction": reply.text, "extra_records": reply.recorded.as_json()}
        for reply in replies
    ]
    if target.exists() and not holds_rows(target, rows):
        raise PredictionError(
            f"{target}: is there with other replies, and may be a run's; to score it: "
            f"{score_command(target)}; to convert {path.name} again, move it away first"
        )
    write_rows(target, lambda: rows)
    return target
