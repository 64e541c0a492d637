"""Attention over a batch of turns, without masks: it follows from the batch's shape.

The opening attends to itself causally, a turn to the opening and causally to itself, the patches of
an image to each other. A mask of a whole row, or a call for every image, would cost several times
as much.
"""

from __future__ import annotations

from types import MethodType
from typing import Any

import torch
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
from transformers.models.qwen3_vl.modeling_qwen3_vl import apply_rotary_pos_emb_vision

from training.nano.batches import Layout

NAME = "findit_turns"  # Name of this implementation in a model's configuration


def use(model: Any) -> None:
    """Make a Qwen3-VL attend by ``turns``, a :class:`Layout` that is passed to each call."""
    model.model.language_model.set_attn_implementation(NAME)
    for block in model.model.visual.blocks:
        block.attn.forward = MethodType(_attend_images, block.attn)


def attend(
    module: Any,
    query: Any,
    key: Any,
    value: Any,
    attention_mask: Any,
    scaling: float,
    turns: Layout,
    **_: Any,
) -> tuple[Any, None]:
    """Compute attention as transformers calls it: (B, heads, T, D) each, out (B, T, heads, D)."""
    opening = turns.opening
    slots = turns.slots
    length = turns.length
    batch, heads, _, size = query.shape
    query = query * scaling

    def split(x: Any) -> tuple[Any, Any]:
        return x[:, :, :opening], x[:, :, opening:].reshape(batch, heads, slots, length, size)

    q0, q = split(query)
    k0, k = split(key)
    v0, v = split(value)
    first = torch.softmax(q0 @ k0.transpose(-1, -2) + _later(opening, query), -1) @ v0
    inner = q @ k.transpose(-1, -2) + _later(length, query)
    before = q.flatten(2, 3) @ k0.transpose(-1, -2)
    scores = torch.cat([before.reshape(batch, heads, slots, length, opening), inner], -1)
    shares = torch.softmax(scores, -1)
    from_opening = shares[..., :opening].flatten(2, 3) @ v0
    turn = (shares[..., opening:] @ v).flatten(2, 3) + from_opening
    return torch.cat([first, turn], 2).transpose(1, 2), None


def _later(length: int, like: Any) -> Any:
    """Return (length, length) to add to scores: minus infinity for later tokens."""
    return torch.full((length, length), float("-inf"), dtype=like.dtype, device=like.device).triu(1)


def _attend_images(
    self: Any, hidden_states: Any, position_embeddings: Any, turns: Layout, **_: Any
) -> Any:
    """Run the vision tower's attention on all patches (patches, width), row after row."""
    total, width = hidden_states.shape
    query, key, value = self.qkv(hidden_states).reshape(total, 3, self.num_heads, -1).unbind(1)
    rotated = apply_rotary_pos_emb_vision(query, key, *position_embeddings)
    query, key = rotated
    row = sum(turns.patches)
    parts = [
        x.reshape(total // row, row, self.num_heads, -1).transpose(1, 2).split(turns.patches, 2)
        for x in (query * self.scaling, key.to(value.dtype), value)
    ]
    outputs = [
        torch.softmax(q.to(v.dtype) @ k.transpose(-1, -2), -1) @ v
        for q, k, v in zip(*parts, strict=True)
    ]
    return self.proj(torch.cat(outputs, 2).transpose(1, 2).reshape(total, width))


ALL_ATTENTION_FUNCTIONS.register(NAME, attend)
