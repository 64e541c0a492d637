"""Prediction files of VLMEvalKit runs: what was answered, and what the run recorded with it.

A file is ``<model>_<dataset>.<json|tsv|xlsx>`` with the columns ``index`` and ``prediction``, and
perhaps ``extra_records``.  Ground truth is never taken from it.  Values are read as they stand:
"None" and "NA" are replies like any other, an empty cell is an empty reply.
"""

from __future__ import annotations

import csv
import json
import re
import reprlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from math import isfinite, isnan
from pathlib import Path
from typing import Any

from ..benchmarks.findit.variant import PREFIX, is_variant

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
        return json.dumps({RECORD_KEY: _plain(record, _DEPTH + 2)})


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


def read_predictions(path: Path) -> list[Reply]:
    """The replies of a prediction file, in its order.

    Raises:
        PredictionError: unknown format, a damaged file, a missing column or cell, an index that is
            no whole number or stands twice, a coordinate space that is none.
        OSError: the file cannot be opened.
    """
    check_format(path)
    readers = {".json": _json_rows, ".tsv": _tsv_rows, ".xlsx": _xlsx_rows}
    replies: dict[int, Reply] = {}
    for number, row in enumerate(readers[path.suffix](path), 1):
        reply = _reply(f"{path}, row {number}", row)
        if reply.index in replies:
            raise PredictionError(f"{path}, row {number}: index {reply.index} stands twice")
        replies[reply.index] = reply
    return list(replies.values())


PREDICTION_FORMATS = (".json", ".tsv", ".xlsx")
"""What ``PRED_FORMAT`` may name."""


def check_format(path: Path) -> None:
    """Refuse a file that is none of predictions by its name.

    Raises:
        PredictionError: its format is not known.
    """
    if path.suffix not in PREDICTION_FORMATS:
        raise PredictionError(
            f"{path}: {path.suffix or 'no suffix'} is no format of prediction files; there are: "
            f"{', '.join(PREDICTION_FORMATS)} (the one that PRED_FORMAT names)"
        )


def _reply(where: str, row: Mapping[str, Any]) -> Reply:
    for column in ("index", "prediction"):
        if column not in row:
            raise PredictionError(f"{where}: no column {column!r}, only {list(row)}")
    index = _index(where, row["index"])
    if isinstance(row["prediction"], dict):
        # VLMEvalKit's --api-mode leaves a reply and its record together in one cell.
        row = {"prediction": None, **row["prediction"]}
    found = recorded(row.get("extra_records"))
    said = record_in(row.get("extra_records")).get("space")
    if said and found.space is None:
        # Without it, boxes would be read in another space than the run's, and nobody would know.
        raise PredictionError(
            f"{where}, column extra_records: {reprlib.repr(said)} are no settings of a "
            "coordinate space"
        )
    stated = {name: row[name] for name in STATED if row.get(name) not in (None, "")}
    return Reply(index, _text(row["prediction"]), found, stated)


STATED = ("label", "width", "height")
"""Columns of a prediction file that repeat what the table says."""


def _index(where: str, value: object) -> int:
    """A row's number; sheets hold it as 3.0, some writers as text."""
    if isinstance(value, str) and re.fullmatch(r"\s*-?[0-9]{1,18}\s*", value):
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise PredictionError(f"{where}, column index: {reprlib.repr(value)} is not a whole number")


def _text(value: object) -> str:
    """A reply as it stands; a cell without one (None, or the NaN of pandas) is an empty reply."""
    if isinstance(value, str):
        return value
    if value is None or (isinstance(value, float) and isnan(value)):
        return ""
    return json.dumps(value, ensure_ascii=False, default=str)


# --- what was recorded ----------------------------------------------------------------------------


def recorded(value: object) -> Recorded:
    """What our models put into ``extra_records``; of other models', nothing.

    What is not of its type, or not finite, is left out: all of it can be written as JSON again.
    """
    record = record_in(value)
    tokens = {key: n for key, n in _plain_object(record.get("tokens")).items() if _is_count(n)}
    model = _plain_object(record.get("model"))
    return Recorded(
        space=_space(record.get("space")),
        finish_reason=_string(record.get("finish_reason")),
        images=_images(record.get("images")),
        thought=_string(record.get("thought")),
        ends_in_thought=record.get("ends_in_thought") is True,
        tokens=tokens,
        model={key: said for key, said in model.items() if isinstance(said, str)},
        call=_plain_object(record.get("call")),
    )


def record_in(value: object) -> Mapping[str, Any]:
    """What our models record under our own key; of other models', or of what is none, nothing."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return {}
    record = value.get(RECORD_KEY) if isinstance(value, dict) else None
    return record if isinstance(record, dict) else {}


def _space(value: object) -> Mapping[str, Any] | None:
    """Settings of a space: taken whole or not at all, since every one of them moves boxes."""
    if not isinstance(value, dict) or not value:
        return None
    plain = all(
        said is None
        or isinstance(said, str)
        or (isinstance(said, (int, float)) and _is_number(said))
        for said in value.values()
    )
    return value if plain else None


def _images(value: object) -> tuple[Mapping[str, Any], ...]:
    """The images of a message: all or none, since they are told apart by their place."""
    if not isinstance(value, list) or not all(isinstance(image, dict) for image in value):
        return ()
    return tuple(_plain_object(image) for image in value)


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


_DEPTH = 8
"""Objects within objects that a record may have; ours have three."""


def _plain_object(value: object) -> dict[str, Any]:
    found = _plain(value, _DEPTH)
    return found if isinstance(found, dict) else {}


_ODD = object()


def _plain(value: object, depth: int) -> object:
    """A value without what JSON cannot say (NaN, infinity), and not deeper than we write it."""
    if isinstance(value, dict) and depth:
        inside = {str(key): _plain(one, depth - 1) for key, one in value.items()}
        return {key: one for key, one in inside.items() if one is not _ODD}
    if isinstance(value, (list, tuple)) and depth:
        # What is told apart by its place keeps it.
        inside_list = [_plain(one, depth - 1) for one in value]
        return [None if one is _ODD else one for one in inside_list]
    if isinstance(value, (int, float)):
        return value if _is_number(value) else _ODD
    return value if value is None or isinstance(value, str) else _ODD


def _is_number(value: float) -> bool:
    """Finite, and not a whole number of hundreds of digits, which no float can hold."""
    return abs(value) < 2**63 if isinstance(value, int) else isfinite(value)


# --- files ----------------------------------------------------------------------------------------


def _json_rows(path: Path) -> Iterable[Mapping[str, Any]]:
    try:
        rows = json.loads(path.read_text(encoding="utf-8-sig"))
    except RecursionError:
        raise PredictionError(f"{path}: is nested too deeply for a prediction file") from None
    except ValueError as error:
        raise PredictionError(f"{path}: not JSON: {error}") from None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise PredictionError(f"{path}: should be a list of objects, one a query")
    return rows


def _tsv_rows(path: Path) -> Iterator[Mapping[str, Any]]:
    csv.field_size_limit(2**31 - 1)
    with path.open(encoding="utf-8-sig", newline="") as f:
        # Strict: a file that was cut off within a reply must not read as a shorter reply.
        lines = csv.reader(f, delimiter="\t", strict=True)
        try:
            header = _header(path, next(lines, []))
            for number, cells in enumerate(filter(None, lines), 1):
                if len(cells) != len(header):
                    raise PredictionError(
                        f"{path}, row {number}: {len(cells)} cells for {len(header)} columns: is "
                        "the file cut off?"
                    )
                yield dict(zip(header, cells, strict=True))
        except (csv.Error, UnicodeDecodeError) as error:
            raise PredictionError(f"{path}, line {lines.line_num}: {error}") from None


def _xlsx_rows(path: Path) -> list[Mapping[str, Any]]:
    from openpyxl import load_workbook

    with path.open("rb") as f:
        if f.read(len(_OLE)) == _OLE:
            raise PredictionError(f"{path}: is encrypted, or an old .xls file: save it as .xlsx")
        try:
            # Not data_only: a reply that begins with "=" may lie there as a formula without a
            # value.
            book = load_workbook(f, read_only=True)
            lines = list(book.worksheets[0].iter_rows(values_only=True))
        except Exception as error:  # zip, XML and openpyxl raise whatever they meet
            said = " ".join(str(error).split()) or type(error).__name__
            raise PredictionError(f"{path}: not a sheet that can be read: {said}") from None
    header = _header(path, [str(name) for name in (lines or [()])[0]])
    # Empty cells at the end of a row may not be there, and empty rows at the end of a sheet may.
    rows = [dict(zip_longest(header, cells[: len(header)])) for cells in lines[1:]]
    return [row for row in rows if any(value is not None for value in row.values())]


_OLE = b"\xd0\xcf\x11\xe0"
"""How files of the older Office begin, in which encrypted ones of the newer are wrapped."""


def _header(path: Path, names: list[str]) -> list[str]:
    if not names:
        raise PredictionError(f"{path}: has no line of column names; is the file cut off?")
    twice = next((name for name in names if name != "None" and names.count(name) > 1), None)
    if twice is not None:
        raise PredictionError(f"{path}: column {twice!r} stands twice")
    return names
