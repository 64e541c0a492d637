"""Which of several servers is asked: a clock of the test's own, no network."""

from __future__ import annotations

import heapq
from contextlib import suppress

import pytest

from vlmeval_findit.models.http.completion import CallError
from vlmeval_findit.models.http.endpoint import Endpoint
from vlmeval_findit.models.http.pool import FIRST_REST, IN_A_ROW, LONGEST_REST, Pool, Server

NAMES = ("http://a/v1", "http://b/v1", "http://c/v1")


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def pool(clock: Clock, servers: int = 2) -> Pool:
    return Pool([Endpoint(name) for name in NAMES[:servers]], clock)


def ask(asked: Pool, bad: str = "", error: CallError | None = None) -> str:
    """The name of the server that a call goes to; ``bad`` fails it."""
    name = ""
    with suppress(CallError), asked.server(()) as server:
        name = server.endpoint.name
        if name == bad:
            raise error or CallError("no", 503)
    return name


def test_calls_go_to_the_server_with_the_fewest_on_their_way_in_turn(clock: Clock) -> None:
    asked = pool(clock, 3)
    assert [ask(asked) for _ in range(6)] == [*NAMES, *NAMES]
    with asked.server(()) as first:
        assert {ask(asked) for _ in range(6)} == {*NAMES} - {first.endpoint.name}


def test_a_server_that_failed_a_call_is_not_the_next(clock: Clock) -> None:
    asked = pool(clock)
    with asked.server(()) as first:
        pass
    for _ in range(5):
        with asked.server({first}) as second:
            assert second is not first
    assert asked.another({first})
    assert not asked.another({first, second})


def test_a_server_that_keeps_failing_is_left_out_longer_and_longer(clock: Clock) -> None:
    asked = pool(clock)
    failures = 0
    while failures < IN_A_ROW:
        failures += ask(asked, bad=NAMES[0]) == NAMES[0]
    rests = []
    for _ in range(10):
        began = clock.now
        while ask(asked, bad=NAMES[0]) != NAMES[0]:
            clock.now += 1.0
            assert clock.now - began < 2 * LONGEST_REST
        rests.append(clock.now - began)
    assert rests[:3] == [FIRST_REST, 2 * FIRST_REST, 4 * FIRST_REST]
    assert max(rests) == LONGEST_REST
    # One good answer, and it is as good as the others.
    clock.now += LONGEST_REST
    assert {ask(asked), ask(asked)} == set(NAMES[:2])


def test_failures_are_counted_in_a_row(clock: Clock) -> None:
    asked = pool(clock)
    for turn in range(10 * IN_A_ROW):
        # One good answer between any two failures of the first server.
        first = [ask(asked, bad=NAMES[turn % 4]) if turn % 4 == 0 else ask(asked)]
        assert first == [NAMES[turn % 2]]


def test_after_its_rest_one_call_at_a_time_tries_a_server(clock: Clock) -> None:
    asked = pool(clock)
    for _ in range(2 * IN_A_ROW):
        ask(asked, bad=NAMES[0])
    clock.now += FIRST_REST
    with asked.server(()) as one, asked.server(()) as two, asked.server(()) as three:
        names = [server.endpoint.name for server in (one, two, three)]
    assert sorted(names) == [NAMES[0], NAMES[1], NAMES[1]]


def test_where_all_are_left_out_they_are_asked_all_the_same(clock: Clock) -> None:
    asked = pool(clock)
    for _ in range(20):
        assert ask(asked, bad=ask(asked)) in NAMES


def test_what_a_server_does_not_take_does_not_count_against_it(clock: Clock) -> None:
    asked = pool(clock)
    for _ in range(20):
        ask(asked, bad=NAMES[0], error=CallError("a bad picture", 400))
    assert {ask(asked), ask(asked)} == set(NAMES[:2])


def test_how_long_to_wait_is_what_the_first_server_asks(clock: Clock) -> None:
    asked = pool(clock)
    assert asked.wait() is None
    for name, seconds in zip(NAMES[:2], (50.0, 30.0), strict=True):
        while ask(asked, name, CallError("slow", 429, retry_after=seconds)) != name:
            pass
    clock.now += 10
    assert asked.wait() == 20.0


def test_hopeless_servers_are_left_out_for_good(clock: Clock) -> None:
    asked = pool(clock)
    for _ in range(2 * IN_A_ROW):
        ask(asked, NAMES[0], CallError("who?", 401, hopeless=True))
    assert asked.hopeless is None
    clock.now += 1e9
    assert {ask(asked) for _ in range(4)} == {NAMES[1]}
    ask(asked, NAMES[1], CallError("pay", 402, hopeless=True))
    assert str(asked.hopeless) == "pay"
    with pytest.raises(CallError, match="pay"), asked.server(()):
        pass


def test_a_hanging_server_does_not_stall_the_others(clock: Clock) -> None:
    """15 seconds until it times out; the other answers in 50 ms; eight calls at a time."""
    asked = pool(clock)
    calls, workers, answered_by = 2000, 8, dict.fromkeys(NAMES[:2], 0)
    hung = 0
    running: list[tuple[float, int, Server, object]] = []
    begun = 0
    while begun < calls or running:
        while begun < calls and len(running) < workers:
            held = asked.server(())
            server = held.__enter__()
            takes = 15.0 if server.endpoint.name == NAMES[0] else 0.05
            heapq.heappush(running, (clock.now + takes, begun, server, held))
            begun += 1
        clock.now, _, server, held = heapq.heappop(running)
        if server.endpoint.name == NAMES[0]:
            hung += 1
            error = CallError("no reply within 15 s", transient=True)
            with suppress(CallError):
                held.__exit__(type(error), error, None)  # type: ignore[attr-defined]
        else:
            held.__exit__(None, None, None)  # type: ignore[attr-defined]
        answered_by[server.endpoint.name] += 1
    assert hung <= workers, "about half of the workers, once, and a call now and then"
    assert clock.now - 1000.0 < 60.0, "without the hanging server 12.5 s; in turn it were 1,900 s"
