"""Loads a small checkpoint for NumPy, and decodes its replies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from ....core import open_regular
from ....protocol import PROCESSOR_KEY, CancelledError
from ...checkpoint_settings import read_settings
from ...loading_report import LoadingReport, Shapes, checked_loading
from ...revision import known_revision
from ...safetensors_header import read_header
from ..encoding import Encoded, MessageEncoder
from ..grammar import ReplyGrammar, consume, mask_bytes, unpacked
from ..loaded_model import Decoding, Flaw, Generated, LoadedModel, beginnings, ended
from ..which_engine import WEIGHTS
from .network import Array, Cache, Network, rows_of, weight_shapes

_TYPES = {"F16": np.float16, "F32": np.float32}
_METADATA = "__metadata__"


class _Begun(NamedTuple):
    """What was read of a row: the logits after it, its cache, and the place of its next token."""

    logits: Array
    cache: Cache
    place: int


@dataclass
class _Reply:
    """A reply that is being written."""

    seed: int | None
    at: int  # In the batch
    matcher: Any = None
    random: np.random.Generator | None = None
    ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    flaw: Flaw | None = None


class ArrayModel(LoadedModel):
    """A model that NumPy computes."""

    def __init__(
        self,
        network: Network,
        weights: Mapping[str, Array],
        encoder: MessageEncoder,
        record: Mapping[str, str],
        end_tokens: int | Sequence[int] | None,
    ) -> None:
        self.encoder = encoder
        self.record = record
        self._network = network
        self._weights = weights
        self._end_tokens = end_tokens
        self._threads = ThreadpoolController()

    @property
    def known_tokens(self) -> int:
        return len(self._network.embedding)

    @property
    def end_tokens(self) -> int | Sequence[int] | None:
        return self._end_tokens

    @property
    def dtype(self) -> str:
        return "float32"

    def zero_weights(self) -> list[str]:
        named = self._weights.items()
        return [name for name, values in named if name.endswith("weight") and not values.any()]

    def spoilt_weights(self) -> list[str]:
        return [name for name, values in self._weights.items() if not np.isfinite(values).all()]

    def generate(self, batch: Sequence[Encoded], decoding: Decoding) -> list[Generated]:
        with self._one_thread():
            shared = beginnings(batch)
            if not shared:
                begun = [self._begin(query, 0, len(query.ids)) for query in batch]
                return self._go_on(batch, begun, None, decoding)
            read = [self._begin(batch[each.places[0]], 0, each.length) for each in shared]
            begun_at = {}
            for each, first in zip(shared, read, strict=True):
                for at in each.places:
                    query = batch[at]
                    begun_at[at] = self._begin(query, each.length, len(query.ids), first)
            begun = [begun_at[at] for at in range(len(batch))]
            if len(read) == 1:
                return self._go_on(batch, begun, read[0].cache, decoding)
            for each, first in zip(shared, read, strict=True):
                for at in each.places:
                    begun[at] = begun[at]._replace(cache=first.cache.with_more(begun[at].cache))
            return self._go_on(batch, begun, None, decoding)

    def _one_thread(self) -> Any:
        # Matrices this small are slower on several threads, and far slower on a busy machine.
        return self._threads.limit(limits=1)

    def _begin(self, query: Encoded, start: int, end: int, before: _Begun | None = None) -> _Begun:
        """Read a part of a query's tokens; all its images are in it, or in what is before."""
        ids = np.array(query.ids[start:end])
        is_image = np.array(query.types[start:end], dtype=np.bool_)
        x = self._network.embedding[ids]
        added: list[Array] = []
        grids: list[tuple[int, int]] = []
        if is_image.any():
            grids = [(rows, columns) for _, rows, columns in query.features["image_grid_thw"]]
            x[is_image], added = self._seen(query.features["pixel_values"], grids)
        places, following = self._places(is_image, grids, 0 if before is None else before.place)
        past = None if before is None else before.cache
        logits, cache = self._network.read(x, places, past, is_image, added)
        return _Begun(logits, cache, following)

    def _seen(self, patches: Array, grids: Sequence[tuple[int, int]]) -> tuple[Array, list[Array]]:
        images = []
        start = 0
        for rows, columns in grids:
            end = start + rows * columns
            images.append(self._network.see(patches[start:end], int(rows), int(columns)))
            start = end
        features = np.concatenate([image.features for image in images])
        layers = zip(*(image.added for image in images), strict=True)
        return features, [np.concatenate(each) for each in layers]

    def _places(
        self, is_image: NDArray[np.bool_], grids: Sequence[tuple[int, int]], start: int
    ) -> tuple[NDArray[np.int64], int]:
        """Return the places of tokens, (3, tokens), and of the next; an image is a rectangle."""
        merged = self._network.merged
        parts = []
        images = iter(grids)
        for of_image, tokens in groupby(is_image.tolist()):
            count = sum(1 for _ in tokens)
            if not of_image:
                parts.append(np.broadcast_to(np.arange(start, start + count), (3, count)))
                start += count
                continue
            rows, columns = (side // merged for side in next(images))
            down, across = np.divmod(np.arange(rows * columns), columns)
            parts.append(np.stack([np.zeros_like(down), down, across]) + start)
            start += max(rows, columns)
        return np.concatenate(parts, axis=1), int(start)

    def _go_on(
        self,
        queries: Sequence[Encoded],
        begun: Sequence[_Begun],
        before: Cache | None,
        decoding: Decoding,
    ) -> list[Generated]:
        """Write the replies to queries that were read; those that ended leave the batch."""
        stops = self.stops
        writer = _Writer(self, stops, decoding)
        replies = [_Reply(query.seed, at) for at, query in enumerate(queries)]
        width = begun[0].logits.shape[1]
        writer.begin(replies, width)
        logits = np.concatenate([each.logits for each in begun])
        rows = rows_of([each.cache for each in begun])
        places = np.array([each.place for each in begun])
        going = replies
        while True:
            tokens = writer.choose(going, logits)
            if decoding.is_cancelled():
                raise CancelledError
            kept = [
                at
                for at, reply in enumerate(going)
                if reply.flaw is None
                and tokens[at] not in stops
                and len(reply.ids) < decoding.limit
            ]
            if not kept:
                break
            if len(kept) < len(going):
                going = [going[at] for at in kept]
                tokens, places, rows = tokens[kept], places[kept], rows.only(kept)
            logits, rows = self._network.step(tokens, places, rows, before)
            places = places + 1
        return [
            ended(reply.ids, stops, reply.logprobs if decoding.logprobs else None)._replace(
                flaw=reply.flaw
            )
            for reply in replies
        ]


class _Writer:
    """Chooses the next tokens of replies."""

    def __init__(self, model: ArrayModel, stops: Sequence[int], decoding: Decoding) -> None:
        self._decoding = decoding
        self._grammar: ReplyGrammar | None = None
        if decoding.schema is not None:
            known = partial(model.encoder.grammar_tokenizer, stops=tuple(stops))
            self._grammar = ReplyGrammar(decoding.schema, known, stops)

    def begin(self, replies: Sequence[_Reply], width: int) -> None:
        if self._grammar is not None:
            matchers = self._grammar.matchers(len(replies), width)
            for reply, matcher in zip(replies, matchers, strict=True):
                reply.matcher = matcher
        if self._decoding.temperature:
            for reply in replies:
                reply.random = np.random.default_rng(reply.seed)

    def choose(self, replies: Sequence[_Reply], logits: Array) -> NDArray[np.intp]:
        """Choose a token for each reply, and note it there."""
        flaws = self._flaws(logits)
        allowed = self._allowed(replies, logits)
        chosen: NDArray[np.intp] = allowed.argmax(axis=1)
        logprobs = _log_softmax(logits, chosen) if self._decoding.logprobs else None
        for at, reply in enumerate(replies):
            reply.flaw = flaws[at]
            reply.ids.append(int(chosen[at]))
            if logprobs is not None:
                reply.logprobs.append(float(logprobs[at]))
            if reply.matcher is not None:
                consume(reply.matcher, int(chosen[at]))
        return chosen

    def _flaws(self, logits: Array) -> list[Flaw | None]:
        largest, smallest = logits.max(axis=1), logits.min(axis=1)
        flaws: list[Flaw | None] = []
        for most, least in zip(largest, smallest, strict=True):
            if not np.isfinite(most):
                flaws.append(Flaw.NOT_NUMBERS)
            else:
                flaws.append(Flaw.ALL_EQUAL if most == least else None)
        return flaws

    def _allowed(self, replies: Sequence[_Reply], logits: Array) -> Array:
        """Return logits of tokens that may come next, with noise where replies are sampled."""
        result = logits
        if self._grammar is not None:
            width = logits.shape[1]
            masks = np.empty((len(replies), mask_bytes(width)), dtype=np.uint8)
            self._grammar.fill([reply.matcher for reply in replies], masks)
            result = np.where(unpacked(masks, width), logits, np.float32(-np.inf))
        temperature = self._decoding.temperature
        if temperature:
            # The largest of logits / temperature plus Gumbel noise is a sample of their softmax.
            noise = np.stack([_exponential(reply, result.shape[1]) for reply in replies])
            result = result / np.float32(temperature) - np.log(noise)
        return result


def _exponential(reply: _Reply, count: int) -> Array:
    assert reply.random is not None
    return reply.random.standard_exponential(count, dtype=np.float32)


def _log_softmax(logits: Array, chosen: NDArray[np.intp]) -> Array:
    largest = logits.max(axis=1)
    sums = np.exp(logits - largest[:, None]).sum(axis=1)
    result: Array = logits[np.arange(len(chosen)), chosen] - largest - np.log(sums)
    return result


def load_arrays(checkpoint: str, encoder: MessageEncoder) -> ArrayModel:
    """Load a checkpoint; ValueError if weights are missing or of another shape."""
    folder = Path(checkpoint)
    config = read_settings(folder / "config.json")
    weights = read_weights(folder / WEIGHTS)
    all_there = checked_loading(checkpoint, _report(weight_shapes(config), weights))
    revision = str(known_revision(checkpoint))
    record = {"weights": all_there, "revision": revision, PROCESSOR_KEY: revision}
    end_tokens = read_settings(folder / "generation_config.json").get("eos_token_id")
    return ArrayModel(Network(config, weights), weights, encoder, record, end_tokens)


def read_weights(path: Path) -> dict[str, Array]:
    """Read the numbers of a safetensors file, as 32-bit numbers by their names."""
    header = read_header(path)
    with open_regular(path) as f:
        numbers = memoryview(f.read())[header.end :]
    weights = {}
    for name, entry in header.values.items():
        if name != _METADATA:
            begin, end = entry["data_offsets"]
            kind = _TYPES.get(entry["dtype"])
            if kind is None:
                raise ValueError(
                    f"{path}: {name} is of {entry['dtype']}, and NumPy computes "
                    f"{' and '.join(_TYPES)}. Save the model in float32"
                )
            values = np.frombuffer(numbers[begin:end], dtype=kind)
            weights[name] = values.reshape(entry["shape"]).astype(np.float32)
    return weights


def _report(expected: Mapping[str, tuple[int, ...]], stored: Mapping[str, Array]) -> LoadingReport:
    both = sorted(expected.keys() & stored.keys())
    other = [
        Shapes(name, stored[name].shape, expected[name])
        for name in both
        if stored[name].shape != expected[name]
    ]
    matrices = [name for name in both if stored[name].ndim > 1]
    zero = tuple(name for name in matrices if not stored[name].any())
    return LoadingReport(
        frozenset(expected),
        tuple(sorted(expected.keys() - stored.keys())),
        tuple(sorted(stored.keys() - expected.keys())),
        tuple(other),
        zero,
        is_all_zero=len(zero) == len(matrices) > 0,
    )
