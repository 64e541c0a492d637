"""What causes are looked for in: an attempt below its figure, read once, and what is missing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

from ..benchmarks.findit import ScoredReply
from ..boxes import MatchRule
from ..coords import (
    Convention,
    Diagnosis,
    NotBoxesError,
    PointDiagnosis,
    RunArrays,
    RunReplies,
    diagnose,
    diagnose_points,
    replies_of_run,
    run_arrays,
)
from ..data import PublishedFigure
from ..models import ModelRow, find_model
from ..statistics import Interval
from .figure_metric import ReadReplies, figure_value, read_in, read_predictions, row_shares
from .reproduction_records import Attempt, Cause, ConditionAgreement, ConditionSet, FigureJudgement

# A fault is a cause if the figure without it is nearer by this share of what is missing.
_MATTERS = 0.25
# Points that lost replies cost where nothing else is wrong; next to a worse fault they gain less.
_COSTS = 5.0
_LEAST_GAIN = 0.5  # Points; what gains less explains nothing


@dataclass(frozen=True)
class Evidence:
    """An attempt that is lower than its figure."""

    attempt: Attempt
    judgement: FigureJudgement

    @property
    def figure(self) -> PublishedFigure:
        return self.attempt.setup.figure

    @property
    def missing(self) -> float:
        """What is missing, in points."""
        return self.judgement.published - self.judgement.measured

    def gain(self, value: float | None) -> float:
        """Return by how many points a value is nearer than the measured one; None gains nothing."""
        return 0.0 if value is None else value - self.judgement.measured

    def matters(self, value: float | None, share: float = _MATTERS) -> bool:
        """Return whether a value without a fault explains a good part of what is missing."""
        return self.gain(value) >= share * self.missing

    def costs_much(self, rows: int) -> bool:
        """Return whether so many rows that are lost would cost a good part of the figure alone."""
        return self.judgement.published * rows / self.attempt.queries >= _COSTS

    def cause(
        self,
        name: str,
        finding: str,
        value: float | None,
        advice: str,
        *,
        stated: bool = False,
        may_be: bool = False,
        of_rest: bool = False,
    ) -> Cause:
        """Make a cause, as sure as its value is.

        Args:
            name: a row of the table of causes.
            finding: one sentence.
            value: the figure in percent without this fault; None: it cannot be computed.
            advice: what to type or change.
            stated: replies or the server state the fault outright. It is then sure, unless the
                value without it is no nearer.
            may_be: the value is the best that can be hoped for, and proves nothing.
            of_rest: the value is that of the other replies. One that is clearly higher than the
                figure is no proof: misses were left out, and the published model had some, too.
        """
        gains = self.gain(value) >= _LEAST_GAIN
        reaches = self.closes(self.gain(value))
        is_too_high = of_rest and reaches and not self.agrees(self.gain(value))
        agrees = reaches and gains and not may_be and not is_too_high
        is_stated = stated and (value is None or self.matters(value))
        return Cause(
            name=name,
            finding=finding,
            explains=value if gains else None,
            advice=advice,
            sure=agrees or is_stated,
            part=gains and not reaches and not may_be,
        )

    def closes(self, gain: float) -> bool:
        """Return whether so many points more would agree with the figure, or exceed it."""
        return self._difference.high + gain >= 0

    def agrees(self, gain: float) -> bool:
        """Return whether so many points more would agree with the figure, and not exceed it."""
        # At the ends of the scale an interval has one side only.
        difference = self.judgement.difference
        reach = max(self._difference.high - difference, difference - self._difference.low)
        return self.closes(gain) and difference + gain <= reach

    @property
    def _difference(self) -> Interval:
        interval = self.judgement.difference_interval
        assert interval is not None, "what is lower has an interval"
        return interval

    def condition(self, name: str) -> ConditionSet | None:
        """Return a condition of the setup; None if the figure has none of the name."""
        conditions = self.attempt.setup.conditions
        return next((each for each in conditions if each.name == name), None)

    def differs(self, name: str) -> bool:
        """Return whether the user states another condition than the published one."""
        condition = self.condition(name)
        return condition is not None and condition.agreement is ConditionAgreement.YOURS

    @property
    def typed_words(self) -> str:
        """The options by which the user asks in other words than published."""
        entry = self.attempt.setup.entry
        given = {
            "--prompt-template": entry.prompt_template is not None,
            "--system": entry.system is not None,
            "--format": self.differs("format"),
        }
        options = [name for name, is_given in given.items() if is_given]
        if self.differs("prompt") and entry.prompt_template is None and entry.system is None:
            options.insert(0, "--prompts (and FINDIT_PROMPTS)")
        return " and ".join(options)

    @property
    def row(self) -> ModelRow | None:
        """The row of the model table; None: not known."""
        entry = self.attempt.setup.entry
        return find_model(entry.like or entry.name)

    # --- replies --------------------------------------------------------------------------------

    @cached_property
    def replies(self) -> Sequence[ReadReplies]:
        """The replies by dataset, as they were measured."""
        return [read_predictions(each) for each in self.attempt.predictions]

    @property
    def scored(self) -> Iterator[ScoredReply]:
        """Yield the replies to all datasets."""
        return chain.from_iterable(each.scored for each in self.replies)

    @cached_property
    def shares(self) -> Sequence[float]:
        """The metric of each reply of :attr:`scored`, 0 to 1."""
        shares = []
        for each in self.replies:
            rows = row_shares(self.figure, each)
            shares += [rows[scored.query.index].share for scored in each.scored]
        return shares

    def without(self, is_left_out: Callable[[ScoredReply], bool]) -> float | None:
        """Return the figure's metric over the other replies; None if a dataset has none."""
        return self.value_of(
            [
                replace(each, scored=[one for one in each.scored if not is_left_out(one)])
                for each in self.replies
            ]
        )

    def count_of_all(self, number: int) -> str:
        return f"{number:,} of {self.attempt.queries:,}"

    @property
    def are_points(self) -> bool:
        """Return whether answers are points."""
        return next(self.scored).match_rule is MatchRule.POINT_IN_OBJECT

    def value_of(self, replies: Sequence[ReadReplies]) -> float | None:
        """Return the figure's metric in percent, of other readings or of some of the replies."""
        if not all(each.scored for each in replies):
            return None
        return figure_value(self.figure, replies)

    # --- coordinates ----------------------------------------------------------------------------

    @cached_property
    def runs(self) -> Sequence[RunReplies]:
        """The replies as numbers, by dataset.

        Raises:
            NotBoxesError: the replies are in several conventions.
        """
        runs = [
            replies_of_run(each.model, each.dataset, each.replies, each.settings, each.identity)
            for each in self.attempt.predictions
        ]
        names = {run.declared.name for run in runs}
        if len(names) > 1:
            raise NotBoxesError(f"the datasets are read in {len(names)} conventions")
        return runs

    @cached_property
    def diagnosis(self) -> Diagnosis | PointDiagnosis:
        """Which convention the replies follow; raises as :attr:`runs`."""
        declared = self.runs[0].declared
        if self.runs[0].are_points:
            return diagnose_points(self.arrays, declared)
        return diagnose(self.arrays, declared)

    @cached_property
    def arrays(self) -> RunArrays:
        """The replies as arrays; raises as :attr:`runs`."""
        return run_arrays(list(chain.from_iterable(run.queries for run in self.runs)))

    def replies_in(self, convention: Convention) -> Sequence[ReadReplies]:
        """Return the same replies, read in another convention."""
        return [read_in(each, convention) for each in self.attempt.predictions]


def capitalised(text: str) -> str:
    """Begin a text with a capital.

    >>> capitalised("install vllm 0.8.2 or later")
    'Install vllm 0.8.2 or later'
    """
    return f"{text[0].upper()}{text[1:]}"
