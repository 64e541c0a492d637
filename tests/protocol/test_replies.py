"""What stands in place of an answer: one function writes it, and it is read as a failed call."""

from __future__ import annotations

import ast

import pytest
from paths import ROOT
from syntax_trees import nodes_of

from vlmeval_findit.protocol import NOTHING_RECORDED, call_failed, text_of_failure


@pytest.mark.parametrize(
    "why",
    ["HTTP 503", "HTTP 400: no image", "ReadTimeout: no reply", "RuntimeError", "never asked"],
)
def test_a_written_failure_reads_as_failed_without_its_record(why: str) -> None:
    assert call_failed(text_of_failure(why), NOTHING_RECORDED)


def test_a_single_module_writes_the_message_of_vlmevalkit() -> None:
    homes = set()
    for path in (ROOT / "vlmeval_findit").rglob("*.py"):
        for node in nodes_of(path):
            # A part of an f-string; docstrings may quote the message.
            if isinstance(node, ast.JoinedStr) and "via API" in ast.unparse(node):
                homes.add(path.relative_to(ROOT).as_posix())
    assert homes == {"vlmeval_findit/protocol/replies.py"}
