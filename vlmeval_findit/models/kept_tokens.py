"""From the tokens that a model said to those of its reply as it is kept.

What is kept has no thought and no blanks around it (:mod:`..core.replies`), and with these go the
tokens that lie there.  The token that ended the reply stays: it is the decision to stop.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from ..core.replies import split_thought
from ..core.token_logprobs import TokenLogprobs

Span = tuple[int, int]
"""Characters of a text: the first, and the one behind the last."""

TORN = "\N{REPLACEMENT CHARACTER}"
"""What decoders write for bytes that are no whole character."""


class SaidTokens(NamedTuple):
    """All tokens of what a model said: where each ends in the text, and its log-probability.

    ``ended`` is the log-probability of the token that ended it, None where there was none.
    """

    ends: tuple[int, ...]
    logprobs: tuple[float, ...]
    ended: float | None = None


def answer_span(text: str) -> Span:
    """Where a text's answer stands, without the blanks around it.

    >>> answer_span("<think>hm</think> [] ")
    (18, 20)
    """
    answer = split_thought(text).answer
    begin = len(text) - len(answer.lstrip())
    return begin, begin + len(answer.strip())


def kept_tokens(said: SaidTokens, span: Span) -> TokenLogprobs:
    """The tokens of what is kept of a text: its ``span``.

    >>> kept_tokens(SaidTokens((2, 4, 6), (-1.0, -2.0, -3.0), -0.5), (1, 3))
    TokenLogprobs(ends=(1, 2, 2), logprobs=(-1.0, -2.0, -0.5))
    """
    first, last = span
    ends, logprobs = [], []
    begin = 0
    for end, logprob in zip(said.ends, said.logprobs, strict=True):
        if begin < last and max(end, begin + 1) > first:
            ends.append(max(min(end, last) - first, 0))
            logprobs.append(logprob)
        begin = end
    if said.ended is not None:
        ends.append(last - first)
        logprobs.append(said.ended)
    return TokenLogprobs.of(ends, logprobs)


def spoken_tokens(said: SaidTokens, before: str, text: str) -> TokenLogprobs:
    """The tokens of a text that are kept of it; ``before`` is what the prompt began it with."""
    moved = said._replace(ends=tuple(len(before) + end for end in said.ends))
    return kept_tokens(moved, answer_span(before + text))


def ends_of_bytes(pieces: Iterable[bytes]) -> tuple[str, tuple[int, ...]]:
    """The text of tokens in UTF-8, and where each of them ends in it, in characters.

    A token that ends within a character ends where that character begins.

    >>> ends_of_bytes([b"a", "é".encode()[:1], "é".encode()[1:]])
    ('aé', (1, 1, 2))
    """
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text, ends = "", []
    for piece in pieces:
        text += decoder.decode(piece)
        ends.append(len(text))
    return text + decoder.decode(b"", final=True), tuple(ends)


def ends_of_ids(
    ids: Sequence[int], decode: Callable[[Sequence[int]], str], alone: Callable[[int], str]
) -> tuple[int, ...]:
    """Where each token ends in the text of all, in characters; as :func:`ends_of_bytes`.

    Where tokens read ``alone`` do not make the text (one ends within a character, or is written
    otherwise at the beginning of a text), each is decoded behind the one before, and both together
    where they end within a character.
    """
    pieces = list(map(alone, ids))
    if "".join(pieces) == decode(ids):
        return tuple(accumulate(map(len, pieces)))
    return tuple(_ends(ids, decode))


def _ends(ids: Sequence[int], decode: Callable[[Sequence[int]], str]) -> Iterator[int]:
    length = first = whole = known = 0
    for at in range(1, len(ids) + 1):
        text = decode(ids[first:at])
        if not text.endswith(TORN):
            length += len(text) - known
            first, whole = whole, at
            known = len(decode(ids[first:at]))
        yield length
