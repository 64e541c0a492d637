"""What a reproduction consists of: records, in the order in which they are made.

A figure is chosen, a setup asks as it was published, an attempt measures it on a sample of
pictures, a judgement compares both values, and causes explain what is missing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from ..analysis import UnrankedValues
from ..data import PublishedFigure
from ..models import ModelEntry, RunningProgram
from ..protocol import DatasetVariant, PictureSample, Predictions
from ..statistics import Estimate, Interval


class ConditionAgreement(Enum):
    """How a condition of a setup agrees with the published one."""

    AS_PUBLISHED = "as published"
    NOT_TOLD = "not told"  # The figure's authors do not say it
    CANNOT_BE_SET = "cannot be set"
    YOURS = "yours"  # The user states another one


@dataclass(frozen=True, slots=True)
class ConditionSet:
    """One condition of a figure, and what a setup makes of it."""

    name: str  # A field of :class:`.Conditions`
    published: str  # In words; "" if not told
    here: str  # In words; "" if not known
    agreement: ConditionAgreement
    advice: str = ""  # Why it cannot be set, and what to type


@dataclass(frozen=True, slots=True)
class Setup:
    """How a model is asked to reproduce a figure."""

    figure: PublishedFigure
    entry: ModelEntry  # With the space and the settings in force
    variants: tuple[DatasetVariant, ...]  # One for each dataset of the figure
    prompts: str  # A row of the family prompts; "" for the benchmark's words
    conditions: tuple[ConditionSet, ...]
    sample: PictureSample  # Of each dataset
    program: RunningProgram | None = None  # What a server says that it is; None: nothing

    def agreement(self, name: str) -> ConditionAgreement:
        """Return how a condition agrees."""
        return next(each.agreement for each in self.conditions if each.name == name)


@dataclass(frozen=True, slots=True)
class Attempt:
    """The published metric, measured in a setup."""

    setup: Setup
    predictions: tuple[Predictions, ...]  # By variant
    estimate: Estimate  # Of the published metric alone; a mean over the figure's datasets
    # By ``board_dataset`` of the variant and row, 0 to 1; a failed call is a miss
    hits: Mapping[str, Mapping[int, float]]
    failed: int
    pictures: int
    # How much each row counts, where it is not 1: of F1 its predicted boxes and its objects
    weights: Mapping[str, Mapping[int, float]] = field(default_factory=dict)
    over_orders: UnrankedValues | None = None  # Of mAP: its value over orders of equal boxes

    @property
    def value(self) -> float:
        """The metric in percent, with failed calls as misses."""
        (metric,) = self.estimate.metrics
        value = self.estimate.value(metric.name)
        assert value is not None
        return value

    @property
    def queries(self) -> int:
        return sum(len(rows) for rows in self.hits.values())

    @property
    def most_queries(self) -> int:
        """The most queries that a dataset of the figure has: as many can be asked of each."""
        return max(len(each.dataset.queries) for each in self.predictions)

    @property
    def is_whole(self) -> bool:
        """Whether all queries of all datasets were asked."""
        return self.queries == sum(len(each.dataset.queries) for each in self.predictions)


class FigureVerdict(Enum):
    """What an attempt says of a figure."""

    AGREES = "agrees"
    LOWER = "lower"
    HIGHER = "higher"
    CANNOT_BE_TOLD = "cannot be told"


@dataclass(frozen=True, slots=True)
class FigureJudgement:
    """An attempt compared with the published value; values in percent."""

    verdict: FigureVerdict
    published: float
    measured: float
    interval: Interval | None  # 95 % over pictures; None: too few
    tolerance: float  # By what repeats in equal conditions differ, in points
    difference: float  # Measured minus published
    difference_interval: Interval | None  # With the tolerance
    pictures: int
    enough: int | None = None  # Pictures that would do, where it cannot be told


@dataclass(frozen=True, slots=True)
class Cause:
    """A reason why an attempt is lower than the figure."""

    name: str  # A row of the table of causes
    finding: str  # One sentence
    explains: float | None  # The value in percent without this fault; None: cannot be computed
    advice: str  # What to type or change
    # Stated outright, or the value without it agrees with the figure; else it may be, or is a part
    sure: bool = True
    part: bool = False  # Measured: the value without it is nearer, and more is missing


@dataclass(frozen=True, slots=True)
class CauseLook:
    """One look for a cause: what was looked at, also where nothing was wrong."""

    name: str
    result: str  # In words
    cause: Cause | None = None


@dataclass(frozen=True, slots=True)
class Reproduction:
    """A whole reproduction."""

    attempt: Attempt
    judgement: FigureJudgement
    checked: Sequence[CauseLook]  # In order of cost; stops where what is missing is explained

    @property
    def causes(self) -> tuple[Cause, ...]:
        """What was noticed, the cheapest first."""
        return tuple(each.cause for each in self.checked if each.cause is not None)
