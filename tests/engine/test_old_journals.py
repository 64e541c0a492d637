"""What earlier versions answered is read: nothing is asked again, by whichever kind."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from deployment_rows import ROWS, SYSTEM, Row
from engine_fakes import answered_keys
from every_pair import every_pair
from fake_program import Machine
from few_fast import every_nth_fast

from vlmeval_findit.cli import main

# Its template does not know the switch that was stated then, which had no effect
REFUSED = "a checkpoint of its own row"
ANSWERED = [row for row in ROWS if row.journal is not None and str(row) != REFUSED]
KEYS = {
    "OPENAI_API_KEY": "k",
    "ANTHROPIC_API_KEY": "k",
    "GEMINI_API_KEY": "k",
    "OPENROUTER_API_KEY": "k",
    "OPENROUTER_BASE_URL": "http://127.0.0.1:18531/v1",
}
"""As they were; at the address nothing listens."""


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    built = Machine(tmp_path)
    for name, value in {**built.environment, **KEYS, "LMUData": str(tmp_path / "lmu")}.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "system.txt").write_text(SYSTEM)
    monkeypatch.chdir(tmp_path)
    yield built
    assert not built.started, "no server is needed"


def swept(row: Row, *more: str) -> int:
    """Run the sweep of a row, with a copy of what was answered then; return the exit status."""
    assert row.journal is not None
    shutil.copy(row.journal, "calls.jsonl")
    sweep = {"models": [row.values], "datasets": ["FindIt_Demo_xyxy_json"], "limit": 2}
    Path("sweep.yaml").write_text(json.dumps(sweep))
    where = ("--work-dir", "out", "--journal", "calls.jsonl")
    return main(["sweep", "sweep.yaml", *where, *row.words, *more])


@pytest.mark.parametrize("row", every_nth_fast(ANSWERED, 3), ids=str)
def test_nothing_is_asked_again(row: Row, machine: Machine) -> None:
    assert row.journal is not None
    assert swept(row) == 0
    assert Path("calls.jsonl").read_bytes() == row.journal.read_bytes()
    (path,) = Path("out").rglob("*_xyxy_json.json")
    assert len(json.loads(path.read_text())) == 2


@pytest.mark.parametrize("row", every_nth_fast(ANSWERED, 3), ids=str)
def test_a_dry_run_counts_them_as_finished(
    row: Row, machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    assert swept(row, "--dry-run") == 0
    assert "2 model calls, 0 of them still to make" in capsys.readouterr().out


def test_a_switch_without_an_effect_is_refused(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    (row,) = (row for row in ROWS if str(row) == REFUSED)
    assert row.journal is not None
    assert swept(row) == 2
    assert "template.a has no effect: the chat template of" in capsys.readouterr().err
    assert Path("calls.jsonl").read_bytes() == row.journal.read_bytes()


def test_rows_share_answers_if_they_are_asked_the_same() -> None:
    """As a model of OpenAI's is in batches and without, and a baseline on Ray and here."""
    first = dict[str, Row]()
    for row in ANSWERED:
        assert row.journal is not None
        for key in answered_keys(row.journal):
            other = first.setdefault(key, row)
            assert other.described == row.described, f"{other}, {row}"


IN_A_SPACE = [row for row in ANSWERED if row.model["name"] != "FullImage"]


def other_space(row: Row) -> str:
    """Return a space in which no answer of a row's journal was given."""
    assert row.journal is not None
    return "grid1000" if "grid1000" not in row.journal.read_text() else "unit"


@every_pair("row, more", IN_A_SPACE, ["", "--dry-run"], fast=8)
def test_they_are_refused_in_another_space(
    row: Row, more: str, machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before any call, by what each reply recorded, and with what scores it without one."""
    assert row.journal is not None
    space = other_space(row)
    assert swept(row, "--space", space, "--limit", "3", *more.split()) == 2
    error = capsys.readouterr().err
    assert "the journal calls.jsonl has answers of another run" in error
    assert "coordinate space of answers: recorded {" in error
    assert f"findit score RUN --space '{space}'" in error
    assert Path("calls.jsonl").read_bytes() == row.journal.read_bytes()
    assert not [*Path("out").rglob("*_identity.json")]
