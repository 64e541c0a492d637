"""A run never takes the answers of another server, program or source, whenever it looks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from engine_fakes import FakeDeployment, FakeModel, demo_sweep, go, records
from every_pair import every_pair

from vlmeval_findit.engine import (
    CancelToken,
    CellBuilder,
    Journal,
    merge_predictions,
    prepare_output,
)
from vlmeval_findit.protocol import (
    Answering,
    DatasetVariant,
    Described,
    IdentityError,
    settings_from,
)
from vlmeval_findit.scoring import open_predictions
from vlmeval_findit.storage import PredictionError, RunFiles, read_identity, write_identity
from vlmeval_findit.sweeps import Sweep, stage_variants

TEXT = """
models: FullImage
datasets: [Demo]
representations: [xyxy]
outputs: json
limit: 6
"""
A = Answering("chat completions", checkpoint="mine", endpoint="http://a/v1")

WHO: Mapping[str, Mapping[str, Any]] = {
    "endpoint": {"endpoint": "http://b/v1"},
    "server": {"server": "vllm 0.12"},
    "source of the class": {"source": "sha256:2"},
    "dtype": {"settings": {"dtype": "float32"}},
    "attention": {"settings": {"attention": "eager"}},
    "engine": {"settings": {"engine": "numpy"}},
    "row of the model table": {"row": "Qwen3.5"},
    "setting server arguments": {"settings": {"server arguments": ["--quantization", "fp8"]}},
    "setting template": {"settings": {"template": {"enable_thinking": False}}},
    "setting bounds": {"settings": {"bounds": {"max_pixels": 1}}},
}
OURS = replace(
    A,
    row="Qwen3.5-nothink",
    server="vllm 0.11",
    source="sha256:1",
    settings={"dtype": "bfloat16", "attention": "sdpa", "engine": "transformers"},
    runs_here=True,
)


class Servers(FakeDeployment):
    """A host whose answers come from somewhere."""

    def __init__(self, model: Any, who: Answering) -> None:
        super().__init__(model)
        self.__dict__["who"] = who

    def describe(self, variant: DatasetVariant) -> Described:
        return Described(self.who, None)


def refusing(number: int, text: str) -> None:
    raise RuntimeError("401")


def run(sweep: Sweep, who: Answering, model: FakeModel | None = None) -> FakeModel:
    model = model or FakeModel()
    go(sweep, Servers(model, who), CancelToken())
    return model


def sweeps(folder: Path) -> tuple[Sweep, Sweep]:
    """Return two sweeps of one journal."""
    first = demo_sweep(folder, TEXT, work_dir=folder / "w1")
    return first, replace(first, work_dir=folder / "w2")


@every_pair("field, begun", WHO, [False, True])
def test_answers_of_another_maker_are_refused(tmp_path: Path, field: str, begun: bool) -> None:
    ours, theirs = sweeps(tmp_path)
    if begun:
        run(ours, OURS, FakeModel(refusing))
    run(theirs, replace(OURS, **WHO[field]))
    with pytest.raises(IdentityError, match=rf"(?s)another run:.*{field}.*Use another --journal"):
        run(ours, OURS)
    assert run(replace(ours, journal=tmp_path / "own.jsonl"), OURS).calls == 6


@every_pair("field, is_answered", WHO, [False, True])
def test_a_record_binds_only_with_an_answer(tmp_path: Path, field: str, is_answered: bool) -> None:
    ours, _ = sweeps(tmp_path)

    def answer(number: int, text: str) -> None:
        if number > 1 or not is_answered:
            raise RuntimeError("401")

    run(ours, OURS, FakeModel(answer))
    theirs = replace(OURS, **WHO[field])
    if is_answered:
        with pytest.raises(IdentityError, match="is of another run"):
            run(ours, theirs)
    else:
        assert run(ours, theirs).calls == 6


ANSWERED = {"key": "0" * 64, "error": None, "logprobs": False, "reply": "[]"}
# What the journal of a run that ended early has, and whether its record binds the next
OWN_JOURNALS: Mapping[str, tuple[list[dict[str, Any]] | None, bool]] = {
    "none": (None, True),  # Its answers may be in another
    "nothing": ([], False),
    "a failed call": ([{**ANSWERED, "error": "401"}], False),
    "an answer": ([ANSWERED], True),
    "a call that failed at last": ([ANSWERED, {**ANSWERED, "error": "401"}], True),
    "a batch on its way": ([{"event": {"batch": "b1"}}], True),
}


@pytest.mark.parametrize("kind", OWN_JOURNALS)
def test_a_run_that_ended_early_binds_by_its_journal(tmp_path: Path, kind: str) -> None:
    sweep, _ = sweeps(tmp_path)
    (entry,) = sweep.models
    (variant,) = stage_variants(sweep, entry.name, 0)
    cell = CellBuilder(False).cell(entry.name, variant, sweep.limit)
    path = tmp_path / f"{entry.name}_{variant.name}.json"
    output = prepare_output(path, cell, settings_from({}), Described(OURS, None), {})
    write_identity(RunFiles(path).identity, output.identity)
    stored, binds = OWN_JOURNALS[kind]
    if stored is not None:
        with Journal(RunFiles(path).calls) as journal:
            journal.append(stored)
    other = Described(replace(OURS, endpoint="http://b/v1"), None)
    if binds:
        with pytest.raises(IdentityError, match="is of another run"):
            prepare_output(path, cell, settings_from({}), other, {})
    else:
        output = prepare_output(path, cell, settings_from({}), other, {})
        assert output.identity.answering.endpoint == "http://b/v1"


def test_answers_of_the_same_server_are_shared(tmp_path: Path) -> None:
    ours, theirs = sweeps(tmp_path)
    run(ours, A, FakeModel(refusing))
    run(theirs, A)
    assert run(ours, A).calls == 0


def test_what_is_not_known_contradicts_nothing(tmp_path: Path) -> None:
    ours, theirs = sweeps(tmp_path)
    run(theirs, replace(A, endpoint=None))
    assert run(ours, A).calls == 0


def test_files_recorded_after_a_run_was_prepared_are_compared(tmp_path: Path) -> None:
    sweep, _ = sweeps(tmp_path)
    (entry,) = sweep.models
    (variant,) = stage_variants(sweep, entry.name, 0)
    cell = CellBuilder(False).cell(entry.name, variant, sweep.limit)
    other = Described(replace(A, endpoint="http://b/v1"), None)
    path = sweep.work_dir / entry.name / f"{entry.name}_{variant.name}.json"
    output = prepare_output(path, cell, settings_from({}), other, {})
    run(sweep, A)
    with Journal(tmp_path / "own.jsonl") as journal, pytest.raises(IdentityError, match="//b/"):
        merge_predictions(output, journal)


def test_force_goes_on_once_and_is_recorded(tmp_path: Path) -> None:
    ours, theirs = sweeps(tmp_path)
    run(ours, A, FakeModel(refusing))
    run(theirs, replace(A, endpoint="http://b/v1"))
    run(replace(ours, force=True), A)
    path = next((tmp_path / "w1").rglob("*_identity.json"))
    predictions = path.with_name(path.name.replace("_identity", ""))
    recorded = read_identity(predictions)
    assert recorded is not None
    assert recorded.forced == ("endpoint of answers: recorded http://b/v1, now http://a/v1",)
    assert run(ours, A).calls == 0, "what was forced is part of the run"
    assert read_identity(predictions) == recorded


def test_lines_of_another_journal_are_no_answers_of_this_run(tmp_path: Path) -> None:
    ours, theirs = sweeps(tmp_path)
    theirs = replace(theirs, journal=tmp_path / "theirs.jsonl")
    run(replace(ours, limit=3), A)
    run(theirs, replace(A, endpoint="http://b/v1"))
    with ours.journal.open("ab") as f:
        f.write(theirs.journal.read_bytes())
    with pytest.raises(IdentityError, match="endpoint of answers"):
        run(ours, A)


def rows_of(work_dir: Path, change: Mapping[str, Any]) -> Path:
    """Change the records of a run's first two predictions; return their file."""
    (path,) = [p for p in work_dir.rglob("*_json.json") if "_FindIt_" in p.name]
    rows = json.loads(path.read_text())
    for row in rows[:2]:
        row["extra_records"] = json.dumps({"findit": {"call": {"status": 200, **change}}})
    path.write_text(json.dumps(rows))
    return path


def test_predictions_that_name_another_server_are_not_scored(tmp_path: Path) -> None:
    ours, _ = sweeps(tmp_path)
    run(ours, A)
    path = rows_of(ours.work_dir, {"server": "http://b/v1"})
    with pytest.raises(IdentityError, match=r"server of 2 of 6 answers: recorded http://a/v1, now"):
        open_predictions(path, settings_from({}))
    assert open_predictions(path, settings_from({"force": True})).forced
    for same in ("http://a/v1", "http://a/v1 (2)"):
        assert not open_predictions(
            rows_of(ours.work_dir, {"server": same}), settings_from({})
        ).forced
    failed = {"server": "http://b/v1", "error": "HTTP 500"}
    assert not open_predictions(rows_of(ours.work_dir, failed), settings_from({})).forced


def test_predictions_that_name_another_server_are_not_taken(tmp_path: Path) -> None:
    ours, _ = sweeps(tmp_path)
    run(ours, A)
    rows_of(ours.work_dir, {"server": "http://b/v1"})
    ours.journal.unlink()
    with pytest.raises(PredictionError, match=r"http://b/v1 gave, where this run asks http://a/v1"):
        run(ours, A)


def test_predictions_about_other_images_are_asked_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ours, _ = sweeps(tmp_path)
    run(ours, A)
    (path,) = [p for p in ours.work_dir.rglob("*_json.json") if "_FindIt_" in p.name]
    rows = json.loads(path.read_text())
    for row in rows[:2]:
        (name,) = json.loads(row["image_sha256"])
        row["image_sha256"] = json.dumps({name: "0" * 16})
    path.write_text(json.dumps(rows))
    ours.journal.unlink()
    assert run(ours, A).calls == 2
    assert "2 images were replaced since then: their calls are repeated" in caplog.text
    written = [json.loads(row["image_sha256"]) for row in json.loads(path.read_text())]
    shown = [record["image_sha256"][0][:16] for record in records(ours.journal)]
    assert sorted(next(iter(each.values())) for each in written) == sorted(shown)
