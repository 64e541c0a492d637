"""``--base-url @FILE``: addresses that come and go while they are asked."""

from __future__ import annotations

import json
import logging
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from chat_server import Answer, Asked, ChatServer, completion
from engine_fakes import demo_sweep, go

from vlmeval_findit.engine import http_backend
from vlmeval_findit.engine.backend import CallOptions
from vlmeval_findit.engine.http_backend import HttpService
from vlmeval_findit.engine.named_servers import ServerBackends
from vlmeval_findit.models.http.addresses import AddressFile
from vlmeval_findit.models.http.endpoint import Endpoint


def names(followed: AddressFile) -> list[str]:
    return [item.name for item in followed()]


def test_it_is_followed(tmp_path: Path) -> None:
    path = tmp_path / "servers"
    followed = AddressFile(path, Endpoint)
    assert names(followed) == []
    path.write_text("# of job 7\nhttp://a:1/v1\n\nhttp://b:2/v1  # node 2\nhttp://a:1/v1\n")
    assert names(followed) == ["http://a:1/v1", "http://b:2/v1"]
    path.write_text("http://c:3/v1\n")
    assert names(followed) == ["http://c:3/v1"]
    path.unlink()
    assert names(followed) == []
    path.write_text("http://d:4/v1\n")
    assert names(followed) == ["http://d:4/v1"]


def test_a_line_that_is_no_address(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "servers"
    path.write_text("http://a:1/v1\nnode7:8000\n")
    with pytest.raises(ValueError, match=r"line 2: the base URL 'node7:8000' should"):
        AddressFile(path, Endpoint)
    path.write_text("http://a:1/v1\n")
    followed = AddressFile(path, Endpoint)
    path.write_text("http://a:1/v1\nnode7:8000\n")
    with caplog.at_level(logging.WARNING):
        assert names(followed) == names(followed) == ["http://a:1/v1"]
    assert caplog.text.count("line 2: ") == 1
    path.write_text("http://a:1/v1\nhttp://node7:8000/v1\n")
    assert len(names(followed)) == 2


# --- while a sweep asks ---------------------------------------------------------------------------


CONFIG = """
models: [{name: Qwen3-VL}]
datasets: [FindIt_Demo_xyxy_json, FindIt_Demo_refexp_xyxy_json]
"""


@pytest.mark.slow
def test_servers_come_and_go_while_they_are_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_backend, "_LOOK_SECONDS", 0.05)
    path = tmp_path / "servers"
    asked_when_gone: list[int] = []
    polls, refresh = list[list[str]](), HttpService.refresh

    def counted(service: HttpService) -> list[str]:
        polls.append(refresh(service))
        return polls[-1]

    monkeypatch.setattr(HttpService, "refresh", counted)

    def of_first(asked: Asked, number: int) -> Answer:
        if number == 4:
            path.write_text(f"{first.url}\n{second.url}\n")
        return replace(completion("[]"), delay=0.1)

    def of_second(asked: Asked, number: int) -> Answer:
        if number == 0:
            path.write_text(f"{second.url}\n")
            before = len(polls)
            while len(polls) < before + 3:
                time.sleep(0.01)
            asked_when_gone.append(len(first.asked))
        return replace(completion("[]"), delay=0.1)

    with ChatServer(of_first) as first, ChatServer(of_second) as second:
        begin = threading.Timer(0.5, path.write_text, [f"{first.url}\n"])
        begin.start()
        sweep = demo_sweep(tmp_path, CONFIG, limit=10)
        results = go(sweep, ServerBackends([f"@{path}"], CallOptions(threads=1)))
        begin.join()
    assert [(item.rows, item.failed) for item in results] == [(10, 0), (10, 0)]
    assert len(first.asked) + len(second.asked) == 20, "every call is made once"
    assert len(first.asked) >= 5
    (asked,) = asked_when_gone
    assert len(first.asked) <= asked + 1, "asked after it left the file"
    stored = results[0].path
    identity = json.loads(stored.with_name(f"{stored.stem}_identity.json").read_text())
    assert identity["answering"]["endpoint"] is None, "they are others in the next run"
