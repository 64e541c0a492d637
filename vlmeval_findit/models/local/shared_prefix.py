"""Encode and prefill the common beginning of an image's variants once.

The variants continue as one batch with a repeated cache or, if the cache does not allow padding
(sliding windows, linear attention), one by one from copies.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import torch

from .encoding import Encoded
from .transformer import Decoding, Generated, Loaded, continue_rows


@dataclass(frozen=True, slots=True)
class Prefix:
    """A prefilled beginning.

    ``rope_deltas`` is the state of multimodal rotary positions in the model itself (None: none);
    without it, a continuation would silently have wrong positions.
    """

    ids: tuple[int, ...]
    cache: Any
    rope_deltas: Any


def common_length(rows: Sequence[Sequence[int]]) -> int:
    """Count the tokens that all rows begin with; at least one of each row is left."""
    shortest = min(map(len, rows)) - 1
    columns = zip(*(row[:shortest] for row in rows), strict=True)
    return sum(1 for _ in takewhile(lambda column: len(set(column)) == 1, columns))


def covers_images(query: Encoded, length: int) -> bool:
    """Return whether all image features of a query are in its first ``length`` tokens."""
    return not any(query.types[length:])


def prefill(loaded: Loaded, query: Encoded, length: int) -> Prefix:
    """Encode the images and the first ``length`` tokens of a query."""
    inputs = loaded.inputs([query])
    tokens = {"input_ids", "attention_mask", "mm_token_type_ids"}
    cut = {k: v[:, :length] if k in tokens else v for k, v in inputs.items()}
    inner: Any = getattr(loaded.model, "model", None)
    if hasattr(inner, "rope_deltas"):
        inner.rope_deltas = None
    with torch.no_grad():
        state = loaded.model(**cut, use_cache=True, logits_to_keep=1).cache
    return Prefix(query.ids[:length], state, copy.deepcopy(getattr(inner, "rope_deltas", None)))


def can_repeat(state: Any) -> bool:
    """Whether a cache may be repeated for rows with padding after it: all layers must keep all keys
    and values. A sliding window would count the padding, a recurrent state absorb it.
    """
    from transformers.cache_utils import DynamicLayer

    return all(type(layer) is DynamicLayer for layer in state.layers)


def continue_variants(
    loaded: Loaded,
    prefix: Prefix,
    variants: Sequence[Encoded],
    decoding: Decoding,
) -> list[Generated]:
    """Answer variants; the prefix is not changed."""
    if can_repeat(prefix.cache):
        return _as_one_batch(loaded, prefix, variants, decoding)
    return [_as_one_batch(loaded, prefix, [query], decoding)[0] for query in variants]


def _as_one_batch(
    loaded: Loaded, prefix: Prefix, variants: Sequence[Encoded], decoding: Decoding
) -> list[Generated]:
    state = copy.deepcopy(prefix.cache)
    if len(variants) > 1:
        state.batch_repeat_interleave(len(variants))
    if prefix.rope_deltas is not None:
        loaded.model.model.rope_deltas = prefix.rope_deltas.expand(len(variants), -1).clone()
    inputs = _after(prefix, variants, loaded.encoder.pad_id)
    inputs = {key: value.to(loaded.device) for key, value in inputs.items()}
    inputs["cache"] = state
    return continue_rows(loaded, inputs, decoding, [query.seed for query in variants])


def _after(prefix: Prefix, variants: Sequence[Encoded], pad_id: int) -> dict[str, Any]:
    length = len(prefix.ids)
    tails = [query.ids[length:] for query in variants]
    longest = max(map(len, tails))
    gaps = [longest - len(row) for row in tails]
    rows = [[*prefix.ids, *[pad_id] * gap, *row] for gap, row in zip(gaps, tails, strict=True)]
    seen = [
        [*[1] * length, *[0] * gap, *[1] * len(row)] for gap, row in zip(gaps, tails, strict=True)
    ]
    return {"input_ids": torch.tensor(rows), "attention_mask": torch.tensor(seen)}
