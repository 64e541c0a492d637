"""One server: its breaker, its denials, and how many images it begins."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest
from simulated_servers import (
    Call,
    Reply,
    Simulation,
    answers,
    ask,
    begin,
    fails,
    from_time,
    images,
    sometimes,
)

from vlmeval_findit.engine import (
    WINDOW,
    CallOutcome,
    ImageGroup,
    QueuedItem,
    Scheduler,
    ServerPolicy,
    ServerState,
)

GOOD = answers(0.5)


def single_server(limit: int = 4, items: int = 100, **policy: Any) -> Scheduler:
    return Scheduler(iter(images(items, 1)), {"a": limit}, ServerPolicy(**policy))


def test_a_failing_server_rests_and_is_probed_by_one_call() -> None:
    scheduler = single_server(failures=3, rest=(1.0, 8.0))
    now = 0.0
    for _ in range(3):
        ask(scheduler, CallOutcome.FAILED, now)
    rests = []
    for _ in range(6):
        assert scheduler.next(now) is None
        before, now = now, scheduler.servers["a"].back_at
        rests.append(now - before)
        begun = begin(scheduler, now)
        assert scheduler.next(now) is None, "one call at a time"
        scheduler.ended(begun, CallOutcome.FAILED, now, "no")
    for rest, expected in zip(rests, (1, 2, 4, 8, 8, 8), strict=True):
        assert 0.8 * expected <= rest <= 1.2 * expected
    now = scheduler.servers["a"].back_at
    ask(scheduler, CallOutcome.ANSWERED, now)
    assert scheduler.next(now)
    assert scheduler.next(now), "it is as good as before"


def test_a_resting_server_gives_its_queue_to_another() -> None:
    scheduler = Scheduler(iter(images(1, 5)), {"a": 1, "b": 1}, ServerPolicy(failures=1))
    server = ask(scheduler, CallOutcome.FAILED, 0.0).server
    assert (server.waiting, scheduler.left) == (0, 5)


def test_failures_are_counted_in_a_row() -> None:
    scheduler = single_server(failures=3)
    for _ in range(10):
        for outcome in (CallOutcome.FAILED, CallOutcome.FAILED, CallOutcome.ANSWERED):
            ask(scheduler, outcome, 0.0)
        for outcome in (CallOutcome.FAILED, CallOutcome.FAILED, CallOutcome.INVALID):
            ask(scheduler, outcome, 0.0)
    assert not scheduler.servers["a"].on_trial


def test_calls_in_flight_when_the_breaker_opens_do_not_count() -> None:
    scheduler = single_server(limit=20, failures=5)
    for begun in [begin(scheduler) for _ in range(20)]:
        scheduler.ended(begun, CallOutcome.FAILED, 0.1, "no")
    assert scheduler.servers["a"].back_at < 0.1 + 1.3, "one rest, not sixteen"


def test_a_late_answer_does_not_end_a_pause() -> None:
    scheduler = single_server(limit=6, failures=5)
    early = begin(scheduler)
    for _ in range(5):
        ask(scheduler, CallOutcome.FAILED, 0.0)
    server = scheduler.servers["a"]
    assert not server.is_up
    scheduler.ended(early, CallOutcome.ANSWERED, 0.1)
    assert not server.is_up


def test_three_successive_denials_end_a_server() -> None:
    scheduler = single_server(limit=4)
    for begun in [begin(scheduler) for _ in range(4)]:
        scheduler.ended(begun, CallOutcome.DENIED, 1.0, "who?")
    ask(scheduler, CallOutcome.ANSWERED, 2.0)
    for _ in range(2):
        ask(scheduler, CallOutcome.DENIED, 3.0, "who?")
    assert not scheduler.given_up
    ask(scheduler, CallOutcome.DENIED, 4.0, "HTTP 401: who?")
    assert scheduler.given_up == "HTTP 401: who?"
    assert scheduler.next(5.0) is None
    assert scheduler.done


def test_a_hopeless_call_ends_its_server_at_once() -> None:
    scheduler = Scheduler(iter(images(9, 1)), {"a": 1, "b": 1})
    first = ask(scheduler, CallOutcome.HOPELESS, 0.0, "pay")
    assert not scheduler.given_up
    other = ask(scheduler, CallOutcome.ANSWERED, 1.0)
    assert {first.server.name, other.server.name} == {"a", "b"}
    ask(scheduler, CallOutcome.HOPELESS, 1.0, "pay here")
    assert scheduler.given_up
    asked = [item.outcome for item in scheduler.finished if item.reason != scheduler.given_up]
    assert asked == [CallOutcome.ANSWERED]
    assert {item.outcome for item in scheduler.finished[1:]} == {CallOutcome.HOPELESS}


@pytest.mark.parametrize("replied", [False, True])
def test_a_run_gives_up_when_all_servers_stay_down(replied: bool) -> None:
    """A server that never replied has a wrong address; another may be loading a large model."""
    servers = {name: (4, from_time(5.0 if replied else 0.0, fails())) for name in "ab"}
    run = Simulation(servers, images(50, 10)).run()
    assert run.scheduler.given_up == "no"
    assert run.now == pytest.approx(630 if replied else 75, rel=0.2)
    assert bool(run.outcomes[CallOutcome.ANSWERED]) == replied


@pytest.mark.parametrize(("replied", "seconds"), [(False, 60.0), (True, 600.0)])
def test_how_long_a_server_may_be_down(replied: bool, seconds: float) -> None:
    """One minute if it never replied."""
    server = ServerState("a", 4, ServerPolicy(failures=1, rest=(1.0, 1.0)))
    if replied:
        server.answered(99.0, 100.0, first=False)
    server.failed(100.0, 100.0, 1.0)
    assert not server.is_given_up(100.0 + seconds - 0.1)
    assert server.is_given_up(100.0 + seconds)


@pytest.mark.parametrize(
    ("spoke", "then_reached", "seconds"),
    [(False, False, 5.0), (False, True, 60.0), (True, False, 600.0)],
)
def test_an_address_where_nothing_ever_listened_is_given_up_soon(
    spoke: bool, then_reached: bool, seconds: float
) -> None:
    server = ServerState("a", 4, ServerPolicy(failures=2, rest=(1.0, 1.0)))
    if spoke:
        server.answered(99.0, 100.0, first=False)
    server.failed(100.0, 100.0, 1.0, unreached=True)
    server.failed(100.0, 100.0, 1.0, unreached=not then_reached)
    assert not server.is_given_up(100.0 + seconds - 0.1)
    assert server.is_given_up(100.0 + seconds)


def test_a_server_that_comes_back_in_time_answers_everything() -> None:
    def behaviour(call: Call) -> Reply:
        return (fails() if 10 < call.now < 400 else GOOD)(call)

    run = Simulation({"a": (8, behaviour)}, images(50, 10)).run()
    assert run.outcomes == {CallOutcome.ANSWERED: 500}


def test_a_request_that_fails_again_and_again_fails() -> None:
    scheduler = Scheduler(iter([("", 0)]), {"a": 1}, ServerPolicy(attempts=4, failures=9))
    now = 0.0
    for _ in range(4):
        now = scheduler.wake_at(now) or now
        ask(scheduler, CallOutcome.FAILED, now, "HTTP 500: no")
    (finished,) = scheduler.finished
    assert (finished.outcome, finished.reason) == (CallOutcome.FAILED, "HTTP 500: no")
    assert finished.item.attempts == 4
    assert now > 0.5 * (0.5 + 1 + 2), "it waited longer and longer"


def test_nobody_waits_for_an_hour() -> None:
    behaviour = sometimes(0.1, lambda call: Reply(CallOutcome.REFUSED, 0.1, 3600.0))
    run = Simulation({"a": (1, behaviour)}, images(50, 1)).run()
    assert set(run.outcomes) == {CallOutcome.ANSWERED, CallOutcome.REFUSED}
    assert run.now < 100


@pytest.mark.parametrize(
    ("siblings", "ready", "most"),
    [(0.0, 0, 32), (1.0, 0, 16), (1.0, 1, 8), (3.0, 15, 4), (3.0, 16, 0)],
)
def test_as_many_images_begin_as_siblings_leave_room_for(
    siblings: float, ready: int, most: int
) -> None:
    """Twice as many while no sibling is ready; none while siblings could fill the server."""
    server = ServerState("a", 16, ServerPolicy())
    server.ready.add(ImageGroup("x", deque(QueuedItem("x", at) for at in range(ready))))
    for server.firsts in range(40):
        assert server.wants_image(siblings) == (server.firsts < most)


def test_a_refusing_server_pauses_as_long_as_it_says() -> None:
    server = ServerState("a", 8, ServerPolicy(rest=(1.0, 8.0)), in_flight=7)
    for _ in range(8):
        server.refused(0.0, 1.0, 20.0)
    assert (server.at_once, server.back_at, server.is_up) == (4, 21.0, False)
    # Calls in flight at the cut do not count, and one refusal later on is no second cut.
    for _ in range(8):
        server.refused(0.5, 1.5, 20.0)
    server.refused(21.0, 22.0, None)
    assert (server.at_once, server.back_at) == (4, 21.0)


def test_rests_become_shorter_again_after_many_answers() -> None:
    server = ServerState("a", 8, ServerPolicy(failures=1, rest=(1.0, 8.0)))
    for began in (0.0, 1.0):
        assert server.failed(began, began, 1.0)
    assert server.back_at == 3.0
    for _ in range(WINDOW):
        server.answered(3.0, 3.5, first=False)
    assert server.failed(4.0, 4.0, 1.0)
    assert server.back_at == 6.0, "two seconds, not four"


def test_a_server_that_slows_down_gets_fewer_calls_at_once() -> None:
    """What is usual follows slower answers by the round, not by the answer."""
    server = ServerState("a", 16, ServerPolicy())
    server.in_flight = 15
    now = 0.0
    for _ in range(48):
        server.answered(now, now + 1.0, first=False)
        now += 1.0
    assert server.at_once == 16
    for _ in range(64):
        server.answered(now, now + 4.0, first=False)
        now += 4.0
    assert server.at_once <= 12


@pytest.mark.parametrize("retry_after", [1.0, 10.0])
def test_an_item_waits_as_long_as_the_server_says(retry_after: float) -> None:
    """And a little longer: not all clients come back at once."""
    scheduler = single_server(items=1)
    begun = begin(scheduler)
    scheduler.ended(begun, CallOutcome.REFUSED, 0.0, "later", retry_after=retry_after)
    back = scheduler.wake_at(0.0)
    assert back is not None
    assert retry_after <= back <= 1.1 * retry_after + 0.05
