"""Log-probabilities of tokens: the record, the part of a text, what services send."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmeval_findit.models import answer_span, byte_ends, read_completion, reply_logprobs
from vlmeval_findit.protocol import LOG_OF_ZERO, TokenLogprobs, split_thought

# --- the part of a text ---------------------------------------------------------------------------

PIECES = st.lists(
    st.sampled_from(["<think>", "</think>", "Thought:", " ", "\n", "[]", "é", "x", "<"]), max_size=9
)


@given(PIECES.map("".join))
def test_the_span_of_a_text_is_its_answer(text: str) -> None:
    assert text[slice(*answer_span(text))] == split_thought(text).answer.strip()


@given(st.text(), st.data())
def test_pieces_of_bytes_end_at_characters(text: str, data: st.DataObject) -> None:
    whole = text.encode("utf-8", "replace")
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)))))
    pieces = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    reported, ends = byte_ends(pieces)
    assert reported == whole.decode()
    assert ends[-1] == len(reported)
    assert list(ends) == [len(whole[:at].decode("utf-8", "ignore")) for at in (*cuts, len(whole))]


# --- what services send ---------------------------------------------------------------------------


def entry(token: str, logprob: Any = -0.5, **more: Any) -> dict[str, Any]:
    return {"token": token, "logprob": logprob, "top_logprobs": [], **more}


def with_bytes(*pieces: bytes) -> list[dict[str, Any]]:
    return [
        entry(piece.decode("utf-8", "replace"), -1.0 - at, bytes=list(piece))
        for at, piece in enumerate(pieces)
    ]


@pytest.mark.parametrize(
    ("content", "entries", "ends", "logprobs"),
    [
        ("[1]", [entry("[", -1), entry("1", -2), entry("]", -3)], (1, 2, 3), (-1, -2, -3)),
        # A character in two tokens: the first of them adds none.
        ("aé]", with_bytes(b"a", b"\xc3", b"\xa9]"), (1, 1, 3), (-1, -2, -3)),
        (" é]", with_bytes(b" ", b"\xc3", b"\xa9]"), (0, 2), (-2, -3)),
        # Blanks around the reply are stripped, and a token of nothing else goes with them.
        (" \n[1]\n", [entry(" \n", -1), entry("[1]", -2), entry("\n", -3)], (3,), (-2,)),
        ("  [1", [entry("  [", -1), entry("1", -2)], (1, 2), (-1, -2)),
        # A thought in the text, or only among the tokens.
        ("<think>[1]</think>[1]", with_bytes(b"<think>", b"[1]</think>", b"[1]"), (3,), (-3,)),
        ("[1]", with_bytes(b"<think>", b"[1]", b"</think>", b"\n", b"[1]"), (3,), (-5,)),
        # The token that ended the reply: by its name, or as nothing.
        ("[1]", with_bytes(b"[1]", b"<|im_end|>"), (3, 3), (-1, -2)),
        ("[1]", [entry("[1]", -1), entry("", -2, bytes=[])], (3, 3), (-1, -2)),
        ("", [entry("<|im_end|>", -1)], (0,), (-1,)),
        ("", [], (), ()),
        # What rounding makes of a certainty, and of what is as good as impossible.
        ("ab", [entry("a", 1e-6), entry("b", -math.inf)], (1, 2), (0.0, LOG_OF_ZERO)),
        ("a", [entry("a", -0.123456, bytes=None)], (1,), (-0.1235,)),
    ],
)
def test_tokens_of_a_service(
    content: str, entries: Any, ends: tuple[int, ...], logprobs: tuple[float, ...]
) -> None:
    actual = reply_logprobs({"logprobs": {"content": entries}}, content, "stop")
    assert actual == TokenLogprobs(ends, logprobs)


@pytest.mark.parametrize(
    ("content", "logprobs", "why"),
    [
        ("[1]", None, "no logprobs"),
        ("[1]", {"content": [{"logprob": -1}]}, "unlike OpenAI's"),
        ("[1]", {"content": [entry("[2]")]}, "not those of its reply"),
        ("[1]", {"content": [entry("[1]", None)]}, "None.*unlike OpenAI's"),
        ("[1]", {"content": [entry("[1]", 0.9)]}, "not the logarithm"),
        ("[1]", {"content": [entry("[1]", math.nan)]}, "not finite"),
    ],
)
def test_unusable_logprobs_are_refused(content: str, logprobs: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        reply_logprobs({"logprobs": logprobs}, content, "stop")


def test_a_reply_stays_whatever_its_logprobs_are() -> None:
    for token, logprobs in (("[1]", TokenLogprobs((3,), (-0.5,))), ("[2]", None)):
        choice = {"message": {"content": "[1]"}, "logprobs": {"content": [entry(token)]}}
        reply = {"choices": [choice]}
        asked, unasked = (read_completion(reply, logprobs=each) for each in (True, False))
        assert (asked.text, asked.record.token_logprobs) == ("[1]", logprobs)
        assert bool(asked.no_logprobs) == (logprobs is None)
        assert (unasked.record.token_logprobs, unasked.no_logprobs) == (None, "")
