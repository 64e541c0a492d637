"""Convert the files of other programs to prediction files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .. import benchmarks
from ..protocol import AnyDataset, Benchmark, Reply
from ..storage import PredictionError, holds_rows, write_rows
from .coco_predictions import ConversionChoices, are_coco_results, replies_of_coco
from .prediction_names import score_command
from .records_of_others import RecordsOfOthers, read_records, stem_of
from .reply_layouts import layout_of, replies_in


@dataclass(frozen=True, slots=True)
class ConvertedFile:
    """The prediction file that was made of another program's file."""

    path: Path
    notes: Sequence[str]  # What counts, and what was left out


def convert_file(
    path: Path, named: str | None, choices: ConversionChoices | None = None
) -> ConvertedFile:
    """Make ``<model>_<dataset>.json`` next to a file, which is then scored like any run.

    Boxes from a stated score on have it in the model's name: another score is another detector.

    Raises:
        PredictionError: no dataset is named, a file of that name with other replies is there, or
            what is in the file cannot be told.
        ValueError: the file is in no layout that is known.
    """
    choices = choices or ConversionChoices()
    if named is None:
        raise PredictionError(f"{path}: name its dataset with --data")
    dataset = benchmarks.load(named)
    replies, notes = _replies(path, dataset, choices)
    at_score = "" if choices.min_score is None else f"-from-{choices.min_score:g}"
    target = path.with_name(f"{stem_of(path)}{at_score}_{dataset.variant.name}.json")
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
    return ConvertedFile(target, notes)


def _replies(
    path: Path, dataset: AnyDataset, choices: ConversionChoices
) -> tuple[Sequence[Reply], Sequence[str]]:
    benchmark = benchmarks.benchmark_of(dataset.variant)
    file = _records(path, benchmark)
    if file is not None and are_coco_results(file):
        return replies_of_coco(file, dataset, choices)
    if choices != ConversionChoices():
        raise PredictionError(f"{path}: --min-score, --bbox and --leave-out-unknown are for boxes")
    layout = None if file is None else layout_of(file)
    if file is None or layout is None:
        return benchmark.convert(path, dataset), []
    return list(replies_in(file, layout, dataset)), [f"{path}: read as {layout.program}"]


def _records(path: Path, benchmark: Benchmark) -> RecordsOfOthers | None:
    """Read a file of objects; None for another, if the benchmark has a layout of its own."""
    try:
        return read_records(path)
    except PredictionError:
        if type(benchmark).convert is not Benchmark.convert:
            return None
        raise
