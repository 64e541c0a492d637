"""How many calls at a time a server takes is found out: a clock of the test's own, no network."""

from __future__ import annotations

import heapq
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmeval_findit.models.http.limits import Limit


def test_nothing_is_held_back_before_a_server_refused() -> None:
    limit = Limit()
    assert limit.at_once == math.inf
    for _ in range(20):
        limit.answered(1.0, 8)
    assert (limit.at_once, limit.took) == (math.inf, 8)
    limit.ceiling = 16
    assert limit.at_once == 16


def test_what_is_refused_halves_it_once_a_round() -> None:
    limit = Limit(ceiling=16)
    limit.refused(began=0.0, now=1.0, in_flight=16)
    for in_flight in range(15, 7, -1):
        limit.refused(began=0.5, now=1.1, in_flight=in_flight)
    assert limit.at_once == 8, "sixteen that were sent together are one refusal"
    limit.refused(began=1.2, now=2.0, in_flight=8)
    assert limit.at_once == 4
    for now in range(3, 10):
        limit.refused(began=float(now), now=now + 0.5, in_flight=1)
    assert limit.at_once == 1, "never none"


def test_a_round_of_answers_adds_one_up_to_the_ceiling() -> None:
    limit = Limit(ceiling=8)
    limit.refused(began=0.0, now=1.0, in_flight=8)
    found = []
    for _ in range(120):
        limit.answered(1.0, int(limit.at_once))
        found.append(limit.at_once)
    assert found[:5] == [4, 4, 4, 5, 5]
    assert found.index(7) - found.index(6) == 6
    assert found.index(8) - found.index(7) == 8 * 7, "where it was refused before it is careful"
    assert found[-1] == 8
    assert found == sorted(found)


def test_room_that_nobody_uses_does_not_grow() -> None:
    limit = Limit(ceiling=16)
    limit.refused(began=0.0, now=1.0, in_flight=16)
    for _ in range(50):
        limit.answered(1.0, 1)
    assert limit.at_once == 8


def test_where_answers_come_late_some_is_given_back_and_half_is_kept() -> None:
    limit = Limit(ceiling=8)
    for _ in range(20):
        limit.answered(1.0, 8)
    assert limit.at_once == 8
    for _ in range(60):
        limit.answered(9.0, int(limit.at_once))
    assert limit.at_once == 4
    # What is slow for good is the new usual: it grows again.
    for _ in range(400):
        limit.answered(9.0, int(limit.at_once))
    assert limit.at_once == 8


def test_milliseconds_are_no_lateness() -> None:
    limit = Limit(ceiling=8)
    for seconds in [0.001] * 20 + [0.4] * 40:
        limit.answered(seconds, 8)
    assert limit.at_once == 8


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just(429), st.floats(0, 100), st.integers(1, 64)),
            st.tuples(st.just(200), st.floats(0, 1e6), st.integers(1, 64)),
        )
    ),
    st.one_of(st.just(math.inf), st.integers(1, 64)),
)
def test_whatever_happens_it_is_a_number_of_calls(
    events: list[tuple[int, float, int]], ceiling: float
) -> None:
    limit = Limit(ceiling=ceiling)
    for status, seconds, in_flight in events:
        if status == 429:
            limit.refused(seconds, seconds + 1, in_flight)
        else:
            limit.answered(seconds, in_flight)
        assert 1 <= limit.at_once <= ceiling
        assert limit.at_once == math.inf or limit.at_once == int(limit.at_once)
        assert limit.took <= 64


@pytest.mark.parametrize("takes", [1, 3, 6, 12])
def test_most_calls_come_through_at_the_first_try(takes: int) -> None:
    """Threads that ask as fast as they may of a server that refuses what is beyond ``takes``."""
    limit, now, running, refused, begun = Limit(ceiling=32), 0.0, [], 0, 0
    while begun < 2000:
        while len(running) < limit.at_once:
            begun += 1
            busy = sum(1 for *_, ok in running if ok)
            ok = busy < takes
            heapq.heappush(running, (now + (1.0 if ok else 0.01), begun, now, ok))
        now, _, began, ok = heapq.heappop(running)
        if ok:
            limit.answered(now - began, len(running) + 1)
        else:
            refused += 1
            limit.refused(began, now, len(running) + 1)
    assert refused < begun * 0.4
    assert now < 2.2 * begun * 0.8 / takes, "and it does not stand idle"
