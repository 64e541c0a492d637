"""Select the tokens of the stored reply among all that a model generated.

A stored reply has no thought and no surrounding white space (:mod:`..protocol.replies`); their
tokens are dropped. The token that ended the reply stays: it is the decision to stop.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from ..protocol import USUAL_THOUGHTS, ThoughtRule, TokenLogprobs, split_thought

Span = tuple[int, int]  # of characters of a text, as of a slice

TORN = "\N{REPLACEMENT CHARACTER}"  # what decoders write for incomplete characters


class GeneratedTokens(NamedTuple):
    """All tokens of a generated text."""

    ends: tuple[int, ...]  # where each ends in the text, in characters
    logprobs: tuple[float, ...]
    ended: float | None = None  # of the token that ended the text, if any


def answer_span(text: str, rule: ThoughtRule = USUAL_THOUGHTS) -> Span:
    """Return the span of a text's answer, without surrounding white space.

    >>> answer_span("<think>hm</think> [] ")
    (18, 20)
    """
    spoken = split_thought(text, rule)
    begin = spoken.begin + len(spoken.answer) - len(spoken.answer.lstrip())
    return begin, begin + len(spoken.answer.strip())


def span_tokens(generated: GeneratedTokens, span: Span) -> TokenLogprobs:
    """Return the tokens of the stored ``span`` of a text.

    >>> span_tokens(GeneratedTokens((2, 4, 6), (-1.0, -2.0, -3.0), -0.5), (1, 3))
    TokenLogprobs(ends=(1, 2, 2), logprobs=(-1.0, -2.0, -0.5))
    """
    first, last = span
    ends = []
    logprobs = []
    begin = 0
    for end, logprob in zip(generated.ends, generated.logprobs, strict=True):
        if begin < last and max(end, begin + 1) > first:
            ends.append(max(min(end, last) - first, 0))
            logprobs.append(logprob)
        begin = end
    if generated.ended is not None:
        ends.append(last - first)
        logprobs.append(generated.ended)
    return TokenLogprobs.rounded(ends, logprobs)


def answer_tokens(
    generated: GeneratedTokens, before: str, text: str, rule: ThoughtRule = USUAL_THOUGHTS
) -> TokenLogprobs:
    """Return the tokens of a text's answer; the prompt began the text with ``before``."""
    moved = generated._replace(ends=tuple(len(before) + end for end in generated.ends))
    return span_tokens(moved, answer_span(before + text, rule))


def byte_ends(pieces: Iterable[bytes]) -> tuple[str, tuple[int, ...]]:
    """Return the text of UTF-8 tokens, and where each ends in it, in characters.

    A token that ends within a character ends where that character begins.

    >>> byte_ends([b"a", "é".encode()[:1], "é".encode()[1:]])
    ('aé', (1, 1, 2))
    """
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text = ""
    ends = []
    for piece in pieces:
        text += decoder.decode(piece)
        ends.append(len(text))
    return text + decoder.decode(b"", final=True), tuple(ends)


def id_ends(
    ids: Sequence[int], decode: Callable[[Sequence[int]], str], alone: Callable[[int], str]
) -> tuple[int, ...]:
    """Return where each token ends in the whole text, in characters; as :func:`byte_ends`.

    If tokens decoded ``alone`` do not add up to the text, each is decoded after its predecessor, or
    after all up to the last complete character.
    """
    pieces = list(map(alone, ids))
    if "".join(pieces) == decode(ids):
        return tuple(accumulate(map(len, pieces)))
    return tuple(_ends(ids, decode))


def _ends(ids: Sequence[int], decode: Callable[[Sequence[int]], str]) -> Iterator[int]:
    length = 0  # of the text so far
    first = 0  # token that is decoded
    whole = 0  # tokens up to the last complete character
    known = 0  # characters of the tokens from first to whole
    for at in range(1, len(ids) + 1):
        text = decode(ids[first:at])
        if not text.endswith(TORN):
            length += len(text) - known
            first = whole
            whole = at
            known = len(decode(ids[first:at]))
        yield length
