"""Case files: JSON lines, gzipped or not."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from vlmeval_findit.protocol import Reply

Case = Mapping[str, Any]
T = TypeVar("T")


class CaseError(ValueError):
    """A case that cannot be tried; the message names file and line."""


class Agreement(NamedTuple):
    """The number of cases that agree, of all, and how the others differ."""

    agreed: int
    total: int
    differences: list[str]
    least: float = 1.0  # the share that must agree
    grave: int = 0  # differences that no case may have
    summary: str = ""  # in place of "n/n cases agree"

    @property
    def holds(self) -> bool:
        return self.total > 0 and self.agreed >= self.least * self.total and not self.grave

    def __str__(self) -> str:
        return self.summary or f"{self.agreed}/{self.total} cases agree"


def each(path: Path, function: Callable[[Case], T]) -> Iterator[tuple[str, Case, T]]:
    """Yield file and line, the case, and the function's result.

    Raises:
        CaseError: a line is no case.
        OSError: the file cannot be read.
    """
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            if not line.strip():
                continue
            try:
                case = json.loads(line)
                result = function(case)
            except KeyError as error:
                raise CaseError(f"{path}, line {number}: {error} is missing") from None
            except (TypeError, AttributeError, IndexError, ValueError) as error:
                raise CaseError(f"{path}, line {number}: {error}") from None
            yield f"{path.name}, line {number}", case, result


def tried(path: Path, difference: Callable[[Case], str | None]) -> Agreement:
    """Try each case: ``difference`` returns how our result differs, or None."""
    total, differences = 0, []
    for where, case, why in each(path, difference):
        total += 1
        if why is not None:
            differences.append(f"{where}, case {case.get('case')}: {why}")
    return Agreement(total - len(differences), total, differences)


def unlike(actual: Case, expected: Case, tolerance: float = 0) -> str | None:
    """Return the first entry of ``expected`` that differs by more than the tolerance."""
    for name, value in expected.items():
        if name not in actual:
            return f"no {name} here, should be {value!r:.200}"
        if not _near(actual[name], value, tolerance):
            return f"{name} is {actual[name]!r:.200}, should be {value!r:.200}"
    return None


def reason_in_cases(reason: str | None, reply: Reply, unread: str) -> str | None:
    """Translate a reason into the words of the cases, to which a mere thought is a text."""
    if reason == "empty" and reply.text.strip():
        return unread
    words = {"failed call": "failed", "truncated while thinking": "truncated"}
    return words.get(reason, reason) if reason else None


def _near(actual: Any, other: Any, tolerance: float) -> bool:
    if isinstance(actual, list) and isinstance(other, list):
        pairs = zip(actual, other, strict=False)
        return len(actual) == len(other) and all(_near(*pair, tolerance) for pair in pairs)
    if isinstance(actual, int | float) and isinstance(other, int | float):
        return abs(actual - other) <= tolerance
    return bool(actual == other)
