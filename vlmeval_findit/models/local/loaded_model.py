"""What a loaded model does, whichever library computes it: it answers encoded queries."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from itertools import takewhile
from typing import Any, NamedTuple

from ...core import agreeing, counted, first_few
from .encoding import Encoded, MessageEncoder


class Flaw(Enum):
    """Why logits choose no token."""

    NOT_NUMBERS = "logits are not numbers"
    ALL_EQUAL = "logits are all equal"


class Decoding(NamedTuple):
    """How replies are decoded."""

    limit: int  # most new tokens
    schema: Mapping[str, Any] | None = None  # JSON schema to enforce
    logprobs: bool = False  # record log-probabilities
    is_cancelled: Callable[[], bool] = lambda: False  # asked after every token
    temperature: float = 0.0  # of sampling from the whole distribution; 0: greedy


class Generated(NamedTuple):
    """The new tokens of one reply, without its end token.

    ``logprobs`` are natural logarithms, the end token's last; None if not requested.
    """

    ids: tuple[int, ...]
    finish_reason: str
    logprobs: tuple[float, ...] | None = None
    flaw: Flaw | None = None  # Its logits choose no token, so that this is no reply


def ended(row: Sequence[int], stops: Sequence[int], logprobs: Sequence[float] | None) -> Generated:
    """Cut a row of new tokens at its first end token."""
    end = next((at for at, token in enumerate(row) if token in stops), len(row))
    values = None if logprobs is None else tuple(logprobs[: end + 1])
    return Generated(tuple(row[:end]), "stop" if end < len(row) else "length", values)


class LoadedModel(ABC):
    """A model with its encoder; ``record`` has the revisions of both, and an adapter's base."""

    encoder: MessageEncoder
    record: Mapping[str, str]

    @abstractmethod
    def generate(self, batch: Sequence[Encoded], decoding: Decoding) -> list[Generated]:
        """Answer a batch; CancelledError if the run was cancelled before all replies ended.

        What queries over the same images begin with is read once, if the model can go on from it
        with all of them together.
        """

    @property
    @abstractmethod
    def known_tokens(self) -> int:
        """How many tokens have an embedding."""

    @property
    @abstractmethod
    def end_tokens(self) -> int | Sequence[int] | None:
        """End tokens of the checkpoint's generation settings."""

    @property
    @abstractmethod
    def dtype(self) -> str:
        """The type of its weights."""

    @abstractmethod
    def zero_weights(self) -> list[str]:
        """Return the names of weights of which every number is zero."""

    @abstractmethod
    def spoilt_weights(self) -> list[str]:
        """Return the names of weights that hold what no other type of weights would mend."""

    @property
    def stops(self) -> list[int]:
        """End tokens of the checkpoint, its tokenizer and its family."""
        says = self.end_tokens
        tokenizer = self.encoder.tokenizer
        vocabulary = tokenizer.get_vocab()
        named = map(vocabulary.get, self.encoder.family.stops)
        of_checkpoint = [says] if isinstance(says, int) else says or []
        if not all(isinstance(token, int) for token in of_checkpoint):
            raise ValueError(
                f"{tokenizer.name_or_path}: eos_token_id in generation_config.json is {says!r}, "
                "and should be numbers of tokens. Copy the file that was saved with the weights"
            )
        every = {*of_checkpoint, tokenizer.eos_token_id, *named}
        return sorted(token for token in every if token is not None)

    def refuse_unknown_tokens(self, query: Encoded) -> None:
        """Raise ValueError for a query with tokens that the model has no embedding of."""
        known = self.known_tokens
        # Places of image features may have any id: they get no embedding.
        of_text = (i for i, kind in zip(query.ids, query.types, strict=True) if not kind)
        largest = max(of_text, default=0)
        if largest >= known:
            raise ValueError(
                f"token {self.encoder.tokenizer.convert_ids_to_tokens(largest)!r} has the id "
                f"{largest:,}, and the model has embeddings of {known:,} tokens: the tokenizer is "
                "that of another checkpoint. Copy the tokenizer that was saved with the weights"
            )

    def why(self, flaw: Flaw) -> str:
        """Say why logits choose no token, and what to try."""
        return self._all_equal() if flaw is Flaw.ALL_EQUAL else self._not_numbers()

    def _all_equal(self) -> str:
        zero = self.zero_weights()
        if not zero:
            return (
                "logits are all equal, although no weight is zero: the checkpoint is broken, or "
                "its config.json is another's. Run an earlier checkpoint"
            )
        verb = agreeing(len(zero), "is", "are")
        return (
            f"logits are all equal: {counted(len(zero), 'weight')} of the checkpoint {verb} zero "
            f"({first_few(zero)}), as if never written. Copy or save it again, or run an earlier "
            "checkpoint"
        )

    def _not_numbers(self) -> str:
        dtype = self.dtype
        spoilt = self.spoilt_weights()
        if spoilt:
            count = counted(len(spoilt), "weight")
            verb = agreeing(len(spoilt), "holds", "hold")
            return (
                f"logits are not numbers: {count} of the checkpoint {verb} NaN or infinity "
                f"({first_few(spoilt)}), as after a training that diverged. Run an earlier "
                "checkpoint"
            )
        wider = {"float16": "bfloat16 or float32", "bfloat16": "float32"}.get(dtype)
        if wider is not None:
            return f"logits are not numbers: try --dtype {wider}"
        return (
            f"logits are not numbers in {dtype}, although all weights are: the checkpoint is "
            "broken, or its config.json is another's. Run an earlier checkpoint"
        )


class Beginning(NamedTuple):
    """The tokens with which queries begin that have their images' features in common."""

    places: tuple[int, ...]  # of the queries in their batch
    length: int  # in tokens; at least one token of each query is left


def beginnings(batch: Sequence[Encoded]) -> list[Beginning]:
    """Return what queries begin with, if it saves anything to read it once; else nothing."""
    alike: dict[int, list[int]] = {}
    for at, query in enumerate(batch):
        alike.setdefault(id(query.features), []).append(at)
    if len(alike) == len(batch):
        return []
    found = []
    for places in alike.values():
        length = common_length([batch[at] for at in places])
        if not length:
            return []
        found.append(Beginning(tuple(places), length))
    return found


def common_length(variants: Sequence[Encoded]) -> int:
    """Return with how many tokens all variants begin; 0 if images come after them.

    At least one token of each variant is left.
    """
    shortest = min(len(query.ids) for query in variants) - 1
    columns = zip(*(query.ids[:shortest] for query in variants), strict=True)
    length = sum(1 for _ in takewhile(lambda column: len(set(column)) == 1, columns))
    return 0 if any(variants[0].types[length:]) else length
