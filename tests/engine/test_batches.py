"""Sweeps in batches: nothing is paid twice, and they end as single calls do."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from batch_server import BatchServer, BatchSettings, one_box
from engine_fakes import answered_keys, assert_answered_once, files, records
from every_pair import every_pair
from few_fast import few_fast
from kills import status_in_a_fork
from waits import until

from vlmeval_findit.cli import main
from vlmeval_findit.engine import BatchLedger, DiskFullError, Journal, JournalView
from vlmeval_findit.models import BatchService

NAMES = ("openai", "anthropic")

SWEEP = """
models: [{name: Mine, space: grid1000, served: org/mine}]
datasets: [Demo]
representations: [xyxy, cxcywh]
outputs: json
limit: 6
inference: {poll: 0.01}
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
    return dict(json.loads(line["extra_records"])["findit"])


@pytest.mark.sees("key batch")
def test_batches_give_the_same_records_as_single_calls(tmp_path: Path) -> None:
    single, bodies = tmp_path / "single", list[Any]()

    def answer(body: Mapping[str, Any]) -> str:
        bodies.append(body)
        return one_box(body)

    def scores(folder: Path) -> dict[str, str]:
        return {name: text for name, text in files(folder / "out").items() if "score" in name}

    with BatchServer(answer, polls=2) as server:
        assert main(command(single, "--base-url", server.url)) == 0
        sent = sorted(map(as_chat, bodies))
        assert len(sent) == CALLS
        for kind in NAMES:
            server.forget()
            folder = tmp_path / kind
            assert main(batched(folder, server, kind)) == 0
            assert_paid_once(server)
            assert sorted(map(as_chat, server.batches["batch_0"].requests.values())) == sent
            asked = len(server.paths)
            assert main(batched(folder, server, kind)) == 0
            assert main(command(folder, "--base-url", server.url)) == 0
            assert len(server.paths) == asked, "twice, and without batches: nothing is asked"
    expected = {line["key"]: line for line in records(single / "calls.jsonl")}
    for kind in NAMES:
        stored = {line["key"]: line for line in records(tmp_path / kind / "calls.jsonl")}
        assert stored.keys() == expected.keys()
        for key, line in stored.items():
            record = record_of(line)
            other = record_of(expected[key])
            call = record.pop("call")
            assert (call["batch"], call["server"]) == ("batch_0", other.pop("call")["server"])
            if kind == "anthropic":
                assert record.pop("thought") == "hm"
                assert record["tokens"].pop("cached") == 100
            assert record == other, "sizes of pictures, tokens, model, space"
            for what in ("reply", "settings", "made_by"):
                assert line[what] == expected[key][what]
        assert scores(tmp_path / kind) == scores(single) != {}


def as_chat(body: Mapping[str, Any]) -> str:
    """Return a request as JSON, with images as in OpenAI's messages."""

    def part(item: Mapping[str, Any]) -> Mapping[str, Any]:
        if item["type"] != "image":
            return item
        source = item["source"]
        url = f"data:{source['media_type']};{source['type']},{source['data']}"
        return {"type": "image_url", "image_url": {"url": url}}

    messages = [{**m, "content": [part(item) for item in m["content"]]} for m in body["messages"]]
    return json.dumps({**body, "messages": messages}, sort_keys=True)


@pytest.mark.parametrize(
    ("kind", "settings"),
    few_fast(
        [
            ("anthropic", {"loses_reply": 1}),
            ("openai", {"loses_reply": 1, "gateway_status": 408}),
            ("anthropic", {"loses_reply": 1, "gateway_status": 499}),
            # How long an upload takes says nothing of when a batch is listed.
            ("openai", {"loses_reply": 1, "hides": 1, "uploads": 0.2}),
            ("openai", {"falls_over": 2}),
        ],
        2,
    ),
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
        assert main(batched(tmp_path, server, kind, "--prices", "100,500")) == 1
        failed = [item for item in records(tmp_path / "calls.jsonl") if item["error"]]
        assert len(failed) == 2
        assert any("too many pixels" in item["error"] for item in failed)
        assert any("late" in item["error"] or "expired" in item["error"] for item in failed)
        assert {record_of(item)["call"]["batch"] for item in failed} == {"batch_0"}
        assert {record_of(item)["call"]["cost"] for item in failed} == {0.0}
        server.settings = BatchSettings()
        # Not by batch this time: both kinds of calls are of the same run.
        assert main(command(tmp_path, "--base-url", server.url)) == 0
        assert server.single == 2
    assert len(answered_keys(tmp_path / "calls.jsonl")) == CALLS


def in_line(number: int, change: Callable[[bytes], bytes]) -> Callable[[str, bytes], bytes]:
    """Return how to change a line of the output file."""

    def spoils(kind: str, content: bytes) -> bytes:
        lines = content.split(b"\n")
        if kind == "out":
            lines[number] = change(lines[number])
        return b"\n".join(lines)

    return spoils


def cut(line: bytes) -> bytes:
    return line[:-20]


def without_choices(line: bytes) -> bytes:
    """Return a line of either service whose answer has an unknown shape."""
    values = json.loads(line)
    if "result" in values:
        values["result"]["message"]["content"] = {"text": "[]"}
    else:
        values["response"]["body"]["choices"][0]["message"]["content"] = {"text": "[]"}
    return json.dumps(values).encode()


SPOILT: dict[str, tuple[Callable[[str, bytes], bytes], int, str]] = {  # with failed calls, words
    "blank lines": (in_line(3, lambda line: b"\n \n" + line + b"\r\n"), 0, ""),
    "a mark at the start": (in_line(0, lambda line: b"\xef\xbb\xbf" + line), 0, ""),
    "a number": (in_line(3, lambda line: b"7\n" + line), 0, ""),
    "no text": (in_line(3, lambda line: b"\xff\xfe\x00" + line), 1, "line 4 of "),
    "cut off": (in_line(CALLS - 2, lambda line: line[:-60]), 1, f"line {CALLS - 1} of "),
    "a list": (in_line(2, lambda line: b"[" + line + b"]"), 1, "line 3 of "),
    "another shape": (in_line(2, without_choices), 1, "line 3 of "),
    "a note behind it": (in_line(7, lambda line: line + b" # done"), 1, "line 8 of "),
    "two that are cut off": (
        lambda kind, it: in_line(2, cut)(kind, in_line(4, cut)(kind, it)),
        2,
        " of ",
    ),
    "twice": (in_line(5, lambda line: line + b"\n" + line), 0, ""),
}


@every_pair("name, kind", SPOILT, NAMES, fast=3)
def test_readable_lines_of_results_are_stored_whatever_stands_beside_them(
    name: str, kind: str, tmp_path: Path
) -> None:
    spoils, count, words = SPOILT[name]
    with BatchServer(spoils=spoils) as server:
        given = batched(tmp_path, server, kind, "--prices", "100,500")
        assert main(given) == (1 if count else 0)
        failed = [item for item in records(tmp_path / "calls.jsonl") if item["error"]]
        assert len(failed) == count
        for item in failed:
            assert words in item["error"]
            assert "batch_0" in item["error"]
            assert record_of(item)["call"]["cost"] > 0, "its service was paid"
        assert len(answered_keys(tmp_path / "calls.jsonl")) == CALLS - count
        server.settings = BatchSettings()
        assert main(command(tmp_path, "--base-url", server.url)) == 0
        assert server.single == count, "only what was lost is asked again"


def with_id(id: object) -> Callable[[bytes], bytes]:
    """Return how to give a line another id; …: it has none."""

    def change(line: bytes) -> bytes:
        values = json.loads(line)
        del values["custom_id"]
        return json.dumps(values if id is ... else {**values, "custom_id": id}).encode()

    return change


def without_its_end(kind: str, content: bytes) -> bytes:
    """Return results whose last line is cut off, and has no line end."""
    return content.rstrip()[:-20] if kind == "out" else content


def of_two(kind: str, content: bytes) -> bytes:
    """Return results of which one line is damaged and names two requests."""
    lines = content.split(b"\n")
    other = json.loads(lines[1])["custom_id"].encode()
    lines[0] = lines[0][:-9] + b'"custom_id": "' + other + b'"'
    return b"\n".join(lines) if kind == "out" else content


def first_twice(kind: str, content: bytes) -> bytes:
    """Return the first result in the place of the second, too."""
    lines = content.split(b"\n")
    return b"\n".join([lines[0], lines[0], *lines[2:]]) if kind == "out" else content


NOT_MATCHED: dict[str, tuple[Callable[[str, bytes], bytes], str]] = {  # and where
    "no id": (in_line(0, with_id(...)), "line 1 of "),
    "no id in the last line": (in_line(CALLS - 1, with_id(...)), f"line {CALLS} of "),
    "null": (in_line(1, with_id(None)), "line 2 of "),
    "a number": (in_line(2, with_id(7)), "line 3 of "),
    "a list": (in_line(2, with_id(["x"])), "line 3 of "),
    "empty": (in_line(3, with_id("")), "line 4 of "),
    "of no request": (in_line(4, with_id("f" * 64)), "line 5 of "),
    "the first one's": (first_twice, ""),
    "not JSON": (in_line(3, lambda line: b"<html>"), "line 4 of "),
    "zeros": (in_line(3, lambda line: bytes(len(line))), "line 4 of "),
    "cut off before its id": (in_line(3, lambda line: line[:12]), "line 4 of "),
    "cut off at the end": (without_its_end, f"line {CALLS} of "),
    "damaged, of two": (of_two, "line 1 of "),
}


@every_pair("name, kind", NOT_MATCHED, NAMES)
def test_calls_of_unmatched_results_stay_on_their_way(
    name: str, kind: str, tmp_path: Path, capsys: Capsys, caplog: Caplog
) -> None:
    """They may come with their ids later, and are paid: nothing is asked again unasked."""
    spoils, where = NOT_MATCHED[name]
    with BatchServer(spoils=spoils) as server:
        given = batched(tmp_path, server, kind)
        assert main(given) == 1
        words = capsys.readouterr().err
        assert "1 of its results, which were paid for, do not come" in words
        if where:
            assert f"a result names no request of it ({where}" in words
            assert f"a result names no request of it ({where}" in caplog.text
        else:
            assert "a second result of the same request (line 2 of " in caplog.text
        assert len(answered_keys(tmp_path / "calls.jsonl")) == CALLS - 1
        assert sum(server.asked.values()) == CALLS
        server.settings.spoils_once = 0
        assert main(given) == 0
        assert_paid_once(server)
    assert_answered_once(tmp_path / "calls.jsonl", CALLS)


def test_lines_of_a_page_stand_for_no_results(tmp_path: Path, caplog: Caplog) -> None:
    """A proxy ends a download in the midst with a page of its own."""

    def spoils(kind: str, content: bytes) -> bytes:
        return half(kind, content) + b"\n<html>" * CALLS if kind == "out" else content

    with BatchServer(spoils=spoils) as server:
        given = batched(tmp_path, server, "openai")
        assert main(given) == 1
        assert len(answered_keys(tmp_path / "calls.jsonl")) == CALLS // 2
        assert f"line {CALLS // 2 + 1} of files/out-batch_0/content: " in caplog.text
        assert f"{CALLS - 3} more of its lines are not read" in caplog.text
        server.settings.spoils_once = 0
        assert main(given) == 0
        assert_paid_once(server)


def test_of_two_results_the_first_answer_is_kept(tmp_path: Path, caplog: Caplog) -> None:
    def spoils(kind: str, content: bytes) -> bytes:
        lines = content.splitlines()
        others = [line.replace(b"900]", b"901]") for line in lines]
        return b"\n".join([*lines, *others]) if kind == "out" else content

    with BatchServer(spoils=spoils) as server:
        assert main(batched(tmp_path, server, "openai")) == 0
    assert "901]" not in (tmp_path / "calls.jsonl").read_text()
    assert f"{CALLS} second results of the same request (line {CALLS + 1} of " in caplog.text
    assert caplog.messages[-1].startswith(f"{CALLS} second results came in batches")
    assert_answered_once(tmp_path / "calls.jsonl", CALLS)


@pytest.mark.parametrize("first", ["out", "err"])
def test_an_error_never_overwrites_an_answer(first: str, tmp_path: Path) -> None:
    """Whichever file comes first: one line is an answer, and others of its id are errors."""

    def spoils(kind: str, content: bytes) -> bytes:
        lines = content.split(b"\n")
        broken = []
        for line in lines:
            error = {"status_code": 500, "body": {"error": {"message": "try again"}}}
            broken.append(json.dumps({**json.loads(line), "response": error}).encode())
        return b"\n".join([*lines, *broken] if first == "out" else [*broken, *lines])

    with BatchServer(spoils=spoils) as server:
        assert main(batched(tmp_path, server, "openai")) == 0
    assert len(answered_keys(tmp_path / "calls.jsonl")) == CALLS


def test_answers_are_stored_where_the_file_of_errors_is_gone(
    tmp_path: Path, caplog: Caplog
) -> None:
    with BatchServer(outcomes={0: "errored"}, lost_files="err") as server:
        assert main(batched(tmp_path, server, "openai")) == 1
    (failed,) = [item for item in records(tmp_path / "calls.jsonl") if item["error"]]
    assert "files/err-batch_0/content: HTTP 404" in failed["error"]
    assert "files/err-batch_0/content: HTTP 404" in caplog.text
    assert len(answered_keys(tmp_path / "calls.jsonl")) == CALLS - 1


@pytest.mark.parametrize(
    ("kind", "settings", "message"),
    [
        ("openai", {"refused": "no such model"}, "was refused: no such model"),
        ("openai", {"forgets": 1}, "batch_0 cannot be looked at: HTTP 404"),
        ("anthropic", {"denies": True}, "this key may not"),
    ],
)
def test_a_refused_run_can_be_resumed(
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
        assert [len(batch.requests) for batch in server.batches.values()] == [5, 5, 2]
        largest = max(map(len, server.files["file-0"].splitlines(keepends=True)))
        for size in (largest, int(2.5 * largest)):
            server.forget()
            monkeypatch.setattr(BatchService, "size", size)
            assert main(batched(tmp_path / f"{size}", server, "openai")) == 0
            assert all(0 < len(data) <= size for data in server.files.values())
            assert all(batch.requests for batch in server.batches.values())
            assert len(server.asked) == CALLS
            assert set(server.asked.values()) == {1}
        server.forget()
        monkeypatch.setattr(BatchService, "size", 100)
        assert main(batched(tmp_path / "none", server, "openai")) == 1
        assert not server.batches
    assert "too large for a batch" in next(records(tmp_path / "none" / "calls.jsonl"))["error"]


def test_no_file_holds_a_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = "a-secret-key"
    monkeypatch.setenv("FINDIT_SERVER_KEY", key)
    versioned = {"x-api-key": key, "anthropic-version": "2023-06-01"}
    for kind, sent in (("openai", {"authorization": f"Bearer {key}"}), ("anthropic", versioned)):
        with BatchServer() as server:
            assert main(batched(tmp_path / kind, server, kind)) == 0
            for headers in server.headers:
                assert sent.items() <= headers.items()
                assert kind == "openai" or "authorization" not in headers
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not [path for path in written if key.encode() in path.read_bytes()]
    ledger = json.dumps(list(JournalView(tmp_path / "openai" / "calls.jsonl").events()))
    assert "image" not in ledger


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--batch", "openai"], "--batch openai needs a single server"),
        (["--batch", "openai", "--base-url", "http://a/v1,http://b/v1"], "needs a single server"),
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


@pytest.mark.parametrize("kind", NAMES)
def test_what_a_batch_cost_is_said_once(kind: str, tmp_path: Path, capsys: Capsys) -> None:
    with BatchServer() as server:
        given = batched(tmp_path, server, kind, "--prices", "100,500")
        assert main(given) == 0
        cost = sum(record_of(line)["call"]["cost"] for line in records(tmp_path / "calls.jsonl"))
        assert cost > 0
        assert f"spent: ${cost:.4f}" in capsys.readouterr().err
        assert main(given) == 0
        assert "spent:" not in capsys.readouterr().err, "it was paid by the first run"


def test_a_dry_run_halves_the_price(tmp_path: Path, capsys: Capsys) -> None:
    command(tmp_path, text=PRICED)
    for flags, price in (([], 15), (["--batch", "openai"], 7.5)):
        asked = ["sweep", str(tmp_path / "sweep.yaml"), "--base-url", "http://127.0.0.1:9/v1"]
        assert main([*asked, "--dry-run", *flags]) == 0
        out = capsys.readouterr().out
        assert f"at most ${CALLS * 768 * price / 1e6:.2f} out" in out
        assert ("half of the price" in out) == bool(flags)


def test_the_next_run_collects_answers_that_a_full_disk_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append, appended = Journal.append, []

    def full(journal: Journal, built: Any) -> None:
        built = list(built)
        appended.extend(item for item in built if "key" in item)
        if len(appended) == CALLS and "key" in built[0]:
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
    assert_answered_once(tmp_path / "calls.jsonl", CALLS)


def test_all_models_are_submitted_before_the_first_wait(tmp_path: Path) -> None:
    with BatchServer(polls=1) as server:
        assert main(batched(tmp_path, server, "openai", text=TWO_MODELS)) == 0
        created = [at for at, path in enumerate(server.paths) if path == "POST /v1/batches"]
        looked = next(at for at, path in enumerate(server.paths) if "GET /v1/batches/" in path)
        assert len(created) == 2
        assert max(created) < looked
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


def test_a_constrained_question_is_constrained_in_batches_or_refused(
    tmp_path: Path, capsys: Capsys
) -> None:
    text = "models: {name: Mine, space: grid1000}\ndatasets: FindIt_Demo_xyxy_json_constrained\n"
    with BatchServer() as server:
        given = batched(tmp_path, server, "anthropic", text=f"{text}inference: {{poll: 0.05}}")
        assert main(given) == 2
        assert "without _constrained" in capsys.readouterr().err
        assert not server.paths
        given[given.index("anthropic")] = "openai"
        assert main(given) == 0
        (batch,) = server.batches.values()
    kinds = {request["response_format"]["type"] for request in batch.requests.values()}
    assert kinds == {"json_schema"}


# --- results that do not all come, batches that are lost or refused ------------------------------


def half(kind: str, content: bytes) -> bytes:
    """Return half of the lines: without a length, the end of a connection is the end."""
    lines = content.split(b"\n")
    return b"\n".join(lines[: len(lines) // 2])


def within_a_line(kind: str, content: bytes) -> bytes:
    return content[: len(content) // 2]


def nothing(kind: str, content: bytes) -> bytes:
    return b""


def without_ids(kind: str, content: bytes) -> bytes:
    return content.replace(b"custom_id", b"custom")


FAULTS: dict[str, dict[str, Any]] = {
    "half of the results": {"spoils": half, "spoils_once": 2},
    "cut within a line": {"spoils": within_a_line, "spoils_once": 1},
    "cut before the last end": {"spoils": lambda kind, it: it[:-9], "spoils_once": 1},
    "no results": {"spoils": nothing, "spoils_once": 3},
    "no ids": {"spoils": without_ids, "spoils_once": 1},
    "files come later": {"late": 2},
    "busy at the upload": {"busy": {"POST /v1/files": 2}},
    "busy at the creation": {"busy": {"POST /v1/batches": 2, "POST /v1/messages": 2}},
    "busy at a look": {"busy": {"GET /v1/batches/": 2, "GET /v1/messages/batches/": 2}},
    "lost, our clock is ahead": {"loses_reply": 1, "skew": -7200.0},
    "lost, our clock is behind": {"loses_reply": 1, "skew": 7200.0},
    "lost, and not named": {"loses_reply": 1, "hides_names": True},
    "lost, and listed late": {"loses_reply": 1, "hides": 1},
    "too much on its way": {"on_way": CALLS - 5, "polls": 2},
}


@every_pair("fault, kind", FAULTS, NAMES, fast=5)
def test_nothing_is_paid_twice_whatever_goes_wrong(fault: str, kind: str, tmp_path: Path) -> None:
    with BatchServer(**{**FAULTS[fault], "busy": dict(FAULTS[fault].get("busy", {}))}) as server:
        given = batched(tmp_path, server, kind)
        if main(given):
            assert main(given) == 0, "the next run collects them"
        assert sum(server.asked.values()) == CALLS
    assert_answered_once(tmp_path / "calls.jsonl", CALLS)


STAGES = ("intended", "uploaded", "id", "collecting", "collected")


@pytest.mark.slow
@pytest.mark.parametrize("at", STAGES)
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("kind", NAMES)
def test_nothing_is_paid_twice_after_a_kill(at: str, fault: str, kind: str, tmp_path: Path) -> None:
    with BatchServer(**{**FAULTS[fault], "busy": dict(FAULTS[fault].get("busy", {}))}) as server:
        given = batched(tmp_path, server, kind)
        status_of(at, given)
        for _ in range(3):
            if main(given) == 0:
                break
        assert sum(server.asked.values()) == CALLS
    assert_answered_once(tmp_path / "calls.jsonl", CALLS)


@pytest.mark.parametrize("kind", NAMES)
def test_results_that_never_come_stay_on_their_way(
    kind: str, tmp_path: Path, capsys: Capsys
) -> None:
    """What came is stored; the others are not asked again unasked."""
    with BatchServer(spoils=half) as server:
        given = batched(tmp_path, server, kind)
        for _ in range(2):
            assert main(given) == 1
            assert "which were paid for, do not come" in capsys.readouterr().err
            assert len(answered_keys(tmp_path / "calls.jsonl")) == CALLS // 2
            assert sum(server.asked.values()) == CALLS
        server.settings.spoils_once = 0
        assert main(given) == 0
        assert_paid_once(server)


def test_a_service_that_takes_no_batch_now_is_named(tmp_path: Path, capsys: Capsys) -> None:
    with BatchServer(on_way=0) as server:
        assert main(batched(tmp_path, server, "openai")) == 4
        assert "nothing was submitted" in capsys.readouterr().err
        assert not server.asked
        server.settings.on_way = 10**9
        assert main(batched(tmp_path, server, "openai")) == 0


# --- killed and stopped --------------------------------------------------------------------------


def status_of(at: str, given: list[str]) -> int:
    """Return the status of a command that is killed at a step, if it comes to it."""
    return status_in_a_fork(lambda: _killed_at(at, given))


def _killed_at(at: str, given: list[str]) -> int:
    note = BatchLedger.note
    append = Journal.append
    appends = count(1)

    def die_if(now: bool) -> None:
        if now:
            os.kill(os.getpid(), signal.SIGKILL)

    def noted(ledger: BatchLedger, batch: Any, **step: Any) -> Any:
        die_if(at in step)
        made = note(ledger, batch, **step)
        die_if(at == "intended")
        return made

    def appended(journal: Journal, made: Any) -> None:
        append(journal, made)
        die_if(at == "collecting" and next(appends) == 5)

    BatchLedger.note = noted  # type: ignore[method-assign]
    Journal.append = appended  # type: ignore[method-assign]
    return main(given)


def kill(at: str, given: list[str]) -> None:
    """Run a command that is killed at a step."""
    assert status_of(at, given) == -signal.SIGKILL


@pytest.mark.slow
@pytest.mark.parametrize(
    ("at", "kind"),
    [
        *((at, kind) for at in ("intended", "id") for kind in NAMES),
        *((at, "openai") for at in ("uploaded", "collected")),
        ("collecting", "anthropic"),
    ],
)
def test_a_killed_run_resumes_to_the_same_files(at: str, kind: str, tmp_path: Path) -> None:
    quiet, killed = tmp_path / "quiet", tmp_path / "killed"
    with BatchServer(polls=1, outcomes={3: "expired"}) as server:
        assert main(batched(quiet, server, kind)) == 1
        server.forget()
        kill(at, batched(killed, server, kind))
        assert len(server.batches) == (at not in ("intended", "uploaded"))
        server.paths.clear()
        assert main(batched(killed, server, kind)) == 1
        if at in ("intended", "uploaded") and kind == "openai":
            assert server.paths[:2] == ["POST /v1/files", "POST /v1/batches"], "nothing to look for"
        assert len(server.asked) == CALLS
        assert_paid_once(server)
        assert files(killed / "out") == files(quiet / "out")
        assert_answered_once(killed / "calls.jsonl", CALLS - 1)

        # What failed is asked again by the next run, and it alone.
        server.settings.outcomes = {}
        assert main(batched(killed, server, kind)) == 0
        assert sum(server.asked.values()) == CALLS + 1
        assert files(killed / "out").keys() == files(quiet / "out").keys()


@pytest.mark.slow
def test_results_tell_an_anthropic_batch_from_others(tmp_path: Path) -> None:
    with BatchServer(polls=0) as server:
        # Somebody else's, of as many requests, at the same time.
        other: dict[str, Any] = {f"o{n}": {"messages": [{"content": []}]} for n in range(CALLS)}
        server._create(other, {})
        given = batched(tmp_path, server, "anthropic")
        kill("id", given)
        server._create(dict(other), {})
        for batch in server.batches.values():
            batch.polls = 1  # they have ended
        assert main(given) == 0
        assert len(server.batches) == 3
    lines = records(tmp_path / "calls.jsonl")
    assert {record_of(line)["call"]["batch"] for line in lines} == {"batch_1"}


@pytest.mark.slow
@pytest.mark.parametrize("killed", [True, False])
def test_nothing_is_paid_again_unasked_where_results_are_gone(
    killed: bool, tmp_path: Path, capsys: Capsys
) -> None:
    """Anthropic keeps results for a month, and then lists the batch without them."""
    with BatchServer(archives=True) as server:
        given = batched(tmp_path, server, "anthropic")
        if killed:
            kill("id", given)
        for _ in range(2):
            assert main(given) == 1
            message = capsys.readouterr().err
            assert "batch_0" in message
            assert "HTTP 404" in message
            assert "another --journal to ask, and pay, its calls once more" in message
            assert_paid_once(server)
        server.settings.archives = False
        assert main(given) == 0
        assert_paid_once(server)


@pytest.mark.slow
def test_nothing_is_submitted_while_a_batch_is_unclear(tmp_path: Path) -> None:
    with BatchServer(polls=10**6) as server:
        given = batched(tmp_path, server, "anthropic")
        kill("id", given)
        done = subprocess.Popen([sys.executable, "-m", "vlmeval_findit", *given])
        until(lambda: "GET /v1/messages/batches?limit=100" in server.paths)
        time.sleep(0.5)
        assert done.poll() is None, "it waits"
        server.settings.polls = 0
        assert done.wait(60) == 0
        assert_paid_once(server)


@pytest.mark.slow
def test_a_run_goes_on_after_a_stop_while_waiting(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with BatchServer(hangs="GET /v1/batches/") as server:
        given = batched(tmp_path, server, "openai")
        waiting = subprocess.Popen([sys.executable, "-m", "vlmeval_findit", *given])
        until(lambda: any(path.startswith(server.settings.hangs) for path in server.paths))
        # Neither a second sweep nor calls one by one while it waits.
        assert main(given) != 0
        assert "two sweeps cannot write" in capsys.readouterr().err
        waiting.send_signal(signal.SIGINT)
        assert waiting.wait(30) == 130
        assert main(command(tmp_path, "--base-url", server.url)) == 2
        assert "12 of these calls are on their way in the batch batch_0" in capsys.readouterr().err
        assert server.single == 0
        # Nor with log-probabilities, which they were not asked for.
        assert main([*given, "--logprobs"]) == 2
        assert "asked without --logprobs" in capsys.readouterr().err
        server.settings.hangs = "nothing"
        # A smaller run first: what it does not want stays to be collected.
        elsewhere = ["--work-dir", str(tmp_path / "few")]
        assert main([*given, "--limit", "2", *elsewhere]) == 0
        assert main(given) == 0
        assert set(server.asked.values()) == {1}
    assert_answered_once(tmp_path / "calls.jsonl", CALLS)
