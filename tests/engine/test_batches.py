"""Sweeps in batches: nothing is paid twice, and they end as single calls do."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from batch_server import BatchServer, BatchSettings, one_box
from engine_fakes import answered_keys, files, records

from vlmeval_findit.cli import main
from vlmeval_findit.core.replies import record_in
from vlmeval_findit.engine.journal.view import JournalView
from vlmeval_findit.engine.journal.writer import DiskFullError, Journal
from vlmeval_findit.models.http.batch.services import AnthropicBatches, BatchService
from vlmeval_findit.models.http.completion import CallError

NAMES = ("openai", "anthropic")

SWEEP = """
models: [{name: Mine, space: grid1000, served: org/mine}]
datasets: [Demo]
representations: [xyxy, cxcywh]
outputs: json
limit: 6
inference: {poll: 0.05}
"""
TWO_MODELS = SWEEP.replace("models: [", "models: [{name: Other, space: grid1000}, ")
PRICED = SWEEP.replace("{name: Mine, space: grid1000, served: org/mine}", "GPT-5.4")
CALLS = 12

Capsys = pytest.CaptureFixture[str]
Caplog = pytest.LogCaptureFixture


def command(folder: Path, *flags: str, text: str = SWEEP) -> list[str]:
    folder.mkdir(exist_ok=True)
    (folder / "sweep.yaml").write_text(text)
    places = ["--work-dir", str(folder / "out"), "--journal", str(folder / "calls.jsonl")]
    return ["sweep", str(folder / "sweep.yaml"), *places, *flags]


def batched(
    folder: Path, server: BatchServer, kind: str, *flags: str, text: str = SWEEP
) -> list[str]:
    return command(folder, "--base-url", server.url, "--batch", kind, *flags, text=text)


def assert_paid_once(server: BatchServer, batches: int = 1) -> None:
    assert len(server.batches) == batches
    assert set(server.asked.values()) == {1}


def record_of(line: Mapping[str, Any]) -> dict[str, Any]:
    """Return the record of FindIt's model in a line of the journal."""
    return dict(record_in(line["extra_records"]))


def test_batches_send_and_end_as_single_calls_do_and_leave_nothing_to_ask(tmp_path: Path) -> None:
    single, bodies = tmp_path / "single", list[Any]()

    def answer(body: Mapping[str, Any]) -> str:
        bodies.append(body)
        return one_box(body)

    with BatchServer(answer, polls=2) as server:
        assert main(command(single, "--base-url", server.url)) == 0
        sent = sorted(map(json.dumps, map(as_chat, bodies)))
        assert len(sent) == CALLS
        for kind in NAMES:
            server.forget()
            folder = tmp_path / kind
            assert main(batched(folder, server, kind)) == 0
            assert_paid_once(server)
            requests = server.batches["batch_0"].requests.values()
            assert sorted(map(json.dumps, map(as_chat, requests))) == sent
            asked = len(server.paths)
            assert main(batched(folder, server, kind)) == 0
            assert main(command(folder, "--base-url", server.url)) == 0
            assert len(server.paths) == asked, "twice, and without batches: nothing is asked"
    expected = {item["key"]: item for item in records(single / "calls.jsonl")}
    scores = {n: t for n, t in files(single / "out").items() if "score" in n}
    assert scores
    for kind in NAMES:
        stored = {item["key"]: item for item in records(tmp_path / kind / "calls.jsonl")}
        assert stored.keys() == expected.keys()
        for key, item in stored.items():
            record, other = record_of(item), record_of(expected[key])
            call = record.pop("call")
            assert call["batch"] == "batch_0"
            assert call["server"] == other.pop("call")["server"]
            if kind == "anthropic":
                assert record.pop("thought") == "hm"
                assert record["tokens"].pop("cached") == 100
            assert record == other, "sizes of pictures, tokens, model, space"
            for what in ("reply", "settings", "made_by"):
                assert item[what] == expected[key][what]
        assert scores.items() <= files(tmp_path / kind / "out").items()


def as_chat(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return a request with images as in OpenAI's messages, its fields in order."""

    def part(item: Mapping[str, Any]) -> Mapping[str, Any]:
        if item["type"] != "image":
            return item
        source = item["source"]
        url = f"data:{source['media_type']};{source['type']},{source['data']}"
        return {"type": "image_url", "image_url": {"url": url}}

    messages = [{**m, "content": [part(item) for item in m["content"]]} for m in body["messages"]]
    return dict(sorted({**body, "messages": messages}.items()))


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("anthropic", {"loses_reply": 1}),
        # How long an upload takes says nothing of when a batch is listed.
        ("openai", {"loses_reply": 1, "hides": 1, "uploads": 0.2}),
        ("openai", {"falls_over": 2}),
    ],
)
def test_a_batch_is_created_once_whatever_the_service_does(
    kind: str, settings: dict[str, Any], tmp_path: Path, caplog: Caplog
) -> None:
    with BatchServer(**settings) as server:
        assert main(batched(tmp_path, server, kind)) == 0
        if "falls_over" in settings:
            assert "bad gateway; asking again" in caplog.text
        assert_paid_once(server)


@pytest.mark.parametrize("kind", NAMES)
def test_failed_requests_are_failed_calls_with_their_reason(kind: str, tmp_path: Path) -> None:
    with BatchServer(outcomes={0: "errored", 5: "expired"}, status="expired") as server:
        assert main(batched(tmp_path, server, kind)) == 1
        failed = [item for item in records(tmp_path / "calls.jsonl") if item["error"]]
        assert len(failed) == 2
        assert any("too many pixels" in item["error"] for item in failed)
        assert any("late" in item["error"] or "expired" in item["error"] for item in failed)
        assert {record_of(item)["call"]["batch"] for item in failed} == {"batch_0"}
        server.settings = BatchSettings()
        # Not by batch this time: both kinds of calls are of the same run.
        assert main(command(tmp_path, "--base-url", server.url)) == 0
        assert server.single == 2
    assert len(answered_keys(tmp_path / "calls.jsonl")) == CALLS


@pytest.mark.parametrize(
    ("kind", "settings", "message"),
    [
        ("openai", {"refused": "enqueued token limit reached"}, "was refused: enqueued token"),
        ("openai", {"forgets": 1}, "batch_0 cannot be looked at: HTTP 404"),
        ("anthropic", {"denies": True}, "this key may not"),
    ],
)
def test_a_refusal_ends_the_run_and_the_next_one_goes_on(
    kind: str, settings: dict[str, Any], message: str, tmp_path: Path, capsys: Capsys
) -> None:
    with BatchServer(**settings) as server:
        given = batched(tmp_path, server, kind)
        assert main(given) == 1
        assert message in capsys.readouterr().err
        assert not answered_keys(tmp_path / "calls.jsonl")
        server.settings = BatchSettings()
        assert main(given) == 0
        assert len(server.batches) == (2 if "refused" in settings else 1)


def test_limits_split_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BatchService, "requests", 5)
    with BatchServer() as server:
        assert main(batched(tmp_path / "number", server, "openai")) == 0
        assert [len(item.requests) for item in server.batches.values()] == [5, 5, 2]
        largest = max(map(len, server.files["file-0"].splitlines(keepends=True)))
        server.forget()
        size = int(2.5 * largest)
        monkeypatch.setattr(BatchService, "size", size)
        assert main(batched(tmp_path / "size", server, "openai")) == 0
        assert all(len(data) <= size for data in server.files.values())
        assert len(server.asked) == CALLS
        assert set(server.asked.values()) == {1}
        server.forget()
        monkeypatch.setattr(BatchService, "size", 100)
        assert main(batched(tmp_path / "none", server, "openai")) == 1
        assert not server.batches
    assert "too large for a batch" in next(records(tmp_path / "none" / "calls.jsonl"))["error"]


def test_no_key_is_in_a_file_and_each_service_gets_its_header(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FINDIT_SERVER_KEY", "a-secret-key")
    with BatchServer() as server:
        for kind in NAMES:
            server.headers.clear()
            assert main(batched(tmp_path / kind, server, kind)) == 0
            for headers in server.headers:
                if kind == "openai":
                    assert headers["authorization"] == "Bearer a-secret-key"
                else:
                    assert headers["x-api-key"] == "a-secret-key"
                    assert headers["anthropic-version"] == "2023-06-01"
                    assert "authorization" not in headers
    for path in tmp_path.rglob("*"):
        assert path.is_dir() or b"a-secret-key" not in path.read_bytes()
    ledger = json.dumps(list(JournalView(tmp_path / "openai" / "calls.jsonl").events()))
    assert "base64" not in ledger
    assert "image" not in ledger


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--batch", "openai"], "--batch openai is for one server"),
        (["--batch", "openai", "--base-url", "http://a/v1,http://b/v1"], "for one server"),
        (["--batch", "openai", "--executor", "ray"], "--executor has no effect"),
        (["--batch", "openai", "--api-nproc", "3"], "--api-nproc has no effect"),
        (["--batch", "anthropic", "--base-url", "http://a/v1", "--logprobs"], "gives none"),
        (["--batch", "openai", "--base-url", "http://a/v1", "--max-usd", "1"], "not known"),
    ],
)
def test_contradicting_flags_are_refused(
    flags: list[str], message: str, tmp_path: Path, capsys: Capsys
) -> None:
    assert main(command(tmp_path, *flags)) == 2
    assert message in capsys.readouterr().err


def test_a_batch_that_could_pass_the_limit_is_not_submitted(tmp_path: Path, capsys: Capsys) -> None:
    with BatchServer() as server:
        given = batched(tmp_path, server, "openai", text=PRICED)
        # 12 calls of at most 768 tokens, at half of 15 dollars a million, and what is sent.
        least = 12 * 768 * 7.5 / 1e6
        assert main([*given, "--max-usd", str(least)]) == 3
        assert "could pass the limit" in capsys.readouterr().err
        assert not server.batches
        assert not list(records(tmp_path / "calls.jsonl"))
        assert main([*given, "--max-usd", str(1.2 * least)]) == 0
        assert main([*given, "--max-usd", "0.0001"]) == 0, "nothing is left to pay"
        assert len(server.batches) == 1


def test_a_dry_run_halves_the_price(tmp_path: Path, capsys: Capsys) -> None:
    command(tmp_path, text=PRICED)
    for flags, price in (([], 15), (["--batch", "openai"], 7.5)):
        assert main(["sweep", str(tmp_path / "sweep.yaml"), "--dry-run", *flags]) == 0
        out = capsys.readouterr().out
        assert f"at most ${CALLS * 768 * price / 1e6:.2f} out" in out
        assert ("half of the price" in out) == bool(flags)


def test_the_next_run_collects_answers_that_a_full_disk_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append, appended = Journal.append, []

    def full(journal: Journal, built: Any) -> None:
        built = list(built)
        calls = [item for item in built if "key" in item]
        appended.extend(calls)
        if calls and len(appended) == CALLS:
            raise DiskFullError(journal.path, 1)
        append(journal, built)

    with BatchServer() as server:
        given = batched(tmp_path, server, "openai")
        with monkeypatch.context() as patch:
            patch.setattr(Journal, "append", full)
            assert main(given) == 3
        assert len(answered_keys(tmp_path / "calls.jsonl")) == CALLS - 1
        assert main(given) == 0
        assert_paid_once(server)
    assert len(answered_keys(tmp_path / "calls.jsonl")) == CALLS


def test_all_models_are_submitted_before_the_first_wait(tmp_path: Path) -> None:
    seen: list[int] = []

    class Counting(BatchServer):
        def _openai(self, batch: Any) -> dict[str, Any]:
            if batch.polls == 1:
                seen.append(len(self.batches))
            return super()._openai(batch)

    with Counting() as server:
        given = batched(tmp_path, server, "openai", text=TWO_MODELS)
        assert main(given) == 0
        assert seen == [2, 2]
        assert_paid_once(server, batches=2)
        assert len(server.asked) == 2 * CALLS


def test_log_probabilities_are_asked_for_in_batches_too(tmp_path: Path, caplog: Caplog) -> None:
    with BatchServer() as server:
        given = batched(tmp_path, server, "openai", "--logprobs")
        assert main(given) == 0
        (batch,) = server.batches.values()
        assert all(body["logprobs"] is True for body in batch.requests.values())
        assert "its replies are stored without log-probabilities" in caplog.text
        assert all(item["logprobs"] for item in records(tmp_path / "calls.jsonl"))
        asked = len(server.paths)
        assert main(given) == 0
        assert main(batched(tmp_path, server, "openai")) == 0
        assert len(server.paths) == asked


@pytest.mark.parametrize(
    ("service", "line", "message"),
    [
        (BatchService, {}, "no reply"),
        (BatchService, {"response": {"status_code": 500, "body": "down"}}, "HTTP 500: down"),
        (AnthropicBatches, {"result": {"type": "canceled"}}, "the request is canceled"),
    ],
)
def test_a_result_without_a_reply_says_why(
    service: type[BatchService], line: dict[str, Any], message: str
) -> None:
    with pytest.raises(CallError, match=re.escape(message)):
        service.completion(line, False)


def test_a_constrained_question_is_constrained_in_batches_or_refused(
    tmp_path: Path, capsys: Capsys
) -> None:
    name = "FindIt_Demo_xyxy_json_constrained"
    text = SWEEP.replace("[Demo]", f"[{name}]").replace("representations: [xyxy, cxcywh]\n", "")
    text = text.replace("outputs: json\n", "")
    with BatchServer() as server:
        given = batched(tmp_path, server, "anthropic", text=text)
        assert main(given) == 2
        assert "without _constrained" in capsys.readouterr().err
        assert not server.paths
        given[given.index("anthropic")] = "openai"
        assert main(given) == 0
        (batch,) = server.batches.values()
        assert {item["response_format"]["type"] for item in batch.requests.values()} == {
            "json_schema"
        }
