"""A Hugging Face image-text model: loading it, and greedy continuations of a batch."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from ..revision import revision_of
from .device import Placement
from .encoding import Encoded, Encoder, collate

log = logging.getLogger(__name__)


class Generated(NamedTuple):
    """The new tokens of one reply (without the one that ended it) and why it ended."""

    ids: tuple[int, ...]
    finish_reason: str


@dataclass(frozen=True, slots=True)
class Loaded:
    """A model with its processor, and the revisions that both were loaded at."""

    model: Any
    encoder: Encoder
    revision: str
    processor_revision: str

    @property
    def device(self) -> Any:
        return self.model.device

    def inputs(self, batch: Sequence[Encoded]) -> dict[str, Any]:
        """A batch as this model takes it."""
        return collate(batch, self.encoder, self.device)

    @property
    def stops(self) -> list[int]:
        """The tokens that end a reply."""
        says = self.model.generation_config.eos_token_id
        return self.encoder.stop_ids([says] if isinstance(says, int) else says or [])


def load_processor(checkpoint: str, revision: str | None = None, **where: Any) -> Any:
    """The processor of a checkpoint; ``where`` are transformers' own options.

    Raises:
        OSError: it is not there.
    """
    from transformers import AutoProcessor

    return AutoProcessor.from_pretrained(checkpoint, revision=revision, **where)


def load(
    checkpoint: str, encoder: Encoder, placement: Placement, revision: str | None = None
) -> Loaded:
    """Load a checkpoint for inference.

    The generation settings of the checkpoint (sampling, penalties) are set aside except for the
    tokens that end a reply: FindIt decodes greedily.
    """
    from transformers import AutoModelForImageTextToText, GenerationConfig

    model = AutoModelForImageTextToText.from_pretrained(
        checkpoint,
        revision=revision,
        dtype=getattr(torch, placement.dtype),
        attn_implementation=placement.attention,
        **({"device_map": "auto"} if placement.spread else {}),
    ).eval()
    if not placement.spread:
        model = model.to(placement.device)
    model.generation_config = GenerationConfig(
        do_sample=False,
        num_beams=1,
        eos_token_id=model.generation_config.eos_token_id,
        pad_token_id=encoder.pad_id,
    )
    return Loaded(
        model=model,
        encoder=encoder,
        revision=checkpoint_revision(checkpoint, revision),
        processor_revision=_revision(
            checkpoint, revision, "processor_config.json", "preprocessor_config.json"
        ),
    )


def checkpoint_revision(checkpoint: str, wanted: str | None = None) -> str:
    """The revision at which a checkpoint would be loaded now; its weights are not looked at.

    Raises:
        OSError: the checkpoint is not there.
    """
    return _revision(checkpoint, wanted, "config.json")


def _revision(checkpoint: str, revision: str | None, *files: str) -> str:
    from transformers.utils import cached_file

    options = {"_raise_exceptions_for_missing_entries": False}
    found = (cached_file(checkpoint, name, revision=revision, **options) for name in files)
    return revision_of(checkpoint, next(filter(None, found), None))


def generate(loaded: Loaded, batch: Sequence[Encoded], limit: int) -> list[Generated]:
    """The greedy replies to a batch, at most ``limit`` new tokens each."""
    return continue_greedily(loaded, loaded.inputs(batch), limit)


def continue_greedily(loaded: Loaded, inputs: dict[str, Any], limit: int) -> list[Generated]:
    """Continue every row of ``inputs`` (tensors of shape (rows, tokens)), perhaps from a cache."""
    stops = loaded.stops
    with torch.no_grad():
        output = loaded.model.generate(
            **inputs,
            max_new_tokens=limit,
            do_sample=False,
            eos_token_id=stops,
            pad_token_id=loaded.encoder.pad_id,
        )
    new = output[:, inputs["input_ids"].shape[1] :].tolist()
    return [ended(row, stops) for row in new]


def ended(row: Sequence[int], stops: Sequence[int]) -> Generated:
    """Cut a row of new tokens at the first that ends a reply."""
    for at, token in enumerate(row):
        if token in stops:
            return Generated(tuple(row[:at]), "stop")
    return Generated(tuple(row), "length")
