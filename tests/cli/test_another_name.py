"""What is advised where a run differs from a recorded one: both can be compared then."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

import pytest
from chat_server import ChatServer, completion
from every_pair import every_pair

from vlmeval_findit.cli import main
from vlmeval_findit.leaderboard import group_comparable
from vlmeval_findit.models import SHIPPED
from vlmeval_findit.scoring import load_runs

RUN = ("run", "--data", "FindIt_Scenes_mini_xyxy_json", "--limit", "1")

MODELS: dict[str, Sequence[str]] = {
    "known": ("--model", "Qwen3-VL-8B=served", "--base-url", "{url}"),
    "unknown": ("--model", "Mine=served", "--space", "grid1000", "--base-url", "{url}"),
    "here": ("--model", f"Own={SHIPPED['FindIt-Nano']}", "--like", "FindIt-Nano"),
    "shipped": ("--model", "FindIt-Nano"),
}
CHANGES: dict[str, Sequence[str]] = {
    "setting": ("--temperature", "0.7"),
    "space": ("--space", "pixels"),
}


@every_pair("model, change", MODELS, CHANGES, fast=2)
def test_what_is_advised_keeps_runs_comparable(
    model: str,
    change: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    with ChatServer(lambda asked, number: completion("[]")) as server:
        first = [word.format(url=server.url) for word in MODELS[model]]
        assert main([*RUN, *first]) == 0
        assert main([*RUN, *first, *CHANGES[change]]) == 2
        refused = said(capsys)
        assert "setting images" not in refused, "a space decides it"
        typed = re.search(
            r"Use another name for the model.*In your command, type: (.*?)\. --force", refused
        )
        assert typed is not None
        named = shlex.split(typed[1])
        rest = [*_without(first, "--model", "--like"), *CHANGES[change]]
        assert main([*RUN, *named, *rest]) == 0
    datasets, excluded = group_comparable(load_runs([Path("outputs")]))
    assert not excluded
    assert len({run.model for each in datasets for run in each.runs}) == 2


def said(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().err


def _without(words: Sequence[str], *flags: str) -> list[str]:
    left = []
    pairs = zip(words[::2], words[1::2], strict=True)
    for flag, value in pairs:
        if flag not in flags:
            left += [flag, value]
    return left
