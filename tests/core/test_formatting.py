"""Text from outside, as it is shown."""

from __future__ import annotations

import csv
from io import StringIO

import pytest

from vlmeval_findit.core.formatting import as_csv, printable, short


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Qwen3-VL 8B", "Qwen3-VL 8B"),
        ("שלום 模型 🦄 é", "שלום 模型 🦄 é"),
        ("no\u00a0break", "no\u00a0break"),
        ("\u06cc\u200c\u062e", "\u06cc\u200c\u062e"),
        ("\U0001f469\u200d\U0001f680", "\U0001f469\u200d\U0001f680"),
        ("a\nb\r\x00\x7f\x85", r"a\x0ab\x0d\x00\x7f\x85"),
        ("\u202eab\u2066\u200f\ufeff\u2028", r"\u202eab\u2066\u200f\ufeff\u2028"),
        ("\ud800\udfff", r"\ud800\udfff"),
        ("\U000e0041", r"\U000e0041"),
    ],
)  # fmt: skip
def test_what_cannot_be_seen_is_written_out(text: str, shown: str) -> None:
    assert printable(text) == shown
    assert printable(shown) == shown


@pytest.mark.parametrize(
    ("text", "most", "expected"),
    [
        ("abcdef", 6, "abcdef"),
        ("abcdefg", 6, "abc…fg"),
        ("abcdefgh", 7, "abc…fgh"),
        ("abcdefgh", 3, "a…h"),
    ],
)
def test_long_names_keep_both_ends(text: str, most: int, expected: str) -> None:
    assert short(text, most) == expected
    assert len(expected) <= most


@pytest.mark.parametrize("name", ["=1+1", " +1", "-1", "@1", "＝1"])
def test_no_cell_is_a_formula(name: str) -> None:
    text = as_csv([{"name": name, "n": -1.5, "count": -2, "none": None}])
    [row] = csv.DictReader(StringIO(text))
    assert row == {"name": f"'{name}", "n": "-1.5000", "count": "-2", "none": ""}


def test_rows_read_back() -> None:
    rows = [{"a": 'say "hi", you', "b": 1.23456}, {"a": "x;y\tz", "b": 2.0}]
    result = list(csv.DictReader(StringIO(as_csv(rows))))
    assert result == [{"a": 'say "hi", you', "b": "1.2346"}, {"a": r"x;y\x09z", "b": "2.0000"}]
    assert as_csv([]) == "\n"
