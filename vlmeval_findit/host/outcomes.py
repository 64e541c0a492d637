"""What became of each run under the host, whose loop logs an error and goes on with status 0."""

from __future__ import annotations

import atexit
import logging
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from ..core.redaction import scrub


@dataclass(slots=True)
class Outcome:
    """One model over one dataset: ``problem`` says why it failed (None: it did not)."""

    model: str
    dataset: str
    problem: str | None = None
    failed_calls: int = 0

    @property
    def is_good(self) -> bool:
        return self.problem is None and not self.failed_calls

    def __str__(self) -> str:
        if self.problem is not None:
            return f"{self.model} on {self.dataset}: {self.problem}"
        return f"{self.model} on {self.dataset}: {self.failed_calls} calls failed"


@dataclass(slots=True)
class Outcomes:
    """The outcomes of this process, by model and dataset."""

    _found: dict[tuple[str, str], Outcome] = field(default_factory=dict)

    @contextmanager
    def of(self, model: str, dataset: str) -> Iterator[Outcome]:
        """Around a stage of a run: what it raises is noted, and raised; being stopped is not."""
        outcome = self._found.setdefault((model, dataset), Outcome(model, dataset))
        try:
            yield outcome
        except Exception as error:
            outcome.problem = str(error) or type(error).__name__
            raise

    def bad(self) -> list[Outcome]:
        return [outcome for outcome in self._found.values() if not outcome.is_good]

    def missing(self, expected: Iterable[tuple[str, str]]) -> list[str]:
        """Those of the (model, dataset) that were never begun."""
        return [f"{m} on {d}" for m, d in expected if (m, d) not in self._found]

    def clear(self) -> None:
        self._found.clear()


OUTCOMES = Outcomes()


def leave_with_a_status() -> None:
    """Let this process end with status 1 where a run failed: the host's own runner ends with 0.

    Only a process can do that whose program is the host's runner; others ask :data:`OUTCOMES`.
    """
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
    os._exit(1)
