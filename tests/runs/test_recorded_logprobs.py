"""--logprobs over servers and journals: what is asked again, and what is not."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from pathlib import Path

import pytest
from asking import ask_calls, service
from chat_server import Answer, Asked, ChatServer, completion, error
from engine_fakes import FakeBackends, FakeModel, answered_keys, demo_sweep, go

from vlmeval_findit.core.identity import read_identity
from vlmeval_findit.core.predictions import XLSX_CELL_LIMIT, read_predictions, write_rows
from vlmeval_findit.core.replies import Recorded, TokenLogprobs
from vlmeval_findit.engine.backend import CallOptions
from vlmeval_findit.engine.named_servers import ServerBackends
from vlmeval_findit.sweeps.sweep_file import Sweep
from vlmeval_findit.sweeps.sweep_run import UnfinishedError

CONFIG = """
models: Qwen3-VL
datasets: [Demo]
representations: [xyxy]
"""
CALLS = 19
TEXT = "[[1, 2, 3, 4]]"


def with_logprobs(asked: Asked, number: int) -> Answer:
    """Return a server that gives log-probabilities where it is asked for them."""
    if "logprobs" not in asked.body:
        return completion(TEXT)
    assert asked.body["logprobs"] is True
    tokens = [{"token": TEXT[:5], "logprob": -0.25}, {"token": TEXT[5:], "logprob": -0.5}]
    message = {"role": "assistant", "content": TEXT}
    choice = {"finish_reason": "stop", "message": message, "logprobs": {"content": tokens}}
    return completion(choices=[choice])


def ignores(asked: Asked, number: int) -> Answer:
    return completion(TEXT)


def refuses(asked: Asked, number: int) -> Answer:
    if "logprobs" in asked.body:
        return error(400, "logprobs are not supported with reasoning models.")
    return completion(TEXT)


TOKENS = TokenLogprobs((5, len(TEXT)), (-0.25, -0.5))


def run(sweep: Sweep, server: ChatServer) -> int:
    """Run a sweep; returns how many requests it made."""
    before = len(server.asked)
    (result,) = go(sweep, ServerBackends([server.url], CallOptions(threads=2)))
    assert result.failed == 0
    return len(server.asked) - before


def predictions(sweep: Sweep) -> list[Path]:
    return list(sweep.work_dir.rglob("Qwen3-VL_FindIt_Demo_xyxy_json*2d.json"))


def digest(sweep: Sweep) -> str:
    (path,) = predictions(sweep)
    run = read_identity(path)
    assert run is not None
    return run.digest


def recorded(sweep: Sweep) -> set[TokenLogprobs | None]:
    (path,) = predictions(sweep)
    return {reply.recorded.token_logprobs for reply in read_predictions(path)}


@pytest.fixture
def sweep(tmp_path: Path) -> Sweep:
    return demo_sweep(tmp_path, CONFIG)


def single_format(sweep: Sweep) -> Sweep:
    axes = replace(sweep.stages[0], outputs=("json",), keys=("bbox_2d",))
    return replace(sweep, stages=(axes,))


def test_without_and_then_with_asks_again_and_says_so(
    sweep: Sweep, caplog: pytest.LogCaptureFixture
) -> None:
    sweep = single_format(sweep)
    with_them = replace(sweep, logprobs=True)
    with ChatServer(with_logprobs) as server:
        assert run(sweep, server) == CALLS
        assert recorded(sweep) == {None}
        before = digest(sweep)
        assert run(with_them, server) == CALLS
        assert f"{CALLS} answers have no log-probabilities and are asked for again" in caplog.text
        assert recorded(sweep) == {TOKENS}
        assert digest(sweep) == before, "the runs can be compared"
        assert run(with_them, server) == run(sweep, server) == 0
    keys = answered_keys(sweep.journal)
    assert len(keys) == 2 * CALLS
    assert len(set(keys)) == CALLS


def test_another_runner_takes_them_from_the_predictions(sweep: Sweep, tmp_path: Path) -> None:
    """The journal was lost."""
    sweep = single_format(sweep)
    with_them = replace(sweep, logprobs=True)
    with ChatServer(with_logprobs) as server:
        run(with_them, server)
        sweep.journal.write_bytes(b"")
        assert run(with_them, server) == 0
        assert recorded(sweep) == {TOKENS}


def test_a_run_that_was_killed_between_goes_on(sweep: Sweep) -> None:
    """The predictions have the old replies, the journal some new and other ones."""
    sweep = single_format(sweep)

    def moody(asked: Asked, number: int) -> Answer:
        return (
            with_logprobs(asked, number)
            if "logprobs" in asked.body
            else completion("[[1, 2, 3, 5]]")
        )

    with ChatServer(moody) as server:
        run(sweep, server)
        old = predictions(sweep)[0].read_bytes()
        with_them = replace(sweep, logprobs=True)
        run(with_them, server)
        predictions(sweep)[0].write_bytes(old)
        assert run(with_them, server) == 0
        assert recorded(sweep) == {TOKENS}


def test_a_server_that_gives_none_keeps_its_replies(
    sweep: Sweep, caplog: pytest.LogCaptureFixture
) -> None:
    with_them = replace(single_format(sweep), logprobs=True)
    with ChatServer(ignores) as server:
        assert run(with_them, server) == CALLS
        assert recorded(sweep) == {None}
        assert caplog.text.count("its reply has no logprobs") == 1
        assert run(with_them, server) == 0, "asked for once, and paid for once"


def test_a_server_that_refuses_is_not_asked_again_and_again(sweep: Sweep) -> None:
    sweep = single_format(sweep)
    with ChatServer(refuses) as server:
        with pytest.raises(UnfinishedError, match="run without --logprobs"):
            run(replace(sweep, logprobs=True), server)
        assert len(server.asked) <= 4, "the first of each thread"
        assert run(sweep, server) == CALLS


def test_where_one_of_two_servers_refuses_the_other_answers() -> None:
    with ChatServer(refuses) as first, ChatServer(with_logprobs) as second:
        answers = ask_calls(service([first.url, second.url]), 3, logprobs=True)
        assert [answer.error for answer in answers] == [None] * 3
        assert len(first.asked) == 1


def test_a_failed_second_call_leaves_the_first_answer(sweep: Sweep) -> None:
    sweep = single_format(sweep)

    def script(asked: Asked, number: int) -> Answer:
        fails = "logprobs" in asked.body and number < 2 * CALLS
        return error(413, "too large") if fails else with_logprobs(asked, number)

    with ChatServer(script) as server:
        run(sweep, server)
        with_them = replace(sweep, logprobs=True)
        (result,) = go(with_them, ServerBackends([server.url], CallOptions(threads=1)))
        assert result.failed == CALLS, "they are asked again by the next run"
        assert {reply.text for reply in read_predictions(result.path)} == {TEXT}
        assert run(with_them, server) == CALLS
        assert recorded(sweep) == {TOKENS}


def test_a_model_that_has_none_says_so_once(sweep: Sweep, caplog: pytest.LogCaptureFixture) -> None:
    model = FakeModel()
    with_them = replace(single_format(sweep), logprobs=True)
    go(with_them, FakeBackends(model))
    assert model.calls == CALLS
    assert caplog.text.count("FakeModel records no log-probabilities") == 1
    go(with_them, FakeBackends(model))
    assert model.calls == CALLS


def test_a_sheet_leaves_them_out_whole_and_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    space = {"kind": "grid1000"}
    few, many = (
        Recorded(space, "stop", token_logprobs=TokenLogprobs((1,) * count, (-0.1234,) * count))
        for count in (10, 5000)
    )
    thinks = replace(many, thought="so " * 20_000)
    built = [few, many, thinks]
    rows = [
        {"index": at, "prediction": "[]", "extra_records": item.as_json()}
        for at, item in enumerate(built)
    ]
    for name in ("run.json", "run.tsv", "run.xlsx"):
        write_rows(tmp_path / name, lambda: rows)
    for name in ("run.json", "run.tsv"):
        assert [item.recorded for item in read_predictions(tmp_path / name)] == built
    assert "the records of 2 replies are longer" in caplog.text
    actual = [item.recorded for item in read_predictions(tmp_path / "run.xlsx")]
    assert actual == [few, replace(many, token_logprobs=None), Recorded(space, "stop")]
    assert all(len(json.dumps(item.as_json())) < XLSX_CELL_LIMIT for item in actual)
    assert caplog.records[-1].levelno == logging.WARNING


def test_the_same_twice_then_without_then_with(sweep: Sweep) -> None:
    sweep = single_format(sweep)
    with_them = replace(sweep, logprobs=True)
    with ChatServer(with_logprobs) as server:
        assert run(with_them, server) == CALLS
        assert recorded(sweep) == {TOKENS}
        assert run(with_them, server) == 0
        assert run(sweep, server) == 0, "an answer with them serves a run without"
        assert recorded(sweep) == {TOKENS}
