"""A run says once what is odd in its replies, in every command that shows it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from chat_server import Answer, ChatServer, completion, in_turn

from vlmeval_findit.cli import main
from vlmeval_findit.protocol import Reply, ReplyRecord
from vlmeval_findit.scoring import count_replies, reply_note

BOX = '[{"bbox_2d": [100, 200, 300, 400]}]'


def reply(text: str = "", **recorded: Any) -> Reply:
    return Reply(0, text, ReplyRecord(**{"finish_reason": "stop", **recorded}))


IN_THOUGHT = reply(thought=BOX)
IN_TOOL = reply(finish_reason="tool_calls", call={"tool_calls": [{"arguments": BOX}]})
CUT = reply(thought="so", finish_reason="length", ends_in_thought=True)
FAILED = reply(call={"error": "HTTP 500: no"})


@pytest.mark.parametrize(
    ("replies", "note"),
    [
        ([reply(BOX)] * 9, None),
        ([reply(BOX, thought="hm")] * 9, None),
        (
            [IN_THOUGHT] * 6,
            "6 of 6 replies are empty while their reasoning is not: does the server",
        ),
        ([IN_THOUGHT] + [reply(BOX)] * 9, "1 of 10 replies is empty while its reasoning is not"),
        ([reply(thought=BOX, finish_reason="")] * 6, "--reasoning-parser"),
        ([reply("<think>so</think>")] * 6, "6 of 6 replies are empty, and nothing says why"),
        (
            [CUT] * 6,
            "6 of 6 replies are cut off at the token limit, 6 of them while thinking: ask again "
            """with a higher limit, by --extra-body '{"max_tokens": 8192}', under another """,
        ),
        (
            [reply("<think>so", finish_reason="length")] * 3 + [reply(BOX)] * 3,
            "3 of 6 replies are cut off at the token limit, 3 of them while thinking",
        ),
        ([reply(BOX[:9], finish_reason="length")], "1 of 1 replies is cut off at the token limit:"),
        ([CUT] + [reply(BOX)] * 5, None),
        ([reply("<think>so")] * 6, "6 of 6 replies have no end of the thought"),
        ([reply("<think>so", finish_reason="")] * 6, "score RUN --thought-marks 'BEGIN END'"),
        ([FAILED] * 6, None),
        ([FAILED, IN_THOUGHT], "1 of 1 replies is empty while"),
        ([IN_TOOL] * 6, "6 of 6 replies are empty but for a tool call"),
        ([reply()] * 6, "6 of 6 replies are empty, and nothing says why"),
        ([reply(" \n")] * 3 + [reply(BOX)] * 3, "3 of 6 replies are empty, and nothing"),
        ([reply()] + [reply(BOX)] * 5, None),
        (
            [reply(finish_reason="content_filter"), *[reply(BOX)] * 5],
            "1 of 6 replies was refused or cut by a content filter",
        ),
        (
            [IN_THOUGHT] * 3 + [reply(BOX[:9], finish_reason="content_filter")] * 2,
            "2 of 5 replies were refused or cut by a content filter",
        ),
    ],
)
def test_what_is_odd_in_replies(replies: list[Reply], note: str | None) -> None:
    said = reply_note(count_replies(replies))
    if note is None:
        assert said is None
    else:
        assert note in (said or "")


@pytest.mark.parametrize(
    ("replies", "note"),
    [
        ([{}] * 6, "6 of 6 replies are empty, and nothing says why: the model ended at once"),
        ([{"thought": BOX}] * 6, "6 of 6 replies are empty behind a thought"),
        ([{"thought": BOX}] + [{}] * 5, "6 of 6 replies are empty, and nothing says why"),
    ],
)
def test_no_server_is_named_where_none_answered(replies: list[dict[str, Any]], note: str) -> None:
    """Version 1.0 recorded the processor's revision of a model on this machine, too."""
    here = {"processor_revision": "sha256:0"}
    said = reply_note(count_replies(reply(model=here, **each) for each in replies)) or ""
    assert note in said
    assert "server" not in said
    assert "reasoning-parser" not in said


def test_a_model_here_has_its_limit_in_a_file() -> None:
    here = {"processor_revision": "sha256:0"}
    cut = [reply("<think>so", finish_reason="length", model=here)] * 6
    said = reply_note(count_replies(cut)) or ""
    assert "settings: {max_new_tokens: 8192}" in said
    assert "--extra-body" not in said


THOUGHT = {"content": None, "reasoning_content": BOX}
UNKNOWN = {"content": "", "provider_specific_fields": {"hidden": BOX}}
TOOL = {
    "content": None,
    "tool_calls": [{"type": "function", "function": {"name": "locate", "arguments": BOX}}],
}


@pytest.mark.parametrize(
    ("message", "finish", "note"),
    [
        (THOUGHT, "stop", "6 of 6 replies are empty while their reasoning is not"),
        ({**THOUGHT, "content": ""}, "length", "6 of 6 replies are cut off at the token limit, 6"),
        (TOOL, "tool_calls", "6 of 6 replies are empty but for a tool call"),
        (UNKNOWN, "stop", "the message has texts under: provider_specific_fields"),
        ({"content": "I cannot."}, "content_filter", "6 of 6 replies were refused or cut"),
    ],
)
def test_every_command_that_shows_a_run_says_it(
    message: Mapping[str, Any],
    finish: str,
    note: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "sweep.yaml").write_text(
        "models: [{name: Mine, space: grid1000}]\ndatasets: [FindIt_Scenes_mini_xyxy_json]\n"
        f"limit: 6\nwork_dir: {tmp_path / 'out'}\n"
    )

    def printed(*command: str) -> str:
        main(list(command))
        read = capsys.readouterr()
        return " ".join((read.out + read.err).split())

    answer = completion(finish_reason=finish, message=dict(message))
    with ChatServer(in_turn(answer)) as server:
        said = printed("sweep", str(tmp_path / "sweep.yaml"), "--base-url", server.url)
    assert said.count(note) == 1
    for command in ("score", "errors"):
        assert printed(command, str(tmp_path / "out")).count(note) == 1, command
    (provenance,) = (tmp_path / "out").rglob("*_provenance.json")
    assert json.loads(provenance.read_text())["replies"]["replies"] == 6


def test_the_probe_says_that_answers_are_in_the_reasoning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answer: Answer = completion(message=THOUGHT)
    with ChatServer(in_turn(answer)) as server:
        flags = ["--base-url", server.url, "--work-dir", str(tmp_path)]
        main(["probe", "--model", "Mine", *flags])
    said = " ".join(capsys.readouterr().out.split())
    assert "40 of 40 replies are empty while their reasoning is not" in said
    assert "--reasoning-parser" in said
