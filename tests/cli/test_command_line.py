"""The command line as a process: whoever reads may stop reading."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from vlmeval_findit.cli import error_text, main


@pytest.mark.parametrize("arguments", [["--help"], ["models"], ["score", "--help"]])
def test_who_stops_reading_is_told_no_error(arguments: list[str]) -> None:
    reads, writes = os.pipe()
    os.close(reads)
    with os.fdopen(writes, "wb") as output:
        found = subprocess.run(
            [sys.executable, "-m", "vlmeval_findit", *arguments],
            stdout=output,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert found.stderr == ""
    assert found.returncode in (0, 1)


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS])
def test_a_folder_of_somebody_else_is_said(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lmu").mkdir()
    monkeypatch.setenv("LMUData", str(tmp_path / "lmu"))
    refused = OSError(number, "no", str(tmp_path / "theirs" / ".sweep.lock"))
    advised = f". {tmp_path / 'theirs'} cannot be written to: copy it to a folder of yours"
    assert advised in error_text(refused)
    own = OSError(number, "no", str(tmp_path / "lmu" / "x.tsv"))
    assert "Set LMUData to a folder that can be written to" in error_text(own)
    assert error_text(OSError(errno.EIO, "broken", "x")) == "[Errno 5] broken: 'x'"


@pytest.mark.parametrize("words", [["-q"], ["-qv"], ["-v", "--quiet"], ["--plugin=nowhere.py"], []])
def test_what_is_of_every_command_may_stand_before_it(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    refused = any("nowhere.py" in word for word in words)
    assert main([*words, "models"]) == (2 if refused else 0)
    # The word "run" may be left out behind them, too.
    assert main([*words, "--model", "FindIt-Nano"]) == 2
    message = "no such file" if refused else "--model without --data"
    assert message in capsys.readouterr().err
