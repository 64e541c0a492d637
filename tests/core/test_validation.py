"""What each type of a field takes, and how a refusal leads to its place."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import pytest
from paths import ROOT

from vlmeval_findit.core import (
    LARGEST_NUMBER,
    Checked,
    Config,
    Count,
    Finite,
    JsonObject,
    MisplacedError,
    Name,
    PlainNumber,
    Text,
    Values,
    Whole,
    YesNo,
    keys_of,
    refuse_duplicates,
    validate,
)

VALUES: tuple[Any, ...] = (
    *(None, True, 0, 1, -1, 7.5, float("nan"), 10**400),
    *("", "a", "7", [], ["a"], {}, {"a": 1}, {"a": float("nan")}),
)
TAKEN: Mapping[Any, tuple[Any, ...]] = {
    Text: ("", "a", "7"),
    Name: ("a", "7"),
    YesNo: (True,),
    Whole: (0, 1, -1, 10**400),
    Count: (1, 10**400),
    Finite: (0, 1, -1, 7.5),
    PlainNumber: (0, 1, -1, 7.5),
    JsonObject: ({}, {"a": 1}),
    Values: ({}, {"a": 1}, {"a": float("nan")}),
    tuple[Text, ...]: ([], ["a"]),
    Mapping[str, Whole]: ({}, {"a": 1}),
    Text | None: (None, "", "a", "7"),
}


@pytest.mark.parametrize("kind", TAKEN, ids=range(len(TAKEN)))
def test_a_type_takes_its_values_and_no_others(kind: Any) -> None:
    taken = []
    for value in VALUES:
        try:
            validate(kind, value)
        except MisplacedError:
            continue
        taken.append(value)
    assert list(map(repr, taken)) == list(map(repr, TAKEN[kind]))


def test_numbers_stay_as_they_were_written() -> None:
    assert repr(validate(Mapping[str, PlainNumber], {"a": 3, "b": 3.0})) == "{'a': 3, 'b': 3.0}"
    assert validate(PlainNumber, LARGEST_NUMBER) == LARGEST_NUMBER
    with pytest.raises(MisplacedError):
        validate(PlainNumber, LARGEST_NUMBER * 10)


@dataclass(frozen=True, slots=True)
class _Inner:
    size: Whole
    names: tuple[Text, ...] = ()


@dataclass(frozen=True, slots=True)
class _Outer:
    inner: tuple[_Inner, ...] = ()
    extra: Annotated[JsonObject, keys_of(_Inner)] = field(default_factory=lambda: {"size": 1})


@dataclass(frozen=True, slots=True)
class _Settings(Config):
    width: Annotated[int, Checked(abs)] = 1
    inner: _Inner | None = None


@pytest.mark.parametrize(
    ("kind", "value", "why"),
    [
        (_Outer, {"inner": [{"size": 1}, {"size": "2"}]},
         "file.inner.1.size: '2' should be a whole number"),
        (_Outer, {"inner": [{}]}, "file.inner.0: size is missing"),
        (_Outer, {"inner": [{"size": 1, "names": "a"}]}, "file.inner.0.names: should be a list"),
        (_Outer, {"inner": [7]}, "file.inner.0: should be a mapping of names to values"),
        (_Outer, {"extra": {"size": True}}, "file.extra.size: True should be a whole number"),
        (_Outer, {"extra": {"size": 1, "a": [{"b": float("inf")}]}},
         "file.extra.a.0.b: inf should be a finite number"),
        (_Outer, {"extra": 7}, "file.extra: 7 should be a JSON object"),
        (_Outer, [], "file: should be a mapping of names to values"),
        (_Settings, {"widht": 3}, "file: unknown key 'widht': did you mean width?"),
        (_Settings, [], "file: should be a mapping with the keys width, inner"),
        (Mapping[Text, Whole], {7: 1}, "file: 7 should be a text"),
    ],
)  # fmt: skip
def test_a_refusal_leads_to_its_place(kind: Any, value: Any, why: str) -> None:
    with pytest.raises(MisplacedError) as refused:
        validate(kind, value)
    assert refused.value.below("file") == why


def test_keys_of_later_versions_are_passed_over() -> None:
    value = {"inner": [{"size": 1, "later": 2}], "later": 3, "extra": {"size": 1, "later": 2}}
    result = validate(_Outer, value)
    assert result == _Outer((_Inner(1),), {"size": 1, "later": 2})
    assert validate(_Settings, {"width": -3}) == _Settings(3)


def test_nesting_without_end_is_refused() -> None:
    value: Any = 1.0
    for _ in range(100_000):
        value = [value]
    with pytest.raises(MisplacedError, match="it is nested too deeply"):
        validate(JsonObject, {"a": value})


def test_names_are_spelled_as_users_do() -> None:
    with pytest.raises(MisplacedError, match=r"^--size: 'x' should be a whole number$"):
        validate(_Inner, {"size": "x"}, lambda name: f"--{name}")


def test_the_first_of_equal_values_is_named() -> None:
    with pytest.raises(MisplacedError, match=r"^duplicate b$") as refused:
        refuse_duplicates(["a", "b", "c", "b"], "models")
    assert refused.value.at == ("models", 1)
    refuse_duplicates([])


def test_a_refused_flag_does_not_import_pydantic() -> None:
    code = (
        "import sys\n"
        "from vlmeval_findit.cli import main\n"
        "for command in ('sweep', 'score', 'run'):\n"
        "    status = main([command, '--nope'])\n"
        "    assert status == 2, (command, status)\n"
        "    assert 'pydantic' not in sys.modules, command\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
