"""Outcome of each run under the host, whose loop logs an error and ends with status 0."""

from __future__ import annotations

import atexit
import logging
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from ..core.command import NO_MORE, SOME_FAILED
from ..core.files import is_disk_full
from ..core.redaction import scrub


@dataclass(slots=True)
class Outcome:
    """One model over one dataset."""

    model: str
    dataset: str
    problem: str | None = None  # why the run failed
    failed_calls: int = 0
    why_failed: str | None = None  # reason of the first failed call
    score: Mapping[str, Any] | None = None  # row of the score file
    disk_full: bool = False  # is the problem

    @property
    def is_good(self) -> bool:
        return self.problem is None and not self.failed_calls

    def __str__(self) -> str:
        run = f"{self.model} on {self.dataset}"
        if self.problem is not None:
            return f"{run}: {self.problem}"
        return f"{run}: {self.failed_calls} calls failed; the first: {self.why_failed}"


@dataclass(slots=True)
class Outcomes:
    """The outcomes of this process, by model and dataset."""

    _outcomes: dict[tuple[str, str], Outcome] = field(default_factory=dict)

    @contextmanager
    def of(self, model: str, dataset: str) -> Iterator[Outcome]:
        """Record the exception of a stage of a run and raise it."""
        outcome = self._outcomes.setdefault((model, dataset), Outcome(model, dataset))
        try:
            yield outcome
        except Exception as error:
            outcome.problem = str(error) or type(error).__name__
            outcome.disk_full = is_disk_full(error)
            raise

    def bad(self) -> list[Outcome]:
        return [outcome for outcome in self._outcomes.values() if not outcome.is_good]

    def scores(self) -> list[Mapping[str, Any]]:
        """Return the rows of the runs that were scored, as score files have them."""
        return [outcome.score for outcome in self._outcomes.values() if outcome.score is not None]

    @property
    def status(self) -> int:
        """Return the exit status of a process with these outcomes."""
        bad = self.bad()
        return NO_MORE if any(outcome.disk_full for outcome in bad) else SOME_FAILED if bad else 0

    def missing(self, expected: Iterable[tuple[str, str]], *, scored: bool) -> list[str]:
        """Say which (model, dataset) were not run or, with ``scored``, not scored."""
        lines = []
        for model, dataset in expected:
            outcome = self._outcomes.get((model, dataset))
            if outcome is None:
                lines.append(f"{model} on {dataset}: was not run")
            elif scored and outcome.problem is None and outcome.score is None:
                lines.append(f"{model} on {dataset}: was not scored")
        return lines

    def clear(self) -> None:
        self._outcomes.clear()


OUTCOMES = Outcomes()


def leave_with_a_status() -> None:
    """Let this process, the host's runner, end with a status if a run failed."""
    atexit.register(_leave)


def _leave() -> None:
    bad = OUTCOMES.bad()
    if not bad:
        return
    for outcome in bad:
        sys.stderr.write(f"FindIt: {scrub(str(outcome))}\n")
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(OUTCOMES.status)
