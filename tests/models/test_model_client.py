"""What model clients may do, and its effect: exceptions, ends of runs, odd replies and records."""

from __future__ import annotations

import json
import shutil
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from engine_fakes import (
    CALLS,
    CONFIG,
    FakeDeployment,
    Killed,
    demo_sweep,
    deployments,
    go,
    records,
)
from few_fast import few_fast

from vlmeval_findit.benchmarks import parse
from vlmeval_findit.cli import results_of
from vlmeval_findit.core import counted
from vlmeval_findit.data import load_dataset
from vlmeval_findit.engine import Backend, LocalBackend, ThreadedBackend
from vlmeval_findit.models import TimedClient, answer_from
from vlmeval_findit.protocol import (
    FAILED_ANSWER,
    Batch,
    CallResult,
    ReplyRecord,
    StopReason,
    image,
    text,
)
from vlmeval_findit.storage import image_folder, parse_record, read_predictions, stored_record
from vlmeval_findit.sweeps import UnfinishedError, run_sweep


class Asking:
    """A client that does as it is told with the number of a call, from 1."""

    def __init__(self, on_call: Callable[[int], Any] = lambda number: CallResult("[1]")) -> None:
        self.calls = 0
        self._on_call = on_call
        self._lock = threading.Lock()

    def ask(self, work: Batch) -> list[CallResult]:
        assert len(work.messages) == 1
        with self._lock:
            self.calls += 1
            number = self.calls
        return [self._on_call(number)]

    def parts(self, window: Batch) -> list[list[int]]:
        return [[at] for at in range(len(window.messages))]


def local(client: Any) -> Backend:
    return LocalBackend(lambda: client)


def threads(client: Any) -> Backend:
    return ThreadedBackend(lambda: client, threads=2)


each_backend = pytest.mark.parametrize("backend", [local, threads])
ONE_CELL = "models: FullImage\ndatasets: Demo\nrepresentations: xyxy\noutputs: text"


@each_backend
@pytest.mark.parametrize(
    ("does", "error"),
    [
        (lambda: 1 / 0, "ZeroDivisionError"),
        (lambda: sys.exit("bad key"), "SystemExit: bad key"),
        (lambda: "a text", "not 1 answers to 1 messages"),
    ],
)
def test_whatever_a_client_does_is_a_failed_answer(
    does: Callable[[], Any], error: str, backend: Any, tmp_path: Path
) -> None:
    client = Asking(lambda number: does() if number % 10 == 0 else CallResult("[1]"))
    results = go(demo_sweep(tmp_path), FakeDeployment(client, backend))
    stored = list(records(tmp_path / "calls.jsonl"))
    assert len(stored) == client.calls == CALLS
    failed = [record["error"] for record in stored if record["error"]]
    assert len(failed) == CALLS // 10 == sum(result.failed for result in results)
    assert all(error in item for item in failed)


def test_what_ends_a_thread_ends_the_sweep(tmp_path: Path) -> None:
    def die(number: int) -> CallResult:
        raise Killed

    with pytest.raises(Killed):
        go(demo_sweep(tmp_path), FakeDeployment(Asking(die), threads))


@each_backend
def test_images_that_cannot_be_read_any_more_are_failed_calls(
    backend: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load_dataset("FindIt_Demo_xyxy_json")  # makes the pictures
    images = shutil.copytree(image_folder("Demo").path, tmp_path / "images")
    monkeypatch.setenv("FINDIT_IMAGES", f"Demo={images}")
    lost = min(path for path in images.rglob("*") if path.is_file())
    away = tmp_path / "away"

    class Unlucky(FakeDeployment):
        def backend(self) -> Backend:
            # Made when all images were looked at and none was read yet.
            lost.rename(away)
            return super().backend()

    client, again = Asking(), Asking()
    results = go(demo_sweep(tmp_path, ONE_CELL), Unlucky(client, backend))
    errors = [record["error"] for record in records(tmp_path / "calls.jsonl") if record["error"]]
    assert 19 - client.calls == sum(result.failed for result in results) == len(errors) > 0
    assert all("an image cannot be read: [Errno 2] No such file" in error for error in errors)
    away.rename(lost)
    go(demo_sweep(tmp_path, ONE_CELL), FakeDeployment(again, local))
    assert again.calls == len(errors), "they are asked again when they are back"


def stop_at(last: int, stop: StopReason) -> Asking:
    """Says from some call on that no further call should start."""
    answer = CallResult("", error="HTTP 401: no such key", stop=stop)
    return Asking(lambda number: answer if number >= last else CallResult("[1, 2, 3, 4]"))


@each_backend
@pytest.mark.parametrize("stop", few_fast(StopReason, 2))
def test_a_model_may_end_its_run(stop: StopReason, backend: Any, tmp_path: Path) -> None:
    client, again = stop_at(50, stop), Asking()
    with pytest.raises(UnfinishedError) as unfinished:
        go(demo_sweep(tmp_path), FakeDeployment(client, backend))
    assert str(unfinished.value) == f"FullImage: stopped, {stop.value}: HTTP 401: no such key"
    assert unfinished.value.spent == (stop is StopReason.SPENT)
    errors = [record["error"] for record in records(tmp_path / "calls.jsonl")]
    assert errors.count(None) == 49, "what was answered is stored"
    assert client.calls < 50 + 8, "what is on its way comes home, and no more is begun"
    assert len(errors) == (client.calls if stop is StopReason.HOPELESS else 49)
    finished = sorted((tmp_path / "out").rglob("*_score.csv"))
    names = [f"{result.path.stem}_score.csv" for result in unfinished.value.results]
    assert names == [path.name for path in finished]
    assert len(go(demo_sweep(tmp_path), FakeDeployment(again, local))) == 8
    assert again.calls == CALLS - 49


class Failing(TimedClient):
    """Fails every call that ``is_answered`` does not take, by record or exception, alone or not."""

    def __init__(
        self,
        says: Callable[[int], str],
        is_answered: Callable[[int], bool],
        raises: bool,
        runs_here: bool = True,
    ) -> None:
        super().__init__(runs_here=runs_here)
        self.calls = 0
        self._says = says
        self._is_answered = is_answered
        self._raises = raises

    def answers_together(self) -> bool:
        return False

    def replies(self, batch: Batch) -> list[CallResult]:
        return [self._reply() for _ in batch.messages]

    def _reply(self) -> CallResult:
        self.calls += 1
        if self._is_answered(self.calls):
            return CallResult("[1, 2, 3, 4]")
        why = self._says(self.calls)
        if self._raises:
            raise RuntimeError(why)
        return CallResult("", ReplyRecord(call={"error": why}), why)


EQUAL = "logits are all equal"


@pytest.mark.parametrize("raises", [False, True])
@pytest.mark.parametrize(
    ("says", "is_answered", "runs_here", "ends"),
    [
        (lambda number: EQUAL, lambda number: False, True, True),
        (lambda number: EQUAL, lambda number: False, False, False),  # A service may come back
        (lambda number: f"{EQUAL} {number}", lambda number: False, True, False),
        (lambda number: EQUAL, lambda number: number in (1, 2, 3), True, False),
        (lambda number: EQUAL, lambda number: number % 4 == 0, True, False),
    ],
)
def test_a_model_here_that_only_fails_alike_ends_its_run(
    says: Any, is_answered: Any, runs_here: bool, ends: bool, raises: bool, tmp_path: Path
) -> None:
    client = Failing(says, is_answered, raises, runs_here)
    sweep = demo_sweep(tmp_path, ONE_CELL)
    if not ends:
        (result,) = go(sweep, FakeDeployment(client, local))
        assert 0 < result.failed <= 19
        return
    with pytest.raises(UnfinishedError, match=f"FullImage: stopped, no further .*: {EQUAL}") as end:
        go(sweep, FakeDeployment(client, local))
    assert FAILED_ANSWER not in str(end.value)
    assert end.value.results == []
    asked = {tuple(record["image_sha256"]) for record in records(tmp_path / "calls.jsonl")}
    assert 5 <= len(asked) <= 8, "the first batches only"


def test_failures_over_few_images_do_not_end_a_run() -> None:
    variant = parse("FindIt_Demo_xyxy_json")
    client = Failing(lambda number: EQUAL, lambda number: False, False)

    def stops(*images: str) -> set[StopReason | None]:
        messages = tuple((image(each), text("a dog")) for each in images)
        batch = Batch(messages, (variant,) * len(messages))
        return {answer.stop for answer in client.ask(batch)}

    assert stops(*"aaaaaaaabbbb", "c", "d") == {None}
    assert stops("a") == {None}
    assert stops("e") == {StopReason.HOPELESS}


@pytest.mark.parametrize(
    ("backend", "error"), [(local, OSError("no such checkpoint")), (threads, SystemExit("no GPU"))]
)
def test_an_unloadable_model_is_named_and_others_go_on(
    backend: Any, error: BaseException, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    class Both(FakeDeployment):
        def backend(self) -> Backend:
            load = Mock(side_effect=error) if self.name == "FullImage" else Asking
            return LocalBackend(load) if backend is local else ThreadedBackend(load, 2)

    sweep = demo_sweep(tmp_path, CONFIG.replace("FullImage", "[FullImage, FindIt-Nano]"))
    results, status = results_of(
        partial(run_sweep, sweep, deployments(sweep, Both(None))), sweep.journal
    )
    assert status == 1
    assert [result.model for result in results] == ["FindIt-Nano"] * 8
    why = f"FullImage: stopped, it cannot be loaded: {type(error).__name__}: {error}"
    assert why in capsys.readouterr().err
    models = {record["model"] for record in records(tmp_path / "calls.jsonl")}
    assert models == {"FindIt-Nano"}, "no call was made"


def test_a_stopped_model_is_not_asked_in_later_stages(tmp_path: Path) -> None:
    stages = """
models: FullImage
datasets: Demo
stages:
  - {representations: xyxy, keys: [bbox]}
  - {representations: winner, outputs: json, keys: [bbox_2d]}
"""
    client = stop_at(3, StopReason.HOPELESS)
    with pytest.raises(UnfinishedError):
        go(demo_sweep(tmp_path, stages), FakeDeployment(client, local))
    assert client.calls == 3


# --- replies and records --------------------------------------------------------------------------


def test_a_failure_carries_its_record_to_the_predictions(tmp_path: Path) -> None:
    call = {"id": "gen-1", "cost": 0.25, "status": 504, "error": "HTTP 504"}
    cut = ReplyRecord(tokens={"prompt": 7}, finish_reason="length", call={"cost": 0.5})
    failed = CallResult("", error="HTTP 504: too late")
    answers = [
        failed._replace(record=ReplyRecord(call=call)),
        failed._replace(record=cut),
        failed._replace(foreign={"of": "another model"}),
        failed,
    ]
    client = Asking(lambda number: answers[number - 1] if number <= 4 else CallResult("[1]"))
    (result,) = go(demo_sweep(tmp_path, ONE_CELL), FakeDeployment(client, local))
    assert result.failed == 4
    stored = list(records(tmp_path / "calls.jsonl"))[:4]
    extras = [*map(stored_record, answers)]
    assert [record["extra_records"] for record in stored] == extras
    assert extras[2:] == [{"of": "another model"}, None]
    rows = {row["index"]: row for row in json.loads(result.path.read_text())}
    reported = [rows[record["row"]] for record in stored]
    assert all(
        row["prediction"].startswith(f"{FAILED_ANSWER} via API. HTTP 504") for row in reported
    )
    first, second, third, fourth = (row["extra_records"] for row in reported)
    assert first == extras[0]
    why = {"error": "HTTP 504: too late"}
    assert parse_record(second).call == {"cost": 0.5, **why}
    assert parse_record(second).tokens == {"prompt": 7}
    assert json.loads(third)["of"] == "another model"
    assert parse_record(third).call == parse_record(fourth).call == why
    replies = {reply.index: reply for reply in read_predictions(result.path)}
    assert all(replies[row["index"]].failed for row in reported)


endless: list[Any] = []
endless.append(endless)


deep: list[Any] = []
for _ in range(100_000):
    deep = [deep]


@pytest.mark.parametrize(
    ("foreign", "stored"),
    [
        ({"a": float("nan")}, {"a": "NaN"}),
        ({"a": Path("x")}, {"a": "x"}),
        ({"a": (1, 2)}, {"a": [1, 2]}),
        ('{"a":  1}', '{"a":  1}'),
        ("", ""),
        (7, 7),
        (endless, "not JSON: ValueError: Circular reference detected"),
        (deep, "not JSON: RecursionError: maximum recursion depth exceeded"),
    ],
    ids=range(8),
)
def test_a_record_of_any_type_does_not_cost_the_reply(
    foreign: Any, stored: Any, tmp_path: Path
) -> None:
    said = " [1,\u2028\r\n2]\ud83d\0\t"
    client = Asking(lambda number: CallResult(said, foreign=foreign))
    (result,) = go(demo_sweep(tmp_path, ONE_CELL), FakeDeployment(client, local))
    assert [reply.text for reply in read_predictions(result.path)] == [said] * 19

    def strict(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    json.loads(result.path.read_text(), parse_constant=strict)
    for line in (tmp_path / "calls.jsonl").read_text().splitlines():
        recorded = json.loads(line, parse_constant=strict)["extra_records"]
        assert recorded == stored or recorded.startswith(stored)


class Recording:
    """A model of VLMEvalKit's that returns what it is told."""

    def __init__(self, *returned: Any) -> None:
        self._left = list(returned)

    def generate(self, message: Any, dataset: str) -> Any:
        return self._left.pop() if self._left else "[1]"


@pytest.mark.parametrize("text", ["[1, 2, 3, 4]", None, "Failed to obtain answer via API."])
@pytest.mark.parametrize(
    ("damaged", "why"),
    [
        ({"findit": {"thought": 7}}, "findit.thought: 7 should be a text"),
        ({"findit": {"tokens": {"prompt": "x"}}}, "findit.tokens.prompt: 'x' should be"),
        ('{"findit": {"thou', "is it cut off?"),
    ],
    ids=["thought", "tokens", "cut off"],
)
def test_a_damaged_record_fails_its_call_and_no_other(
    damaged: Any, why: str, text: str | None, tmp_path: Path
) -> None:
    model = Recording({"prediction": text, "extra_records": damaged})
    (result,) = go(demo_sweep(tmp_path, ONE_CELL), FakeDeployment(model))
    (failed,) = [each for each in read_predictions(result.path) if each.failed]
    assert why in failed.text
    assert result.failed == 1


FAILURE = "Failed to obtain answer: <class 'E'> x"
QUOTES = "the reply quotes a credential (the value of AWS_SECRET_ACCESS_KEY): it is not stored"


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        ("Failed to obtain answer via API.", "Failed to obtain answer via API."),
        (None, "the model returned NoneType, not a text"),
        ({"prediction": FAILURE, "extra_records": "{}"}, FAILURE),
        ("it is wJalrXUtnFEMI", QUOTES),
        ({"prediction": "it is wJalrXUtnFEMI"}, QUOTES),
        ("", None),
        ("NA", None),
        ({"prediction": "[]", "extra_records": {"a": 1}}, None),
        ({"prediction": "[]", "extra_records": '{"findit": {"thought": "wJalrXUtnFEMI"}}'}, QUOTES),
    ],
)
def test_what_a_model_returns(
    reply: Any, error: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI")
    answer = answer_from(reply)
    assert answer.error == error
    if error is not None:
        assert answer.text == ""


class Miscounting(TimedClient):
    """Returns so many replies to two messages, and none to one."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self._count = count

    def answers_together(self) -> bool:
        return True

    def replies(self, batch: Batch) -> list[CallResult]:
        return [CallResult("[1]")] * (self._count if len(batch.messages) == 2 else 0)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_replies_of_another_number_than_messages_are_failed_calls(
    count: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Whose they are is not known: a reply given to another question is a wrong number."""
    variant = parse("FindIt_Demo_xyxy_json")
    answers = Miscounting(count).ask(Batch(((text("a"),),) * 2, (variant,) * 2, False))
    assert f"returned {counted(count, 'reply', 'replies')} to 2 messages" in caplog.text
    for answer in answers:
        assert answer.error is not None
        assert "returned 0 replies to 1 message" in answer.error
