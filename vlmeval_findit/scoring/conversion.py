"""Convert the files of other programs to prediction files: a row for each layout of replies."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from .. import benchmarks
from ..core import first_few
from ..data import load_dataset
from ..protocol import AnyDataset, Benchmark, Reply, ReplyRecord, is_index
from ..storage import PredictionError, holds_rows, prediction_row, write_rows
from .coco_predictions import ConversionChoices, are_coco_results, asks_for_classes, replies_of_coco
from .mask_predictions import are_masks, replies_of_masks
from .prediction_names import score_command
from .records_of_others import RecordsOfOthers, read_records, stem_of


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
    dataset = load_dataset(named)
    replies, notes = _replies(path, dataset, choices)
    at_score = "" if choices.min_score is None else f"-from-{choices.min_score:g}"
    target = path.with_name(f"{stem_of(path)}{at_score}_{dataset.variant.name}.json")
    rows = [*map(prediction_row, replies)]
    if target.exists() and not holds_rows(target, rows):
        raise PredictionError(
            f"{target}: is there with other replies, and may be a run's; to score it: "
            f"{score_command(target)}; to convert {path.name} again, move it away first"
        )
    write_rows(target, lambda: rows)
    return ConvertedFile(target, [*notes, f"{path}: written as {target}"])


def _replies(
    path: Path, dataset: AnyDataset, choices: ConversionChoices
) -> tuple[Sequence[Reply], Sequence[str]]:
    benchmark = benchmarks.benchmark_of(dataset.variant)
    file = _records(path, benchmark, dataset)
    if file is not None and are_masks(file, dataset) and choices == ConversionChoices():
        return replies_of_masks(file, dataset)
    if file is not None and are_coco_results(file):
        return replies_of_coco(file, dataset, choices)
    if choices != ConversionChoices():
        raise PredictionError(f"{path}: --min-score, --box and --leave-out-unknown are for boxes")
    layout = None if file is None else layout_of(file)
    if file is None or layout is None:
        return benchmark.convert(path, dataset), []
    return list(replies_in(file, layout, dataset)), [f"{path}: read as {layout.program}"]


def _records(path: Path, benchmark: Benchmark, dataset: AnyDataset) -> RecordsOfOthers | None:
    """Read a file of objects; None for another, if the benchmark has a layout of its own.

    Only a detector's file may be an empty list: it found nothing.
    """
    try:
        file = read_records(path)
        if not file.records and not asks_for_classes(dataset.variant):
            raise PredictionError(
                f"{path}: has no objects: nothing was found, or the file is another's"
            )
        return file
    except PredictionError:
        if type(benchmark).convert is not Benchmark.convert:
            return None
        raise


Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ReplyLayout:
    """How a program stores replies."""

    program: str
    keys: tuple[str, ...]  # By which its records are known
    # The number of the row; None: lines are in the order of rows, as their images tell
    index: str | None
    reply: Callable[[Record], Any]  # The text; an error of a call is raised as a _FailedCallError


class _FailedCallError(ValueError):
    """The call behind a record failed; the message is its error."""


def _of_batch(record: Record) -> Any:
    if record.get("error") or not record.get("response"):
        raise _FailedCallError(json.dumps(record.get("error") or "no response"))
    response = record["response"]
    status = response.get("status_code", 200)
    if status != 200:
        raise _FailedCallError(f"status {status}: {json.dumps(response.get('body'))}")
    return response["body"]["choices"][0]["message"]["content"]


def _of_lmms_eval(record: Record) -> Any:
    replies = record["filtered_resps"] if "filtered_resps" in record else record["resps"]
    while isinstance(replies, list):
        (replies,) = replies
    return replies


# How programs store replies; a record is read by the first layout whose keys all records have
REPLY_LAYOUTS = (
    ReplyLayout("a batch of OpenAI's or vLLM's", ("custom_id", "response"), "custom_id", _of_batch),
    ReplyLayout("lmms-eval's samples", ("doc_id", "resps"), "doc_id", _of_lmms_eval),
    ReplyLayout("index and response", ("index", "response"), "index", lambda r: r["response"]),
    ReplyLayout(
        "index and prediction", ("index", "prediction"), "index", lambda r: r["prediction"]
    ),
    ReplyLayout("ms-swift infer", ("response", "images"), None, lambda record: record["response"]),
)


def layout_of(file: RecordsOfOthers) -> ReplyLayout | None:
    """Return the layout that all records of a file have; None: it is none of these.

    Raises a PredictionError where two replies may be that of a record.
    """
    fitting = [
        layout
        for layout in REPLY_LAYOUTS
        if all(key in record for record in file.records for key in layout.keys)
    ]
    plain = [layout.keys[1] for layout in fitting if layout.keys[0] == layout.index == "index"]
    if len(plain) > 1:
        raise PredictionError(
            f"{file.where(0)}: both {' and '.join(plain)} may be the reply: leave the other out"
        )
    return fitting[0] if fitting else None


def replies_in(file: RecordsOfOthers, layout: ReplyLayout, dataset: AnyDataset) -> Iterator[Reply]:
    """Yield the replies of a file.

    Raises:
        PredictionError: a record has another form, or is of no row of the dataset, or of one that
            another is of.
    """
    rows = list(dataset.queries)
    if layout.index is None and len(rows) != len(file.records):
        raise PredictionError(
            f"{file.path}: {len(file.records):,} records of {layout.program} have no numbers of "
            f'rows, and {dataset.name} has {len(rows):,} rows. Add the key "index" to each'
        )
    seen: dict[int, int] = {}
    for at, record in enumerate(file.records):
        where = file.where(at)
        index = rows[at] if layout.index is None else _index(record[layout.index])
        if index is None or index not in dataset.queries:
            raise PredictionError(
                f"{where}: {layout.index} {json.dumps(record[layout.index or ''])} is no row of "
                f"{dataset.name}: its rows are {first_few([*map(str, rows)])}"
            )
        if index in seen:
            raise PredictionError(f"{where}: row {index} is that of {file.where(seen[index])}, too")
        seen[index] = at
        if layout.index is None:
            _check_images(where, record, dataset.queries[index].images)
        yield _reply(where, index, record, layout)


def _index(value: object) -> int | None:
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit():
        value = int(value)
    return value if type(value) is int and is_index(value) else None


def _reply(where: str, index: int, record: Record, layout: ReplyLayout) -> Reply:
    try:
        text = layout.reply(record)
    except _FailedCallError as error:
        return Reply(index, "", ReplyRecord(call={"error": str(error)}))
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        text = None
    if not isinstance(text, str):
        raise PredictionError(f"{where}: no text of a reply, as {layout.program} has it")
    return Reply(index, text)


def _check_images(where: str, record: Record, names: tuple[str, ...]) -> None:
    """Refuse a record that shows other images than its row."""
    images = record["images"] if isinstance(record["images"], list) else [record["images"]]
    paths = [image.get("path") if isinstance(image, dict) else image for image in images]
    shown = [PurePosixPath(str(path)).name for path in paths]
    if shown != [PurePosixPath(name).name for name in names]:
        raise PredictionError(
            f"{where}: shows {first_few(shown)}, and the row {first_few(names)}: add the key "
            '"index", with the number of its row, to each record'
        )
