"""Replies as other programs store them: a row a layout, each with its number of the row."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from ..core import some
from ..protocol import AnyDataset, Reply, ReplyRecord, is_index
from ..storage import PredictionError
from .records_of_others import RecordsOfOthers

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
LAYOUTS = (
    ReplyLayout("a batch of OpenAI's or vLLM's", ("custom_id", "response"), "custom_id", _of_batch),
    ReplyLayout("lmms-eval's samples", ("doc_id", "resps"), "doc_id", _of_lmms_eval),
    ReplyLayout("index and response", ("index", "response"), "index", lambda r: r["response"]),
    ReplyLayout(
        "index and prediction", ("index", "prediction"), "index", lambda r: r["prediction"]
    ),
    ReplyLayout("ms-swift infer", ("response", "images"), None, lambda record: record["response"]),
)


def layout_of(file: RecordsOfOthers) -> ReplyLayout | None:
    """Return the layout that all records of a file have; None: it is none of these."""
    fitting = (
        layout
        for layout in LAYOUTS
        if all(key in record for record in file.records for key in layout.keys)
    )
    return next(fitting, None)


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
                f"{dataset.name}: its rows are {some([*map(str, rows)])}"
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
            f'{where}: shows {some(shown)}, and the row {some(names)}: add the key "index", with '
            "the number of its row, to each record"
        )
