"""A finished cell whose score rests on the same is not scored again; after any change it is."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import pytest
from engine_fakes import FakeDeployment, FakeModel, Message, demo_sweep, files, go, records
from few_fast import every_nth_fast

from vlmeval_findit.benchmarks import parse
from vlmeval_findit.core import command
from vlmeval_findit.engine import (
    Journal,
    JournalView,
    Output,
    RowDigests,
    answering,
    basis_of,
    cell_files,
    decode_record,
    encode_record,
)
from vlmeval_findit.protocol import GIVEN_SOURCE, Scorer, SumKey, SumName, ThoughtMarks, ThoughtRule
from vlmeval_findit.scoring import (
    CellResult,
    RunScore,
    ScoreBasis,
    provenance,
    read_sealed,
    recorded_scorer,
    write_score,
)
from vlmeval_findit.storage import PredictionError, RunFiles
from vlmeval_findit.sweeps import Sweep

CONFIG = "models: FullImage\ndatasets: [Demo_multilabel]\nrepresentations: [xyxy]\noutputs: json\n"


@dataclass
class Finished:
    """A sweep of one cell whose calls are all finished, and what was seen of it."""

    sweep: Sweep
    output: Output
    result: CellResult
    scored: list[str]  # Datasets, each time that rows were scored
    patch: pytest.MonkeyPatch

    @property
    def files(self) -> RunFiles:
        return RunFiles(self.output.path)

    def again(self, sweep: Sweep | None = None) -> CellResult:
        """Run the sweep again, without a call."""
        self.scored.clear()
        model = FakeModel()
        (result,) = go(sweep or self.sweep, FakeDeployment(model))
        assert model.calls == 0
        return result

    def edit_provenance(self, edit: Callable[[dict[str, Any]], object]) -> None:
        values = json.loads(self.files.provenance.read_text())
        edit(values)
        self.files.provenance.write_text(json.dumps(values))

    def edit_journal(self, edit: Callable[[dict[str, Any]], object]) -> None:
        """Edit the first record by hand, with its checksum."""
        first, *others = self.sweep.journal.read_bytes().splitlines(keepends=True)
        record = decode_record(first)
        assert record is not None
        edit(record)
        self.sweep.journal.write_bytes(b"".join([encode_record(record), *others]))


class Empty(FakeModel):
    """Answers nothing, under another name than was asked."""

    def generate(self, message: Message, dataset: str) -> Any:
        who = [{"identifier": name} for name in ("small-3b", "large-70b")]
        self.calls += 1
        record = {"findit": {"model": who[self.calls % 2]}}
        return {"prediction": "", "extra_records": json.dumps(record)}


def finish(folder: Path, patch: pytest.MonkeyPatch, model: FakeModel) -> Finished:
    outputs = []
    scored: list[str] = []
    real_finish = answering.finished_cell
    real_score = cell_files.score_rows

    def finished_cell(output: Output, *others: Any) -> CellResult:
        outputs.append(output)
        return real_finish(output, *others)

    def score_rows(opened: Any) -> RunScore:
        scored.append(opened.dataset.name)
        return real_score(opened)

    patch.setattr(answering, "finished_cell", finished_cell)
    patch.setattr(cell_files, "score_rows", score_rows)
    sweep = demo_sweep(folder, CONFIG)
    (result,) = go(sweep, FakeDeployment(model))
    assert scored
    return Finished(sweep, outputs[0], result, scored, patch)


@pytest.fixture
def finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Finished:
    return finish(tmp_path, monkeypatch, FakeModel())


def stated(result: CellResult) -> dict[str, Any]:
    return {field.name: getattr(result, field.name) for field in fields(result)}


def test_a_finished_sweep_is_not_scored_again(finished: Finished) -> None:
    folder = finished.output.path.parent
    before = {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in folder.iterdir()}
    again = finished.again()
    assert not finished.scored
    assert stated(again) == stated(finished.result)
    assert list(again.sums) == list(finished.result.sums)
    after = {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in folder.iterdir()}
    assert after == before


def test_a_stored_result_says_what_its_score_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    doubt = "declared grid1000, but the answers follow pixels"
    with monkeypatch.context() as patch:
        patch.setattr("vlmeval_findit.coords.score_check.warning", lambda *_: doubt)
        finished = finish(tmp_path, patch, Empty())
        again = finished.again()
    assert not finished.scored
    assert again.coords_doubt == doubt
    assert again.answered_note == "answered by 2 models: 3 rows by large-70b, 3 rows by small-3b"
    assert again.reply_note is not None
    assert stated(again) == stated(finished.result)


def test_a_stored_result_counts_failed_calls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(number: int, text: str) -> None:
        if number == 2:
            raise RuntimeError("no")

    finished = finish(tmp_path, monkeypatch, FakeModel(fail))
    finished.scored.clear()
    with JournalView(finished.sweep.journal) as journal:
        again = cell_files.finished_cell(finished.output, journal)
    assert not finished.scored
    assert again.failed == finished.result.failed == 1


# --- changes after which a cell is scored again ---------------------------------------------------


def _append(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\n")


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def _damage_journal(finished: Finished) -> None:
    data = finished.sweep.journal.read_bytes()
    finished.sweep.journal.write_bytes(data.replace(b'"seconds"', b'"secondz"', 1))


def _edit_identity(finished: Finished) -> None:
    path = finished.files.identity
    values = json.loads(path.read_text())
    path.write_text(json.dumps({**values, "asked_at": "2020-01-01T00:00:00+00:00"}))


def _edit_facts(finished: Finished) -> None:
    real = cell_files.file_sha256
    finished.patch.setattr(
        cell_files,
        "file_sha256",
        lambda path: "0" * 64 if path.name.endswith(".meta.json") else real(path),
    )


def _edit_seal(name: str, value: Any) -> Callable[[Finished], None]:
    return lambda finished: finished.edit_provenance(
        lambda values: values["seal"].update({name: value})
    )


# Each leaves files that are mended by scoring again
DAMAGE: dict[str, Callable[[Finished], object]] = {
    "predictions edited": lambda finished: _append(finished.output.path),
    "predictions deleted": lambda finished: finished.output.path.unlink(),
    "score edited": lambda finished: _append(finished.files.score),
    "score deleted": lambda finished: finished.files.score.unlink(),
    "details edited": lambda finished: _append(finished.files.details),
    "details cut": lambda finished: _cut(finished.files.details),
    "details deleted": lambda finished: finished.files.details.unlink(),
    "provenance edited": lambda finished: finished.edit_provenance(
        lambda values: values["totals"].update(tp=99)
    ),
    "doubt edited": lambda finished: finished.edit_provenance(
        lambda values: values.update(coords_doubt="none")
    ),
    "hash of predictions edited": lambda finished: finished.edit_provenance(
        lambda values: values["predictions"].update(sha256="0" * 64)
    ),
    "provenance cut": lambda finished: _cut(finished.files.provenance),
    "provenance a list": lambda finished: finished.files.provenance.write_text("[]"),
    "provenance deleted": lambda finished: finished.files.provenance.unlink(),
    "no seal": lambda finished: finished.edit_provenance(lambda values: values.pop("seal")),
    "seal without hash": lambda finished: finished.edit_provenance(
        lambda values: values["seal"].pop("sha256")
    ),
    "sums of the seal edited": _edit_seal("sums", [["tp", 99]]),
    "failed calls of the seal edited": _edit_seal("failed", 3),
}


@pytest.mark.parametrize("what", every_nth_fast(DAMAGE, 4))
def test_a_changed_file_is_scored_and_mended(what: str, finished: Finished) -> None:
    before = files(finished.sweep.work_dir)
    DAMAGE[what](finished)
    again = finished.again()
    assert finished.scored
    assert files(finished.sweep.work_dir) == before
    assert stated(again) == stated(finished.result)
    finished.again()
    assert not finished.scored


# Each is a change of what the score rests on, besides the files that hold it
CHANGES: dict[str, Callable[[Finished], object]] = {
    "time of an answer edited": lambda finished: finished.edit_journal(
        lambda record: record.update(time={"seconds": 7.0})
    ),
    "line of the journal damaged": _damage_journal,
    "journal lost": lambda finished: finished.sweep.journal.unlink(),
    "identity edited": _edit_identity,
    "facts of the table": _edit_facts,
    "version of the package": lambda finished: finished.patch.setattr(
        recorded_scorer, "__version__", "9.9"
    ),
    "version of numpy": lambda finished: finished.patch.setattr(
        recorded_scorer, "installed", lambda packages: dict.fromkeys(packages, "9.9")
    ),
    "code under the same version": lambda finished: finished.patch.setattr(
        cell_files, "package_sha256", lambda: "0" * 64
    ),
    "thoughts of the model's row": lambda finished: finished.patch.setattr(
        cell_files, "thought_rule", lambda *_: ThoughtRule(ThoughtMarks("<a>", "</a>"))
    ),
    "a setting of the environment": lambda finished: finished.patch.setenv(
        "FINDIT_PLUGINS_OF_A_TEST", "1"
    ),
}


@pytest.mark.parametrize("what", every_nth_fast(CHANGES, 3))
def test_a_changed_basis_is_scored_again(what: str, finished: Finished) -> None:
    CHANGES[what](finished)
    again = finished.again()
    assert finished.scored
    assert again.sums == finished.result.sums
    finished.again()
    assert not finished.scored


def test_a_score_with_other_settings_is_made_again(finished: Finished) -> None:
    (entry,) = finished.sweep.models
    marked = replace(entry, thought_marks=("<plan>", "</plan>"))
    other = replace(finished.sweep, models=(marked,))
    finished.again(other)
    assert finished.scored
    finished.again(other)
    assert not finished.scored
    finished.again()
    assert finished.scored, "and with the first settings"


def test_force_scores_every_time(finished: Finished) -> None:
    forced = replace(finished.sweep, force=True)
    for _ in range(2):
        finished.again(forced)
        assert finished.scored
        assert "seal" not in json.loads(finished.files.provenance.read_text())


def test_another_reply_in_the_predictions_is_refused(finished: Finished) -> None:
    rows = json.loads(finished.output.path.read_text())
    rows[0]["prediction"] = "[9, 9]"
    finished.output.path.write_text(json.dumps(rows))
    with pytest.raises(PredictionError, match="not in the journal"):
        finished.again()


# --- what a score rests on ------------------------------------------------------------------------


@pytest.fixture
def journal(finished: Finished) -> Iterator[JournalView]:
    with JournalView(finished.sweep.journal) as view:
        yield view


def test_the_basis_holds_what_makes_rows_and_score(
    finished: Finished, journal: JournalView, tmp_path: Path
) -> None:
    output = finished.output
    cell = output.cell
    dataset = cell.dataset
    table = tmp_path / "table.tsv"
    table.write_bytes(dataset.table.read_bytes() + b"\n")
    facts = dataset.table.with_suffix(".meta.json")
    if facts.is_file():
        table.with_suffix(".meta.json").write_bytes(facts.read_bytes())

    def with_cell(**values: Any) -> Output:
        return replace(output, cell=replace(cell, **values))

    def with_dataset(**values: Any) -> Output:
        """Change a dataset, but no message of it."""
        prompts = replace(cell.prompts, dataset=replace(dataset, **values))
        prompts._hashes[cell.rows] = cell.prompt_hashes
        return with_cell(prompts=prompts)

    other_rows = tuple(row + 1 for row in cell.rows)
    cell.prompts._hashes[other_rows] = cell.prompt_hashes
    other_variant = parse("FindIt_Demo_multilabel_xywh_json")
    changed = {
        "model": with_cell(model="M"),
        "rows": with_cell(rows=other_rows),
        "logprobs": with_cell(logprobs=True),
        # Of neither does the journal know a call
        "calls": with_cell(settings={"temperature": 1}),
        "other calls": with_cell(settings={"temperature": 2}),
        "name of the dataset": with_dataset(name="Another"),
        "variant": with_dataset(variant=other_variant),
        "table": with_dataset(table=table),
        "settings": replace(output, settings=replace(output.settings, reads_like="Qwen3-VL")),
        "identity": replace(output, identity=replace(output.identity, left_out=(3,))),
    }
    bases = {what: basis_of(each, RowDigests(journal)) for what, each in changed.items()}
    usual = basis_of(output, RowDigests(journal))
    assert None not in (usual, *bases.values())
    assert len({usual, *bases.values()}) == 1 + len(changed)
    same_rows = [what for what, basis in bases.items() if basis and usual and basis[0] == usual[0]]
    assert same_rows == ["settings", "identity"]


def test_what_is_not_known_by_hashes_has_no_basis(finished: Finished, journal: JournalView) -> None:
    output = finished.output
    dataset = output.cell.dataset
    depends_on_model = replace(output.cell.prompts, dataset=replace(dataset, base_dataset=dataset))
    unknown = [
        replace(output, settings=replace(output.settings, force=True)),
        replace(output, identity=replace(output.identity, forced=("rows",))),
        replace(output, identity=replace(output.identity, plugins={"a plug-in": "1"})),
        replace(output, path=output.path.with_suffix(".xlsx")),
        replace(output, cell=replace(output.cell, prompts=depends_on_model)),
    ]
    assert [basis_of(each, RowDigests(journal)) for each in unknown] == [None] * len(unknown)
    assert basis_of(output, RowDigests(journal)) is not None


@pytest.mark.parametrize("what", ["nothing", "scorer", "space", "forced", "plug-in"])
def test_a_score_that_others_decided_is_not_sealed(
    what: str, finished: Finished, journal: JournalView, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = cell_files.score_in_memory(finished.output, journal)
    (space,) = run.spaces
    decided: dict[str, dict[str, Any]] = {
        "scorer": {"scorer": Scorer("an encoder", {}, "setting")},
        "space": {"spaces": ({**space, "source": f"{GIVEN_SOURCE}: setting"},)},
        "forced": {"forced": ("rows",)},
    }
    if what == "plug-in":
        monkeypatch.setattr(provenance, "plugins_used", lambda *_: {"a plug-in": "1"})
    run = replace(run, **decided.get(what, {}))
    written = write_score(run, finished.output.path, basis=ScoreBasis("a", "b"))
    assert (read_sealed(written) is not None) == (what == "nothing")


def test_a_digest_is_made_again_when_the_journal_grows(finished: Finished, tmp_path: Path) -> None:
    cell = finished.output.cell
    with JournalView(finished.sweep.journal) as whole:
        expected = RowDigests(whole).digest(cell)
    with Journal(tmp_path / "another.jsonl") as journal:
        digests = RowDigests(journal)
        assert digests.digest(cell) != expected
        journal.append(records(finished.sweep.journal))
        assert digests.digest(cell) == expected


def test_sums_of_slices_are_sealed_exactly(finished: Finished, journal: JournalView) -> None:
    run = cell_files.score_in_memory(finished.output, journal)
    sums: dict[SumName, float] = {
        SumKey("tp", "size", "small"): 0.1 + 0.2,
        "whole": 3,
        SumKey("a", "b", "\ud83d"): 3.0,
    }
    run = replace(run, sums=sums)
    sealed = read_sealed(write_score(run, finished.output.path, basis=ScoreBasis("a", "b")))
    assert sealed is not None
    assert repr(sealed.sums) == repr(sums)


def test_the_hash_of_the_package_is_of_its_modules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashes = set()
    monkeypatch.setattr(command, "_PACKAGE", tmp_path)
    for text in ("a = 1\n", "a = 2\n"):
        (tmp_path / "module.py").write_text(text)
        hashes.add(command.package_sha256.__wrapped__())
    (tmp_path / "module.py").rename(tmp_path / "other.py")
    hashes.add(command.package_sha256.__wrapped__())
    assert len(hashes) == 3


@pytest.mark.parametrize(
    ("changed", "text", "is_other"),
    [
        ("boxes/module.py", b"a = 2\n", True),
        ("boxes/inner/module.py", b"", True),
        ("boxes/new.py", b"a = 1\n", True),
        ("boxes/module.py", b"a = 1\r\n", False),
        ("boxes/table.yaml", b"a: 1\n", False),
        ("report/module.py", b"a = 2\n", False),
        ("module.py", b"a = 2\n", False),
    ],
)
def test_the_hash_of_rooms_is_of_their_modules(
    changed: str, text: bytes, is_other: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "_PACKAGE", tmp_path)
    for name in ("boxes/module.py", "boxes/inner/module.py", "report/module.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"a = 1\n")
    before = command.package_sha256.__wrapped__(("boxes",))
    (tmp_path / changed).write_bytes(text)
    assert (command.package_sha256.__wrapped__(("boxes",)) != before) == is_other
