"""The engine with models in this process: kills, failures, full disks, equal calls, threads."""

from __future__ import annotations

import errno
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from engine_fakes import (
    CALLS,
    CONFIG,
    FakeBackends,
    FakeModel,
    Killed,
    Message,
    Silent,
    answered_keys,
    assert_answered_once,
    demo_sweep,
    dying_at,
    files,
    go,
    records,
    threaded,
)

from vlmeval_findit.benchmarks.findit.dataset_names import parse
from vlmeval_findit.benchmarks.findit.variant import Variant
from vlmeval_findit.boxes.spaces import SpaceError
from vlmeval_findit.core.answers import Batch, CancelledError
from vlmeval_findit.core.identity import Answering, Described, IdentityError
from vlmeval_findit.core.lock import LockedError
from vlmeval_findit.core.predictions import PredictionError
from vlmeval_findit.core.question import text
from vlmeval_findit.core.replies import FAILED
from vlmeval_findit.engine.answering import StoppedError
from vlmeval_findit.engine.backend import CallOptions
from vlmeval_findit.engine.cancel import CancelToken
from vlmeval_findit.engine.journal.writer import DiskFullError
from vlmeval_findit.engine.named_servers import ServerBackends
from vlmeval_findit.models.model_client import GenerateClient
from vlmeval_findit.models.model_entry import ModelEntry


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, lmu_data: Path) -> dict[str, str]:
    """Return the files of a sweep that nothing happened to."""
    folder = tmp_path_factory.mktemp("undisturbed")
    model = FakeModel()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LMUData", str(lmu_data))
        results = go(demo_sweep(folder), FakeBackends(model))
    assert len(results) == 8
    assert model.calls == CALLS == len(answered_keys(folder / "calls.jsonl"))
    return files(folder / "out")


def test_a_sweep_leaves_the_files_of_a_run(undisturbed: dict[str, str]) -> None:
    stem = "FullImage/FullImage_FindIt_Demo_xyxy_text"
    endings = (".json", "_identity.json", "_score.csv", "_details.jsonl", "_provenance.json")
    assert {stem + ending for ending in endings} <= set(undisturbed)
    assert len(undisturbed) == 8 * len(endings)
    rows = json.loads(undisturbed[stem + ".json"])
    assert list(rows[0]) == ["index", "label", "width", "height", "prediction"]
    assert [row["index"] for row in rows] == list(range(19))
    assert json.loads(undisturbed[stem + "_identity.json"])["prompts"].startswith("findit-own-")


@pytest.mark.parametrize("kills", [(1,), (2, 3, 50), (100, 30)])
def test_a_killed_sweep_goes_on_to_the_same_files(
    kills: tuple[int, ...], undisturbed: dict[str, str], tmp_path: Path
) -> None:
    calls = 0
    for kill in kills:
        model = FakeModel(dying_at(kill))
        try:
            go(demo_sweep(tmp_path), FakeBackends(model))
        except Killed:
            model.calls -= 1
        calls += model.calls
        with (tmp_path / "calls.jsonl").open("ab") as f:
            f.write(b'{"key": "70a1')
    model = FakeModel()
    go(demo_sweep(tmp_path), FakeBackends(model))
    assert files(tmp_path / "out") == undisturbed
    assert calls + model.calls == CALLS, "no finished call is repeated"
    assert_answered_once(tmp_path / "calls.jsonl", CALLS)


def test_a_second_run_asks_nothing_and_changes_nothing(tmp_path: Path) -> None:
    def contents() -> tuple[dict[str, str], bytes]:
        return files(tmp_path / "out"), (tmp_path / "calls.jsonl").read_bytes()

    go(demo_sweep(tmp_path), FakeBackends(FakeModel()))
    before = contents()
    model, watcher = FakeModel(), Silent()
    go(demo_sweep(tmp_path), FakeBackends(model), watcher=watcher)
    assert model.calls == 0
    assert watcher.finished == [CALLS]
    assert contents() == before


def test_equal_calls_of_two_sweeps_are_paid_once(
    undisturbed: dict[str, str], tmp_path: Path
) -> None:
    small = CONFIG.replace("cxcywh", "xywh")
    go(demo_sweep(tmp_path, small, work_dir=tmp_path / "first"), FakeBackends(FakeModel()))
    model = FakeModel()
    go(demo_sweep(tmp_path), FakeBackends(model))
    assert model.calls == CALLS // 2
    assert files(tmp_path / "out") == undisturbed


def test_failures_are_recorded_retried_and_never_answers(
    undisturbed: dict[str, str], tmp_path: Path
) -> None:
    def fail(number: int, text: str) -> None:
        if number % 7 == 0:
            raise RuntimeError(f"call {number}\nwent wrong")

    model = FakeModel(fail)
    results = go(demo_sweep(tmp_path), FakeBackends(model))
    failed = [r for r in records(tmp_path / "calls.jsonl") if r["error"]]
    assert len(failed) == CALLS // 7 == sum(r.failed for r in results)
    assert failed[0]["error"] == "RuntimeError: call 7 went wrong"
    reported = files(tmp_path / "out")
    wrong = [name for name in undisturbed if f"{FAILED} via API. RuntimeError" in reported[name]]
    assert wrong
    again = FakeModel()
    go(demo_sweep(tmp_path), FakeBackends(again))
    assert again.calls == len(failed)
    assert files(tmp_path / "out") == undisturbed


def test_the_record_of_a_reply_is_stored(tmp_path: Path) -> None:
    extra = {"findit": {"finish_reason": "length", "tokens": {"prompt": 7, "completion": 768}}}

    class Recording(FakeModel):
        def generate(self, message: Message, dataset: str) -> Any:
            return {"prediction": "[", "extra_records": json.dumps(extra)}

    go(demo_sweep(tmp_path), FakeBackends(Recording()))
    record = next(records(tmp_path / "calls.jsonl"))
    assert json.loads(record["extra_records"]) == extra
    assert record["model"] == "FullImage"
    assert record["settings"] == {"max_new_tokens": 768, "image_folder": "Demo"}
    assert len(record["prompt_sha256"]) == len(record["image_sha256"][0]) == 64
    assert record["seconds"] >= 0
    details = files(tmp_path / "out")
    name = "FullImage/FullImage_FindIt_Demo_xyxy_json_details.jsonl"
    assert '"truncated"' in details[name]


# --- what a model can do at once ------------------------------------------------------------------


def test_the_calls_of_a_failed_batch_are_made_singly() -> None:
    class Fragile(FakeModel):
        def generate_batch(self, messages: list[Message]) -> list[str]:
            raise RuntimeError("out of memory")

    model = Fragile(lambda number, text: (_ for _ in ()).throw(ValueError) if number == 2 else None)
    messages = tuple((text(str(at)),) for at in range(3))
    work = Batch(messages, (parse("FindIt_Demo_xyxy_json"),) * 3, shares_images=False)
    answers = GenerateClient(model).ask(work)
    assert [answer.error is None for answer in answers] == [True, False, True]


# --- stopping -------------------------------------------------------------------------------------


def test_a_full_disk_stops_a_sweep_and_stores_calls_in_flight(
    undisturbed: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, journal = FakeModel(), tmp_path / "calls.jsonl"
    real, reserve = os.write, tmp_path / "calls.jsonl.reserve"

    def write(handle: int, data: bytes) -> int:
        """Be full once the journal is long, but for its reserve."""
        if len(data) > 200 and journal.stat().st_size > 8000 and reserve.exists():
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(handle, data)

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", write)
        with pytest.raises(DiskFullError, match="the disk is full; every reply is stored"):
            go(demo_sweep(tmp_path), FakeBackends(model, threaded(2)))
        assert len(answered_keys(journal)) == model.calls < CALLS
    go(demo_sweep(tmp_path), FakeBackends(FakeModel()))
    assert files(tmp_path / "out") == undisturbed


# --- what is refused ------------------------------------------------------------------------------


def test_two_sweeps_cannot_write_the_same_work_dir(tmp_path: Path) -> None:
    def second(number: int, text: str) -> None:
        other = demo_sweep(tmp_path, journal=tmp_path / "other.jsonl")
        with pytest.raises(LockedError, match="two sweeps cannot write"):
            go(other, FakeBackends(FakeModel()))
        raise Killed

    with pytest.raises(Killed):
        go(demo_sweep(tmp_path), FakeBackends(FakeModel(second)))


def test_unknown_replies_are_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "out" / "FullImage" / "FullImage_FindIt_Demo_xyxy_text.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps([{"index": 3, "prediction": "[1, 2, 3, 4]"}]))
    model = FakeModel()
    with pytest.raises(PredictionError, match=r"a reply to row 3 that is not in the journal"):
        go(demo_sweep(tmp_path), FakeBackends(model))
    assert model.calls == 0
    assert json.loads(path.read_text())[0]["prediction"] == "[1, 2, 3, 4]"


def test_force_sets_the_files_of_another_run_aside_once(tmp_path: Path) -> None:
    first = replace(demo_sweep(tmp_path), models=(ModelEntry("FullImage", settings={"a": 1}),))
    go(first, FakeBackends(FakeModel()))
    other = replace(first, models=(ModelEntry("FullImage", settings={"a": 2}),))
    model = FakeModel()
    with pytest.raises(IdentityError, match="--force"):
        go(other, FakeBackends(model))
    assert model.calls == 0
    for _ in range(2):
        go(replace(other, force=True, journal=tmp_path / "other.jsonl"), FakeBackends(FakeModel()))
        stored = sorted(path.name for path in tmp_path.glob("out/FullImage/*.replaced-*"))
        assert len(stored) == 8
        assert {name.split(".")[1] for name in stored} == {"replaced-1"}


def test_answers_of_another_run_in_the_journal_are_refused(tmp_path: Path) -> None:
    class At(FakeBackends):
        def __init__(self, where: str, model: FakeModel) -> None:
            super().__init__(model)
            self._described = Described(Answering("FakeModel", endpoint=where), None)

        def describe(self, entry: ModelEntry, variant: Any) -> Described:
            return self._described

    go(demo_sweep(tmp_path), At("http://here/v1", FakeModel()))
    again = demo_sweep(tmp_path, work_dir=tmp_path / "again")
    model = FakeModel()
    with pytest.raises(IdentityError, match="endpoint of answers: recorded http://here/v1, now"):
        go(again, At("http://elsewhere/v1", model))
    go(replace(again, force=True), At("http://elsewhere/v1", model))
    assert model.calls == 0
    reported = json.loads(next((tmp_path / "again").rglob("*_provenance.json")).read_text())[
        "forced"
    ]
    assert reported == ["endpoint of answers: recorded http://here/v1, now http://elsewhere/v1"]


# --- servers --------------------------------------------------------------------------------------


def test_servers_take_no_checkpoint() -> None:
    host = ServerBackends(["http://localhost:8000/v1"], CallOptions())
    with pytest.raises(ValueError, match="say their name for it, `served`"):
        host.check(ModelEntry("Qwen3-VL", checkpoint="/models/mine"))


class SaysItsSpace(FakeBackends):
    """A host whose model records its coordinate space with every reply."""

    def describe(self, entry: ModelEntry, variant: Variant) -> Described:
        return Described(super().describe(entry, variant).answering, {"kind": "grid1000"})


@pytest.mark.parametrize("twice", ["first run", "again"])
def test_a_model_that_records_its_space_cannot_be_given_another(tmp_path: Path, twice: str) -> None:
    sweep = demo_sweep(tmp_path)
    reported = [replace(entry, space="unit") for entry in sweep.models]
    agreeing = [replace(entry, space="grid1000") for entry in sweep.models]
    model = FakeModel()
    if twice == "again":
        go(replace(sweep, models=tuple(agreeing)), SaysItsSpace(model))
        assert model.calls > 0
    before = model.calls
    with pytest.raises(SpaceError, match="cannot change that"):
        go(replace(sweep, models=tuple(reported)), SaysItsSpace(model))
    assert model.calls == before, "nothing was asked"


def test_a_model_that_is_cancelled_has_not_answered(tmp_path: Path) -> None:
    stop = CancelToken()

    class Slow(FakeModel):
        answered = 0
        is_stopped: Any = None

        def cancelled_by(self, is_stopped: Any) -> None:
            self.is_stopped = is_stopped

        def generate_batch(self, messages: Any, dataset: str) -> list[Any]:
            if self.answered >= 8:
                stop.request()
            if self.is_stopped():
                raise CancelledError
            self.answered += len(messages)
            return [self.generate(message, dataset) for message in messages]

        generate_variants = generate_batch

    sweep = demo_sweep(tmp_path, inference=CallOptions(batch_size=4, variants=4))
    with pytest.raises(StoppedError):
        go(sweep, FakeBackends(slow := Slow()), stop=stop)
    stored = len(list(records(sweep.journal)))
    assert stored == slow.answered, "nothing of the cancelled batch, nor its calls one by one"
    model = FakeModel()
    results = go(sweep, FakeBackends(model))
    assert 0 < stored < model.calls + stored == sum(result.rows for result in results)
    assert not any(result.failed for result in results)


def test_what_a_kill_left_half_written_is_removed(tmp_path: Path) -> None:
    go(demo_sweep(tmp_path), FakeBackends(FakeModel()))
    (result, *_) = (tmp_path / "out").glob("*/*_score.csv")
    half = result.with_name(f".{result.name}.0123abcd")
    others = result.with_name(".notes.csv.0123abcd")
    for path in (half, others):
        path.write_text("half")
    go(demo_sweep(tmp_path), FakeBackends(FakeModel()))
    assert not half.exists()
    assert others.exists()
