"""Qwen3-VL in NumPy, 32-bit: patches to features, tokens to logits, with a cache.

It is written for models of a few million weights on one core: fused matrices, and an image's cache
is kept once for all its variants.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf

Array = NDArray[np.float32]


class Cache(NamedTuple):
    """Keys and values of shape (layers, heads, tokens, numbers)."""

    keys: Array
    values: Array

    def with_more(self, more: Cache) -> Cache:
        """Return the cache of these tokens and of those after them."""
        keys = np.concatenate([self.keys, more.keys], axis=2)
        values = np.concatenate([self.values, more.values], axis=2)
        return Cache(keys, values)


class Rows(NamedTuple):
    """Keys and values of rows, of shape (layers, rows, heads, room, numbers), and their lengths."""

    keys: Array
    values: Array
    lengths: NDArray[np.intp]

    def only(self, kept: Sequence[int]) -> Rows:
        return Rows(self.keys[:, kept], self.values[:, kept], self.lengths[kept])

    def with_room(self) -> Rows:
        """Return rows with room for one more token."""
        if self.lengths.max() < self.keys.shape[3]:
            return self
        room = [(0, 0)] * 5
        room[3] = (0, self.keys.shape[3])
        return Rows(np.pad(self.keys, room), np.pad(self.values, room), self.lengths)


class Seen(NamedTuple):
    """An image as the language model sees it: features, and what is added after early layers."""

    features: Array
    added: Sequence[Array]


def rows_of(caches: Sequence[Cache]) -> Rows:
    """Lay caches of several lengths side by side, with room for more tokens."""
    lengths = np.array([cache.keys.shape[2] for cache in caches])
    layers, heads, _, numbers = caches[0].keys.shape
    shape = (layers, len(caches), heads, int(lengths.max()) + 32, numbers)
    keys, values = np.zeros(shape, dtype=np.float32), np.zeros(shape, dtype=np.float32)
    for at, cache in enumerate(caches):
        keys[:, at, :, : lengths[at]] = cache.keys
        values[:, at, :, : lengths[at]] = cache.values
    return Rows(keys, values, lengths)


@dataclass(frozen=True, eq=False)
class _Block:
    """A block of the vision tower."""

    norm1: tuple[Array, Array]
    qkv: tuple[Array, Array]
    proj: tuple[Array, Array]
    norm2: tuple[Array, Array]
    fc1: tuple[Array, Array]
    fc2: tuple[Array, Array]


@dataclass(frozen=True, eq=False)
class _Merger:
    """Makes a block of patches one feature; ``after``: normed after they were laid together."""

    norm: tuple[Array, Array]
    fc1: tuple[Array, Array]
    fc2: tuple[Array, Array]
    after: bool


@dataclass(frozen=True, eq=False)
class _Layer:
    """A layer of the language model."""

    norm1: Array
    qkv: Array
    q_norm: Array
    k_norm: Array
    out: Array
    norm2: Array
    gate_up: Array
    down: Array


class Network:
    """The weights of a checkpoint, and what is computed with them.

    Args:
        config: of config.json.
        weights: by their names in the files, 32-bit.
    """

    def __init__(self, config: Mapping[str, Any], weights: Mapping[str, Array]) -> None:
        text, vision = config["text_config"], config["vision_config"]
        self._vision = vision
        self._heads = text["num_attention_heads"]
        self._key_heads = text["num_key_value_heads"]
        self._size = text["head_dim"]
        self._eps = np.float32(text["rms_norm_eps"])
        self.merged = vision["spatial_merge_size"]
        take = _Taker(weights)
        patch, bias = take.affine("model.visual.patch_embed.proj")
        self._patch = (patch, bias)
        self._places = weights["model.visual.pos_embed.weight"]
        self._blocks = [take.block(f"model.visual.blocks.{i}.") for i in range(vision["depth"])]
        self._merger = take.merger("model.visual.merger.", after=False)
        self._deep = {
            layer: take.merger(f"model.visual.deepstack_merger_list.{at}.", after=True)
            for at, layer in enumerate(vision["deepstack_visual_indexes"])
        }
        language = "model.language_model."
        self.embedding = weights[f"{language}embed_tokens.weight"]
        self._layers = [
            take.layer(f"{language}layers.{i}.") for i in range(text["num_hidden_layers"])
        ]
        self._norm = weights[f"{language}norm.weight"]
        head = self.embedding if config["tie_word_embeddings"] else weights["lm_head.weight"]
        self._head = np.ascontiguousarray(head.T)
        rope = text["rope_parameters"]
        self._sections = rope["mrope_section"]
        self._frequencies = _frequencies(rope["rope_theta"], self._size)
        side = vision["hidden_size"] // vision["num_heads"] // 2
        self._axial = _frequencies(vision["rope_parameters"]["rope_theta"], side)
        self._geometry = lru_cache(maxsize=64)(self._geometry_of)

    # --- images -----------------------------------------------------------------------------------

    def see(self, patches: Array, rows: int, columns: int) -> Seen:
        """Compute the features of one image of ``rows`` x ``columns`` patches."""
        places, cos, sin = self._geometry(rows, columns)
        x = _affine(patches, self._patch) + places
        heads = self._vision["num_heads"]
        added = []
        for at, block in enumerate(self._blocks):
            x = x + self._look(x, block, heads, cos, sin)
            hidden = _affine(_layer_norm(x, block.norm2), block.fc1)
            x = x + _affine(_gelu_tanh(hidden), block.fc2)
            if at in self._deep:
                added.append(self._merge(x, self._deep[at]))
        return Seen(self._merge(x, self._merger), added)

    def _look(self, x: Array, block: _Block, heads: int, cos: Array, sin: Array) -> Array:
        mixed = _affine(_layer_norm(x, block.norm1), block.qkv)
        query, key, value = mixed.reshape(len(x), 3, heads, -1).transpose(1, 2, 0, 3)
        query, key = _turned(query, cos, sin), _turned(key, cos, sin)
        scale = np.float32(query.shape[-1] ** -0.5)
        weights = _softmax(np.matmul(query, key.transpose(0, 2, 1)) * scale)
        seen = np.matmul(weights, value).transpose(1, 0, 2).reshape(len(x), -1)
        return _affine(seen, block.proj)

    def _merge(self, x: Array, merger: _Merger) -> Array:
        width = x.shape[1] * self.merged**2
        if merger.after:
            x = _layer_norm(x.reshape(-1, width), merger.norm)
        else:
            x = _layer_norm(x, merger.norm).reshape(-1, width)
        return _affine(_gelu(_affine(x, merger.fc1)), merger.fc2)

    def _geometry_of(self, rows: int, columns: int) -> tuple[Array, Array, Array]:
        """Return the position embeddings of a grid, and its rotations; patches lie in blocks."""
        merged = self.merged
        blocks = np.arange(rows * columns)
        shape = (rows // merged, merged, columns // merged, merged)
        order = blocks.reshape(shape).transpose(0, 2, 1, 3).ravel()
        side = math.isqrt(len(self._places))
        down, across = _hats(rows, side), _hats(columns, side)
        table = self._places.reshape(side, side, -1)
        places = np.einsum("hr,wc,rcn->hwn", down, across, table).reshape(rows * columns, -1)
        height, width = np.divmod(np.arange(rows * columns, dtype=np.float32), np.float32(columns))
        angles = np.concatenate(
            [height[:, None] * self._axial, width[:, None] * self._axial], axis=1
        )
        angles = np.concatenate([angles, angles], axis=1)[order]
        return places.astype(np.float32)[order], np.cos(angles), np.sin(angles)

    # --- tokens -----------------------------------------------------------------------------------

    def rotations(self, places: NDArray[np.int64]) -> tuple[Array, Array]:
        """Return cosines and sines for places of shape (3, tokens): time, height, width."""
        angles = places[:, :, None].astype(np.float32) * self._frequencies
        mixed = angles[0].copy()
        for axis in (1, 2):
            dims = slice(axis, self._sections[axis] * 3, 3)
            mixed[:, dims] = angles[axis][:, dims]
        mixed = np.concatenate([mixed, mixed], axis=1)
        return np.cos(mixed), np.sin(mixed)

    def read(
        self,
        x: Array,
        places: NDArray[np.int64],
        before: Cache | None = None,
        images: NDArray[np.bool_] | None = None,
        added: Sequence[Array] = (),
    ) -> tuple[Array, Cache]:
        """Read the tokens of one row, perhaps after others.

        Args:
            x: embeddings of shape (tokens, numbers).
            places: of shape (3, tokens).
            before: of the tokens before them.
            images: which tokens are of images (None: none).
            added: to the tokens of images, after each of the first layers.

        Returns:
            The logits after the last token, and the cache of these tokens alone.
        """
        cos, sin = self.rotations(places)
        count = len(x)
        past = 0 if before is None else before.keys.shape[2]
        hidden = np.triu(np.full((count, count), -np.inf, dtype=np.float32), 1)
        keys, values = [], []
        for at, layer in enumerate(self._layers):
            query, key, value = self._projected(x, layer)
            query, key = query.transpose(1, 0, 2), key.transpose(1, 0, 2)
            value = value.transpose(1, 0, 2)
            query, key = _turned(query, cos, sin), _turned(key, cos, sin)
            keys.append(key)
            values.append(value)
            if before is not None:
                key = np.concatenate([before.keys[at], key], axis=1)
                value = np.concatenate([before.values[at], value], axis=1)
            key, value = self._repeated(key, 0), self._repeated(value, 0)
            scores = np.matmul(query, key.transpose(0, 2, 1))
            scores[:, :, past:] += hidden
            seen = np.matmul(_softmax(scores), value).transpose(1, 0, 2).reshape(count, -1)
            x = self._finished(x, seen, layer)
            if images is not None and at < len(added):
                x[images] += added[at]
        return self._logits(x[-1:]), Cache(np.stack(keys), np.stack(values))

    def step(
        self, tokens: NDArray[np.intp], places: NDArray[np.int64], rows: Rows, before: Cache | None
    ) -> tuple[Array, Rows]:
        """Read one more token of every row; ``before`` is of tokens that all rows begin with.

        Returns their logits, and the rows with these tokens.
        """
        cos, sin = self.rotations(np.broadcast_to(places, (3, len(places))))
        cos, sin = cos[:, None], sin[:, None]
        x = self.embedding[tokens]
        rows = rows.with_room()
        each = np.arange(len(tokens))
        room = int(rows.lengths.max()) + 1
        hidden = np.where(np.arange(room) > rows.lengths[:, None], np.float32(-np.inf), 0)
        hidden = hidden.astype(np.float32)[:, None]
        for at, layer in enumerate(self._layers):
            query, key, value = self._projected(x, layer)
            query, key = _turned(query, cos, sin), _turned(key, cos, sin)
            rows.keys[at][each, :, rows.lengths] = key
            rows.values[at][each, :, rows.lengths] = value
            own = self._repeated(rows.keys[at, :, :, :room], 1)
            scores = np.matmul(own, query[..., None])[..., 0] + hidden
            past = 0
            if before is not None:
                first = self._repeated(before.keys[at], 0)
                past = first.shape[1]
                shared = np.matmul(query.transpose(1, 0, 2), first.transpose(0, 2, 1))
                scores = np.concatenate([shared.transpose(1, 0, 2), scores], axis=2)
            weights = _softmax(scores)
            own = self._repeated(rows.values[at, :, :, :room], 1)
            seen = np.matmul(weights[:, :, None, past:], own)[:, :, 0]
            if before is not None:
                first = self._repeated(before.values[at], 0)
                shared = np.matmul(weights[:, :, :past].transpose(1, 0, 2), first)
                seen = seen + shared.transpose(1, 0, 2)
            x = self._finished(x, seen.reshape(len(x), -1), layer)
        return self._logits(x), rows._replace(lengths=rows.lengths + 1)

    def _projected(self, x: Array, layer: _Layer) -> tuple[Array, Array, Array]:
        """Return queries, keys and values of shape (tokens, heads, numbers); queries are scaled."""
        mixed = (_rms_norm(x, layer.norm1, self._eps) @ layer.qkv).reshape(len(x), -1, self._size)
        heads, keys = self._heads, self._key_heads
        query = _rms_norm(mixed[:, :heads], layer.q_norm, self._eps)
        key = _rms_norm(mixed[:, heads : heads + keys], layer.k_norm, self._eps)
        return query * np.float32(self._size**-0.5), key, mixed[:, heads + keys :]

    def _finished(self, x: Array, seen: Array, layer: _Layer) -> Array:
        x = x + seen @ layer.out
        both = _rms_norm(x, layer.norm2, self._eps) @ layer.gate_up
        width = both.shape[1] // 2
        gate, up = both[:, :width], both[:, width:]
        result: Array = x + (gate / (1 + np.exp(-gate)) * up) @ layer.down
        return result

    def _repeated(self, values: Array, axis: int) -> Array:
        """Repeat heads of keys or values where several queries share one."""
        times = self._heads // self._key_heads
        return values if times == 1 else np.repeat(values, times, axis=axis)

    def _logits(self, x: Array) -> Array:
        logits: Array = _rms_norm(x, self._norm, self._eps) @ self._head
        return logits


@dataclass(frozen=True)
class _Taker:
    """Takes weights by the names in the files; matrices are turned, to be multiplied from right."""

    weights: Mapping[str, Array]

    def affine(self, name: str) -> tuple[Array, Array]:
        matrix = self.weights[f"{name}.weight"]
        turned = np.ascontiguousarray(matrix.reshape(len(matrix), -1).T)
        return turned, self.weights[f"{name}.bias"]

    def both(self, name: str) -> tuple[Array, Array]:
        return self.weights[f"{name}.weight"], self.weights[f"{name}.bias"]

    def joined(self, *names: str) -> Array:
        matrices = [self.weights[f"{name}.weight"] for name in names]
        return np.ascontiguousarray(np.concatenate(matrices).T)

    def block(self, name: str) -> _Block:
        return _Block(
            self.both(f"{name}norm1"),
            self.affine(f"{name}attn.qkv"),
            self.affine(f"{name}attn.proj"),
            self.both(f"{name}norm2"),
            self.affine(f"{name}mlp.linear_fc1"),
            self.affine(f"{name}mlp.linear_fc2"),
        )

    def merger(self, name: str, *, after: bool) -> _Merger:
        fc1, fc2 = self.affine(f"{name}linear_fc1"), self.affine(f"{name}linear_fc2")
        return _Merger(self.both(f"{name}norm"), fc1, fc2, after)

    def layer(self, name: str) -> _Layer:
        attention = f"{name}self_attn."
        return _Layer(
            self.weights[f"{name}input_layernorm.weight"],
            self.joined(*(f"{attention}{each}_proj" for each in "qkv")),
            self.weights[f"{attention}q_norm.weight"],
            self.weights[f"{attention}k_norm.weight"],
            self.joined(f"{attention}o_proj"),
            self.weights[f"{name}post_attention_layernorm.weight"],
            self.joined(f"{name}mlp.gate_proj", f"{name}mlp.up_proj"),
            self.joined(f"{name}mlp.down_proj"),
        )


def weight_shapes(config: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """Return the shapes of all weights of a checkpoint, by its config.json."""
    text, vision = config["text_config"], config["vision_config"]
    width, inner, out = vision["hidden_size"], vision["intermediate_size"], text["hidden_size"]
    merged = width * vision["spatial_merge_size"] ** 2
    patch, frames = vision["patch_size"], vision["temporal_patch_size"]
    shapes: dict[str, tuple[int, ...]] = {}

    def norm(name: str, size: int) -> None:
        shapes[f"{name}.weight"] = shapes[f"{name}.bias"] = (size,)

    def affine(name: str, rows: int, columns: int) -> None:
        shapes[f"{name}.weight"], shapes[f"{name}.bias"] = (rows, columns), (rows,)

    def merger(name: str, normed: int) -> None:
        norm(f"{name}.norm", normed)
        affine(f"{name}.linear_fc1", merged, merged)
        affine(f"{name}.linear_fc2", vision["out_hidden_size"], merged)

    visual = "model.visual."
    shapes[f"{visual}pos_embed.weight"] = (vision["num_position_embeddings"], width)
    of_patch = (vision["in_channels"], frames, patch, patch)
    shapes[f"{visual}patch_embed.proj.weight"] = (width, *of_patch)
    shapes[f"{visual}patch_embed.proj.bias"] = (width,)
    for at in range(vision["depth"]):
        block = f"{visual}blocks.{at}."
        norm(f"{block}norm1", width)
        norm(f"{block}norm2", width)
        affine(f"{block}attn.qkv", 3 * width, width)
        affine(f"{block}attn.proj", width, width)
        affine(f"{block}mlp.linear_fc1", inner, width)
        affine(f"{block}mlp.linear_fc2", width, inner)
    merger(f"{visual}merger", width)
    for at in range(len(vision["deepstack_visual_indexes"])):
        merger(f"{visual}deepstack_merger_list.{at}", merged)
    language = "model.language_model."
    shapes[f"{language}embed_tokens.weight"] = (text["vocab_size"], out)
    shapes[f"{language}norm.weight"] = (out,)
    size = text["head_dim"]
    queries, keys = text["num_attention_heads"] * size, text["num_key_value_heads"] * size
    for at in range(text["num_hidden_layers"]):
        layer = f"{language}layers.{at}."
        for name in ("input_layernorm", "post_attention_layernorm"):
            shapes[f"{layer}{name}.weight"] = (out,)
        for name in ("q_norm", "k_norm"):
            shapes[f"{layer}self_attn.{name}.weight"] = (size,)
        shapes[f"{layer}self_attn.q_proj.weight"] = (queries, out)
        shapes[f"{layer}self_attn.k_proj.weight"] = (keys, out)
        shapes[f"{layer}self_attn.v_proj.weight"] = (keys, out)
        shapes[f"{layer}self_attn.o_proj.weight"] = (out, queries)
        for name in ("gate_proj", "up_proj"):
            shapes[f"{layer}mlp.{name}.weight"] = (text["intermediate_size"], out)
        shapes[f"{layer}mlp.down_proj.weight"] = (out, text["intermediate_size"])
    if not config["tie_word_embeddings"]:
        shapes["lm_head.weight"] = (text["vocab_size"], out)
    return shapes


def _frequencies(theta: float, size: int) -> Array:
    exponents = np.arange(0, size, 2, dtype=np.float32) / np.float32(size)
    return (np.float32(1) / np.float32(theta) ** exponents).astype(np.float32)


def _hats(count: int, side: int) -> Array:
    """Return how much of each of ``side`` places is in each of ``count`` that span them."""
    at = np.arange(count, dtype=np.float32) * np.float32(side - 1) / np.float32(max(count - 1, 1))
    hats: Array = np.maximum(1 - np.abs(at[:, None] - np.arange(side, dtype=np.float32)), 0)
    return hats


def _affine(x: Array, matrix: tuple[Array, Array]) -> Array:
    result: Array = x @ matrix[0]
    result += matrix[1]
    return result


def _layer_norm(x: Array, scale: tuple[Array, Array]) -> Array:
    centred = x - x.mean(axis=-1, keepdims=True, dtype=np.float32)
    mean = np.square(centred).mean(axis=-1, keepdims=True, dtype=np.float32)
    deviation = np.sqrt(mean + np.float32(1e-6))
    result: Array = centred / deviation * scale[0] + scale[1]
    return result


def _rms_norm(x: Array, scale: Array, eps: np.float32) -> Array:
    mean = np.einsum("...i,...i->...", x, x)[..., None] * np.float32(1 / x.shape[-1])
    result: Array = x / np.sqrt(mean + eps) * scale
    return result


def _turned(x: Array, cos: Array, sin: Array) -> Array:
    half = x.shape[-1] // 2
    swapped: Array = np.concatenate([-x[..., half:], x[..., :half]], axis=-1)
    result: Array = x * cos + swapped * sin
    return result


def _softmax(scores: Array) -> Array:
    scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
    scores /= scores.sum(axis=-1, keepdims=True)
    return scores


def _gelu(x: Array) -> Array:
    result: Array = np.float32(0.5) * x * (1 + erf(x * np.float32(math.sqrt(0.5))))
    return result


def _gelu_tanh(x: Array) -> Array:
    inner = np.float32(math.sqrt(2 / math.pi)) * (x + np.float32(0.044715) * x * x * x)
    result: Array = np.float32(0.5) * x * (1 + np.tanh(inner))
    return result
