"""Read what other programs write: JSON or JSON lines, packed by gzip or not, as objects."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..core import (
    TextError,
    UnpackedSizeError,
    gunzip,
    parse_json,
    quoted_value,
    read_bytes,
)
from ..storage import PredictionError

_GZIP = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class RecordsOfOthers:
    """The objects of a file, and where each stands."""

    path: Path
    records: Sequence[Mapping[str, Any]]
    places: Sequence[str]  # One a record: entry 1, line 1
    head: Mapping[str, Any]  # What a file says besides its list; empty: nothing

    def where(self, at: int) -> str:
        """Name the file and the place of a record."""
        return f"{self.path}, {self.places[at]}"


def read_records(path: Path) -> RecordsOfOthers:
    """Read a list of objects, also below ``annotations`` or ``predictions``, or an object a line.

    Raises:
        PredictionError: naming file and place.
        OSError: the file cannot be opened.
    """
    text = _text(path)
    try:
        value = parse_json(text)
    except TextError as error:
        # Not splitlines: a reply may have a line separator of Unicode.
        numbered = [
            (number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()
        ]
        if numbered and all(_is_of_yolo(line) for _, line in numbered):
            raise PredictionError(f"{path}: {_NO_YOLO}") from None
        if len(numbered) < 2 or not numbered[0][1].lstrip().startswith("{"):
            raise PredictionError(error.message_for(path)) from None
        places = [f"line {number}" for number, _ in numbered]
        values = [_line(path, number, line) for number, line in numbered]
        return _checked(path, values, places, {})
    head: Mapping[str, Any] = {}
    if isinstance(value, dict):
        lists = [key for key in ("annotations", "predictions") if isinstance(value.get(key), list)]
        if len(lists) > 1:
            raise PredictionError(
                f"{path}: has both lists {' and '.join(lists)}: which are the answers? Leave the "
                "other out"
            )
        if lists:
            head = value
        value = value[lists[0]] if lists else [value]
    count = len(value) if isinstance(value, list) else 0
    return _checked(path, value, [f"entry {number}" for number in range(1, count + 1)], head)


# Of YOLO's lines
_NO_YOLO = (
    "YOLO's lines (class, center, width, height), which name no image. Write COCO results, a JSON "
    "list for all images: Ultralytics does with yolo val save_json=True"
)


def _is_of_yolo(line: str) -> bool:
    """Tell whether a line is a number of a class, four shares of an image and maybe a confidence.

    >>> _is_of_yolo("0 0.5 0.5 0.2 0.1 0.93"), _is_of_yolo("0 120 80 12 9")
    (True, False)
    """
    words = line.split()
    if len(words) not in (5, 6) or not words[0].isdecimal():
        return False
    try:
        return all(0 <= float(word) <= 1 for word in words[1:])
    except ValueError:
        return False


def refuse_yolo_folders(paths: Iterable[Path]) -> None:
    """Refuse folders of YOLO's predictions, a text for each image, with what to write instead."""
    for folder in paths:
        for path in sorted(folder.rglob("*.txt")):
            text = read_bytes(path).decode("utf-8", "replace")
            lines = [line for line in text.splitlines() if line.strip()]
            if lines and all(map(_is_of_yolo, lines)):
                raise PredictionError(f"{path}: {_NO_YOLO}")


def stem_of(path: Path) -> str:
    """Return the name of a file without the suffixes of JSON and gzip.

    >>> stem_of(Path("a/yolo11n.bbox.json.gz"))
    'yolo11n.bbox'
    """
    name = path.name
    for suffix in (".gz", ".jsonl", ".json"):
        if name.lower().endswith(suffix):
            name = name[: -len(suffix)]
    return name


def _text(path: Path) -> str:
    data = read_bytes(path)
    if data.startswith(_GZIP):
        try:
            data = gunzip(data)
        except UnpackedSizeError as error:
            raise PredictionError(f"{path}: {error}") from None
        except (OSError, EOFError, zlib.error) as error:
            raise PredictionError(f"{path}: damaged gzip file: {error}") from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise PredictionError(f"{path}: {error}: save it as UTF-8") from None


def _line(path: Path, number: int, line: str) -> Any:
    try:
        return parse_json(line)
    except TextError as error:
        raise PredictionError(f"{path}, line {number}: {error}") from None


def _checked(
    path: Path, values: object, places: Sequence[str], head: Mapping[str, Any]
) -> RecordsOfOthers:
    if not isinstance(values, list):
        raise PredictionError(f"{path}: should be a list of objects, and is {quoted_value(values)}")
    for place, value in zip(places, values, strict=True):
        if not isinstance(value, dict):
            raise PredictionError(
                f"{path}, {place}: should be an object, not {quoted_value(value)}"
            )
    return RecordsOfOthers(path, values, places, head)
