"""Ctrl-C and SIGTERM, once and twice, and SIGKILL, as a process gets them.

Batches and Ray are killed in ``test_batches.py`` and ``test_ray.py``, VLMEvalKit's runner in
``test_host_inference.py``.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
from engine_fakes import CALLS, answered_keys, demo_sweep, go
from hanging_sweep import QUICK, THREADS, hanging, host, stop_line

from vlmeval_findit.core.answers import CancelledError
from vlmeval_findit.engine.cancel import CancelToken, cancelled_by_signals

AT_ONCE = 60.0
"""Seconds: a busy machine ends a process in less; the calls that hang would hang on."""

SIGNALS = [signal.SIGINT, signal.SIGTERM]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "number"), [("threads", signal.SIGINT), ("http", signal.SIGTERM)])
def test_first_signal_stores_calls_in_flight_and_begins_no_other(
    number: int, kind: str, tmp_path: Path
) -> None:
    with hanging(kind, tmp_path) as run:
        run.until(lambda: run.asked() == QUICK + THREADS)
        run.stop(number)
        run.release()
        assert run.ends() == 130
    assert run.asked() == run.answered() == QUICK + THREADS
    assert "run again to go on" in stop_line(run)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "number"),
    [("threads", signal.SIGTERM), ("http", signal.SIGINT), *[("local", item) for item in SIGNALS]],
)
def test_second_signal_ends_at_once_and_loses_no_answer(
    number: int, kind: str, tmp_path: Path
) -> None:
    hang = 1 if kind == "local" else THREADS
    with hanging(kind, tmp_path) as run:
        run.until(lambda: run.asked() == QUICK + hang)
        run.stop(number)
        os.kill(run.process.pid, number)
        began = time.monotonic()
        assert run.ends() == 130
        assert time.monotonic() - began < AT_ONCE
    assert run.answered() == QUICK
    assert run.asked() == QUICK + hang
    assert "stopped at once" in stop_line(run)
    assert not list(tmp_path.rglob("*.lock")), "nothing stays locked"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["local", "threads", "http"])
def test_a_killed_run_goes_on_and_pays_no_answer_twice(kind: str, tmp_path: Path) -> None:
    hang = 1 if kind == "local" else THREADS
    with hanging(kind, tmp_path) as run:
        run.until(lambda: run.asked() == QUICK + hang and run.answered() == QUICK)
        run.process.kill()
        assert run.ends() == -signal.SIGKILL
        run.release()
        results = go(demo_sweep(tmp_path), host(kind, tmp_path, run.url))
        assert run.asked() == hang + CALLS, "no answered call is made again"
    assert not any(result.failed for result in results)
    keys = answered_keys(tmp_path / "calls.jsonl")
    assert len(keys) == len(set(keys)) == CALLS


# --- in this process ------------------------------------------------------------------------------


def test_handlers_are_restored_and_the_message_comes_once() -> None:
    before = [signal.getsignal(number) for number in SIGNALS]
    messages: list[str] = []
    with cancelled_by_signals(messages.append) as stop:
        assert not stop.requested
        signal.raise_signal(signal.SIGTERM)
        assert stop.requested
        assert not stop.now
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        assert stop.now
    assert len(messages) == 1
    assert [signal.getsignal(number) for number in SIGNALS] == before


def test_an_interruption_waits_for_what_is_shielded() -> None:
    stop = CancelToken()
    events: list[str] = []
    with pytest.raises(KeyboardInterrupt):  # noqa: SIM117, PT012
        with stop.shielded(), stop.on_request(lambda: events.append("outer")):
            with stop.shielded(), stop.on_request(lambda: events.append("inner")):
                stop.interrupt()
                events.append("went on")
            events.append("and on")
    assert events == ["outer", "inner", "went on", "and on"]
    with pytest.raises(KeyboardInterrupt):
        stop.interrupt()


def test_what_is_exposed_is_interrupted_within_a_shield() -> None:
    stop = CancelToken()
    events: list[str] = []
    with pytest.raises(KeyboardInterrupt), stop.shielded():  # noqa: PT012
        with pytest.raises(CancelledError), CancelToken(stop).exposed():  # noqa: PT012
            stop.interrupt()
            events.append("went on")
        with pytest.raises(CancelledError), stop.exposed():
            events.append("began")
    assert not events


def test_a_part_stops_with_the_whole_and_not_the_other_way_round() -> None:
    whole = CancelToken()
    part = CancelToken(whole)
    part.request()
    assert part.requested
    assert not whole.requested
    other = CancelToken(whole)
    whole.request()
    assert other.requested
    woken: list[bool] = []
    with pytest.raises(KeyboardInterrupt), part.shielded():  # noqa: SIM117
        with part.on_request(lambda: woken.append(True)):
            whole.interrupt()
    assert woken
    assert part.now
    assert other.now
