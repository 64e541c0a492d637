"""Holds replies to a JSON schema: which tokens may come next.

llguidance needs no compile step, and takes any tokenizer of ``tokenizers`` and any of our schemas.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from copy import copy
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

    def allowed(self, matcher: Any, width: int) -> NDArray[np.bool_]:
        """Return which tokens may come next; after a complete reply, only stops."""
        if matcher.is_stopped():
            ends = np.zeros(width, dtype=np.bool_)
            ends[self._stops] = True
            return ends
        bits = np.frombuffer(matcher.compute_bitmask(), dtype=np.uint8)
        return np.unpackbits(bits, bitorder="little", count=width).astype(np.bool_)


def consume(matcher: Any, token: int) -> None:
    """Tell a matcher the token that was chosen; after the end of a reply comes padding."""
    if not matcher.is_stopped():
        matcher.consume_token(token)
