"""What is said of keys and words is remembered, as the replies of a run have the same few."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, update_wrapper
from typing import Concatenate, Generic, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_MOST = 1000  # Texts
_LONGEST = 40  # Characters; nothing of a longer text stays in memory


class Remembered(Generic[P, T]):
    """A pure function of a text, whose results for short texts are remembered."""

    def __init__(self, function: Callable[Concatenate[str, P], T]) -> None:
        self._function = function
        self._known = lru_cache(maxsize=_MOST)(function)
        update_wrapper(self, function)

    def __call__(self, text: str, *more: P.args, **named: P.kwargs) -> T:
        if len(text) > _LONGEST:
            return self._function(text, *more, **named)
        return self._known(text, *more, **named)  # type: ignore[arg-type]
