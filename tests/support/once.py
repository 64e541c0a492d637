"""What costs time and depends on its arguments alone is worked out once a session of tests."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from importlib import import_module
from typing import Any

import pytest


def once_a_session(module: str, function: str, key: Callable[..., Hashable]) -> Any:
    """Return a fixture for every test, in which a function works once for equal arguments.

    Args:
        module: where the function is looked up by those who call it.
        function: its name there; it changes nothing, and nobody changes what it returns.
        key: what decides its result, of its arguments.
    """

    @pytest.fixture(scope="session", autouse=True)
    def once() -> Iterator[None]:
        place = import_module(module)
        work = getattr(place, function)
        known: dict[Hashable, Any] = {}

        def remembered(*given: Any) -> Any:
            asked = key(*given)
            if asked not in known:
                known[asked] = work(*given)
            return known[asked]

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(place, function, remembered)
            yield

    return once
