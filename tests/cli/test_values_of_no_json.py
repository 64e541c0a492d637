"""What JSON cannot hold is refused before a call: no request and no record could have it."""

from __future__ import annotations

from pathlib import Path

import pytest
from chat_server import ChatServer

from vlmeval_findit.cli import main

SWEEP = """
models:
- {{name: A, base_url: SERVER, space: unit}}
- FullImage
- {{name: B, {last}}}
datasets: [Demo]
limit: 1
work_dir: out
"""
AT = "base_url: SERVER, space: unit, settings: "
HERE = "checkpoint: NANO, like: FindIt-Nano, settings: "
VALUES = {
    "a date": (f"{AT}{{user: 2026-01-01}}", "user"),
    "a time": (f"{AT}{{metadata: {{at: 2026-01-01 10:00:00}}}}", "metadata.at"),
    "bytes": (f"{AT}{{user: !!binary aGk=}}", "user"),
    "a set": (f"{AT}{{stop: !!set {{a, b}}}}", "stop"),
    "no number": (f"{AT}{{top_p: .nan}}", "top_p"),
    "no end": (f"{AT}{{chat_template_kwargs: {{a: [.inf]}}}}", "chat_template_kwargs.a.0"),
    "a key": (f"{AT}{{metadata: {{2026-01-01: a}}}}", "metadata.2026-01-01"),
    "a date here": (f"{HERE}{{template: {{a: 2026-01-01}}}}", "template.a"),
}


@pytest.mark.parametrize("what", VALUES)
@pytest.mark.parametrize("dry", [[], ["--dry-run"]])
def test_it_is_refused_before_the_first_call(
    what: str,
    dry: list[str],
    server: ChatServer,
    demo_data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("LMUData", str(demo_data))
    monkeypatch.chdir(tmp_path)
    last, name = VALUES[what]
    text = SWEEP.format(last=last).replace("SERVER", server.url)
    Path("sweep.yaml").write_text(text)
    assert main(["sweep", "sweep.yaml", *dry]) == 2
    error = capsys.readouterr().err
    assert "sweep.yaml, line 5" in error
    assert f"{name}: JSON has no such value" in error
    assert server.asked == []


def test_a_flag_says_so(server: ChatServer, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["run", "--data", "FindIt_Demo_xyxy_json", "--model", "Qwen3-VL"]
    assert main([*command, "--base-url", server.url, "--extra-body", '{"top_p": NaN}']) == 2
    assert "--extra-body: top_p: JSON has no such value" in capsys.readouterr().err
    assert server.asked == []
