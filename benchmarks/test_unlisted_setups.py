"""What ``reproduce`` says of faults that are in no list of the code, and of right setups.

    python -m pytest benchmarks/test_unlisted_setups.py --benchmark-enable -s

prints the tables of benchmarks/README.md.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from unlisted_setups import WRONG, attempt, is_right, right, right_models

from vlmeval_findit.reproduction import (
    Attempt,
    Cause,
    find_causes,
    judge_attempt,
)

NAMED = 0.6  # Share of the wrong setups


@pytest.fixture(autouse=True)
def _only_to_measure(measures: bool) -> None:
    if not measures:
        pytest.skip("takes minutes: --benchmark-enable")


def causes_of(tried: Attempt) -> list[Cause]:
    looks = find_causes(tried, judge_attempt(tried))
    return [look.cause for look in looks if look.cause is not None]


def test_unlisted_faults() -> None:
    """No sure cause is wrong, and most faults are named or described."""
    named = 0
    print("\n| fault | measured | named | sure | value without it |\n|---|---|---|---|---|")
    for name, wrong in WRONG.items():
        tried = attempt(wrong.fault, writes=wrong.writes)
        causes = causes_of(tried)
        rightly = [cause for cause in causes if is_right(wrong, cause)]
        named += bool(rightly)
        print(f"| {name} | {tried.value:.1f} | {_cells(rightly)} |", flush=True)
        assert not [cause for cause in causes if cause.sure and cause not in rightly], name
    print(f"{named} of {len(WRONG)} wrong setups are named or described")
    assert named >= NAMED * len(WRONG)


def _cells(rightly: list[Cause]) -> str:
    if not rightly:
        return "nothing | |"
    cause = rightly[0]
    value = "" if cause.explains is None else f"{cause.explains:.1f}"
    return f"{cause.name} | {'yes' if cause.sure else 'no'} | {value}"


def test_right_setups_are_not_blamed() -> None:
    """Even those that are lower by chance: their figure is set just above what agrees."""
    verdicts: Counter[str] = Counter()
    blamed: Counter[str] = Counter()
    for model, writes, seed in right_models():
        true = attempt(right, model, seed=1000 + seed, pictures=200).value
        tried = attempt(right, model, seed=seed, published=true, writes=writes)
        judgement = judge_attempt(tried)
        verdicts[judgement.verdict.value] += 1
        ends = judgement.difference_interval
        assert ends is not None
        higher = replace(tried.setup.figure, value=min(100.0, true + ends.high + 0.1))
        lower = replace(tried, setup=replace(tried.setup, figure=higher))
        for each in (tried, lower):
            blamed.update(cause.name for cause in causes_of(each))
    print(f"\n{verdicts.total()} right setups: {dict(verdicts)}; blamed: {dict(blamed)}")
    assert not blamed
