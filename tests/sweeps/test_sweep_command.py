"""What the command of a sweep shows and returns."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from engine_fakes import FakeBackends, FakeModel, demo_sweep, for_all_models

from vlmeval_findit.cli import main
from vlmeval_findit.cli.sweep import run
from vlmeval_findit.core.answers import Answer, Batch, StopReason
from vlmeval_findit.engine.backend import LocalBackend
from vlmeval_findit.models.model_client import GenerateClient


def swept(folder: Path, model: FakeModel) -> int:
    """Return the status of a sweep."""
    return run(demo_sweep(folder), for_all_models(FakeBackends(model)), folder / "best.yaml")


def test_failed_calls_are_an_exit_status(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(number: int, text: str) -> None:
        if number == 3:
            raise TimeoutError

    assert swept(tmp_path, FakeModel(fail)) == 1
    shown = capsys.readouterr()
    # "scored" is what the file of a score calls so: the rows of the table that the run has.
    lines = {line.split()[0]: line.split()[-2:] for line in shown.out.splitlines() if "/" in line}
    for path in (tmp_path / "out").rglob("*_score.csv"):
        [row] = csv.DictReader(path.read_text(encoding="utf-8").splitlines())
        assert lines[row["dataset"]] == [f"{row['scored']}/{row['rows']}", row["failed calls"]]
    assert "1 calls failed; run the same command again" in shown.out
    assert "calls 100/100" in shown.err
    assert "failed 1" in shown.err
    assert swept(tmp_path, FakeModel()) == 0


@pytest.mark.parametrize(("stop", "status"), [(StopReason.SPENT, 3), (StopReason.HOPELESS, 1)])
def test_a_model_that_ends_its_run_is_an_exit_status_and_a_line(
    stop: StopReason, status: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    class Ending(GenerateClient):
        def ask(self, batch: Batch) -> list[Answer]:
            return [Answer("", error="no more", stop=stop)] * len(batch.messages)

    host = FakeBackends(Ending(FakeModel()), lambda client: LocalBackend(lambda: client))
    assert run(demo_sweep(tmp_path), for_all_models(host), tmp_path / "b.yaml") == status
    assert f"error: FullImage: stopped, {stop.value}: no more\n" in capsys.readouterr().err


def test_the_journal_lies_in_the_work_dir_that_the_command_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    factories = for_all_models(FakeBackends(FakeModel()))
    monkeypatch.setattr("vlmeval_findit.cli.sweep.backends_for", lambda *_: factories)
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
