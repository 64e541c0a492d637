"""Outcome of each run under the host, whose loop logs an error and ends with status 0."""

from __future__ import annotations

import atexit
import logging
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from ..benchmarks import benchmarks, parse, resembles_dataset_name
from ..core import EXIT_LIMIT_REACHED, EXIT_SOME_FAILED, counted, is_disk_full, scrub, suggestion


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
        return f"{run}: {counted(self.failed_calls, 'call')} failed; the first: {self.why_failed}"


ANY = "any model"
"""Stands for the model where a dataset cannot be built."""

_INVALID = "invalid_dataset"

_WITHOUT_ANSWERS: Mapping[str, str] = {
    "Incomplete infer result": "calls are missing or failed: run it again without --mode eval",
    "No infer result found": "there are no answers: run it without --mode eval",
}

_SKIPPED = {_INVALID: "VLMEvalKit has no dataset of that name", **_WITHOUT_ANSWERS}
"""Why VLMEvalKit's loop did not run or score a dataset, and the same in our words."""


@dataclass(frozen=True, slots=True)
class ExpectedRun:
    """A model over a dataset that VLMEvalKit's loop began, and its latest report."""

    mode: str | None = None  # all, infer or eval; None: not known
    status: str | None = None  # None: it only began
    why: str | None = None  # why it failed or was skipped
    is_error: bool = False  # it failed

    @property
    def failed(self) -> bool:
        """Whether a dataset of VLMEvalKit's was not run or not scored."""
        return self.is_error or self.why in _SKIPPED


@dataclass(slots=True)
class Outcomes:
    """The outcomes of this process, by model and dataset."""

    _outcomes: dict[tuple[str, str], Outcome] = field(default_factory=dict)
    _expected: dict[tuple[str, str], ExpectedRun] = field(default_factory=dict)
    models: set[str] = field(default_factory=set)  # Names of FindIt's models

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
        return (
            EXIT_LIMIT_REACHED
            if any(outcome.disk_full for outcome in bad)
            else EXIT_SOME_FAILED
            if bad
            else 0
        )

    def expect(self, model: str, dataset: str, mode: str | None) -> None:
        """Note that VLMEvalKit's loop begins a model over a dataset."""
        self._expected[model, dataset] = ExpectedRun(mode)

    def hear(self, model: str, dataset: str, report: ExpectedRun) -> None:
        """Note what VLMEvalKit's loop reports of a model over a dataset; a reason stays."""
        before = self._expected.get((model, dataset), ExpectedRun())
        if report.why is None:
            report = replace(report, why=before.why, is_error=before.is_error)
        self._expected[model, dataset] = report

    def missing(self, expected: Iterable[tuple[str, str]], *, scored: bool) -> list[str]:
        """Say which (model, dataset) were not run or, with ``scored``, not scored."""
        lines = (self._missing(*run, scored) for run in expected)
        return [line for line in lines if line is not None]

    def _missing(self, model: str, dataset: str, scored: bool) -> str | None:
        outcome = self._outcomes.get((model, dataset))
        report = self._expected.get((model, dataset))
        is_finished = report is None or not report.failed
        if resembles_dataset_name(dataset):
            is_finished = outcome is not None and (outcome.score is not None or not scored)
        reason = report.why if report is not None else None
        if is_finished or self._is_told(model, dataset, reason):
            return None
        is_run = outcome is not None or reason in _WITHOUT_ANSWERS
        what = "was not scored" if is_run else "was not run"
        why = f": {_in_our_words(reason, dataset)}" if reason is not None else ""
        return f"{model} on {dataset}: {what}{why}"

    def _is_told(self, model: str, dataset: str, reason: str | None) -> bool:
        """Return whether a bad outcome says the same, perhaps under another name."""
        names = ((model, dataset), (ANY, dataset))
        told = [self._outcomes[name] for name in names if name in self._outcomes]
        same = [each for each in self.bad() if each.problem is not None and each.problem == reason]
        return bool(same) or not all(each.is_good for each in told)

    def unfinished(self) -> list[str]:
        """Say what VLMEvalKit's loop began of FindIt's and did not finish."""
        lines = []
        for (model, dataset), report in self._expected.items():
            if (
                resembles_dataset_name(dataset)
                or model in self.models
                or "FindIt" in (report.why or "")
            ):
                scored = report.mode in ("all", "eval")
                lines += self.missing([(model, dataset)], scored=scored)
        return lines

    def clear(self) -> None:
        self._outcomes.clear()
        self._expected.clear()


def _in_our_words(reason: str, dataset: str) -> str:
    """Return a reason of VLMEvalKit's loop with what to do about it."""
    if reason == _INVALID and resembles_dataset_name(dataset):
        try:
            parse(dataset)
        except ValueError as error:
            return str(error)
    unsupported = re.match(r"Class (\w+) is not supported in `vlmeval\.dataset`", reason)
    if unsupported is not None:
        known = [
            each.host_class(each.parse(name))
            for each in benchmarks()
            for name in each.variant_names()
        ]
        return f"{reason}{suggestion(unsupported[1], known)}"
    return _SKIPPED.get(reason, reason)


def _host_classes() -> set[str]:
    """Return the names of FindIt's dataset classes under VLMEvalKit."""
    classes = set()
    for benchmark in benchmarks():
        classes |= {
            benchmark.host_class(benchmark.parse(name)) for name in benchmark.variant_names()
        }
    return classes


OUTCOMES = Outcomes()  # What became of each cell in this process's run under VLMEvalKit


def leave_with_a_status() -> None:
    """Let this process, the host's runner, end with a status if a run failed."""
    atexit.register(_leave)


def _leave() -> None:
    lines = [str(outcome) for outcome in OUTCOMES.bad()]
    if os.environ.get("RANK", "0") == "0":  # The others are not told what is skipped
        lines += OUTCOMES.unfinished()
    if not lines:
        return
    for line in lines:
        sys.stderr.write(f"FindIt: {scrub(line)}\n")
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(OUTCOMES.status or EXIT_SOME_FAILED)
