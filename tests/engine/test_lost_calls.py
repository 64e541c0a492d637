"""A fault in the task of a call, or beside it, ends the run with its reason; other replies stay."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest
from asking import ask_calls, service
from chat_server import Answer, Asked, ChatServer, completion, error

from vlmeval_findit.cli import main
from vlmeval_findit.engine import HttpRun, HttpService, LostCallError, Scheduler, http_backend
from vlmeval_findit.models import Budget, Endpoint, HttpEndpoint, chat_model

SWEEP = """
models: [{name: Stub, space: grid1000, served: stub}]
datasets: [Demo]
representations: [xyxy]
outputs: [json]
"""


FAULTS = [
    (Scheduler, "ended", 200, TypeError("a fault")),
    (Scheduler, "ended", 429, ValueError("a fault")),
    (Scheduler, "ended", 200, asyncio.CancelledError("a fault")),
    (Budget, "end", 200, OSError("a fault")),
    (HttpRun, "_result", 200, KeyError("a fault")),
    (HttpEndpoint, "note_refusal", 400, TypeError("a fault")),
    (http_backend, "_outcome_of", 500, RecursionError("a fault")),
]


@pytest.mark.parametrize(("owner", "name", "status", "fault"), FAULTS)
def test_a_fault_waits_for_calls_in_flight(
    owner: Any, name: str, status: int, fault: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    together = threading.Barrier(3)
    died = threading.Event()
    really = getattr(owner, name)

    def fail(*arguments: Any, **named: Any) -> Any:
        if died.is_set():
            return really(*arguments, **named)
        died.set()
        raise fault

    monkeypatch.setattr(owner, name, fail)

    def script(asked: Asked, number: int) -> Answer:
        if number < 3:
            together.wait(60)
        if number == 1:
            return completion("[5]") if status == 200 else error(status, "no")
        assert died.wait(60), "others answer after the fault"
        return completion("[5]")

    seen: list[str] = []
    with ChatServer(script) as server:
        with pytest.raises(LostCallError, match=r"Error: .*run again") as raised:
            ask_calls(service(server.url), 20, at_once=3, seen=seen)
        asked = len(server.asked)
    assert asked <= 4, "nothing begins after a fault"
    assert type(raised.value.__cause__) is type(fault)
    assert seen == ["[5]"] * (asked - 1)


def test_a_fault_beside_the_calls_ends_the_run_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_backend, "_LOOK_SECONDS", 0.01)
    looks = iter(range(1 << 30))
    died = threading.Event()

    def endpoints() -> list[Endpoint]:
        if next(looks) < 2:
            return [Endpoint(server.url)]
        died.set()
        raise TypeError("a fault")

    def script(asked: Asked, number: int) -> Answer:
        assert died.wait(60)
        return completion("[5]")

    seen: list[str] = []
    with ChatServer(script) as server:
        asked = HttpService(chat_model("Qwen3-VL"), endpoints)
        with pytest.raises(LostCallError, match="TypeError: a fault"):
            ask_calls(asked, 20, at_once=3, seen=seen)
    assert seen == ["[5]"] * 3


@pytest.mark.parametrize("stop", [False, True], ids=["waited for", "Ctrl-C meanwhile"])
def test_a_sweep_stores_what_it_has_and_goes_on(
    stop: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    config = tmp_path / "sweep.yaml"
    config.write_text(f"{SWEEP}work_dir: {tmp_path / 'out'}\n")
    died, ended = threading.Event(), Scheduler.ended

    def fail(*arguments: Any, **named: Any) -> None:
        if died.is_set():
            ended(*arguments, **named)
            return
        died.set()
        raise TypeError("a fault")

    def script(asked: Asked, number: int) -> Answer:
        if number:
            assert died.wait(60)
        if number == 1 and stop:
            os.kill(os.getpid(), signal.SIGINT)
        return completion("[[1, 2, 30, 40]]")

    with ChatServer(script) as server:
        command = [
            "sweep",
            str(config),
            "--base-url",
            server.url,
            "--api-nproc",
            "4",
            "--limit",
            "20",
        ]
        with monkeypatch.context() as patch:
            patch.setattr(Scheduler, "ended", fail)
            assert main(command) == 1
        assert "error: a fault of this program ended a call: TypeError: a fault" in (
            " ".join(capsys.readouterr().err.split())
        )
        asked = len(server.asked)
        assert 2 <= asked < 19
        journal = (tmp_path / "out" / "calls.jsonl").read_text().splitlines()
        assert len([line for line in journal if "reply" in json.loads(line)]) == asked - 1
        assert main(command) == 0
        assert len(server.asked) == 20, "only the lost call is asked again"
