"""The loop: where a model is asked, what goes on while cells are finished, and how it ends.

Batches and Ray are killed in ``test_batches.py`` and ``test_ray.py``, VLMEvalKit's runner in
``test_host_inference.py``.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from engine_fakes import (
    CALLS,
    FakeDeployment,
    FakeModel,
    assert_answered_once,
    demo_sweep,
    files,
    go,
    threaded,
)
from hanging_sweep import QUICK, THREADS, hanging, host, stop_line

from vlmeval_findit.engine import (
    CancelToken,
    LocalBackend,
    Output,
    StoppedError,
    ThreadedBackend,
    answering,
    cancelled_by_signals,
)
from vlmeval_findit.models import GenerateClient

SIGNALS = [signal.SIGINT, signal.SIGTERM]
Finishing = Callable[[Callable[[Output], object]], None]


@pytest.fixture
def finishing(monkeypatch: pytest.MonkeyPatch) -> Finishing:
    """Have something happen before the files of each cell are written."""
    real = answering.finished_cell

    def instead(before: Callable[[Output], object]) -> None:
        def finished_cell(output: Output, *others: Any) -> Any:
            before(output)
            return real(output, *others)

        monkeypatch.setattr(answering, "finished_cell", finished_cell)

    return instead


@pytest.mark.parametrize("backend", [None, threaded(2)], ids=["local", "threads"])
def test_calls_go_on_while_a_cell_is_finished(
    backend: Any, tmp_path: Path, finishing: Finishing
) -> None:
    asked, seen = threading.Event(), []
    model = FakeModel(lambda number, text: asked.set() if number == CALLS else None)
    finishing(lambda output: seen.append((threading.current_thread(), asked.wait(60))))
    results = go(demo_sweep(tmp_path), FakeDeployment(model, backend))
    assert [done for _, done in seen] == [True] * 8
    assert threading.main_thread() not in {thread for thread, _ in seen}
    assert [result.path.exists() for result in results] == [True] * 8


def test_calls_in_flight_are_stored_if_a_cell_fails(tmp_path: Path, finishing: Finishing) -> None:
    def fail(output: Output) -> None:
        raise ArithmeticError("of a scorer")

    finishing(fail)
    model, sweep = FakeModel(), demo_sweep(tmp_path)
    with pytest.raises(ArithmeticError):
        go(sweep, FakeDeployment(model, threaded(4)))
    assert_answered_once(sweep.journal, model.calls)


def test_the_cells_that_were_complete_are_finished_after_a_stop(
    tmp_path: Path, finishing: Finishing
) -> None:
    stop, asked, finished = CancelToken(), threading.Event(), []

    def at_the_last(number: int, text: str) -> None:
        if number == CALLS - 1:
            stop.request()
            asked.set()

    finishing(lambda output: finished.append(asked.wait(60)))
    with pytest.raises(StoppedError):
        go(demo_sweep(tmp_path), FakeDeployment(FakeModel(at_the_last)), stop=stop)
    assert finished == [True] * 7


def test_interrupted_it_does_not_wait_for_a_cell(tmp_path: Path, finishing: Finishing) -> None:
    over, stop = threading.Event(), CancelToken()

    def hang(output: Output) -> None:
        stop.request()
        with suppress(KeyboardInterrupt):
            stop.interrupt()
        over.wait(120)

    finishing(hang)
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        go(demo_sweep(tmp_path), FakeDeployment(FakeModel()), stop=stop)
    assert time.monotonic() - start < 100
    over.set()


@pytest.mark.parametrize("kind", ["local", "threads"])
def test_a_model_that_is_interrupted_while_it_is_loaded(kind: str, tmp_path: Path) -> None:
    def load() -> GenerateClient:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        pytest.fail("it went on")

    built = LocalBackend(load) if kind == "local" else ThreadedBackend(load, 2)
    with cancelled_by_signals(lambda line: None) as stop, pytest.raises(KeyboardInterrupt):
        go(demo_sweep(tmp_path), FakeDeployment(None, lambda _: built), stop=stop)
    whole = FakeModel()
    go(demo_sweep(tmp_path), FakeDeployment(whole))
    assert whole.calls == CALLS
    of_each = ("", "_identity", "_details", "_sums", "_provenance", "_score")
    assert len(files(tmp_path / "out")) == 8 * len(of_each)


# --- signals --------------------------------------------------------------------------------------


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
def test_an_ended_run_resumes_without_paying_twice(
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


def test_a_part_stops_with_the_whole() -> None:
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
