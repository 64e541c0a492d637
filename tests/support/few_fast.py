"""Values of a test, of which the fast run takes a few."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def few_fast(values: Iterable[Any], fast: int) -> list[Any]:
    """Return values as parameters: those after the first ``fast`` are of slow tests.

    A value is what ``pytest.mark.parametrize`` or ``pytest.fixture`` takes, a tuple if it gives
    several arguments. The first should be of all kinds.
    """
    parameters = []
    for at, value in enumerate(values):
        marks = [pytest.mark.slow] if at >= fast else []
        each = value if isinstance(value, tuple) else (value,)
        parameters.append(pytest.param(*each, marks=marks))
    return parameters
