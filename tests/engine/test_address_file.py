"""``--base-url @FILE``: addresses that come and go while they are asked."""

from __future__ import annotations

import logging
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from asking import QUESTION, QUICK, ask_calls
from chat_server import Answer, Asked, ChatServer, completion
from waits import until

from vlmeval_findit.engine import AtServer, HttpService, http_backend
from vlmeval_findit.models import AddressFile, Endpoint, ModelEntry, chat_model


def names(followed: AddressFile) -> list[str]:
    return [item.name for item in followed()]


def test_it_is_followed(tmp_path: Path) -> None:
    path = tmp_path / "servers"
    followed = AddressFile(path, Endpoint)
    assert names(followed) == []
    assert str(followed) == f"{path}, which does not exist"
    path.write_text("# of job 7\nhttp://a:1/v1\n\nhttp://b:2/v1  # node 2\nhttp://a:1/v1\n")
    assert names(followed) == ["http://a:1/v1", "http://b:2/v1"]
    path.unlink()
    assert names(followed) == []
    path.write_text("http://d:4/v1\n")
    assert names(followed) == ["http://d:4/v1"]
    described = AtServer(ModelEntry("Qwen3-VL", base_url=f"@{path}")).describe(QUESTION)
    assert described.answering.endpoint is None, "they are others in the next run"


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


def test_servers_come_and_go_while_they_are_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_backend, "_LOOK_SECONDS", 0.02)
    path = tmp_path / "servers"
    looks = list[int]()
    asked_when_gone = list[int]()
    followed = AddressFile(path, Endpoint)

    def endpoints() -> list[Endpoint]:
        looks.append(1)
        return followed()

    def of_first(asked: Asked, number: int) -> Answer:
        if number == 4:
            path.write_text(f"{first.url}\n{second.url}\n")
        return replace(completion(), delay=0.05)

    def of_second(asked: Asked, number: int) -> Answer:
        if number == 0:
            path.write_text(f"{second.url}\n")
            before = len(looks)
            until(lambda: len(looks) > before + 2)
            asked_when_gone.append(len(first.asked))
        return completion()

    with ChatServer(of_first) as first, ChatServer(of_second) as second:
        threading.Timer(0.2, path.write_text, [f"{first.url}\n"]).start()
        answers = ask_calls(HttpService(chat_model("Qwen3-VL"), endpoints, policy=QUICK), 20)
        assert [answer.error for answer in answers] == [None] * 20
        assert len(first.asked) + len(second.asked) == 20, "every call is made once"
        assert 5 <= len(first.asked) <= asked_when_gone[0] + 1, "not asked after it left the file"
