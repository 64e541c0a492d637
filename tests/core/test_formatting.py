"""Text from outside, as it is shown."""

from __future__ import annotations

import csv
import re
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmeval_findit.core import as_csv, printable, shorten, shorten_names


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("שלום 模型 🦄 é", "שלום 模型 🦄 é"),
        ("no\u00a0break", "no\u00a0break"),
        ("\u06cc\u200c\u062e", "\u06cc\u200c\u062e"),
        ("\U0001f469\u200d\U0001f680", "\U0001f469\u200d\U0001f680"),
        ("a\nb\r\x00\x7f\x85", r"a\x0ab\x0d\x00\x7f\x85"),
        ("\u202eab\u2066\u200f\ufeff\u2028", r"\u202eab\u2066\u200f\ufeff\u2028"),
        ("\ud800\udfff", r"\ud800\udfff"),
        ("\U000e0041", r"\U000e0041"),
    ],
)
def test_what_cannot_be_seen_is_written_out(text: str, shown: str) -> None:
    assert printable(text) == shown
    assert printable(shown) == shown


def test_long_names_keep_both_ends() -> None:
    assert [shorten("abcdefgh", most) for most in (8, 7, 6, 3)] == [
        "abcdefgh", "abc…fgh", "abc…gh", "a…h",
    ]  # fmt: skip


def test_csv() -> None:
    names = ["=1+1", " +1", "-1", "@1", "＝1"]  # no cell is a formula
    rows = [{"name": name, "n": -1.5, "count": -2, "none": None} for name in names]
    expected = [{"name": f"'{n}", "n": "-1.5000", "count": "-2", "none": ""} for n in names]
    assert list(csv.DictReader(StringIO(as_csv(rows)))) == expected
    text = as_csv([{"a": 'say "hi", you', "b": 1.23456}, {"a": "x;y\tz", "b": 2.0}])
    assert list(csv.DictReader(StringIO(text))) == [
        {"a": 'say "hi", you', "b": "1.2346"},
        {"a": r"x;y\x09z", "b": "2.0000"},
    ]
    assert as_csv([]) == "\n"


def test_small_amounts_keep_their_digits_in_csv() -> None:
    numbers = [1.38123e-7, -0.05234, 0.1, 0.0]
    text = as_csv([{"n": number} for number in numbers])
    assert text.split() == ["n", "1.381e-07", "-0.05234", "0.1000", "0.0000"]


@given(
    st.sets(st.text("ab-_1", min_size=1, max_size=60), min_size=1, max_size=12), st.integers(8, 40)
)
def test_shortened_names_stay_different(names: set[str], most: int) -> None:
    short = shorten_names(names, most)
    assert {*short} == names
    assert len({*short.values()}) == len(names)
    assert all(len(text) <= most for text in short.values())
    assert all(short[name] == name for name in names if len(name) <= most)


def test_names_of_two_groups_show_both_differences() -> None:
    """Each rate has its names alike, and so has each step."""
    names = [
        f"Qwen3-VL-8B-Instruct-sft-refcoco-lr{rate}e5-step{step}000-merged"
        for rate in (1, 2)
        for step in (1, 2)
    ]
    shown = shorten_names(names, 24).values()
    assert [text.split("…")[1] for text in shown] == [
        "lr1e5-step1000", "lr1e5-step2000", "lr2e5-step1000", "lr2e5-step2000"
    ]  # fmt: skip


@given(
    st.lists(st.integers(1, 99_999), min_size=1, max_size=12, unique=True),
    st.sampled_from(["", "-merged", "_f8", "-seed2024"]),
    st.integers(22, 40),
)
def test_numbers_of_shortened_names_are_whole(steps: list[int], end: str, most: int) -> None:
    """Of a step of 1000 no "1" is left, which would be another step."""
    names = [f"Qwen3-VL-235B-Instruct-sft-refcoco-step{step}{end}" for step in steps]
    for name, text in shorten_names(names, most).items():
        assert set(re.findall(r"\d+", text)) <= set(re.findall(r"\d+", name))
        assert text.endswith("…") == (name[-1] != text[-1])


@pytest.mark.parametrize("most", [16, 20, 26, 34, 40])
@pytest.mark.parametrize("place", ["begin", "middle", "end", "two places", "far apart"])
def test_names_that_differ_anywhere_show_the_difference(place: str, most: int) -> None:
    long = "Qwen3-VL-8B-Instruct-sft-refcoco"
    names = {
        "begin": [f"{letter}-{long}-merged" for letter in "abc"],
        "middle": [f"{long}-step{step}-{long}" for step in (1, 2, 3)],
        "end": [f"{long}-{long}-{step}" for step in (1000, 2000, 3000)],
        "two places": [f"{long}-{a}-step-{b}-{long}" for a in "xy" for b in "12"],
        "far apart": [f"{long}-{a}-{long}-{b}-{long}" for a in "xy" for b in "12"],
    }[place]
    short = shorten_names(names, most)
    assert len({*short.values()}) == len(names)
    for name, text in short.items():
        assert len(text) <= most
        # A number stands at the end only where there is no room for what differs.
        assert (text[-2:] == name[-2:]) == (place != "far apart")
