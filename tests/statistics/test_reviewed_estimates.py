"""What reviews of random rows say of all rows: counts, values, intervals."""

from __future__ import annotations

import pytest
from scipy import stats

from vlmeval_findit.statistics.reviewed_estimates import count_wrong


@pytest.mark.parametrize("wrong", [0, 1, 5, 30, 60])
def test_the_interval_of_wrong_labels_covers_them(wrong: int) -> None:
    """Over all draws of 20 of 60 unlisted rows; the count of listed rows is known."""
    chances = stats.hypergeom(60, wrong, 20)
    covered = 0.0
    for found in range(max(0, wrong - 40), min(20, wrong) + 1):
        count = count_wrong(listed_wrong=7, random_wrong=found, random=20, unlisted=60)
        assert count.low <= count.value <= count.high
        if count.low <= 7 + wrong <= count.high:
            covered += float(chances.pmf(found))
    assert covered >= 0.95


def test_wrong_labels_are_known_where_all_rows_are_reviewed() -> None:
    count = count_wrong(listed_wrong=3, random_wrong=2, random=50, unlisted=50)
    assert (count.value, count.low, count.high) == (5, 5, 5)
