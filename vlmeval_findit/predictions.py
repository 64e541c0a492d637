"""Prediction files of VLMEvalKit runs: what was answered, and what the run recorded with it.

A file is ``<model>_<dataset>.<json|tsv|xlsx>`` with the columns ``index`` and ``prediction``, and
perhaps ``extra_records``.  Ground truth is never taken from it.  Values are read as they stand:
"None" and "NA" are replies like any other, an empty cell is an empty reply.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .files import write_once, write_text_once
from .variant import PREFIX, is_variant

FAILED = "Failed to obtain answer"
"""What VLMEvalKit stores in place of an answer when a call failed: not a reply of the model."""

XLSX_CELL_LIMIT = 32_767
"""Characters that a cell of a sheet holds; VLMEvalKit's default format cuts replies there."""

RECORD_KEY = "findit"
"""Under this key of ``extra_records`` lies what our models record (:class:`Recorded`)."""


class PredictionError(ValueError):
    """A prediction file that cannot be read; the message names file, row and column."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a model's run recorded with one reply.

    ``space`` are the settings of :func:`..spaces.space_from`; ``finish_reason`` is ``stop`` or
    ``length``.  ``images`` say of each image, in the message's order, the ``original`` size, the
    size as ``sent`` (after the run's own limits), the size as ``processed`` (after the model's
    processor), all (w, h) in pixels, and the ``bounds`` in force.  ``thought`` is what the model
    thought before it spoke, never read for boxes; ``ends_in_thought`` says that it never spoke.
    ``tokens`` count the prompt and the reply.  ``model`` says who answered: identifier, revisions
    or provider, and the row of the model table.  ``call`` is what a service said of a call over
    HTTP: its id and its ``cost`` in US dollars; of a failed one, the error and the status.
    """

    space: Mapping[str, Any] | None = None
    finish_reason: str = ""
    images: tuple[Mapping[str, Any], ...] = ()
    thought: str = ""
    ends_in_thought: bool = False
    tokens: Mapping[str, int] = field(default_factory=dict)
    model: Mapping[str, str] = field(default_factory=dict)
    call: Mapping[str, Any] = field(default_factory=dict)

    def as_json(self) -> str:
        """The value for the column ``extra_records``; :func:`recorded` reads it back."""
        record: dict[str, Any] = {}
        if self.space is not None:
            record["space"] = dict(self.space)
        if self.finish_reason:
            record["finish_reason"] = self.finish_reason
        if self.images:
            record["images"] = [dict(image) for image in self.images]
        if self.thought:
            record["thought"] = self.thought
        if self.ends_in_thought:
            record["ends_in_thought"] = True
        if self.tokens:
            record["tokens"] = dict(self.tokens)
        if self.model:
            record["model"] = dict(self.model)
        if self.call:
            record["call"] = dict(self.call)
        return json.dumps({RECORD_KEY: record})


def call_failed(text: str, record: Recorded) -> bool:
    """Whether a row is a failed call and no answer.

    What was recorded says so: an error, or how the answer ended.  Where nothing was, the text does:
    a model that says VLMEvalKit's own words for a failure cannot be told apart from one.
    """
    if record.call.get("error"):
        return True
    if record.finish_reason or record.tokens:
        return False
    return text.startswith(FAILED)


@dataclass(frozen=True, slots=True)
class Reply:
    """One row of a prediction file.

    ``stated`` is what the row says of its query (``label``, ``width``, ``height``), as far as it
    does: the truth of it is the table's.
    """

    index: int
    text: str
    recorded: Recorded = field(default_factory=Recorded)
    stated: Mapping[str, Any] = field(default_factory=dict)

    @property
    def failed(self) -> bool:
        """Whether this row is a failed call and no answer."""
        return call_failed(self.text, self.recorded)

    @property
    def cut(self) -> bool:
        """Whether the reply was stopped at its token limit, as far as the run recorded it."""
        return self.recorded.finish_reason == "length"


def check_model_name(name: str) -> str:
    """A model's name, which files and folders are named after.

    Raises:
        PredictionError: no file below the work folder can have it.
    """
    why = None
    if name in ("", ".", ".."):
        why = "is none"
    elif any(sign in name for sign in "/\\"):
        why = "names files: no slash in it"
    elif not name.isprintable():
        why = "names files: no line ends or control characters in it"
    elif len(name.encode()) > _LONGEST_NAME:
        why = f"names files: at most {_LONGEST_NAME} bytes"
    if why is not None:
        raise PredictionError(f"the model's name {name!r} {why}")
    return name


_LONGEST_NAME = 100
"""Bytes; file systems take 255, and a variant's name stands behind it."""


def split_name(path: Path) -> tuple[str, str]:
    """(model, dataset) from the name of a prediction file.

    Raises:
        PredictionError: the name does not end in a dataset's name.
    """
    stem = path.stem
    at = stem.rfind(f"_{PREFIX}")
    if at > 0 and is_variant(stem[at + 1 :]):
        return stem[:at], stem[at + 1 :]
    raise PredictionError(
        f"{path}: the name of a prediction file is <model>_{PREFIX}…{path.suffix}; "
        "of a file with another name say --dataset"
    )


def prediction_files(paths: Iterable[Path]) -> list[Path]:
    """The prediction files that paths name: themselves, or those below a folder, each once.

    Raises:
        PredictionError: a folder without any.
        FileNotFoundError: a path is not there.
    """
    found: dict[Path, Path] = {}
    for path in paths:
        if not path.exists():
            raise FileNotFoundError(f"{path}: no such file or folder")
        inside = [path]
        if path.is_dir():
            inside = [one for one in sorted(path.rglob("*")) if _is_predictions(one)]
            if not inside:
                raise PredictionError(f"{path}: no prediction file in it (<model>_{PREFIX}….json)")
        for one in inside:
            # VLMEvalKit links the files of a run's folder into the model's.
            found.setdefault(one.resolve(), one)
    return list(found.values())


def _is_predictions(path: Path) -> bool:
    if path.suffix not in PREDICTION_FORMATS or path.name.startswith(".") or not path.is_file():
        return False
    if path.with_name(f"{path.stem}_identity.json").is_file():
        return True
    return is_variant(path.stem[path.stem.rfind(f"_{PREFIX}") + 1 :])


def read_predictions(path: Path) -> list[Reply]:
    """The replies of a prediction file, in its order.

    Raises:
        PredictionError: unknown format, missing column, an index that is no number or stands twice.
        OSError: the file cannot be opened.
    """
    _check_format(path)
    readers = {".json": _json_rows, ".tsv": _tsv_rows, ".xlsx": _xlsx_rows}
    replies: dict[int, Reply] = {}
    for number, row in enumerate(readers[path.suffix](path), 1):
        reply = _reply(path, number, row)
        if reply.index in replies:
            raise PredictionError(f"{path}, row {number}: index {reply.index} stands twice")
        replies[reply.index] = reply
    return list(replies.values())


PREDICTION_FORMATS = (".json", ".tsv", ".xlsx")
"""What ``PRED_FORMAT`` may name."""


def _check_format(path: Path) -> None:
    if path.suffix not in PREDICTION_FORMATS:
        raise PredictionError(
            f"{path}: {path.suffix or 'no suffix'} is no format of prediction files; there are: "
            f"{', '.join(PREDICTION_FORMATS)} (the one that PRED_FORMAT names)"
        )


def write_rows(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write the rows of a prediction file in the format of its name, whole or not at all.

    JSON holds every reply as it is.  A sheet cuts it at 32,767 characters and TSV, as the host
    reads it, does not know "NA" from nothing: a file that is the same already is not touched.

    Raises:
        PredictionError: there is no such format.
    """
    _check_format(path)
    if path.suffix == ".json":
        write_text_once(path, json.dumps(rows, indent=4, ensure_ascii=False))
    elif path.suffix == ".tsv":
        out = io.StringIO()
        writer = csv.DictWriter(
            out, _columns(rows), delimiter="\t", quoting=csv.QUOTE_ALL, lineterminator="\n"
        )
        writer.writeheader()
        writer.writerows(rows)
        write_text_once(path, out.getvalue())
    else:
        _write_sheet(path, rows)


def _columns(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row))


def _write_sheet(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    from openpyxl import Workbook
    from openpyxl.cell import WriteOnlyCell

    book = Workbook(write_only=True)
    sheet = book.create_sheet()
    columns = _columns(rows)
    sheet.append(columns)
    for row in rows:
        cells = []
        for name in columns:
            value = row.get(name)
            cell = WriteOnlyCell(sheet, _for_cell(value) if isinstance(value, str) else value)
            if isinstance(value, str):
                cell.data_type = "s"  # also where it begins like a formula
            cells.append(cell)
        sheet.append(cells)
    out = io.BytesIO()
    book.save(out)
    write_once(path, out.getvalue())


def _for_cell(text: str) -> str:
    """What a cell can hold of a text: what XML has no sign for is written as its number."""
    shown = re.sub(
        "[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]",
        lambda found: f"\\u{ord(found[0]):04x}",
        text,
    )
    return shown[:XLSX_CELL_LIMIT]


def _reply(path: Path, number: int, row: Mapping[str, Any]) -> Reply:
    for column in ("index", "prediction"):
        if column not in row:
            raise PredictionError(f"{path}, row {number}: no column {column!r}, only {list(row)}")
    try:
        index = int(row["index"])
    except (TypeError, ValueError, OverflowError):
        raise PredictionError(
            f"{path}, row {number}, column index: {row['index']!r} is not a number"
        ) from None
    if isinstance(row["prediction"], dict):
        # VLMEvalKit's --api-mode leaves a reply and its record together in one cell.
        row = {"prediction": None, **row["prediction"]}
    text = row["prediction"]
    stated = {name: row[name] for name in STATED if row.get(name) not in (None, "")}
    record = recorded(row.get("extra_records"))
    return Reply(index, "" if text is None else str(text), record, stated)


STATED = ("label", "width", "height")
"""Columns of a prediction file that repeat what the table says."""


def recorded(value: object) -> Recorded:
    """What our models put into ``extra_records``; of other models', nothing."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return Recorded()
    record = value.get(RECORD_KEY) if isinstance(value, dict) else None
    if not isinstance(record, dict):
        return Recorded()
    images = record.get("images")
    return Recorded(
        space=record.get("space"),
        finish_reason=str(record.get("finish_reason", "")),
        images=tuple(images) if isinstance(images, list) else (),
        thought=str(record.get("thought", "")),
        ends_in_thought=bool(record.get("ends_in_thought", False)),
        tokens=_object(record.get("tokens")),
        model=_object(record.get("model")),
        call=_object(record.get("call")),
    )


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _json_rows(path: Path) -> Iterable[Mapping[str, Any]]:
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise PredictionError(f"{path}: not JSON: {error}") from None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise PredictionError(f"{path}: should be a list of objects, one a query")
    return rows


def _tsv_rows(path: Path) -> Iterator[Mapping[str, Any]]:
    csv.field_size_limit(2**31 - 1)
    with path.open(encoding="utf-8", newline="") as f:
        yield from csv.DictReader(f, delimiter="\t")


def _xlsx_rows(path: Path) -> Iterator[Mapping[str, Any]]:
    from openpyxl import load_workbook

    # Not data_only: a reply that begins with "=" may lie there as a formula without a value.
    book = load_workbook(path, read_only=True)
    try:
        rows = book.worksheets[0].iter_rows(values_only=True)
        header = [str(name) for name in next(rows, ())]
        for values in rows:
            yield dict(zip(header, values, strict=False))
    finally:
        book.close()
