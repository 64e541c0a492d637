"""Ctrl-C and SIGTERM, once and twice, and SIGKILL, as a process gets them.

Batches and Ray are killed in ``test_batches.py`` and ``test_ray.py``, VLMEvalKit's runner in
``test_host_inference.py``.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from engine_fakes import CALLS, assert_answered_once, demo_sweep, go
from hanging_sweep import QUICK, THREADS, hanging, host, stop_line

from vlmeval_findit.engine.cancel import CancelToken, cancelled_by_signals

SIGNALS = [signal.SIGINT, signal.SIGTERM]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "number", "times"),
    [
        ("threads", signal.SIGINT, 1),
        ("http", signal.SIGTERM, 1),
        ("threads", signal.SIGTERM, 2),
        ("http", signal.SIGINT, 2),
        *(("local", number, 2) for number in SIGNALS),
        *((kind, signal.SIGKILL, 1) for kind in ("local", "threads", "http")),
    ],
)
def test_an_ended_run_begins_no_other_call_and_goes_on_without_paying_twice(
    kind: str, number: int, times: int, tmp_path: Path
) -> None:
    hang = 1 if kind == "local" else THREADS
    stored = QUICK
    with hanging(kind, tmp_path) as run:
        run.until(lambda: (run.asked(), run.answered()) == (QUICK + hang, QUICK))
        if number == signal.SIGKILL:
            run.process.kill()
            assert run.ends() == -signal.SIGKILL
        else:
            run.stop(number)
            if times == 2:
                os.kill(run.process.pid, number)
            else:
                run.release()
                stored += hang
            assert run.ends() == 130
            assert ("run again to go on", "stopped at once")[times - 1] in stop_line(run)
            assert not list(tmp_path.rglob("*.lock")), "nothing stays locked"
        assert run.answered() == stored
        assert run.asked() == QUICK + hang

        run.release()
        results = go(demo_sweep(tmp_path), host(kind, tmp_path, run.url))
        assert run.asked() == QUICK + hang + CALLS - stored
    assert not any(result.failed for result in results)
    assert_answered_once(tmp_path / "calls.jsonl", CALLS)


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


def test_a_part_stops_with_the_whole_and_not_the_other_way_round() -> None:
    whole = CancelToken()
    part, other = CancelToken(whole), CancelToken(whole)
    part.request()
    assert part.requested
    assert not whole.requested
    whole.request()
    assert other.requested
    woken: list[bool] = []
    with pytest.raises(KeyboardInterrupt), part.shielded():  # noqa: SIM117
        with part.on_request(lambda: woken.append(True)):
            whole.interrupt()
    assert woken
    assert part.now
    assert other.now
