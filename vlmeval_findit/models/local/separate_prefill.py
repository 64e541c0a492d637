"""Long queries on a CPU: each is prefilled by itself, then all go on as one batch.

A CPU is busy with the arithmetic of a long query from the first one on, so prefilling several at
once saves nothing.  It costs something: queries of different lengths are padded, which keeps the
text model's attention off its fastest way, and tensors of all the images together are larger than
what the allocator reuses.  Decoding is where a batch saves time; it is the same either way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from . import transformer
from .encoding import Encoded, token_rows
from .shared_prefix import Prefix, can_repeat, prefill
from .transformer import Generated, Loaded, continue_greedily

LONG = 768
"""Tokens of the longest query of a batch from which on each is prefilled by itself.

A batch of eight is 1.2 times faster for it with 1,024 tokens each and 1.1 with 576, but 0.7 times
as fast with 256, where the fixed cost of a pass counts.
"""


def generate(loaded: Loaded, batch: Sequence[Encoded], limit: int) -> list[Generated]:
    """The greedy replies to a batch, at most ``limit`` new tokens each."""
    if len(batch) < 2 or not _worth_it(loaded, batch) or not _can_join(loaded):
        return transformer.generate(loaded, batch, limit)
    # The last token of each is left to the batch: its logits choose the first of the reply.
    prefixes = [prefill(loaded, one, len(one.ids) - 1) for one in batch]
    if prefixes[0].rope_deltas is not None:
        loaded.model.model.rope_deltas = torch.cat([one.rope_deltas for one in prefixes])
    inputs = {
        key: value.to(loaded.device) for key, value in token_rows(batch, loaded.encoder).items()
    }
    return continue_greedily(loaded, {**inputs, "past_key_values": joined(prefixes)}, limit)


def _worth_it(loaded: Loaded, batch: Sequence[Encoded]) -> bool:
    return loaded.device.type == "cpu" and max(len(one.ids) for one in batch) >= LONG


def _can_join(loaded: Loaded) -> bool:
    """Whether every layer keeps all keys and values, so that padding before them can be masked."""
    from transformers import DynamicCache

    return can_repeat(DynamicCache(config=loaded.model.config))


def joined(prefixes: Sequence[Prefix]) -> Any:
    """One cache with a row a prefix, the shorter ones padded on the left; it takes their place."""
    longest = max(len(one.ids) for one in prefixes)
    state = prefixes[0].cache
    for at, layer in enumerate(state.layers):
        rows = [one.cache.layers[at] for one in prefixes]
        layer.keys, layer.values = (
            torch.cat([_lengthened(getattr(row, kind), longest) for row in rows])
            for kind in ("keys", "values")
        )
    return state


def _lengthened(tensor: Any, length: int) -> Any:
    """A tensor of shape (row, heads, tokens, numbers) with so many tokens, zeros before its own."""
    return torch.nn.functional.pad(tensor, (0, 0, length - tensor.shape[2], 0))
