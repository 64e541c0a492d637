"""Whether a published value agrees with what was measured on a sample of pictures."""

from __future__ import annotations

from math import ceil

import pytest
from few_fast import every_nth_fast
from reproductions import attempt, dataset_of, figure, predictions, query, reply_with

from vlmeval_findit.reproduction import (
    MOST_LOST,
    FigureJudgement,
    FigureVerdict,
    judge_attempt,
    tolerance_of,
)

OBJECT = (20.0, 10.0, 100.0, 50.0)
RIGHT = (100, 100, 500, 500)
ELSEWHERE = (600, 600, 900, 900)


def judged(published: float, hits: int, queries: int, a_picture: int = 1) -> FigureJudgement:
    """Judge an attempt with so many hits; the misses are spread over the pictures."""
    pictures = [f"{at // a_picture}.jpg" for at in range(queries)]
    data = dataset_of([query(at, OBJECT, picture=name) for at, name in enumerate(pictures)])
    misses = {round(at * queries / (queries - hits)) for at in range(queries - hits)}
    replies = [reply_with(at, ELSEWHERE if at in misses else RIGHT) for at in range(queries)]
    return judge_attempt(attempt(figure(published), predictions(data, replies)))


@pytest.mark.parametrize(
    ("published", "hits", "queries", "verdict"),
    [
        # 450 of 500: 90 %, 87.1 to 92.4 over pictures, 85.8 to 93.7 with the tolerance
        (90.0, 450, 500, FigureVerdict.AGREES),
        (93.0, 450, 500, FigureVerdict.AGREES),
        (93.5, 450, 500, FigureVerdict.CANNOT_BE_TOLD),
        (94.0, 450, 500, FigureVerdict.LOWER),
        (86.0, 450, 500, FigureVerdict.AGREES),
        (85.5, 450, 500, FigureVerdict.HIGHER),
        # Few pictures: the value lies within, which says little, or far outside, which says much
        (90.0, 18, 20, FigureVerdict.CANNOT_BE_TOLD),
        (90.0, 8, 20, FigureVerdict.LOWER),
        (40.0, 19, 20, FigureVerdict.HIGHER),
        (90.0, 20, 20, FigureVerdict.CANNOT_BE_TOLD),
        # All are hits: the interval reaches to one side only, here to 93.7 and 96.2
        (100.0, 60, 60, FigureVerdict.AGREES),
        (99.0, 30, 30, FigureVerdict.CANNOT_BE_TOLD),
        (100.0, 100, 100, FigureVerdict.AGREES),
        # Fewer than 4 pictures have no interval
        (90.0, 0, 3, FigureVerdict.CANNOT_BE_TOLD),
    ],
)
def test_verdicts(published: float, hits: int, queries: int, verdict: FigureVerdict) -> None:
    assert judged(published, hits, queries).verdict is verdict


def test_tolerance_widens_to_both_sides() -> None:
    named = judged(90.0, 450, 500)
    assert named.interval is not None
    assert named.difference_interval is not None
    assert named.tolerance == 1.3
    assert named.difference == 0
    assert named.difference_interval.low == pytest.approx(named.interval.low - 91.3)
    assert named.difference_interval.high == pytest.approx(named.interval.high - 88.7)


@pytest.mark.parametrize(("datasets", "points"), [(1, 1.3), (2, 0.919), (8, 0.5), (13, 0.5)])
def test_tolerance_of_means(datasets: int, points: float) -> None:
    assert tolerance_of(datasets) == pytest.approx(points, abs=1e-3)


@pytest.mark.parametrize("published", every_nth_fast([50.0, 90.0, 94.0, 97.0, 100.0], 2))
@pytest.mark.parametrize("queries", [10, 20, 40, 100, 400])
@pytest.mark.parametrize("misses", [0, 1, 5, 10, 20])
def test_what_agrees_has_lost_little(published: float, queries: int, misses: int) -> None:
    """Or more is told by a value outside."""
    hits = round(queries * (published - misses) / 100)
    judgement = judged(published, hits, queries)
    assert judgement.interval is not None
    most_lost = published - judgement.interval.low
    if judgement.verdict is FigureVerdict.AGREES:
        assert most_lost <= MOST_LOST + judgement.tolerance
    if judgement.verdict is FigureVerdict.CANNOT_BE_TOLD:
        assert most_lost > MOST_LOST + judgement.tolerance


@pytest.mark.parametrize("published", every_nth_fast([60.0, 90.0, 93.0, 95.0, 97.0, 100.0], 3))
@pytest.mark.parametrize("hits", [43, 45, 48, 50])
def test_as_many_pictures_as_it_names_do(published: float, hits: int) -> None:
    few = judged(published, hits, 50)
    if few.enough is None:
        return
    assert few.enough > 50
    more = 50 * ceil(1.2 * few.enough / 50)
    enough = judged(published, more * hits // 50, more)
    assert enough.verdict is not FigureVerdict.CANNOT_BE_TOLD


def test_without_an_interval_published_value_says_how_many() -> None:
    # The lower end of Wilson's interval of 90 % of 136 pictures is 6.3 points lower.
    assert judged(90.0, 2, 3).enough == pytest.approx(136, abs=5)
    assert judged(50.0, 2, 3).enough == pytest.approx(240, abs=10)
    assert judged(100.0, 2, 3).enough == pytest.approx(60, abs=5)


def test_verdict_decided_has_no_number_of_pictures() -> None:
    assert judged(90.0, 450, 500).enough is None
