"""Encode and prefill the common beginning of an image's variants once.

The variants continue as one batch with a repeated cache or, if the cache does not allow padding
(sliding windows, linear attention), one by one from copies.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from itertools import takewhile
from typing import Any, NamedTuple

import torch

from .encoding import Encoded
from .transformer import Decoding, Generated, Loaded, continue_rows


class Prefix(NamedTuple):
    """A prefilled beginning.

    ``rope_deltas`` is the state of multimodal rotary positions in the model itself (None: none);
    without it, a continuation would silently have wrong positions.
    """

    ids: tuple[int, ...]
    cache: Any
    rope_deltas: Any


def prefill(loaded: Loaded, variants: Sequence[Encoded]) -> Prefix | None:
    """Encode the images and first tokens that all variants begin with; None if images come later.

    At least one token of each variant is left.
    """
    first = variants[0]
    shortest = min(len(query.ids) for query in variants) - 1
    columns = zip(*(query.ids[:shortest] for query in variants), strict=True)
    length = sum(1 for _ in takewhile(lambda column: len(set(column)) == 1, columns))
    if not length or any(first.types[length:]):
        return None
    tokens = {"input_ids", "attention_mask", "mm_token_type_ids"}
    inputs = loaded.inputs([first])
    cut = {k: v[:, :length] if k in tokens else v for k, v in inputs.items()}
    inner: Any = getattr(loaded.model, "model", None)
    if hasattr(inner, "rope_deltas"):
        inner.rope_deltas = None
    with torch.inference_mode():
        state = loaded.model(**cut, use_cache=True, logits_to_keep=1).cache
    return Prefix(first.ids[:length], state, copy.deepcopy(getattr(inner, "rope_deltas", None)))


def continue_variants(
    loaded: Loaded, prefix: Prefix, variants: Sequence[Encoded], decoding: Decoding
) -> list[Generated]:
    """Answer variants; the prefix is not changed."""
    from transformers.cache_utils import DynamicLayer

    # A sliding window would count the padding, a recurrent state absorb it.
    if all(type(layer) is DynamicLayer for layer in prefix.cache.layers):
        return _as_one_batch(loaded, prefix, variants, decoding)
    return [_as_one_batch(loaded, prefix, [query], decoding)[0] for query in variants]


def _as_one_batch(
    loaded: Loaded, prefix: Prefix, variants: Sequence[Encoded], decoding: Decoding
) -> list[Generated]:
    with torch.inference_mode():
        state = copy.deepcopy(prefix.cache)
        if len(variants) > 1:
            state.batch_repeat_interleave(len(variants))
        if prefix.rope_deltas is not None:
            loaded.model.model.rope_deltas = prefix.rope_deltas.expand(len(variants), -1).clone()
    length = len(prefix.ids)
    pad = loaded.encoder.pad_id
    longest = max(len(query.ids) for query in variants)
    rows = []
    seen = []
    for query in variants:
        gap = longest - len(query.ids)
        rows.append([*prefix.ids, *[pad] * gap, *query.ids[length:]])
        seen.append([1] * length + [0] * gap + [1] * (len(query.ids) - length))
    device = loaded.model.device
    inputs = {
        "input_ids": torch.tensor(rows, device=device),
        "attention_mask": torch.tensor(seen, device=device),
        "cache": state,
    }
    return continue_rows(loaded, inputs, decoding, [query.seed for query in variants])
