"""The command line as a process: whoever reads may stop reading."""

from __future__ import annotations

import errno
import gc
import logging
import os
import subprocess
import sys
from pathlib import Path
from textwrap import fill

import pytest
from host_runs import require_host

from vlmeval_findit import cli
from vlmeval_findit.cli import coordinate_lines, error_text, main
from vlmeval_findit.core import as_called, hide_bars, program, quiet_log


def test_a_closed_pipe_is_no_error() -> None:
    reads, writes = os.pipe()
    os.close(reads)
    with os.fdopen(writes, "wb") as output:
        process = subprocess.run(
            [sys.executable, "-m", "vlmeval_findit", "models"],
            stdout=output,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert process.stderr == ""
    assert process.returncode in (0, 1)


def test_a_terminal_that_lacks_a_sign_gets_another() -> None:
    command = [sys.executable, "-m", "vlmeval_findit", "data", "list"]
    env = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Pascal" in done.stdout


def test_modules_of_commands_are_no_garbage() -> None:
    script = (
        "import gc; from vlmeval_findit.cli import main\n"
        "for name in ('models', 'models', 'compare', 'no such'):\n"
        "    main([name, '--help']); print('frozen', gc.get_freeze_count(), gc.isenabled())"
    )
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    ended = [line.split() for line in done.stdout.splitlines() if line.startswith("frozen")]
    first, again, other, unknown = [int(count) for _, count, _ in ended]
    assert 0 < again <= first < other, "a command that was imported freezes nothing more"
    assert unknown <= other
    assert [enabled for *_, enabled in ended] == ["True"] * 4


def test_garbage_is_looked_for_after_a_failed_import() -> None:
    try:
        with pytest.raises(ModuleNotFoundError):
            cli._import("vlmeval_findit.cli.no_such_command")
        assert gc.isenabled()
    finally:
        gc.unfreeze()


def test_a_wrong_path_or_gpu_is_named_with_its_flag(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    require_host()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,GPU-5b")
    for words, message in (
        ("leaderboard . --out table.csv", "--out table.csv: it should be a folder"),
        ("leaderboard . --out Board.CSV", "--out Board.CSV: it should be a folder"),
        ("leaderboard . --out board.Html", "--out board.Html: it should be a folder"),
        ("report --watch none.YAML", "none.YAML: the file does not exist"),
        ("report . --out .", "Invalid value for '--out': File '.' is a directory"),
        (
            "run --data FindIt_Demo_xyxy_json --model FindIt-Nano --mode infer",
            "CUDA_VISIBLE_DEVICES=0,GPU-5b: VLMEvalKit's runner takes numbers only",
        ),
    ):
        assert main(words.split()) == 2
        assert message in capsys.readouterr().err
    monkeypatch.setenv("FINDIT_CONFIG", "nowhere.yaml")
    assert main(["data", "list"]) == 2
    assert "FINDIT_CONFIG=nowhere.yaml: the file does not exist" in capsys.readouterr().err


def test_a_folder_that_cannot_be_written_to_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lmu").mkdir()
    monkeypatch.setenv("LMUData", str(tmp_path / "lmu"))
    refused = OSError(errno.EACCES, "no", str(tmp_path / "other" / ".sweep.lock"))
    advised = f". {tmp_path / 'other'} cannot be written to: copy it to a folder of yours"
    assert advised in error_text(refused)
    error = OSError(errno.EROFS, "no", str(tmp_path / "lmu" / "x.tsv"))
    assert "Set LMUData to a folder that can be written to" in error_text(error)
    assert error_text(OSError(errno.EIO, "broken", "x")) == "x: broken"


@pytest.mark.parametrize("words", [["-qv"], ["--plugin=nowhere.py"], []])
def test_shared_options_may_precede_the_command(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    refused = any("nowhere.py" in word for word in words)
    assert main([*words, "models"]) == (2 if refused else 0)
    # The word "run" may be left out behind them, too.
    assert main([*words, "--model", "FindIt-Nano"]) == 2
    message = "the file does not exist" if refused else "--model without --data"
    assert message in capsys.readouterr().err


def test_a_shell_asks_for_completions_without_arguments(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_FINDIT_COMPLETE", "bash_source")
    assert main([]) == 0
    assert "_FINDIT_COMPLETE=bash_complete" in capsys.readouterr().out


def test_commands_are_named_as_they_were_typed(monkeypatch: pytest.MonkeyPatch) -> None:
    for typed, expected in {
        "run_findit.py": "python run_findit.py data list (names: python run_findit.py models)",
        "/x y/run_findit.py": "python '/x y/run_findit.py' data list",
        "/venv/bin/findit": "findit data list (names: findit models)",
    }.items():
        monkeypatch.setattr(sys, "argv", [typed])
        program.cache_clear()
        text = as_called("python run_findit.py data list (names: run_findit.py models)")
        assert text.startswith(expected)
        assert as_called(text) == text, "a message may pass by twice"
    program.cache_clear()


@pytest.mark.parametrize("typed", ["run_findit.py", "/venv/bin/findit"])
def test_a_command_is_named_once_wherever_lines_are_folded(
    typed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", [typed])
    program.cache_clear()
    for words in range(40):
        line = f"{'a ' * words}type: python run_findit.py coords FILE"
        for text in (
            "\n".join(coordinate_lines.folded([line])),
            fill(line, 80, subsequent_indent="  "),
        ):
            told = " ".join(as_called(text).split())
            assert told.endswith(f"type: {program()} coords FILE"), words
    program.cache_clear()


@pytest.mark.parametrize("terminal", [True, False])
def test_quiet_leaves_errors_of_vlmevalkit_and_bars_are_for_terminals(
    terminal: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("TQDM_DISABLE", "HF_HUB_DISABLE_PROGRESS_BARS"):
        monkeypatch.setenv(name, "")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    hide_bars()
    assert os.environ["TQDM_DISABLE"] == ("" if terminal else "1")
    hide_bars(always=True)
    assert os.environ["TQDM_DISABLE"] == "1"
    log = logging.getLogger("vlmeval")
    monkeypatch.setattr(log, "handlers", [])
    monkeypatch.setattr(log, "propagate", True)
    quiet_log(logging.ERROR)
    log.getChild("run").warning("noise")
    log.getChild("run").error("fault")
    assert capsys.readouterr().err == "fault\n"
