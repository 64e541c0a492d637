"""A key that a server quotes, in any spelling: no file and no line of a run has it."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from chat_server import Answer, Asked, ChatServer, completion, error
from spelt_secrets import SIGNS, SPELLINGS

from vlmeval_findit.cli import main

DATA = "FindIt_Scenes_mini_xyxy_json"
KEY = "sk-" + "".join(random.Random(64).sample(SIGNS[: SIGNS.index("ä")], 30)) + "Uniq7"
AT_ONCE = 11  # Spellings that a reply quotes: some runs end after twelve calls
BOX = '[{"bbox": [0, 0, 1000, 1000]}]'

Place = Callable[[str], Answer]

PLACES: dict[str, Place] = {
    "an error": lambda quoted: error(400, f"the key {quoted} is unknown"),
    "a page": lambda quoted: Answer(f"<p>{quoted}</p>".encode(), 403),
    "a reply": lambda quoted: completion(f"{quoted} {BOX}"),
    "a model": lambda quoted: Answer(_with(model=quoted)),
    "an id": lambda quoted: Answer(_with(id=quoted)),
    "a reason": lambda quoted: Answer(_with(finish_reason=quoted)),
    "the name of a cost": lambda quoted: Answer(_with(usage={f"cost_of_{quoted}": 0.1})),
    "a name in an error": lambda quoted: Answer(_with(error={quoted: quoted})),
    "a name in a message": lambda quoted: completion("", message={quoted: "a box"}),
}


def _with(finish_reason: str = "stop", **more: Any) -> bytes:
    choice = {"message": {"content": BOX}, "finish_reason": finish_reason}
    return json.dumps({"choices": [choice], **more}).encode()


@pytest.mark.slow
@pytest.mark.parametrize("place", PLACES)
def test_no_file_or_line_has_a_quoted_key(
    place: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.chdir(tmp_path)
    spelt = [spell(KEY, random.Random(name)) for name, spell in SPELLINGS.items()]

    def said(asked: Asked, number: int) -> Answer:
        begin = number * AT_ONCE % len(spelt)
        return PLACES[place]("\n".join(spelt[begin : begin + AT_ONCE]))

    with ChatServer(said) as server:
        words = ["run", "--data", DATA, "--model", "M=stub", "--space", "grid1000"]
        main([*words, "--base-url", server.url, "--work-dir", "o", "--limit", "100"])
        assert len(server.asked) * AT_ONCE >= len(spelt)
    main(["report", "o", "--out", "o/report.html"])
    main(["leaderboard", "o", "--out", "o/board"])
    main(["export", "o", "--to", "hub", "--out", "o/hub"])
    told = capsys.readouterr()
    texts = {"printed": told.out + told.err, "logged": caplog.text}
    for path in Path("o").rglob("*"):
        if path.is_file():
            texts[str(path)] = path.read_text("utf-8", "replace")
    assert any(path.endswith("_calls.jsonl") for path in texts)
    for where, text in texts.items():
        for quoted in spelt:
            for written in (
                quoted,
                json.dumps(quoted)[1:-1],
                json.dumps(json.dumps(quoted)[1:-1])[1:-1],
            ):
                assert written not in text, (where, quoted)
