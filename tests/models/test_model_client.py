"""What model clients may do, and its effect: exceptions, ends of runs, odd replies and records."""

from __future__ import annotations

import json
import shutil
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from engine_fakes import (
    CALLS,
    CONFIG,
    FakeBackends,
    Killed,
    demo_sweep,
    for_all_models,
    go,
    records,
)

from vlmeval_findit.benchmarks.findit.annotation_tables import load_task
from vlmeval_findit.benchmarks.findit.variant import Variant
from vlmeval_findit.cli.sweep import results_of
from vlmeval_findit.core.answers import Answer, Batch, StopReason
from vlmeval_findit.core.folders import image_folder
from vlmeval_findit.core.identity import Described
from vlmeval_findit.core.predictions import read_predictions
from vlmeval_findit.core.replies import FAILED, Recorded, recorded
from vlmeval_findit.engine.backend import Backend, LocalBackend, ThreadedBackend
from vlmeval_findit.models.model_client import answer_from
from vlmeval_findit.models.model_entry import ModelEntry
from vlmeval_findit.sweeps.sweep_run import UnfinishedError


class Asking:
    """A client that does as it is told with the number of a call, from 1."""

    def __init__(self, on_call: Callable[[int], Any] = lambda number: Answer("[1]")) -> None:
        self.calls = 0
        self._on_call = on_call
        self._lock = threading.Lock()

    def ask(self, work: Batch) -> list[Answer]:
        answers = []
        for _ in work.messages:
            with self._lock:
                self.calls += 1
                number = self.calls
            answers.append(self._on_call(number))
        return answers

    def answers_together(self, *, shares_images: bool) -> bool:
        return False


BACKENDS = {
    "local": lambda client: LocalBackend(lambda: client),
    "threads": lambda client: ThreadedBackend(lambda: client, threads=2),
}


@pytest.fixture(params=BACKENDS)
def host_of(request: pytest.FixtureRequest) -> Callable[[Any], FakeBackends]:
    """Return backends of a single client, with each backend."""
    return lambda client: FakeBackends(client, BACKENDS[request.param])


@pytest.mark.parametrize(
    ("does", "error"),
    [
        (lambda: 1 / 0, "ZeroDivisionError"),
        (lambda: sys.exit("bad key"), "SystemExit: bad key"),
        (lambda: "a text", "not 1 answers to 1 messages"),
    ],
)
def test_whatever_a_client_does_is_a_failed_answer(
    does: Callable[[], Any], error: str, host_of: Callable[[Any], FakeBackends], tmp_path: Path
) -> None:
    client = Asking(lambda number: does() if number % 10 == 0 else Answer("[1]"))
    results = go(demo_sweep(tmp_path), host_of(client))
    stored = list(records(tmp_path / "calls.jsonl"))
    assert len(stored) == client.calls == CALLS
    failed = [record["error"] for record in stored if record["error"]]
    assert len(failed) == CALLS // 10 == sum(result.failed for result in results)
    assert all(error in item for item in failed)


def test_what_ends_a_thread_ends_the_sweep(tmp_path: Path) -> None:
    def die(number: int) -> Answer:
        raise Killed

    with pytest.raises(Killed):
        go(demo_sweep(tmp_path), FakeBackends(Asking(die), BACKENDS["threads"]))


def test_images_that_cannot_be_read_any_more_are_failed_calls(
    host_of: Callable[[Any], FakeBackends], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load_task("FindIt_Demo_xyxy_json")  # makes the pictures
    images = tmp_path / "images"
    shutil.copytree(image_folder("Demo").path, images)
    monkeypatch.setenv("FINDIT_IMAGES", f"Demo={images}")
    lost = min(path for path in images.rglob("*") if path.is_file())
    away = tmp_path / "away"

    class Unlucky(FakeBackends):
        def describe(self, entry: ModelEntry, variant: Variant) -> Described:
            # Asked when all images were looked at and none was read yet.
            if lost.exists():
                lost.rename(away)
            return super().describe(entry, variant)

    client = Asking()
    host = host_of(client)
    host.__class__ = Unlucky
    results = go(demo_sweep(tmp_path, ONE_CELL), host)
    stored = list(records(tmp_path / "calls.jsonl"))
    errors = [record["error"] for record in stored if record["error"]]
    assert client.calls == 19 - len(errors) == len(stored) - len(errors)
    assert sum(result.failed for result in results) == len(errors) > 0
    assert all("an image cannot be read: [Errno 2] No such file" in error for error in errors)
    away.rename(lost)
    again = Asking()
    go(demo_sweep(tmp_path, ONE_CELL), FakeBackends(again, BACKENDS["local"]))
    assert again.calls == len(errors), "they are asked again when they are back"


ONE_CELL = "models: FullImage\ndatasets: Demo\nrepresentations: xyxy\noutputs: text"
TWO_MODELS = CONFIG.replace("FullImage", "[FullImage, FindIt-Nano]")


def stop_at(last: int, stop: StopReason) -> Asking:
    """Says from some call on that no further call should start."""
    answer = Answer("", error="HTTP 401: no such key", stop=stop)
    return Asking(lambda number: answer if number >= last else Answer("[1, 2, 3, 4]"))


@pytest.mark.parametrize("stop", StopReason)
def test_a_model_may_end_its_run(
    stop: StopReason, host_of: Callable[[Any], FakeBackends], tmp_path: Path
) -> None:
    client = stop_at(50, stop)
    with pytest.raises(UnfinishedError) as unfinished:
        go(demo_sweep(tmp_path), host_of(client))
    assert str(unfinished.value) == f"FullImage: stopped, {stop.value}: HTTP 401: no such key"
    assert unfinished.value.spent == (stop is StopReason.SPENT)
    stored = list(records(tmp_path / "calls.jsonl"))
    assert sum(not record["error"] for record in stored) == 49, "what was answered is stored"
    assert client.calls < 50 + 8, "what is on its way comes home, and no more is begun"
    failed = [record for record in stored if record["error"]]
    assert len(failed) == (client.calls - 49 if stop is StopReason.HOPELESS else 0)
    finished = sorted((tmp_path / "out").rglob("*_score.csv"))
    assert [r.path.stem for r in unfinished.value.results] == [
        path.name.removesuffix("_score.csv") for path in finished
    ]
    again = Asking()
    assert len(go(demo_sweep(tmp_path), FakeBackends(again, BACKENDS["local"]))) == 8
    assert again.calls == CALLS - 49


@pytest.mark.parametrize(
    ("threads", "error"), [(False, OSError("no such checkpoint")), (True, SystemExit("no GPU"))]
)
def test_a_model_that_cannot_be_loaded_is_named_and_the_others_go_on(
    threads: bool, error: BaseException, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = Asking()

    def load(name: str) -> Asking:
        if name == "FullImage":
            raise error
        return good

    class Both(FakeBackends):
        def backend(self, entry: ModelEntry) -> Backend:
            if threads:
                return ThreadedBackend(lambda: load(entry.name), 2)
            return LocalBackend(lambda: load(entry.name))

    sweep = demo_sweep(tmp_path, TWO_MODELS)
    results, status = results_of(sweep, for_all_models(Both(None)))
    assert status == 1
    assert {result.model for result in results} == {"FindIt-Nano"}
    assert len(results) == 8
    why = f"FullImage: stopped, it cannot be loaded: {type(error).__name__}: {error}"
    assert why in capsys.readouterr().err
    stored = list(records(tmp_path / "calls.jsonl"))
    assert {record["model"] for record in stored} == {"FindIt-Nano"}, "no call was made"


def test_a_model_that_ended_is_not_asked_in_the_next_stage(tmp_path: Path) -> None:
    text = """
models: FullImage
datasets: Demo
stages:
  - {representations: xyxy, keys: [bbox]}
  - {representations: winner, outputs: json, keys: [bbox_2d]}
"""
    client = stop_at(3, StopReason.HOPELESS)
    with pytest.raises(UnfinishedError):
        go(demo_sweep(tmp_path, text), FakeBackends(client, BACKENDS["local"]))
    assert client.calls == 3


def test_a_failure_carries_its_record_to_the_predictions(tmp_path: Path) -> None:
    call = {"id": "gen-1", "cost": 0.25, "status": 504, "error": "HTTP 504"}
    extras: list[Any] = [
        Recorded(call=call).as_json(),
        Recorded(tokens={"prompt": 7}, finish_reason="length", call={"cost": 0.5}).as_json(),
        {"of": "another model"},
        None,
    ]
    answers = [Answer("", extra, error="HTTP 504: too late") for extra in extras]
    client = Asking(lambda number: answers[number - 1] if number <= 4 else Answer("[1]"))
    (result,) = go(demo_sweep(tmp_path, ONE_CELL), FakeBackends(client, BACKENDS["local"]))
    assert result.failed == 4
    stored = list(records(tmp_path / "calls.jsonl"))[:4]
    assert [record["extra_records"] for record in stored] == extras
    rows = {row["index"]: row for row in json.loads(result.path.read_text())}
    reported = [rows[record["row"]] for record in stored]
    assert all(row["prediction"].startswith(f"{FAILED} via API. HTTP 504") for row in reported)
    assert reported[0]["extra_records"] == extras[0]
    assert recorded(reported[1]["extra_records"]).call == {
        "cost": 0.5,
        "error": "HTTP 504: too late",
    }
    assert recorded(reported[1]["extra_records"]).tokens == {"prompt": 7}
    assert json.loads(reported[2]["extra_records"])["of"] == "another model"
    assert {recorded(row["extra_records"]).call["error"] for row in reported[2:]} == {
        "HTTP 504: too late"
    }
    replies = {reply.index: reply for reply in read_predictions(result.path)}
    assert all(replies[row["index"]].failed for row in reported)


endless: list[Any] = []
endless.append(endless)


@pytest.mark.parametrize("extra", [{"a": float("nan")}, {"a": Path("x")}, endless], ids=repr)
def test_a_record_of_any_type_does_not_cost_the_reply(extra: Any, tmp_path: Path) -> None:
    said = " [1,\u2028\r\n2]\ud83d\0\t"
    client = Asking(lambda number: Answer(said, extra))
    (result,) = go(demo_sweep(tmp_path, ONE_CELL), FakeBackends(client, BACKENDS["local"]))
    assert [reply.text for reply in read_predictions(result.path)] == [said] * 19

    def strict(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    json.loads(result.path.read_text(), parse_constant=strict)
    for line in (tmp_path / "calls.jsonl").read_text().splitlines():
        stored = json.loads(line, parse_constant=strict)
        assert extra is not endless or "not JSON" in stored["extra_records"]


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        ("Failed to obtain answer via API.", "Failed to obtain answer via API."),
        (None, "the model returned NoneType, not a text"),
        (
            {"prediction": "Failed to obtain answer: <class 'E'> x", "extra_records": "{}"},
            "Failed to obtain",
        ),
        ("", None),
        ("NA", None),
        ({"prediction": "[]", "extra_records": {"a": 1}}, None),
    ],
)
def test_what_a_model_returns(reply: Any, error: str | None) -> None:
    answer = answer_from(reply)
    assert (answer.error or "").startswith(error or "")
    assert (answer.error is None) == (error is None)


def test_a_reply_that_quotes_a_credential_is_a_failed_call_whoever_gave_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI")
    for reply in ("it is wJalrXUtnFEMI", {"prediction": "it is wJalrXUtnFEMI"}):
        answer = answer_from(reply)
        assert answer.text == ""
        assert answer.error == (
            "the reply quotes a credential (the value of AWS_SECRET_ACCESS_KEY): it is not stored"
        )
