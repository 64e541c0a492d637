"""Sweeps with models in this process: kills, failures, full disks, refusals, what is shown."""

from __future__ import annotations

import csv
import errno
import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from engine_fakes import (
    CALLS,
    CONFIG,
    FakeDeployment,
    FakeModel,
    Killed,
    Message,
    Silent,
    answered_keys,
    assert_answered_once,
    demo_sweep,
    deployments,
    dying_at,
    files,
    go,
    of_client,
    records,
    servers,
    threaded,
)

from vlmeval_findit.benchmarks.findit import parse
from vlmeval_findit.boxes import SpaceError
from vlmeval_findit.cli import main, run_and_print
from vlmeval_findit.core import LockedError
from vlmeval_findit.engine import (
    CancelToken,
    DiskFullError,
    LocalBackend,
    StoppedError,
)
from vlmeval_findit.models import GenerateClient, ModelEntry, TimedClient
from vlmeval_findit.protocol import (
    FAILED_ANSWER,
    Answering,
    Batch,
    CallResult,
    CancelledError,
    DatasetVariant,
    Described,
    IdentityError,
    StopReason,
    text,
)
from vlmeval_findit.storage import PredictionError, RunFiles
from vlmeval_findit.sweeps import Sweep


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, lmu_data: Path) -> dict[str, str]:
    """Return the files of a sweep that nothing happened to."""
    folder = tmp_path_factory.mktemp("undisturbed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LMUData", str(lmu_data))
        assert asked(demo_sweep(folder)) == CALLS
    assert_answered_once(folder / "calls.jsonl", CALLS)
    return files(folder / "out")


def asked(sweep: Sweep) -> int:
    """Run a sweep; return how many calls were made."""
    model = FakeModel()
    go(sweep, FakeDeployment(model))
    return model.calls


def test_a_sweep_leaves_the_files_of_a_run(undisturbed: dict[str, str]) -> None:
    stem = "FullImage/FullImage_FindIt_Demo_xyxy_text"
    endings = (".json", "_identity.json", "_score.csv", "_details.jsonl", "_provenance.json")
    endings += ("_sums.msgpack",)
    assert {stem + ending for ending in endings} <= set(undisturbed)
    assert len(undisturbed) == 8 * len(endings)
    rows = json.loads(undisturbed[stem + ".json"])
    assert list(rows[0]) == ["index", "label", "width", "height", "prediction", "image_sha256"]
    assert [row["index"] for row in rows] == list(range(19))
    assert json.loads(undisturbed[stem + "_identity.json"])["prompts"].startswith("findit-own-")


@pytest.mark.parametrize("kills", [(1,), (2, 3, 50), (100, 30)])
def test_a_killed_sweep_goes_on_to_the_same_files(
    kills: tuple[int, ...], undisturbed: dict[str, str], tmp_path: Path
) -> None:
    sweep, calls = demo_sweep(tmp_path), 0
    for kill in kills:
        model = FakeModel(dying_at(kill))
        try:
            go(sweep, FakeDeployment(model))
        except Killed:
            model.calls -= 1
        calls += model.calls
        with sweep.journal.open("ab") as f:
            f.write(b'{"key": "70a1')
    assert calls + asked(sweep) == CALLS, "no finished call is repeated"
    assert files(sweep.work_dir) == undisturbed
    assert_answered_once(sweep.journal, CALLS)

    before = sweep.journal.read_bytes()
    watcher = Silent()
    model = FakeModel()
    go(sweep, FakeDeployment(model), watcher=watcher)
    assert (model.calls, watcher.finished) == (0, [CALLS]), "another run asks nothing"
    assert files(sweep.work_dir) == undisturbed
    assert sweep.journal.read_bytes() == before


def test_equal_calls_of_two_sweeps_are_paid_once(
    undisturbed: dict[str, str], tmp_path: Path
) -> None:
    asked(demo_sweep(tmp_path, CONFIG.replace("cxcywh", "xywh"), work_dir=tmp_path / "first"))
    assert asked(demo_sweep(tmp_path)) == CALLS // 2
    assert files(tmp_path / "out") == undisturbed


def test_failures_are_recorded_retried_and_never_answers(
    undisturbed: dict[str, str], tmp_path: Path
) -> None:
    def fail(number: int, text: str) -> None:
        if number % 7 == 0:
            raise RuntimeError(f"call {number}\nwent wrong")

    results = go(demo_sweep(tmp_path), FakeDeployment(FakeModel(fail)))
    failed = [record["error"] for record in records(tmp_path / "calls.jsonl") if record["error"]]
    assert len(failed) == CALLS // 7 == sum(result.failed for result in results)
    assert failed[0] == "RuntimeError: call 7 went wrong"
    written = files(tmp_path / "out")
    assert any(f"{FAILED_ANSWER} via API. RuntimeError" in written[name] for name in undisturbed)
    assert asked(demo_sweep(tmp_path)) == len(failed)
    assert files(tmp_path / "out") == undisturbed


def test_the_record_of_a_reply_is_stored(tmp_path: Path) -> None:
    extra = {"findit": {"finish_reason": "length", "tokens": {"prompt": 7, "completion": 768}}}

    class Recording(FakeModel):
        def generate(self, message: Message, dataset: str) -> Any:
            return {"prediction": "[", "extra_records": json.dumps(extra)}

    go(demo_sweep(tmp_path), FakeDeployment(Recording()))
    record = next(records(tmp_path / "calls.jsonl"))
    assert json.loads(record["extra_records"]) == extra
    assert record["model"] == "FullImage"
    assert record["settings"] == {"max_new_tokens": 768, "image_folder": "Demo"}
    assert len(record["prompt_sha256"]) == len(record["image_sha256"][0]) == 64
    assert record["seconds"] == record["time"]["seconds"] >= 0
    name = "FullImage/FullImage_FindIt_Demo_xyxy_json_details.jsonl"
    assert '"truncated"' in files(tmp_path / "out")[name]


# --- a model of this process ----------------------------------------------------------------------


def test_the_calls_of_a_failed_batch_are_made_singly() -> None:
    class Fragile(TimedClient):
        def answers_together(self) -> bool:
            return True

        def replies(self, batch: Batch) -> list[CallResult]:
            if len(batch.messages) > 1 or batch.messages[0][0].value == "1":
                raise RuntimeError("out of memory")
            return [CallResult("[]")]

    messages = tuple((text(str(at)),) for at in range(3))
    work = Batch(messages, (parse("FindIt_Demo_xyxy_json"),) * 3)
    answers = Fragile().ask(work)
    assert [answer.error is None for answer in answers] == [True, False, True]


def test_a_model_that_is_cancelled_has_not_answered(tmp_path: Path) -> None:
    stop = CancelToken()

    class Slow(TimedClient):
        is_stopped: Any = None
        calls = 0

        def cancelled_by(self, is_stopped: Any) -> None:
            self.is_stopped = is_stopped

        def answers_together(self) -> bool:
            return True

        def replies(self, batch: Batch) -> list[CallResult]:
            if self.calls >= 8:
                stop.request()
            if self.is_stopped():
                raise CancelledError
            self.calls += len(batch.messages)
            return [CallResult("[1, 2, 3, 4]")] * len(batch.messages)

        def parts(self, window: Batch) -> Sequence[Sequence[int]]:
            places = range(len(window.messages))
            return [places[at : at + 4] for at in places[::4]]

    sweep = demo_sweep(tmp_path)
    with pytest.raises(StoppedError):
        go(sweep, FakeDeployment(slow := Slow(), of_client), stop=stop)
    assert_answered_once(sweep.journal, slow.calls)
    assert 0 < slow.calls == CALLS - asked(sweep), "neither the cancelled batch nor its calls"
    assert_answered_once(sweep.journal, CALLS)


# --- files ----------------------------------------------------------------------------------------


def test_a_full_disk_stops_a_sweep_but_loses_nothing(
    undisturbed: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, journal = FakeModel(), tmp_path / "calls.jsonl"
    real = os.write
    reserve = tmp_path / "calls.jsonl.reserve"

    def write(handle: int, data: bytes) -> int:
        """Be full once the journal is long, but for its reserve."""
        if len(data) > 200 and journal.stat().st_size > 8000 and reserve.exists():
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(handle, data)

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", write)
        with pytest.raises(DiskFullError, match="the disk is full; every reply is stored"):
            go(demo_sweep(tmp_path), FakeDeployment(model, threaded(2)))
    assert len(answered_keys(journal)) == model.calls < CALLS
    asked(demo_sweep(tmp_path))
    assert files(tmp_path / "out") == undisturbed


def test_what_a_kill_left_half_written_is_removed(tmp_path: Path) -> None:
    asked(demo_sweep(tmp_path))
    result = next((tmp_path / "out").glob("*/*_score.csv"))
    half = result.with_name(f".{result.name}.0123abcd.new")
    others = result.with_name(".notes.csv.0123abcd")
    for path in (half, others):
        path.write_text("half")
    asked(demo_sweep(tmp_path))
    assert not half.exists()
    assert others.exists()


# --- what is refused ------------------------------------------------------------------------------


def test_two_sweeps_cannot_write_the_same_work_dir(tmp_path: Path) -> None:
    def second(number: int, text: str) -> None:
        with pytest.raises(LockedError, match="two sweeps cannot write"):
            asked(demo_sweep(tmp_path, journal=tmp_path / "other.jsonl"))
        raise Killed

    with pytest.raises(Killed):
        go(demo_sweep(tmp_path), FakeDeployment(FakeModel(second)))


def test_unknown_replies_are_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "out" / "FullImage" / "FullImage_FindIt_Demo_xyxy_text.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps([{"index": 3, "prediction": "[1, 2, 3, 4]"}]))
    with pytest.raises(PredictionError, match=r"a reply to row 3 that is not in the journal"):
        asked(demo_sweep(tmp_path))
    assert not list(records(tmp_path / "calls.jsonl"))
    assert json.loads(path.read_text())[0]["prediction"] == "[1, 2, 3, 4]"


def test_force_sets_the_files_of_another_run_aside_once(tmp_path: Path) -> None:
    sweeps = [
        replace(demo_sweep(tmp_path), models=(ModelEntry("FullImage", settings={"a": value}),))
        for value in (1, 2)
    ]
    asked(sweeps[0])
    with pytest.raises(IdentityError, match="--force"):
        asked(sweeps[1])
    assert len(list(records(sweeps[1].journal))) == CALLS, "nothing was asked"
    for _ in range(2):
        asked(replace(sweeps[1], force=True, journal=tmp_path / "other.jsonl"))
        stored = [path.name.split(".")[1] for path in tmp_path.glob("out/*/*.replaced-*")]
        assert stored == ["replaced-1"] * 8


class Says(FakeDeployment):
    """A host that says something of its model."""

    def __init__(self, model: FakeModel, space: Any = None, **answering: Any) -> None:
        super().__init__(model)
        self.__dict__["described"] = Described(Answering("FakeModel", **answering), space)

    def describe(self, variant: DatasetVariant) -> Described:
        return self.described


def test_answers_of_another_run_in_the_journal_are_refused(tmp_path: Path) -> None:
    go(demo_sweep(tmp_path), Says(FakeModel(), endpoint="http://here/v1"))
    again = demo_sweep(tmp_path, work_dir=tmp_path / "again")
    model = FakeModel()
    elsewhere = Says(model, endpoint="http://elsewhere/v1")
    what = "endpoint of answers: recorded http://here/v1, now http://elsewhere/v1"
    with pytest.raises(IdentityError, match=what):
        go(again, elsewhere)
    go(replace(again, force=True), elsewhere)
    assert model.calls == 0
    written = next((tmp_path / "again").rglob("*_provenance.json")).read_text()
    assert json.loads(written)["forced"] == [what]


@pytest.mark.parametrize("twice", [False, True], ids=["first run", "again"])
def test_a_model_that_records_its_space_cannot_be_given_another(
    tmp_path: Path, twice: bool
) -> None:
    def in_space(space: str) -> Sweep:
        return replace(demo_sweep(tmp_path), models=(ModelEntry("FullImage", space=space),))

    model = FakeModel()
    if twice:
        go(in_space("grid1000"), Says(model, {"kind": "grid1000"}))
    with pytest.raises(SpaceError, match="cannot change that"):
        go(in_space("unit"), Says(model, {"kind": "grid1000"}))
    assert model.calls == CALLS * twice, "nothing was asked"


def test_servers_take_no_checkpoint() -> None:
    host = servers("http://localhost:8000/v1")
    with pytest.raises(ValueError, match="give their name for it as `served`"):
        host.of(ModelEntry("Qwen3-VL", checkpoint="/models/mine")).check()


# --- the command ----------------------------------------------------------------------------------


def status(folder: Path, host: FakeDeployment) -> int:
    sweep = demo_sweep(folder)
    return run_and_print(sweep, deployments(sweep, host), folder / "best.yaml")


def test_failed_calls_are_an_exit_status(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(number: int, text: str) -> None:
        if number == 3:
            raise TimeoutError

    assert status(tmp_path, FakeDeployment(FakeModel(fail))) == 1
    shown = capsys.readouterr()
    # "scored" is what the file of a score calls so: the rows of the table that the run has.
    lines = {line.split()[0]: line.split()[-2:] for line in shown.out.splitlines() if "/" in line}
    for path in (tmp_path / "out").rglob("*_score.csv"):
        [row] = csv.DictReader(path.read_text(encoding="utf-8").splitlines())
        assert lines[row["dataset"]] == [f"{row['scored']}/{row['rows']}", row["failed calls"]]
    assert "1 call failed; run the same command again" in shown.out
    assert "calls 100/100" in shown.err
    assert "failed 1" in shown.err
    assert status(tmp_path, FakeDeployment(FakeModel())) == 0


@pytest.mark.sees("key thought_marks")
@pytest.mark.parametrize("marks", ["<plan> </plan>", '["<plan>", "</plan>"]'])
def test_an_entry_names_the_marks_of_thoughts(marks: str, tmp_path: Path) -> None:
    class Planning(FakeModel):
        def generate(self, message: Message, dataset: str) -> Any:
            return "<plan>[1, 2, 3, 4]</plan>[10, 20, 500, 900]"

    def scored(name: str, model: str) -> dict[str, Any]:
        text = f"models: {model}\ndatasets: Demo\noutputs: text\nrepresentations: xyxy"
        (result,) = go(demo_sweep(tmp_path / name, text), FakeDeployment(Planning()))
        provenance: dict[str, Any] = json.loads(RunFiles(result.path).provenance.read_text())
        return provenance

    named = scored("named", f"{{name: FullImage, thought_marks: {marks}}}")
    assert named["thought_marks"] == ["<plan>", "</plan>"]
    assert named["totals"]["n_pred"] == 19
    assert scored("unnamed", "FullImage")["totals"]["n_pred"] == 38


@pytest.mark.parametrize(("stop", "ends"), [(StopReason.SPENT, 3), (StopReason.HOPELESS, 1)])
def test_a_stopped_model_sets_the_exit_status(
    stop: StopReason, ends: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    class Ending(GenerateClient):
        def ask(self, batch: Batch) -> list[CallResult]:
            return [CallResult("", error="no more", stop=stop)] * len(batch.messages)

    host = FakeDeployment(Ending(FakeModel()), lambda client: LocalBackend(lambda: client))
    assert status(tmp_path, host) == ends
    printed = capsys.readouterr().err
    assert f"error: FullImage: stopped, {stop.value}: no more\n" in printed
    assert printed.count("FullImage: stopped") == 1


def test_the_journal_lies_in_the_named_work_dir(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        "vlmeval_findit.cli.sweep.deployments_for",
        lambda sweep, *_: deployments(sweep, FakeDeployment(FakeModel())),
    )
    (tmp_path / "f.yaml").write_text("models: FullImage\ndatasets: Demo\nlimit: 2\n")
    search = "search --model FullImage --space pixels --data Demo --limit 2"
    for command in (
        "sweep f.yaml --work-dir x",
        f"{search} --work-dir y",
        f"{search} --work-dir z --journal named.jsonl",
        search,
    ):
        assert main(command.split()) == 0
    written = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.jsonl")}
    journals = {name for name in written if not name.endswith("_details.jsonl")}
    assert journals == {"named.jsonl", "outputs/calls.jsonl", "x/calls.jsonl", "y/calls.jsonl"}
