"""Holds replies to a JSON schema: which tokens may come next.

llguidance needs no compile step, and takes any tokenizer of ``tokenizers`` and any of our schemas.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

SPACE = r"[ \n\r\t]{1,32}"  # white space in JSON: enough for indentation, but bounded


def grammar_tokenizer(tokenizer: Any, vocabulary: int, stops: Sequence[int]) -> Any:
    """Build llguidance's tokenizer; large vocabularies take seconds.

    ``vocabulary`` is the width of the model's logits, which may exceed the tokenizer's.
    """
    from llguidance import LLTokenizer

    whole = getattr(tokenizer, "backend_tokenizer", None)
    if whole is None:
        raise ValueError(f"_constrained: {type(tokenizer).__name__} is no tokenizer of tokenizers")
    copied = copy(whole)
    copied.no_padding()
    copied.no_truncation()
    return LLTokenizer(copied.to_str(), n_vocab=vocabulary, eos_token=list(stops))


class ReplyGrammar:
    """A schema, of which each reply gets a matcher.

    ``tokenizer`` makes :func:`grammar_tokenizer` for a width of logits.
    """

    def __init__(
        self, schema: Mapping[str, Any], tokenizer: Callable[[int], Any], stops: Sequence[int]
    ) -> None:
        self._schema = schema
        self._tokenizer = tokenizer
        self._stops = list(stops)

    @cached_property
    def _executor(self) -> Any:
        from llguidance import LLExecutor

        return LLExecutor()

    def matchers(self, rows: int, width: int) -> list[Any]:
        """Return a matcher for each of ``rows`` replies; ``width`` is that of the logits."""
        from llguidance import LLMatcher

        grammar = LLMatcher.grammar_from_json_schema(
            json.dumps(self._schema), overrides={"whitespace_pattern": SPACE}
        )
        tokenizer = self._tokenizer(width)
        matchers = [LLMatcher(tokenizer, grammar) for _ in range(rows)]
        if matchers[0].is_error():
            raise ValueError(f"_constrained: {matchers[0].get_error()}")
        return matchers

    def fill(self, matchers: Sequence[Any], masks: NDArray[np.uint8]) -> None:
        """Write which tokens may come next: a row for each matcher, of one bit a token.

        After a complete reply only stops may come. ``masks`` are of :func:`mask_bytes` a row.
        """
        from llguidance.numpy import fill_next_token_bitmask_par

        going = []
        for at, matcher in enumerate(matchers):
            if matcher.is_stopped():
                masks[at] = 0
                for stop in self._stops:
                    masks[at, stop // 8] |= 1 << stop % 8
            else:
                going.append((matcher, at))
        if going:
            fill_next_token_bitmask_par(self._executor, going, masks.view(np.int32))


def mask_bytes(width: int) -> int:
    """Return the bytes that a mask of so many tokens takes, in whole 32-bit words.

    >>> mask_bytes(33)
    8
    """
    return (width + 31) // 32 * 4


def unpacked(masks: NDArray[np.uint8], width: int) -> NDArray[np.bool_]:
    """Return masks as truth values, (rows, width)."""
    return np.unpackbits(masks, axis=1, bitorder="little", count=width).view(np.bool_)


def consume(matcher: Any, token: int) -> None:
    """Tell a matcher the token that was chosen; after the end of a reply comes padding."""
    if not matcher.is_stopped():
        matcher.consume_token(token)
