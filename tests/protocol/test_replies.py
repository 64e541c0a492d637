"""What stands in place of an answer: one function writes it, and it is read as a failed call."""

from __future__ import annotations

import ast

import pytest
from paths import ROOT
from syntax_trees import nodes_of

from vlmeval_findit.protocol import (
    FAILED_ANSWER,
    NO_REPLY,
    NOTHING_RECORDED,
    ReplyRecord,
    call_failed,
    text_of_failure,
)


@pytest.mark.parametrize(
    "why",
    ["HTTP 503", "HTTP 400: no image", "ReadTimeout: no reply", "RuntimeError", "never asked"],
)
def test_a_written_failure_reads_as_failed_without_its_record(why: str) -> None:
    assert call_failed(text_of_failure(why), NOTHING_RECORDED)


@pytest.mark.parametrize("text", [FAILED_ANSWER, text_of_failure("HTTP 503")])
@pytest.mark.parametrize(
    ("record", "failed"),
    [
        (NOTHING_RECORDED, True),
        (NO_REPLY, True),
        (ReplyRecord(finish_reason="stop"), False),
        (ReplyRecord(tokens={"prompt": 9, "reply": 5}), False),
        (ReplyRecord(finish_reason="stop").with_error("HTTP 503"), True),
    ],
)
def test_words_of_a_failure_are_a_reply_if_one_came(
    text: str, record: ReplyRecord, failed: bool
) -> None:
    """As ``files.md`` says of a model that says these words."""
    assert call_failed(text, record) == failed


def test_a_text_that_goes_on_is_a_reply() -> None:
    assert not call_failed(f"{FAILED_ANSWER}s of my model", NOTHING_RECORDED)
    assert not call_failed(f'{FAILED_ANSWER}: [{{"bbox": [1, 2, 3, 4]}}]', NOTHING_RECORDED)


def test_a_single_module_writes_the_message_of_vlmevalkit() -> None:
    homes = set()
    for path in (ROOT / "vlmeval_findit").rglob("*.py"):
        for node in nodes_of(path):
            # A part of an f-string; docstrings may quote the message.
            if isinstance(node, ast.JoinedStr) and "via API" in ast.unparse(node):
                homes.add(path.relative_to(ROOT).as_posix())
    assert homes == {"vlmeval_findit/protocol/replies.py"}
