"""Values of a test, of which the fast run takes a few."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

_PARAMETER = type(pytest.param())


def few_fast(values: Iterable[Any], fast: int) -> list[Any]:
    """Return values as parameters: those after the first ``fast`` are of slow tests.

    A value is what ``pytest.mark.parametrize`` or ``pytest.fixture`` takes, a plain tuple if it
    gives several arguments. The first should be of all kinds.
    """
    return [_parameter(value, is_fast=at < fast) for at, value in enumerate(values)]


def every_nth_fast(values: Iterable[Any], step: int) -> list[Any]:
    """Return values as parameters: but for the first of each ``step``, they are of slow tests.

    For a list in which values of a kind stand together.
    """
    return [_parameter(value, is_fast=at % step == 0) for at, value in enumerate(values)]


def _parameter(value: Any, *, is_fast: bool) -> Any:
    marks = [] if is_fast else [pytest.mark.slow]
    if isinstance(value, _PARAMETER):
        return pytest.param(*value.values, marks=[*value.marks, *marks], id=value.id)
    each = value if type(value) is tuple else (value,)
    return pytest.param(*each, marks=marks)
