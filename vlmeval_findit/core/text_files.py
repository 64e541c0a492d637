"""Read text, JSON and YAML that others wrote: regular files only, and nothing nested without end.

What is wrong with a content is a :class:`TextError` without the file's name, which callers know;
that a file cannot be opened is an OSError.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader, TextIOWrapper
from json.decoder import JSONObject  # type: ignore[attr-defined]
from json.scanner import py_make_scanner  # type: ignore[attr-defined]
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import yaml

from .files import open_regular
from .quoted_values import plain_value, quoted_value
from .standing_twice import find_twice


class TextError(ValueError):
    """A content that is no text, JSON or YAML; the message is without the file's name."""

    def __init__(self, why: str, line: int | None = None) -> None:
        super().__init__(why if line is None else f"line {line}: {why}")
        self.line = line

    def message_for(self, name: Path | str) -> str:
        """Return the message with the file's name."""
        return f"{name}{':' if self.line is None else ','} {self}"


class EqualKeysError(TextError):
    """An object of JSON has a key twice."""


# --- text -----------------------------------------------------------------------------------------


def read_text(path: Path) -> str:
    """Return the text of a regular file in UTF-8, with or without a byte order mark.

    Ends of lines stay as they are.

    Raises:
        TextError: it is no UTF-8; the message names the line.
        OSError: it is no regular file, or cannot be read.
    """
    with open_regular(path) as f:
        _refuse_binary(f)
        data = f.read()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # Its place counts from behind the byte order mark.
        raise _no_text_at(error.object, error.start) from None


def with_unix_lines(text: str) -> str:
    """End every line with a line feed only, as :meth:`pathlib.Path.read_text` does."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


@contextmanager
def open_text(path: Path) -> Iterator[TextIO]:
    """Open a regular file in UTF-8 for reading, ends of lines as they are; see :func:`read_text`.

    Reading may raise a UnicodeDecodeError.
    """
    with open_regular(path) as f:
        _refuse_binary(f)
        yield TextIOWrapper(f, encoding="utf-8-sig", newline="")


def _refuse_binary(f: BufferedReader) -> None:
    """Refuse a file by its beginning: a large one that is no text is not read."""
    begin = f.peek()
    try:
        codecs.getincrementaldecoder("utf-8")().decode(begin)
    except UnicodeDecodeError as error:
        raise _no_text_at(begin, error.start) from None
    if b"\0" in begin[:4]:
        raise _no_text_at(begin, begin.index(b"\0"))


def _no_text_at(data: bytes, place: int) -> TextError:
    line = data.count(b"\n", 0, place) + 1
    return TextError(f"byte {data[place]:#04x} is not UTF-8: save the file as UTF-8", line)


# --- JSON -----------------------------------------------------------------------------------------


def read_json(path: Path) -> Any:
    """Return the JSON of a file; raises as :func:`read_text` and :func:`parse_json`."""
    return parse_json(read_text(path))


def parse_json(text: str | bytes, *, only_numbers: bool = False) -> Any:
    """Parse JSON of a file, a flag or a variable; equal keys of an object are refused.

    Of two values for one thing the second would win in silence. With ``only_numbers`` NaN and
    infinity are refused, too.

    >>> parse_json("[" * 100_000)
    Traceback (most recent call last):
    vlmeval_findit.core.text_files.TextError: not JSON: it is nested too deeply
    """
    if not text.strip():
        raise TextError("not JSON: it is empty")
    try:
        return json.loads(
            text,
            parse_constant=_refuse_constant if only_numbers else None,
            object_pairs_hook=refuse_equal_keys,
        )
    except EqualKeysError:
        # A file of many lines has its place told, which takes longer to find.
        json.loads(text, cls=_Placing)
        raise
    except RecursionError:
        raise TextError("not JSON: it is nested too deeply") from None
    except ValueError as error:
        raise TextError(f"not JSON: {error}") from None


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number")


def refuse_equal_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object of its keys and values, as ``object_pairs_hook`` of :mod:`json`.

    Raises:
        EqualKeysError: a key stands in it twice.
    """
    values = dict(pairs)
    if len(values) < len(pairs):
        twice = find_twice(name for name, _ in pairs)
        assert twice is not None
        raise EqualKeysError(f"duplicate key {quoted_value(twice.name)}: give each its own name")
    return values


class _Placing(json.JSONDecoder):
    """Refuses equal keys with the line in which their object begins."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{**options, "object_pairs_hook": refuse_equal_keys})
        self.parse_object = self._parse_object
        self.scan_once = py_make_scanner(self)

    def _parse_object(self, at: tuple[str, int], *more: Any) -> Any:
        text, begin = at
        try:
            return JSONObject(at, *more)
        except EqualKeysError as error:
            is_placed = error.line is not None or "\n" not in text.strip()
            if is_placed:
                raise
            raise EqualKeysError(str(error), text.count("\n", 0, begin) + 1) from None


# --- YAML -----------------------------------------------------------------------------------------

_DEEPEST = 100
_MOST_VALUES = 1_000_000  # With aliases written out: a kilobyte can stand for 10^10


class _Limited(yaml.composer.Composer):
    """Refuses YAML that is nested too deeply, and duplicate keys."""

    _depth = 0
    peek_event: Any  # Of the parser

    def compose_node(self, parent: Any, index: Any) -> Any:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise _refused("it is nested too deeply", self.peek_event().start_mark)
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node: yaml.MappingNode = super().compose_mapping_node(anchor)
        seen = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value in seen:
                raise _refused(f"duplicate key {plain_value(key.value)}", key.start_mark)
            seen.add(str(key.value))
        return node


class YamlLoader(_Limited, yaml.SafeLoader):
    """Makes YAML's plain values."""

    def construct_object(self, node: Any, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            # As !!float x, or the day 2026-13-40
            kind = node.tag.rpartition(":")[2]
            raise _refused(
                f"{quoted_value(node.value)} is not a valid {kind}", node.start_mark
            ) from None


# YAML 1.2 has 1e-9 and 1.5e3 among its numbers, PyYAML only 1.0e-9 and 1.5e+3.  1e3 stays a text:
# it may be a name, or the beginning of a revision
YamlLoader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?(?:[0-9]+[eE][-+][0-9]+|(?:[0-9]+\.[0-9]*|\.[0-9]+)[eE][-+]?[0-9]+)\Z"),
    list("-+.0123456789"),
)


class YamlTexts(_Limited, yaml.BaseLoader):
    """Leaves every scalar the text that it is: no, 007 and 1e3 are names."""


def _refused(why: str, mark: yaml.Mark) -> yaml.YAMLError:
    return yaml.constructor.ConstructorError(None, None, why, mark)


def parse_yaml(
    text: str, kind: type[YamlLoader | YamlTexts] = YamlLoader
) -> tuple[Any, yaml.Node | None]:
    """Return the value of a YAML text and its node; None for both if it is empty.

    >>> parse_yaml("a: 2026-13-40")
    Traceback (most recent call last):
    vlmeval_findit.core.text_files.TextError: line 1: '2026-13-40' is not a valid timestamp
    """
    try:
        loader = kind(text)
        try:
            top = loader.get_single_node()
            if top is None:
                return None, None
            _measure(top, {})
            return loader.construct_document(top), top
        finally:
            loader.dispose()
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise TextError(
            f"not YAML: it contains the character U+{ord(text[error.position]):04X}", line
        ) from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        why = getattr(error, "problem", None) or " ".join(str(error).split())
        is_yaml = isinstance(error, yaml.constructor.ConstructorError)
        where = None if mark is None else mark.line + 1
        raise TextError(
            f"{'' if is_yaml else 'not YAML: '}{plain_value(why, 200)}", where
        ) from None


def yaml_value(text: str) -> Any:
    """Return the value of a YAML text; raises as :func:`parse_yaml`."""
    return parse_yaml(text)[0]


class _Extent(NamedTuple):
    """How much a node is with its aliases written out."""

    values: int
    depth: int


def _measure(node: yaml.Node, known: dict[int, _Extent | None]) -> _Extent:
    """Measure a node; refuse one that is too much, too deep, or a part of itself."""
    if isinstance(node, yaml.ScalarNode):
        return _Extent(1, 1)
    if id(node) in known:
        extent = known[id(node)]
        if extent is None:
            raise _refused("an alias refers to a value that contains it", node.start_mark)
        return extent
    known[id(node)] = None
    values = 0
    depth = 0
    for part in _parts(node):
        inner = _measure(part, known)
        values += inner.values
        depth = max(depth, inner.depth)
    if values >= _MOST_VALUES:
        raise _refused(f"its aliases expand to more than {_MOST_VALUES:,} values", node.start_mark)
    if depth >= _DEEPEST:
        raise _refused("it is nested too deeply", node.start_mark)
    extent = _Extent(values + 1, depth + 1)
    known[id(node)] = extent
    return extent


def _parts(node: yaml.Node) -> Iterator[yaml.Node]:
    for part in node.value:
        if isinstance(node, yaml.MappingNode):
            yield from part
        else:
            yield part
