"""Whether a published value agrees with what was measured on a sample of pictures."""

from __future__ import annotations

import pytest
from reproductions import attempt, dataset_of, figure, predictions, query, reply_with

from vlmeval_findit.reproduction.reproduction_records import FigureJudgement, FigureVerdict
from vlmeval_findit.reproduction.verdict import WIDEST, judge, tolerance_of

OBJECT = (20.0, 10.0, 100.0, 50.0)
RIGHT = (100, 100, 500, 500)
ELSEWHERE = (600, 600, 900, 900)


def judged(published: float, hits: int, queries: int, a_picture: int = 1) -> FigureJudgement:
    """Judge an attempt with so many hits; the misses are spread over the pictures."""
    pictures = [f"{at // a_picture}.jpg" for at in range(queries)]
    data = dataset_of([query(at, OBJECT, picture=name) for at, name in enumerate(pictures)])
    misses = {round(at * queries / (queries - hits)) for at in range(queries - hits)}
    replies = [reply_with(at, ELSEWHERE if at in misses else RIGHT) for at in range(queries)]
    return judge(attempt(figure(published), predictions(data, replies)))


@pytest.mark.parametrize(
    ("published", "hits", "queries", "verdict"),
    [
        # 450 of 500: 90 %, 87.1 to 92.4 over pictures, 85.8 to 93.7 with the tolerance
        (90.0, 450, 500, FigureVerdict.AGREES),
        (93.5, 450, 500, FigureVerdict.AGREES),
        (94.0, 450, 500, FigureVerdict.LOWER),
        (86.0, 450, 500, FigureVerdict.AGREES),
        (85.5, 450, 500, FigureVerdict.HIGHER),
        # Few pictures: the value lies within, which says little, or far outside, which says much
        (90.0, 18, 20, FigureVerdict.CANNOT_BE_TOLD),
        (90.0, 8, 20, FigureVerdict.LOWER),
        (40.0, 19, 20, FigureVerdict.HIGHER),
        (90.0, 20, 20, FigureVerdict.CANNOT_BE_TOLD),
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


def test_as_many_pictures_as_it_names_do() -> None:
    few = judged(90.0, 45, 50)
    assert few.enough is not None
    assert few.enough > 50
    more = 10 * round(few.enough / 10 + 0.5)
    enough = judged(90.0, more * 9 // 10, more)
    assert enough.verdict is FigureVerdict.AGREES
    assert enough.interval is not None
    assert (enough.interval.high - enough.interval.low) / 2 == pytest.approx(WIDEST, abs=0.5)


def test_without_an_interval_published_value_says_how_many() -> None:
    # Wilson's interval of 90 % of 140 pictures reaches 5 points to either side.
    assert judged(90.0, 2, 3).enough == pytest.approx(145, abs=10)
    assert judged(50.0, 2, 3).enough == pytest.approx(380, abs=20)


def test_verdict_decided_has_no_number_of_pictures() -> None:
    assert judged(90.0, 450, 500).enough is None
