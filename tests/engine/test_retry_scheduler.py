"""Which item goes to which server: against simulated servers, on a simulated clock."""

from __future__ import annotations

import math
from collections import Counter
from functools import partial
from typing import Any

import pytest
from few_fast import every_nth_fast, few_fast
from hypothesis import given, settings
from hypothesis import strategies as st
from simulated_servers import (
    Behaviour,
    Call,
    Reply,
    Simulation,
    answers,
    ask,
    begin,
    caches,
    fails,
    flaps,
    from_time,
    images,
    sometimes,
    takes,
)

from vlmeval_findit.engine import Assignment, CallOutcome, Scheduler, ServerPolicy

GOOD = answers(0.5)
NEVER_AGAIN = ServerPolicy(rest=(math.inf, math.inf))


def seven_and(bad: Behaviour, good: Behaviour = GOOD) -> Simulation:
    """4,000 calls at eight servers of 16 calls, one of them bad: 15.6 s if all are good."""
    servers = {f"s{at}": (16, good) for at in range(7)} | {"bad": (16, bad)}
    return Simulation(servers, images(100, 40)).run()


def begin_all(scheduler: Scheduler, now: float = 0.0) -> list[Assignment]:
    return list(iter(lambda: scheduler.next(now), None))


# --- whatever happens -----------------------------------------------------------------------------

ENDINGS = st.sampled_from([outcome for outcome in CallOutcome if outcome != CallOutcome.ANSWERED])
SECONDS = st.sampled_from([0.01, 1.0, 30.0])
BEHAVIOURS = st.one_of(
    st.builds(answers, st.sampled_from([0.1, 1.0, 10.0])),
    st.builds(fails, ENDINGS, SECONDS),
    st.builds(from_time, st.floats(0, 20), st.builds(fails, ENDINGS, SECONDS)),
    st.builds(flaps, st.sampled_from([1.0, 3.0, 100.0])),
    st.builds(sometimes, st.floats(0, 1), st.builds(fails, ENDINGS, SECONDS)),
    st.builds(takes, st.integers(1, 8)),
    st.builds(caches),
    st.sampled_from([0.0, 5.0, 700.0]).map(
        lambda after: lambda call: Reply(CallOutcome.REFUSED, 0.1, retry_after=after)
    ),
)


@st.composite
def simulations(draw: st.DrawFn) -> Simulation:
    """Servers of every kind, which may come and go; plans with and without images."""
    sizes = draw(st.lists(st.integers(1, 20), max_size=30))
    plan = [f"image {at}" if at % 7 else "" for at, size in enumerate(sizes) for _ in range(size)]
    limits = st.tuples(st.integers(1, 12), BEHAVIOURS)
    servers = {f"s{at}": draw(limits) for at in range(draw(st.integers(1, 5)))}
    events: dict[float, Any] = {}
    if draw(st.booleans()):
        servers["later"] = draw(limits)
        limit = servers["later"][0]
        events[draw(st.floats(0.1, 20))] = lambda run, now: run.add_server("later", limit)
    if draw(st.booleans()):
        events[draw(st.floats(0.1, 20))] = lambda run, now: (
            run.remove_server("s0", now) if "s0" in run.servers else None
        )
    policy = ServerPolicy(hold_siblings=draw(st.booleans()))
    items = [(image, number) for number, image in enumerate(plan)]
    return Simulation(servers, items, policy, draw(st.integers(0, 9)), events)


@settings(max_examples=300, deadline=None)
@given(simulations())
def test_every_item_is_answered_once_or_fails_with_its_reason(simulation: Simulation) -> None:
    """The simulation itself checks limits, that it ends, and that nothing wakes in vain."""
    simulation.run()
    looked_at = simulation.values
    assert looked_at == list(range(len(looked_at)))
    assert len(looked_at) == len(simulation.items) or simulation.scheduler.given_up
    for item in simulation.finished:
        assert (item.outcome is CallOutcome.ANSWERED) == (not item.reason)


@settings(max_examples=100, deadline=None)
@given(simulations(), st.integers(1, 8), st.sampled_from([0.1, 1.0]))
def test_where_one_server_is_well_everything_is_answered(
    simulation: Simulation, limit: int, seconds: float
) -> None:
    """Unless another one lies, and says that the requests are wrong."""
    simulation.servers = {**simulation.servers, "well": (limit, answers(seconds))}
    simulation.run()
    assert simulation.outcomes.keys() <= {CallOutcome.ANSWERED, CallOutcome.INVALID}
    assert not simulation.scheduler.given_up


# --- as fast as servers are -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("servers", "limit", "pictures"), few_fast([(1, 128, 100), (8, 64, 300), (16, 64, 600)], 2)
)
@pytest.mark.parametrize("prompts", [40, 1])
def test_servers_have_work_all_the_time(
    servers: int, limit: int, pictures: int, prompts: int
) -> None:
    items = images(pictures * 40 // prompts, prompts)
    run = Simulation({f"s{at}": (limit, answers()) for at in range(servers)}, items).run()
    assert len(items) / (servers * limit) / run.last_home > 0.9
    assert set(run.readings.values()) == {1}


def test_caching_servers_read_every_image_once() -> None:
    """First calls take five times as long as others; 77 % of what is possible for 300 images."""
    servers = {f"s{at}": (64, caches(1.0, 0.2)) for at in range(8)}
    for pictures, share in ((300, 0.7), (1500, 0.9)):
        run = Simulation(servers, images(pictures, 40)).run()
        assert set(run.readings.values()) == {1}
        assert pictures * (1.0 + 39 * 0.2) / (8 * 64) / run.last_home > share


# --- servers that are ill -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bad", "seconds", "most_calls"),
    every_nth_fast(
        [
            (fails(), 19, 20),
            (fails(CallOutcome.REFUSED), 19, 30),
            (fails(CallOutcome.DENIED), 19, 20),
            (fails(CallOutcome.HOPELESS), 19, 16),
            (from_time(5, fails(), GOOD), 19, 200),
            (from_time(5, fails(CallOutcome.DENIED), GOOD), 19, 200),
            (flaps(3), 19, 400),
            (answers(5), 21, 60),
            (fails(seconds=60), 61, 4),
            (from_time(5, fails(seconds=60), GOOD), 67, 220),
            (lambda call: Reply(CallOutcome.REFUSED, 0.01, retry_after=3600), 19, 30),
        ],
        3,
    ),
    ids=[
        "dead",
        "refuses all",
        "denies",
        "hopeless",
        "dies",
        "key taken away",
        "flaps",
        "slow",
        "hangs",
        "begins to hang",
        "asks for an hour",
    ],
)
def test_a_bad_server_among_eight_costs_little(
    bad: Behaviour, seconds: float, most_calls: int
) -> None:
    """Without it 17.9 s are possible; calls that hang come home when they time out."""
    run = seven_and(bad)
    assert run.outcomes == {CallOutcome.ANSWERED: 4000}
    assert run.last_home < seconds
    assert run.calls["bad"] <= most_calls
    assert sum(run.readings.values()) < 140


@pytest.mark.parametrize("outcome", [CallOutcome.FAILED, CallOutcome.REFUSED])
@pytest.mark.parametrize("retry_after", [None, 1.0])
def test_random_failures_cost_little(outcome: CallOutcome, retry_after: float | None) -> None:
    bad = sometimes(0.05, lambda call: Reply(outcome, 0.02, retry_after), answers(0.2))
    run = Simulation({"a": (32, bad)}, images(25, 40)).run()
    assert run.outcomes == {CallOutcome.ANSWERED: 1000}
    assert run.last_home < 1.5 * 1000 * 0.2 / 32
    assert run.scheduler.servers["a"].at_once == 32


def test_the_limit_of_a_server_is_discovered() -> None:
    run = Simulation({f"s{at}": (16, takes(6, 0.5)) for at in range(8)}, images(100, 40)).run()
    assert run.outcomes == {CallOutcome.ANSWERED: 4000}
    assert run.last_home < 1.15 * 4000 * 0.5 / (8 * 6)
    assert sum(run.calls.values()) < 1.2 * 4000
    assert all(5 <= item <= 8 for item in run.scheduler.capacity.values())


def test_retry_after_is_for_the_call_that_was_refused() -> None:
    begun: list[float] = []

    def behaviour(call: Call) -> Reply:
        begun.append(call.now)
        if call.number == 5:
            return Reply(CallOutcome.REFUSED, 0.1, retry_after=20.0)
        return Reply(CallOutcome.ANSWERED, 1.0)

    Simulation({"a": (4, behaviour)}, images(40, 1)).run()
    assert begun[-1] > 20.0
    assert begun[-2] < 12.0, "the others did not wait"


# --- servers come and go --------------------------------------------------------------------------


def test_the_first_server_begins_while_others_are_to_come() -> None:
    servers = {f"later {at}": (8, answers()) for at in (10, 20, 30)}
    events = {
        float(name.split()[1]): partial(lambda name, run, now: run.add_server(name, 8), name)
        for name in servers
    }
    run = Simulation(servers, images(30, 20), events=events, servers_may_come=True).run()
    assert run.outcomes == {CallOutcome.ANSWERED: 600}
    assert min(run.calls.values()) > 50
    assert run.last_home < 50


def test_a_server_without_trials_is_retired_after_a_few_failures() -> None:
    run = Simulation({"a": (2, fails()), "b": (2, answers())}, images(20, 5), NEVER_AGAIN).run()
    assert run.outcomes == {CallOutcome.ANSWERED: 100}
    assert run.calls["a"] <= 6
    run = Simulation({"a": (2, fails()), "b": (2, fails())}, images(20, 5), NEVER_AGAIN).run()
    assert run.scheduler.given_up == "no"


def test_a_server_that_was_down_is_tested_with_others_items() -> None:
    """Nothing else is left: all items wait for the other."""
    late = from_time(20.0, answers(), before=fails())
    run = Simulation({"late": (1, late), "well": (1, answers())}, images(1, 300)).run()
    assert run.outcomes == {CallOutcome.ANSWERED: 300}
    assert run.now < 200


@pytest.mark.parametrize("outcome", [CallOutcome.REFUSED, CallOutcome.FAILED])
def test_calls_of_a_removed_server_go_to_another(outcome: CallOutcome) -> None:
    scheduler = Scheduler(iter(images(1, 2)), {"a": 1, "b": 1})
    begun = begin(scheduler)
    scheduler.remove_server(begun.server.name, 0.5)
    ask(scheduler, CallOutcome.ANSWERED, 0.5)
    scheduler.ended(begun, outcome, 1.0, "no")
    ask(scheduler, CallOutcome.ANSWERED, scheduler.wake_at(1.0) or 0.0)
    assert [item.outcome for item in scheduler.finished] == [CallOutcome.ANSWERED] * 2
    assert scheduler.done


def test_calls_without_a_server_go_to_the_next_that_comes() -> None:
    scheduler = Scheduler(iter(images(3, 2)), {"a": 1})
    scheduler.servers_may_come = True
    begun = begin(scheduler)
    scheduler.remove_server("a", 0.5)
    scheduler.ended(begun, CallOutcome.FAILED, 0.5, "no")
    assert scheduler.next(100.0) is None
    scheduler.add_server("b", 1)
    while not scheduler.done:
        ask(scheduler, CallOutcome.ANSWERED, max(scheduler.wake_at(100.0) or 0.0, 100.0))
    assert [item.outcome for item in scheduler.finished] == [CallOutcome.ANSWERED] * 6


# --- images ---------------------------------------------------------------------------------------


def where(names: str, count: int = 200) -> dict[str, str]:
    """By image, the server that its call goes to."""
    scheduler = Scheduler(iter(images(count, 1)), dict.fromkeys(names, count))
    begun = begin_all(scheduler)
    return {item.item.image: item.server.name for item in begun}


def test_an_image_belongs_to_the_same_server_whoever_lists_them() -> None:
    actual = where("abc")
    assert actual == where("cab")
    assert min(Counter(actual.values()).values()) > 40
    without = where("ab")
    assert all(without[image] == name for image, name in actual.items() if name != "c")


def test_the_first_call_over_an_image_goes_before_its_siblings() -> None:
    scheduler = Scheduler(iter(images(1, 5)), {"a": 8})
    first = begin(scheduler)
    assert first.first
    assert scheduler.next(0.0) is None
    scheduler.ended(first, CallOutcome.FAILED, 1.0, "no")
    again = begin(scheduler, 1.0)
    assert again.first, "the first got no answer: the next is the first"
    assert scheduler.next(1.0) is None
    scheduler.ended(again, CallOutcome.ANSWERED, 2.0)
    rest = begin_all(scheduler, 3.0)
    assert [item.first for item in rest] == [False] * 4


def test_a_server_without_an_image_looks_a_few_rounds_ahead() -> None:
    """All images belong to the other server: a plan of any length is not pulled for that."""
    of_b = [image for image, name in where("ab", count=2000).items() if name == "b"]
    items = iter([(image, at) for at, image in enumerate(of_b)])
    limits = {"a": 4, "b": 4}
    scheduler = Scheduler(items, limits)
    begun = begin_all(scheduler)
    assert {item.server.name for item in begun} == {"a", "b"}
    pulled = len(of_b) - len(list(items))
    looked_at = 1  # It is looked at before there is room for it.
    assert pulled - len(begun) - looked_at == 8 * sum(limits.values())


def test_the_rest_of_an_item_goes_on() -> None:
    scheduler = Scheduler(iter([("x", "abcd")]), {"a": 1, "b": 1})
    begun = begin(scheduler)
    scheduler.ended(begun, CallOutcome.FAILED, 1.0, "died", remaining="cd")
    other = begin(scheduler, scheduler.wake_at(1.0) or 0.0)
    assert (other.item.value, other.server is begun.server) == ("cd", False)


def test_the_last_items_over_an_image_are_shared() -> None:
    scheduler = Scheduler(iter(images(1, 4)), {"a": 1, "b": 1})
    first = begin(scheduler)
    scheduler.ended(first, CallOutcome.ANSWERED, 1.0)
    assert {item.server.name for item in begin_all(scheduler, 1.0)} == {"a", "b"}
