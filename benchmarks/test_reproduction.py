"""How often the verdict on a setup is wrong, and which causes are named of simulated deployments.

    python -m pytest benchmarks/test_reproduction.py --benchmark-enable -s

prints the tables of benchmarks/README.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pytest
from reproductions import dataset_of, deployed, figure, query, setup
from simulated_deployments import PROFILES, Fault, Habit, Rng, convention, run

from vlmeval_findit.coords import AnsweredQuery, Convention
from vlmeval_findit.protocol import Reply, ReplyRecord
from vlmeval_findit.reproduction import (
    FIGURE_METRICS,
    Attempt,
    ConditionAgreement,
    ConditionSet,
    FigureJudgement,
    FigureVerdict,
    find_causes,
    judge_attempt,
)
from vlmeval_findit.statistics import ClusteredSums, estimate_metrics

REPEATS_DIFFER = 1.3
"""Points by which a published value differs from that of a right setup, at most."""

METRIC = FIGURE_METRICS["acc@0.5"].metric


@pytest.fixture(autouse=True)
def _only_to_measure(measures: bool) -> None:
    if not measures:
        pytest.skip("takes minutes: --benchmark-enable")


# --- the verdict ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pictures:
    """Pictures of a set: expressions of each on the average, and how far their hits agree."""

    name: str
    expressions: int
    correlation: float


SETS = (Pictures("7", 7, 0.2), Pictures("1", 1, 0.01))
DRAWS = 500
SETUPS = 10
DEPLOYMENTS = 10


def attempt_of(rng: Rng, share: float, queries: int, pictures: Pictures, value: float) -> Attempt:
    """Return an attempt of a model that hits a share of the expressions, for a published value."""
    counts: list[int] = []
    while sum(counts) < queries:
        counts.append(int(rng.integers(1, 2 * pictures.expressions)))
    sure = 1 / pictures.correlation - 1
    easy = rng.beta(share * sure, (1 - share) * sure, len(counts))
    place = np.repeat(np.arange(len(counts)), counts)
    hits = (rng.random(len(place)) < easy[place]).astype(float)
    names = tuple(f"{at:05d}" for at in range(len(counts)))
    sums = {"hits": hits, "asked": np.ones_like(hits)}
    estimate = estimate_metrics([METRIC], ClusteredSums(names, place, sums, {}))
    asked = setup(figure(value), dataset_of([query(0)]))
    return Attempt(asked, (), estimate, {}, failed=0, pictures=len(counts))


def judged(
    rng: Rng, rate: float, loss: float, queries: int, pictures: Pictures
) -> list[FigureJudgement]:
    """Judge many setups that lost some points; the published value differs as repeats do."""
    judgements = []
    for _ in range(DRAWS):
        published = min(100.0, rate + rng.uniform(-REPEATS_DIFFER, REPEATS_DIFFER))
        share = (rate - loss) / 100
        judgements.append(judge_attempt(attempt_of(rng, share, queries, pictures, published)))
    return judgements


def percent(judgements: Sequence[FigureJudgement], *verdicts: FigureVerdict) -> float:
    return 100 * sum(each.verdict in verdicts for each in judgements) / len(judgements)


def reach(judgement: FigureJudgement) -> float:
    assert judgement.interval is not None
    return (judgement.interval.high - judgement.interval.low) / 2


def test_right_setups_agree_and_lost_points_show() -> None:
    print("\n| a picture has | accuracy | asked | ± | wrong | cannot be told | ", end="")
    print("5 points lost: lower, agrees | 10 | 30 |\n|---|---|---|---|---|---|---|---|---|")
    for pictures in SETS:
        for rate in (60.0, 90.0, 97.0):
            for queries in (100, 500, 2000):
                rng = np.random.default_rng(queries)
                right = judged(rng, rate, 0.0, queries, pictures)
                wrong = percent(right, FigureVerdict.LOWER, FigureVerdict.HIGHER)
                open_ = percent(right, FigureVerdict.CANNOT_BE_TOLD)
                cells = [f"{np.mean([reach(each) for each in right]):.1f}"]
                cells += [f"{wrong:.1f} %", f"{open_:.0f} %"]
                for loss in (5.0, 10.0, 30.0):
                    lost = judged(rng, rate, loss, queries, pictures)
                    lower = percent(lost, FigureVerdict.LOWER)
                    agrees = percent(lost, FigureVerdict.AGREES)
                    cells.append(f"{lower:.0f} %, {agrees:.0f} %")
                    assert agrees <= 20
                row = [pictures.name, f"{rate:.0f} %", f"{queries:,}", *cells]
                print(f"| {' | '.join(row)} |", flush=True)
                assert wrong <= 5


# --- causes ---------------------------------------------------------------------------------------

GOOD = Habit(miou=0.9, wrong=0.06, extra=0.0, missed=0.0)
GRID = convention("grid1000/xyxy")
PIXELS = convention("pixels/xyxy")

# Right setups: models of 60 to 97 %
HABITS = (
    Habit(miou=0.9, wrong=0.02, extra=0.0, missed=0.0),
    GOOD,
    Habit(miou=0.7, wrong=0.1, extra=0.1, missed=0.0),
    Habit(miou=0.7, wrong=0.25, extra=0.0, missed=0.0),
    Habit(miou=0.5, wrong=0.1, extra=0.0, missed=0.0),
    Habit(miou=0.7, wrong=0.1, size=1.06, extra=0.0, missed=0.0),
)


def test_right_setups_are_not_blamed() -> None:
    """Even those that are lower by chance: their figure is set just above what agrees."""
    verdicts: Counter[str] = Counter()
    blamed: Counter[str] = Counter()
    blamed_if_lower: Counter[str] = Counter()
    profile = PROFILES["referring"]
    for number, habit in enumerate(HABITS):
        rng = np.random.default_rng(number)
        true = deployed(run(rng, profile, GRID, habit, 2000), figure(50.0)).value
        for queries in SETUPS * (100, 250, 500):
            published = true + rng.uniform(-REPEATS_DIFFER, REPEATS_DIFFER)
            tried = deployed(run(rng, profile, GRID, habit, queries), figure(min(100.0, published)))
            judgement = judge_attempt(tried)
            verdicts[judgement.verdict.value] += 1
            blamed.update(causes_of(tried, judgement))
            ends = judgement.difference_interval
            assert ends is not None
            tried = against(tried, min(100.0, judgement.published + ends.high + 0.1))
            blamed_if_lower.update(causes_of(tried, judge_attempt(tried)))
    print(f"\n{verdicts.total()} right setups: {dict(verdicts)}; blamed: {dict(blamed)}")
    print(f"the same against a figure just too high for them: blamed {dict(blamed_if_lower)}")
    assert not blamed
    assert not blamed_if_lower


def against(tried: Attempt, value: float) -> Attempt:
    """Return an attempt for another published value."""
    published = replace(tried.setup.figure, value=value)
    return replace(tried, setup=replace(tried.setup, figure=published))


def causes_of(tried: Attempt, judgement: FigureJudgement) -> list[str]:
    return [look.cause.name for look in find_causes(tried, judgement) if look.cause is not None]


@dataclass(frozen=True)
class Faulty:
    """A deployment with one fault."""

    name: str
    cause: str
    says: Callable[[Rng], Convention] | Convention = GRID
    change: Callable[[Reply], Reply] = lambda reply: reply
    fault: Fault | None = None
    engine: str = ""
    moved: bool = False


def every(number: int, change: Callable[[Reply], Reply]) -> Callable[[Reply], Reply]:
    return lambda reply: change(reply) if reply.index % number == 0 else reply


def failed(reply: Reply) -> Reply:
    return Reply(reply.index, "", ReplyRecord(call={"error": "HTTP 500"}))


def cut(reply: Reply) -> Reply:
    return Reply(reply.index, reply.text[:-6], ReplyRecord(finish_reason="length"))


def in_prose(reply: Reply) -> Reply:
    return Reply(reply.index, f"Here it is: {reply.text}")


FAULTS = (
    Faulty("pixels for thousandths", "coordinates", PIXELS),
    Faulty("y before x", "coordinates", convention("grid1000/yxyx")),
    Faulty("width and height for the second corner", "coordinates", convention("grid1000/xywh")),
    Faulty("padded to a square", "coordinates", convention("letterbox1000/xyxy")),
    Faulty("pixels after smart_resize", "coordinates", convention("smart_200704_1605632/xyxy")),
    Faulty("pixels of the longer side", "coordinates", convention("longer1000/xyxy")),
    Faulty("scaled and moved", "coordinates", fault=Fault((0.8, 0.9), (0.1, 0.0))),
    Faulty(
        "pixels in a third of the replies",
        "coordinates",
        lambda rng: PIXELS if rng.random() < 1 / 3 else GRID,
    ),
    Faulty("a fifth of the calls fail", "failed calls", change=every(5, failed)),
    Faulty("a fifth is cut off", "truncation", change=every(5, cut)),
    Faulty("words around a fifth", "format", change=every(5, in_prose)),
    Faulty("positions lost, version known", "engine", engine="vllm 0.11.2", moved=True),
    Faulty("positions lost", "engine", moved=True),
)


def moved(rng: Rng, each: AnsweredQuery) -> AnsweredQuery:
    """Move the box anywhere in the picture."""
    numbers = []
    for left, top, right, bottom in each.numbers:
        x = round(rng.random() * (1000 - right + left))
        y = round(rng.random() * (1000 - bottom + top))
        numbers.append((x, y, x + right - left, y + bottom - top))
    return each._replace(numbers=numbers)


def test_faults_are_named() -> None:
    print("\n| fault | 100 expressions: lower, named | 300 | sure | its figure is off by |")
    print("|---|---|---|---|---|")
    for faulty in FAULTS:
        cells = []
        for queries in (100, 300):
            looks = [first_cause(faulty, seed, queries) for seed in range(DEPLOYMENTS)]
            lower = [look for look in looks if look is not None]
            named = [look for look in lower if look.name == faulty.cause]
            share = 100 * len(named) / max(1, len(lower))
            cells.append(f"{100 * len(lower) / DEPLOYMENTS:.0f} %, {share:.0f} %")
            assert share >= 90, faulty.name
        cells.append(f"{100 * np.mean([look.sure for look in named]):.0f} %")
        cells.append(f"{np.mean([abs(look.off) for look in named]):.1f}")
        print(f"| {faulty.name} | {' | '.join(cells)} |", flush=True)


class Named(NamedTuple):
    """The first cause that is named, "" if none is."""

    name: str
    sure: bool = False
    off: float = 0.0  # The value that it explains minus that of the same replies without the fault


def first_cause(faulty: Faulty, seed: int, queries: int) -> Named | None:
    """Return the first cause of a deployment; None if it is not lower than its figure."""
    conditions = [ConditionSet("engine", "vllm", faulty.engine, ConditionAgreement.YOURS)]
    rng = np.random.default_rng(seed)
    profile = PROFILES["referring"]
    answers = run(rng, profile, faulty.says, GOOD, queries, faulty.fault)
    if faulty.moved:
        answers = [moved(rng, each) for each in answers]
    tried = deployed(answers, figure(92.0), faulty.change, conditions=conditions)
    judgement = judge_attempt(tried)
    if judgement.verdict is not FigureVerdict.LOWER:
        return None
    right = run(np.random.default_rng(seed), profile, GRID, GOOD, queries)
    value = deployed(right, figure(92.0)).value
    for look in find_causes(tried, judgement):
        if look.cause is not None:
            explains = look.cause.explains
            off = 0.0 if explains is None else explains - value
            return Named(look.cause.name, look.cause.sure, off)
    return Named("")
