"""Patterns of lenient reading are compiled once: that takes longer than to read a reply."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pkgutil import iter_modules
from types import FrameType

import pytest

from benchmarks.reply_corpus import FIRST, entries_of
from vlmeval_findit.boxes import ImageExtent, lenient, parse_leniently, read
from vlmeval_findit.core import late_pattern

ENTRIES = entries_of(FIRST)
# Of these replies the label that is asked for decides
SAYS_NONE = re.compile(r"\b(?:no|not|cannot|without|isn't|\w+n't)\b", re.IGNORECASE)


@contextmanager
def counted() -> Iterator[list[str]]:
    """List the patterns that Python compiles in the block."""
    patterns: list[str] = []

    def look(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_name == "compile" and "_compiler" in code.co_filename:
            patterns.append(str(frame.f_locals["p"]))

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        yield patterns
    finally:
        sys.setprofile(before)


def read_all(label: str) -> int:
    """Read the replies of the corpus to a query for a label; return how many."""
    replies = [entry for entry in ENTRIES if not SAYS_NONE.search(entry.reply)]
    for entry in replies:
        strict = read(entry.reply, entry.form)
        parse_leniently(entry.reply, entry.form, strict, ImageExtent(1000, 1000), [label])
    return len(replies)


def test_no_pattern_is_compiled_for_each_label() -> None:
    assert read_all("thing 1") > 100
    with counted() as patterns:
        read_all("thing 2")
    assert patterns == []


def test_a_late_pattern_is_compiled_at_its_first_use() -> None:
    with counted() as patterns:
        number = late_pattern("([0-9]+) of a late pattern")
        assert patterns == []
        assert number.findall("7 of a late pattern") == ["7"]
        assert number.sub("x", "7 of a late pattern") == "x"
    assert patterns == ["([0-9]+) of a late pattern"]
    re.purge()
    with counted() as again:
        assert number.search("no number") is None
    assert again == []


def test_a_late_pattern_has_the_flags_of_its_own() -> None:
    assert late_pattern("ab").fullmatch("AB") is None
    assert late_pattern("ab", re.IGNORECASE).fullmatch("AB")
    assert late_pattern("ab", re.IGNORECASE).flags & re.IGNORECASE


def test_every_late_pattern_of_lenient_reading_compiles() -> None:
    compiled = 0
    for module in iter_modules(lenient.__path__, f"{lenient.__name__}."):
        for value in vars(import_module(module.name)).values():
            if type(value).__name__ == "_LatePattern":
                assert re.compile(value.pattern, value.flags)
                compiled += 1
    assert compiled > 100


@pytest.mark.parametrize("pattern", ["(", "[z-a]"])
def test_a_broken_late_pattern_raises_at_its_use(pattern: str) -> None:
    broken = late_pattern(pattern)
    with pytest.raises(re.error):
        broken.search("text")
