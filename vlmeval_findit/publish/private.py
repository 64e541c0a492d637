"""What leaves this machine, without what is only its own: secrets, and the paths of its folders.

Secrets are those of :mod:`..core.redaction`.  Of a path only the last name stays, ``…/photo.jpg``.
In records of ours every absolute path is one; in a reply, which may speak of any path, only what
lies below a folder that a run, its pictures or this process use.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from ..core.redaction import scrub
from ..core.replies import FAILED, RECORD_KEY

_SEPARATOR = r"[\\/]"
_IN_FOLDER = (
    # Folders are named after people and days: Doe, Jane; O'Brien; 12:30.  A quote within a word is
    # one, also as a shell writes it; a colon before a space ends what an error speaks of.
    r"(?:[^\\/\r\n\t\"'`<>|*?:]|:(?![\s\\/])|(?<=\w)'(?=\w)|'\"'\"')"
)
_FOLDER = rf"{_IN_FOLDER}{{1,255}}(?<!\s){_SEPARATOR}+"
_NO_FILE_YET = r"(?!\.[A-Za-z]\w{1,4}[\s,;)])"
_FOLDER_IN_A_REPLY = rf"(?:{_NO_FILE_YET}{_IN_FOLDER}){{1,255}}(?<!\s){_SEPARATOR}+"
"""As a model may go on after a path, what stands behind ``0.jpg `` belongs to it no more."""
_LAST_NAME = r"[^\s\"'`\\<>|*?:,;()\[\]{}]*"
_NETWORK = r"[\\/]{2,}(?:[?.][\\/]+)?(?:[A-Za-z]:[\\/]+)?"
_ROOT = (
    rf"(?:(?<!\w)file:/+|(?<!\w)[A-Za-z]:[\\/]+"
    rf"|(?<![\w\\/.…~-])(?:(?<!:){_NETWORK}|/))"
)
_ANY_PATH = re.compile(rf"{_ROOT}(?![\s\\/])(?:{_FOLDER})+{_LAST_NAME}")
_USER = re.compile(r"(?<=://)[^/@\s]+@")
_ADDRESS = re.compile(
    r"\b(?!file:)[A-Za-z][A-Za-z0-9+.-]*://[^\s\"'`<>|,;()\[\]{}\\]+"
    r"|(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?::\d+)?(?![\w.])"
    r"|(?<![\w.-])(?:localhost|[A-Za-z][\w-]*(?:\.[A-Za-z][\w-]*)+):\d{2,5}\b"
    r"|(?<=\bhost )[\w.-]+:\d{2,5}\b"
)

Change = Callable[[str], str]


class Private:
    """Texts and values without what is this machine's own.

    Args:
        folders: folders of this machine that runs use.
    """

    def __init__(self, folders: Iterable[Path] = ()) -> None:
        here = (Path.cwd(), Path.home(), Path(tempfile.gettempdir()), *folders)
        roots = {str(form) for path in here for form in (path.absolute(), path.resolve())}
        # "/" alone would be every path there is.
        known = sorted((root for root in roots if len(root) > 1), key=len, reverse=True)
        root = rf"(?:{'|'.join(map(_any_separators, known))})(?![\w.-])"
        self._in_records = _below(root, _FOLDER)
        self._in_replies = _below(root, _FOLDER_IN_A_REPLY)

    def in_reply(self, text: str) -> str:
        """Clean a text that somebody else may have written: no secret, no path that is known."""
        if text.startswith(FAILED):
            return self.in_record(text)
        return self._in_replies.sub(_last, scrub(text))

    def in_record(self, text: str) -> str:
        """Clean a text of our own records: no path at all, no user name in an address."""
        return _ANY_PATH.sub(_last, self._in_records.sub(_last, _USER.sub("***@", scrub(text))))

    def row(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Clean a row of a prediction file; its record is ours but for what the model wrote."""
        whole = json.loads(row["extra_records"])
        record = {
            key: changed(value, self.in_reply if key in ("thought", "logprobs") else self.in_record)
            for key, value in whole[RECORD_KEY].items()
        }
        made = json.dumps({**whole, RECORD_KEY: record})
        return {**row, "prediction": self.in_reply(row["prediction"]), "extra_records": made}

    def json_text(self, text: str) -> str:
        """Clean a record of ours as JSON; the very same text where nothing changes."""
        return _changed_json(text, self.in_record, indent=1)

    def json_lines(self, text: str) -> str:
        """Clean lines of JSON that hold what somebody else may have written."""
        return "\n".join(line and _changed_json(line, self.in_reply) for line in text.split("\n"))


def changed(value: Any, change: Change) -> Any:
    """Change every string of a nested JSON value, keys of objects included."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {change(key): changed(one, change) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [changed(one, change) for one in value]
    return value


def _changed_json(text: str, change: Change, indent: int | None = None) -> str:
    value = json.loads(text)
    made = changed(value, change)
    return text if made == value else json.dumps(made, indent=indent, ensure_ascii=False)


def places_of(folder: Path, files: Iterable[str]) -> Mapping[str, Sequence[str]]:
    """Find every address and absolute path in files of a folder, each with the files that have it.

    So that somebody can look before they are public; after everything that takes something out.
    """
    found: dict[str, dict[str, None]] = {}
    for name in files:
        for text in chain.from_iterable(map(_texts, _values(folder / name))):
            for match in (*_ADDRESS.finditer(text), *_ANY_PATH.finditer(text)):
                found.setdefault(match[0].rstrip("."), {})[name] = None
    return {place: tuple(names) for place, names in sorted(found.items())}


def _texts(value: Any) -> Iterator[str]:
    """Yield every string of a nested JSON value, keys of objects included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list | tuple):
        parts = chain.from_iterable(value.items()) if isinstance(value, dict) else value
        yield from chain.from_iterable(map(_texts, parts))


def _values(path: Path) -> Iterable[Any]:
    """Yield what a file says: JSON and Parquet as values, in which no character is escaped."""
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        with pq.ParquetFile(path) as table:
            for batch in table.iter_batches(batch_size=1000):
                yield from batch.to_pylist()
        return
    with path.open(encoding="utf-8", newline="") as f:
        if path.suffix == ".json":
            yield json.load(f)
        elif path.suffix == ".jsonl":
            yield from map(json.loads, f)
        else:
            yield from f


def _below(root: str, folder: str) -> re.Pattern[str]:
    return re.compile(rf"{root}(?:{_SEPARATOR}+(?:{folder})*)?{_LAST_NAME}")


def _any_separators(root: str) -> str:
    """Match a folder however it is written: Windows paths in JSON have each separator twice."""
    return rf"{_SEPARATOR}+".join(map(re.escape, re.split(r"[\\/]+", root)))


def _last(path: re.Match[str]) -> str:
    """Return ``…/name`` of a path."""
    *_, name = re.split(r"[\\/]+", path[0].rstrip("/\\"))
    return f"…/{name}"
