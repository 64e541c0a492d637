"""--logprobs over servers and journals: what is asked again, and what is not."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from asking import ask_calls, service
from chat_server import Answer, Asked, ChatServer, completion, error
from engine_fakes import FakeDeployment, FakeModel, answered_keys, demo_sweep, go, servers

from vlmeval_findit.protocol import ReplyRecord, TokenLogprobs
from vlmeval_findit.storage import (
    XLSX_CELL_LIMIT,
    read_identity,
    read_predictions,
    record_text,
    write_rows,
)
from vlmeval_findit.sweeps import Sweep, UnfinishedError

CONFIG = """
models: Qwen3-VL
datasets: [Demo]
representations: [xyxy]
outputs: json
keys: bbox_2d
"""
CALLS = 19
TEXT = "[[1, 2, 3, 4]]"
TOKENS = TokenLogprobs((5, len(TEXT)), (-0.25, -0.5))


def gives(asked: Asked, number: int) -> Answer:
    """Give log-probabilities where it is asked for them."""
    if "logprobs" not in asked.body:
        return completion(TEXT)
    assert asked.body["logprobs"] is True
    tokens = [{"token": TEXT[:5], "logprob": -0.25}, {"token": TEXT[5:], "logprob": -0.5}]
    message = {"role": "assistant", "content": TEXT}
    choice = {"finish_reason": "stop", "message": message, "logprobs": {"content": tokens}}
    return completion(choices=[choice])


def refuses(asked: Asked, number: int) -> Answer:
    if "logprobs" in asked.body:
        return error(400, "logprobs are not supported with reasoning models.")
    return completion(TEXT)


def run(sweep: Sweep, server: ChatServer) -> int:
    """Run a sweep; returns how many requests it made."""
    before = len(server.asked)
    (result,) = go(sweep, servers(server.url, threads=2))
    assert result.failed == 0
    return len(server.asked) - before


def predictions(sweep: Sweep) -> Path:
    (path,) = sweep.work_dir.rglob("Qwen3-VL_FindIt_Demo_xyxy_json*2d.json")
    return path


def recorded(sweep: Sweep) -> set[TokenLogprobs | None]:
    return {reply.recorded.token_logprobs for reply in read_predictions(predictions(sweep))}


@pytest.fixture
def sweep(tmp_path: Path) -> Sweep:
    return demo_sweep(tmp_path, CONFIG)


@pytest.fixture
def with_them(sweep: Sweep) -> Sweep:
    return replace(sweep, logprobs=True)


def test_what_was_asked_without_them_is_asked_again_once(
    sweep: Sweep, with_them: Sweep, caplog: pytest.LogCaptureFixture
) -> None:
    with ChatServer(gives) as server:
        assert run(sweep, server) == CALLS
        assert recorded(sweep) == {None}
        before = read_identity(predictions(sweep)).digest
        assert run(with_them, server) == CALLS
        assert f"{CALLS} answers have no log-probabilities and are asked for again" in caplog.text
        assert recorded(sweep) == {TOKENS}
        assert read_identity(predictions(sweep)).digest == before, "the runs can be compared"
        assert run(with_them, server) == 0
        assert run(sweep, server) == 0, "an answer with them serves a run without"
        assert recorded(sweep) == {TOKENS}
        keys = answered_keys(sweep.journal)
        assert (len(keys), len(set(keys))) == (2 * CALLS, CALLS)
        sweep.journal.write_bytes(b"")
        assert run(with_them, server) == 0, "without a journal they are in the predictions"
        assert recorded(sweep) == {TOKENS}


def test_a_run_that_was_killed_between_goes_on(sweep: Sweep, with_them: Sweep) -> None:
    """The predictions have the old replies, the journal some new and other ones."""

    def moody(asked: Asked, number: int) -> Answer:
        return gives(asked, number) if "logprobs" in asked.body else completion("[[1, 2, 3, 5]]")

    with ChatServer(moody) as server:
        run(sweep, server)
        old = predictions(sweep).read_bytes()
        run(with_them, server)
        predictions(sweep).write_bytes(old)
        assert run(with_them, server) == 0
        assert recorded(sweep) == {TOKENS}


def test_a_server_that_gives_none_keeps_its_replies(
    with_them: Sweep, caplog: pytest.LogCaptureFixture
) -> None:
    with ChatServer(lambda asked, number: completion(TEXT)) as server:
        assert run(with_them, server) == CALLS
        assert recorded(with_them) == {None}
        assert caplog.text.count("its reply has no logprobs") == 1
        assert run(with_them, server) == 0, "asked for once, and paid for once"


def test_a_server_that_refuses_is_not_asked_again_and_again(sweep: Sweep, with_them: Sweep) -> None:
    with ChatServer(refuses) as server:
        with pytest.raises(UnfinishedError, match="run without --logprobs"):
            run(with_them, server)
        assert len(server.asked) <= 4, "the first of each thread"
        assert run(sweep, server) == CALLS
    with ChatServer(refuses) as first, ChatServer(gives) as second:
        answers = ask_calls(service([first.url, second.url]), 3, logprobs=True)
        assert [answer.error for answer in answers] == [None] * 3, "where another answers"
        assert len(first.asked) == 1


def test_a_failed_second_call_leaves_the_first_answer(sweep: Sweep, with_them: Sweep) -> None:
    def script(asked: Asked, number: int) -> Answer:
        fails = "logprobs" in asked.body and number < 2 * CALLS
        return error(413, "too large") if fails else gives(asked, number)

    with ChatServer(script) as server:
        run(sweep, server)
        (result,) = go(with_them, servers(server.url, threads=1))
        assert result.failed == CALLS, "they are asked again by the next run"
        assert {reply.text for reply in read_predictions(result.path)} == {TEXT}
        assert run(with_them, server) == CALLS
        assert recorded(sweep) == {TOKENS}


def test_a_model_that_has_none_says_so_once(
    with_them: Sweep, caplog: pytest.LogCaptureFixture
) -> None:
    model = FakeModel()
    for _ in range(2):
        go(with_them, FakeDeployment(model))
        assert model.calls == CALLS
        assert caplog.text.count("FakeModel records no log-probabilities") == 1


def test_a_sheet_leaves_them_out_whole_and_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    space = {"kind": "grid1000"}
    few, many = (
        ReplyRecord(space, "stop", token_logprobs=TokenLogprobs((1,) * count, (-0.1234,) * count))
        for count in (10, 5000)
    )
    records = [few, many, replace(many, thought="so " * 20_000)]
    rows = [
        {"index": at, "prediction": "[]", "extra_records": record_text(each)}
        for at, each in enumerate(records)
    ]
    short = [few, replace(many, token_logprobs=None), ReplyRecord(space, "stop")]
    assert all(len(json.dumps(record_text(each))) < XLSX_CELL_LIMIT for each in short)
    for name, expected in (("run.json", records), ("run.tsv", records), ("run.xlsx", short)):
        write_rows(tmp_path / name, lambda: rows)
        assert [reply.recorded for reply in read_predictions(tmp_path / name)] == expected
    assert caplog.text.count("the records of 2 replies are longer") == 1
