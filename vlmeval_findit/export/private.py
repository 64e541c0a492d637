"""Remove secrets and paths of this machine from published texts.

Secrets are those of :mod:`..core.redaction`. Of a path only the last name stays, ``…/photo.jpg``.
In records of this package every absolute path is private; in a reply, which may name any path, only
paths below a folder that a run, its images or this process use.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from ..core import parse_json, read_text, scrub
from ..protocol import FAILED_ANSWER, Reply

_SEPARATOR = r"[\\/]"
_IN_FOLDER = r"[^\\/\r\n\t\"'`<>|*?:]"
_FOLDER = rf"{_IN_FOLDER}{{1,255}}(?<!\s){_SEPARATOR}+"
_NO_FILE_YET = r"(?!\.[A-Za-z]\w{1,4}[\s,;)])"
# A model may continue after a path: text after `0.jpg ` does not belong to it
_FOLDER_IN_A_REPLY = rf"(?:{_NO_FILE_YET}{_IN_FOLDER}){{1,255}}(?<!\s){_SEPARATOR}+"
_LAST_NAME = r"[^\s\"'`\\<>|*?:,;()\[\]{}]*"
_ROOT = r"(?:(?<!\w)file:/+|(?<!\w)[A-Za-z]:[\\/]+|(?<![\w\\/.…~-])/)"
_ANY_PATH = re.compile(rf"{_ROOT}(?![\s\\/])(?:{_FOLDER})+{_LAST_NAME}")
_USER = re.compile(r"(?<=://)[^/@\s]+@")
_ADDRESS = re.compile(
    r"\b(?!file:)[A-Za-z][A-Za-z0-9+.-]*://[^\s\"'`<>|,;()\[\]{}\\]+"
    r"|(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?::\d+)?(?![\w.])"
    r"|(?<![\w.-])(?:localhost|[A-Za-z][\w-]*(?:\.[A-Za-z][\w-]*)+):\d{2,5}\b"
    r"|(?<=\bhost )[\w.-]+:\d{2,5}\b"
)

Change = Callable[[str], str]

# What a record has of a model's own words, and of their tokens
_OF_MODELS = ("thought", "token_logprobs")


class Private:
    """Removes secrets and paths of this machine from texts and values.

    Args:
        folders: folders of this machine that runs use.
    """

    def __init__(self, folders: Iterable[Path] = ()) -> None:
        here = (Path.cwd(), Path.home(), Path(tempfile.gettempdir()), *folders)
        roots = {str(form) for path in here for form in (path.absolute(), path.resolve())}
        # "/" alone would match every path.
        known = sorted((root for root in roots if len(root) > 1), key=len, reverse=True)
        root = rf"(?:{'|'.join(map(_any_separators, known))})(?![\w.-])"
        self._in_records = _below(root, _FOLDER)
        self._in_replies = _below(root, _FOLDER_IN_A_REPLY)

    def in_reply(self, text: str) -> str:
        """Remove secrets and known paths from a text of a model or a dataset."""
        if text.startswith(FAILED_ANSWER):
            return self.in_record(text)
        return self._in_replies.sub(_last, scrub(text))

    def in_record(self, text: str) -> str:
        """Remove secrets, all paths, and user names in addresses from a record of this package."""
        return _ANY_PATH.sub(_last, self._in_records.sub(_last, _USER.sub("***@", scrub(text))))

    def reply(self, reply: Reply) -> Reply:
        """Clean a reply: the texts of the model, and its record."""
        record = reply.recorded
        names = [field.name for field in fields(record) if field.name not in _OF_MODELS]
        ours = {name: changed(getattr(record, name), self.in_record) for name in names}
        recorded = replace(record, **ours, thought=self.in_reply(record.thought))
        shown = changed(reply.shown, self.in_record)
        return replace(reply, text=self.in_reply(reply.text), recorded=recorded, shown=shown)

    def json_text(self, text: str) -> str:
        """Clean a JSON record of this package; return the same text if nothing changes."""
        return _changed_json(text, self.in_record, indent=1)

    def json_lines(self, text: str) -> str:
        """Clean lines of JSON with texts of a model or a dataset."""
        return "\n".join(line and _changed_json(line, self.in_reply) for line in text.split("\n"))


def changed(value: Any, change: Change) -> Any:
    """Change every string of a nested JSON value, keys of objects included."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {change(key): changed(item, change) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(changed(item, change) for item in value)
    return value


def _changed_json(text: str, change: Change, indent: int | None = None) -> str:
    value = parse_json(text)
    new = changed(value, change)
    return text if new == value else json.dumps(new, indent=indent, ensure_ascii=False)


def places_of(folder: Path, files: Iterable[str]) -> Mapping[str, Sequence[str]]:
    """Find every address and absolute path in files of a folder, each with the files that have it.

    They are shown to the user before the upload. Parquet files are left out: their replies and
    records are those of the files of the runs.
    """
    files_by_place: dict[str, dict[str, None]] = {}
    for name in files:
        if not name.endswith(".parquet"):
            text = read_text(folder / name)
            for match in (*_ADDRESS.finditer(text), *_ANY_PATH.finditer(text)):
                files_by_place.setdefault(match[0].rstrip("."), {})[name] = None
    return {place: tuple(names) for place, names in sorted(files_by_place.items())}


def _below(root: str, folder: str) -> re.Pattern[str]:
    return re.compile(rf"{root}(?:{_SEPARATOR}+(?:{folder})*)?{_LAST_NAME}")


def _any_separators(root: str) -> str:
    """Match a folder with any separators: Windows paths in JSON have each separator twice."""
    return rf"{_SEPARATOR}+".join(map(re.escape, re.split(r"[\\/]+", root)))


def _last(path: re.Match[str]) -> str:
    *_, name = re.split(r"[\\/]+", path[0].rstrip("/\\"))
    return f"…/{name}"
