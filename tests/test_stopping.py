"""Ctrl-C and SIGTERM, once and twice, as a process gets them."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest
from hanging_sweep import QUICK, THREADS, hanging, one_line

from vlmeval_findit.engine.stopping import Stopping, stopped_by_signals

SIGNALS = [signal.SIGINT, signal.SIGTERM]


@pytest.mark.parametrize("number", SIGNALS)
def test_once_what_is_on_its_way_is_kept_and_nothing_else_begins(
    number: int, tmp_path: Path
) -> None:
    with hanging("threads", tmp_path) as run:
        run.until(lambda: run.asked() == QUICK + THREADS)
        run.stop(number)
        run.release()
        assert run.ends() == 130
    assert run.asked() == run.answered() == QUICK + THREADS
    assert "run again to go on" in one_line(run)


@pytest.mark.parametrize("kind", ["threads", "cancelled", "local"])
@pytest.mark.parametrize("number", SIGNALS)
def test_twice_what_came_is_kept_and_it_ends_at_once(
    number: int, kind: str, tmp_path: Path
) -> None:
    hang = 1 if kind == "local" else THREADS
    with hanging(kind, tmp_path) as run:
        run.until(lambda: run.asked() == QUICK + hang)
        run.stop(number)
        os.kill(run.process.pid, number)
        assert run.ends() == 130
    assert run.answered() == QUICK
    assert run.asked() == QUICK + hang
    assert "stopped at once" in one_line(run)
    assert not list(tmp_path.rglob("*.lock")), "nothing stays locked"


# --- in this process ------------------------------------------------------------------------------


def test_handlers_are_put_back_and_told_once() -> None:
    before = [signal.getsignal(number) for number in SIGNALS]
    told: list[str] = []
    with stopped_by_signals(told.append) as stop:
        assert not stop.is_set()
        signal.raise_signal(signal.SIGTERM)
        assert stop.is_set()
        assert not stop.now
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        assert stop.now
    assert len(told) == 1
    assert [signal.getsignal(number) for number in SIGNALS] == before


def test_other_threads_have_no_signals() -> None:
    seen: list[bool] = []

    def run() -> None:
        with stopped_by_signals() as stop:
            seen.append(stop.is_set())

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert seen == [False]


def test_an_interruption_waits_for_what_is_shielded() -> None:
    stop = Stopping()
    woken: list[str] = []
    with pytest.raises(KeyboardInterrupt):  # noqa: SIM117, PT012
        with stop.shielded(lambda: woken.append("outer")):
            with stop.shielded(lambda: woken.append("inner")):
                stop.interrupt()
                woken.append("went on")
            woken.append("and on")
    assert woken == ["outer", "inner", "went on", "and on"]
    with pytest.raises(KeyboardInterrupt):
        stop.interrupt()


def test_an_exception_is_not_replaced_by_an_interruption() -> None:
    stop = Stopping()
    with pytest.raises(ZeroDivisionError), stop.shielded():  # noqa: PT012
        stop.interrupt()
        raise ZeroDivisionError


def test_a_part_stops_with_the_whole_and_not_the_other_way_round() -> None:
    whole = Stopping()
    part = Stopping(whole)
    part.set()
    assert part.is_set()
    assert not whole.is_set()
    other = Stopping(whole)
    whole.set()
    assert other.is_set()
    woken: list[bool] = []
    with pytest.raises(KeyboardInterrupt), part.shielded(lambda: woken.append(True)):
        whole.interrupt()
    assert woken
    assert part.now
    assert other.now
