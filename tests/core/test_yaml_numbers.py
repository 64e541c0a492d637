"""Numbers of YAML 1.2 are numbers, and what may be a name stays a text."""

from __future__ import annotations

import pytest

from vlmeval_findit.core import yaml_value

NUMBERS = {
    "1e-09": 1e-9,
    "1E+3": 1e3,
    "-2e-3": -2e-3,
    "+4e-1": 0.4,
    "1.5e3": 1500.0,
    "1.e3": 1000.0,
    ".5e2": 50.0,
    "1.0e-09": 1e-9,
    "0.1": 0.1,
    "3": 3,
}
TEXTS = ("1e3", "12e4567", "1e-", "e-9", "1e-9x", "v1.5e3", "1.2.3e4", "checkpoint-1e-5", "-e-3")


@pytest.mark.parametrize("text", NUMBERS)
def test_numbers_are_read(text: str) -> None:
    value = yaml_value(f"a: {text}")["a"]
    assert value == NUMBERS[text]
    assert type(value) is type(NUMBERS[text])


@pytest.mark.parametrize("text", [*TEXTS, *(f"'{number}'" for number in NUMBERS)])
def test_names_stay_texts(text: str) -> None:
    assert yaml_value(f"a: {text}") == {"a": text.strip("'")}
