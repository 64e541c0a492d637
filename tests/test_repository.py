"""The repository itself: clean under its tools, and its README says what the program does."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

from vlmeval_findit.benchmarks.findit.datasets import DATASETS
from vlmeval_findit.benchmarks.findit.prompts import NAME
from vlmeval_findit.benchmarks.findit.variant import parse
from vlmeval_findit.boxes.representation import REPRESENTATIONS
from vlmeval_findit.boxes.spaces import KINDS
from vlmeval_findit.cli import COMMANDS, USAGE, main
from vlmeval_findit.models.table import MODELS

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "command",
    [["ruff", "check", "."], ["ruff", "format", "--check", "."], ["mypy"]],
    ids=lambda c: " ".join(c),
)
def test_clean_under(command: list[str]) -> None:
    pytest.importorskip(command[0])
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_ci_runs_the_test_command_of_the_readme() -> None:
    lines = [line for line in README.splitlines() if re.match(r"python3 -m venv .*pytest", line)]
    assert len(lines) == 1
    assert lines[0].endswith("-m pytest -n 2 --dist worksteal")


def test_the_readme_names_every_row_of_the_tables() -> None:
    for name in (*REPRESENTATIONS, *KINDS, *DATASETS):
        assert f"`{name.removeprefix('Demo_')}`" in README or f"`{name}`" in README, name
    assert NAME in README


def test_names_in_the_readme_are_valid() -> None:
    names = set(re.findall(r"\bFindIt_[A-Za-z0-9][\w-]*\w", README))
    assert len(names) > 8
    for name in names:
        parse(name)


def test_every_command_has_a_module_and_a_line_of_help(capsys: pytest.CaptureFixture[str]) -> None:
    for command, (name, _) in COMMANDS.items():
        assert f"  {command}" in USAGE
        module = importlib.import_module(f"vlmeval_findit.cli.{name}")
        with pytest.raises(SystemExit) as stop:
            module.main(["-h"])
        assert stop.value.code == 0
        assert f"run_findit.py {command}" in capsys.readouterr().out


def test_help_and_misspelt_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    assert USAGE in capsys.readouterr().out
    assert main(["scor"]) == 2
    assert "no command 'scor': did you mean score?" in capsys.readouterr().err


def test_models_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models"]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in MODELS)


def test_nothing_outside_the_command_line_prints() -> None:
    # The second line are commands too: python -m training.train.
    allowed = {"cli", "conformance.py"}
    allowed |= {"train.py", "evaluate.py", "card.py"}
    for path in (ROOT / "vlmeval_findit").rglob("*.py"):
        if allowed & set(path.relative_to(ROOT / "vlmeval_findit").parts):
            continue
        assert not re.search(r"^\s*print\(", path.read_text(encoding="utf-8"), re.MULTILINE), path
