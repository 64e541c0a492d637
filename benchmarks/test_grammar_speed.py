"""What a token of a reply that is held to a grammar costs this machine's processor.

On a GPU only "on the host" is left: masks are filled while it computes, and are unpacked there.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

WIDTH = 151_936
"""Logits of a step, as Qwen3-VL's."""

MOST_ARGMAX = 3.0
"""Most times the duration of choosing the largest logit, for a batch."""

BOX = {"type": "array", "items": {"type": "integer"}, "minItems": 4, "maxItems": 4}
ITEM = {
    "type": "object",
    "properties": {"bbox": BOX, "label": {"type": "string"}},
    "required": ["bbox", "label"],
}
REPLY = '[{"bbox": [100, 200, 300, 400], "label": "dog"}, {"bbox": [1, 2, 3, 4], "label": "cat"}]'


@pytest.mark.parametrize("rows", [1, 8, 32])
def test_a_token_held_to_a_grammar(
    rows: int, measures: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from tiny_checkpoints import FAMILIES

    from vlmeval_findit.models.local import grammar, logits

    torch.set_num_threads(1)
    tokenizer = FAMILIES["Qwen3-VL"]().processor.tokenizer
    stops = [tokenizer.eos_token_id]
    made = grammar.grammar_tokenizer(tokenizer, WIDTH, stops)
    held = grammar.ReplyGrammar({"type": "array", "items": ITEM}, lambda _: made, stops)
    ids = tokenizer(REPLY, add_special_tokens=False)["input_ids"]
    scores = torch.randn(rows, WIDTH)

    mask = logits.SchemaMask(held)
    chosen = torch.zeros((rows, 1), dtype=torch.long)

    def whole(token: int | None) -> None:
        if token is not None:
            mask.note(chosen.fill_(token))
        mask(chosen, scores)

    matchers = held.matchers(rows, WIDTH)
    masks = np.empty((rows, grammar.mask_bytes(WIDTH)), np.uint8)

    def on_the_host(token: int | None) -> None:
        if token is not None:
            for matcher in matchers:
                grammar.consume(matcher, token)
        held.fill(matchers, masks)

    tokens = [None, *ids[: None if measures else 3]]
    total = _milliseconds(whole, tokens)
    host = _milliseconds(on_the_host, tokens)
    largest = _milliseconds(lambda _: scores.argmax(dim=-1), tokens)
    with capsys.disabled():
        print(
            f"\n{rows} rows, ms a token: mask {total:.2f}, of which on the host {host:.2f}; "
            f"argmax {largest:.2f}"
        )
    if measures:
        assert total < MOST_ARGMAX * largest


def _milliseconds(do: Callable[[Any], Any], tokens: list[Any]) -> float:
    """Return the median processor time of a token."""
    seconds = []
    for token in tokens:
        began = time.process_time()
        do(token)
        seconds.append(time.process_time() - began)
    return float(np.median(seconds)) * 1000
