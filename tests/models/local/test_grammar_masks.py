"""Masks of tokens that a grammar allows: packed on this machine, unpacked where the logits are."""

from __future__ import annotations

import functools
import json
import random
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("llguidance")
from tiny_checkpoints import FAMILIES  # noqa: E402

from vlmeval_findit.models.local import grammar, logits  # noqa: E402

pytestmark = [pytest.mark.host, pytest.mark.slow]

BOX = {"type": "array", "items": {"type": "integer"}, "minItems": 4, "maxItems": 4}
ANSWER = [[1, 20, 300, 4000], [5, 6, 7, 8]]


@functools.cache
def tokenizer() -> Any:
    return FAMILIES["Qwen3-VL"]().processor.tokenizer


def held(width: int, stops: list[int]) -> grammar.ReplyGrammar:
    made = grammar.grammar_tokenizer(tokenizer(), width, stops)
    return grammar.ReplyGrammar({"type": "array", "items": BOX}, lambda _: made, stops)


def allowed_one_by_one(matcher: Any, width: int, stops: list[int]) -> set[int]:
    """Return what llguidance says of one matcher alone."""
    if matcher.is_stopped():
        return {*stops}
    bits = matcher.compute_bitmask()
    return {token for token in range(width) if bits[token // 8] >> token % 8 & 1}


@pytest.mark.parametrize("more", [0, 1, 31, 100])
def test_masks_are_those_of_each_matcher_alone(more: int) -> None:
    """Replies of one batch are at different places; some have ended, or never began."""
    known = tokenizer()
    width = len(known) + more
    stops = [known.eos_token_id, known.pad_token_id]
    held_to = held(width, stops)
    ids = known(json.dumps(ANSWER), add_special_tokens=False)["input_ids"]
    matchers = held_to.matchers(6, width)
    for matcher, count in zip(matchers, (0, 1, 3, len(ids) - 1, len(ids), len(ids)), strict=True):
        for token in ids[:count]:
            grammar.consume(matcher, token)
    grammar.consume(matchers[-1], stops[1])
    assert matchers[-1].is_stopped()
    masks = np.full((6, grammar.mask_bytes(width)), 0xAA, np.uint8)
    held_to.fill(matchers, masks)
    seen = grammar.unpacked(masks, width)
    for row, matcher in zip(seen, matchers, strict=True):
        assert {*row.nonzero()[0].tolist()} == allowed_one_by_one(matcher, width, stops)
    there = logits.unpacked_there(torch.from_numpy(masks), width)
    assert np.array_equal(there.numpy(), seen)


def test_a_mask_follows_the_tokens_it_was_told() -> None:
    """Largest logits say anything; masked, each row writes what its grammar allows, then stops."""
    known = tokenizer()
    width = len(known)
    stops = [known.eos_token_id]
    mask = logits.SchemaMask(held(width, stops))
    ids = torch.zeros((3, 0), dtype=torch.long)
    draw = random.Random(3)
    for step in range(40):
        scores = torch.tensor([[draw.random() for _ in range(width)] for _ in range(3)])
        before = scores.clone()
        masked = mask(ids, scores)
        assert torch.equal(scores, before), "logits are recorded as they were"
        kept = masked.isfinite()
        assert torch.equal(masked[kept], scores[kept])
        ids = torch.cat([ids, masked.argmax(dim=1, keepdim=True)], dim=1)
        mask.note(ids)
        if step == 0:
            assert {*known.batch_decode(ids)} == {"["}
    for row in ids.tolist():
        written = known.decode(row[: row.index(stops[0])] if stops[0] in row else row)
        assert written.startswith("[")
        assert not set(written) - set("[],0123456789- \n\r\t")
