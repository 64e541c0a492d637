"""Case files: does a scorer agree with the one that published figures were made with?

A benchmark that has cases has a module ``conformance`` with ``PROTOCOLS``: by the name of each
protocol the function that tries a file of its cases.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple


class CaseError(ValueError):
    """A case that cannot be tried; the message names file and line."""


class Agreement(NamedTuple):
    """How many cases of a file agree, how many there are, and how each of the others differs.

    ``least`` is the share that must agree, ``grave`` how many differ as none may.  ``said`` is how
    the command says it, where a protocol has words of its own.
    """

    agreed: int
    total: int
    differences: list[str]
    least: float = 1.0
    grave: int = 0
    said: str = ""

    @property
    def holds(self) -> bool:
        """Whether enough agree; of no cases none do."""
        return self.total > 0 and self.agreed >= self.least * self.total and not self.grave

    def __str__(self) -> str:
        return self.said or f"{self.agreed}/{self.total} cases agree"


Try = Callable[[Path, Path | None], Agreement]
"""From a file of cases, and the folder of annotations that they name (None: not given).

Raises :class:`CaseError`, or OSError where a file cannot be read.
"""

Protocols = Mapping[str, Try]


def lines_of(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The cases of a file (JSON lines, gzipped or not) with the numbers of their lines.

    Raises:
        CaseError: a line is no object of JSON.
    """
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            if not line.strip():
                continue
            try:
                case = json.loads(line)
            except ValueError as error:
                raise CaseError(f"{path}, line {number}: {error}") from None
            if not isinstance(case, dict):
                raise CaseError(f"{path}, line {number}: is no object")
            yield number, case


def tried(path: Path, difference: Callable[[Mapping[str, Any]], str | None]) -> Agreement:
    """Try the cases of a file one by one.

    Args:
        path: the file.
        difference: how ours differs from what a case says; None where it does not.

    Raises:
        CaseError: a line is no case.
        OSError: the file cannot be read.
    """
    total, found = 0, []
    for number, case in lines_of(path):
        total += 1
        try:
            why = difference(case)
        except KeyError as error:
            raise CaseError(f"{path}, line {number}: {error} is missing") from None
        except (TypeError, AttributeError, IndexError, ValueError) as error:
            raise CaseError(f"{path}, line {number}: {error}") from None
        if why is not None:
            found.append(f"{path.name}, line {number}, case {case.get('case')}: {why}")
    return Agreement(total - len(found), total, found)
