"""A server that is not there: the run ends soon, with its status and what to type."""

from __future__ import annotations

import re
import socket
from pathlib import Path

import pytest

from vlmeval_findit.cli import main


@pytest.mark.slow
@pytest.mark.parametrize("more", ["", "--max-usd 1 --prices 1,2"])
def test_a_run_at_a_dead_address_says_what_to_type(
    more: str,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/no/test/has/it/v1"
    line = f"run --data FindIt_Scenes_mini_xyxy_json --model Qwen3-VL=x --base-url {url} {more}"
    assert main(line.split()) == 1
    said = capsys.readouterr().err
    assert "or have --serve start it" in caplog.text
    assert re.search("is the server running, and is its address .* right", said)
    assert "type the same command again: it goes on" in said
