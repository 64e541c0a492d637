"""The loop: where a model is asked, what goes on while cells are finished, and how it ends."""

from __future__ import annotations

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
    FakeBackends,
    FakeModel,
    assert_answered_once,
    demo_sweep,
    files,
    go,
    threaded,
)

from vlmeval_findit.engine import answering
from vlmeval_findit.engine.answering import StoppedError
from vlmeval_findit.engine.backend import LocalBackend, ThreadedBackend
from vlmeval_findit.engine.cancel import CancelToken, cancelled_by_signals
from vlmeval_findit.engine.outputs import Output
from vlmeval_findit.models.model_client import GenerateClient

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
    results = go(demo_sweep(tmp_path), FakeBackends(model, backend))
    assert [done for _, done in seen] == [True] * 8
    assert threading.main_thread() not in {thread for thread, _ in seen}
    assert [result.path.exists() for result in results] == [True] * 8


def test_calls_in_flight_are_stored_if_a_cell_cannot_be_finished(
    tmp_path: Path, finishing: Finishing
) -> None:
    def fail(output: Output) -> None:
        raise ArithmeticError("of a scorer")

    finishing(fail)
    model, sweep = FakeModel(), demo_sweep(tmp_path)
    with pytest.raises(ArithmeticError):
        go(sweep, FakeBackends(model, threaded(4)))
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
        go(demo_sweep(tmp_path), FakeBackends(FakeModel(at_the_last)), stop=stop)
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
        go(demo_sweep(tmp_path), FakeBackends(FakeModel()), stop=stop)
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
        go(demo_sweep(tmp_path), FakeBackends(None, lambda _: built), stop=stop)
    whole = FakeModel()
    go(demo_sweep(tmp_path), FakeBackends(whole))
    assert whole.calls == CALLS
    assert len(files(tmp_path / "out")) == 8 * 5
