"""A Hugging Face image-text model: loading, and decoding of a batch."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import torch
from transformers import StoppingCriteria, StoppingCriteriaList

from ...core.answers import CancelledError
from ..adapter import Adapter, adapter_of
from ..reply_tokens import GeneratedTokens
from ..revision import refuse_unreachable, revision_of
from .encoding import Encoded, MessageEncoder, collate
from .logits import LogprobRecorder, SchemaMask, SeededSampler
from .machine import DeviceChoice

log = logging.getLogger(__name__)


class Generated(NamedTuple):
    """The new tokens of one reply, without its end token.

    ``logprobs`` are natural logarithms, the end token's last; None if not requested.
    """

    ids: tuple[int, ...]
    finish_reason: str
    logprobs: tuple[float, ...] | None = None


@dataclass(frozen=True, slots=True)
class Loaded:
    """A model with its processor, and the revisions of both."""

    model: Any
    encoder: MessageEncoder
    revision: str
    processor_revision: str
    base: Mapping[str, str] = field(default_factory=dict)  # record of an adapter's base

    @property
    def device(self) -> Any:
        return self.model.device

    def inputs(self, batch: Sequence[Encoded]) -> dict[str, Any]:
        return collate(batch, self.encoder, self.device)

    @property
    def stops(self) -> list[int]:
        says = self.model.generation_config.eos_token_id
        return self.encoder.stop_ids([says] if isinstance(says, int) else says or [])


def load_processor(checkpoint: str, revision: str | None = None, **where: Any) -> Any:
    """Load the processor of a checkpoint; ``where`` are transformers' options."""
    from transformers import AutoProcessor

    if (adapter := adapter_of(checkpoint)) is not None:
        checkpoint, revision = adapter.processor, adapter.base_revision(revision)
    return AutoProcessor.from_pretrained(checkpoint, revision=revision, **where)


def load(
    checkpoint: str,
    encoder: MessageEncoder,
    placement: DeviceChoice,
    revision: str | None = None,
    *,
    merges: bool = True,
) -> Loaded:
    """Load a checkpoint; of its generation settings only the end tokens are used.

    Raises:
        ValueError: it is an adapter that does not fit its base, or lies on the hub.
    """
    from transformers import AutoModelForImageTextToText, GenerationConfig

    adapter = adapter_of(checkpoint)
    weights = checkpoint if adapter is None else adapter.base
    revision = revision if adapter is None else adapter.base_revision(revision)
    model = AutoModelForImageTextToText.from_pretrained(
        weights,
        revision=revision,
        dtype=getattr(torch, placement.dtype),
        attn_implementation=placement.attention,
        **({"device_map": "auto"} if placement.spread else {}),
    )
    if getattr(model, "_hf_peft_config_loaded", False):
        raise ValueError(
            f"{weights} is an adapter at the hub: hf download {weights} --local-dir DIR, and name "
            "that folder"
        )
    base: dict[str, str] = {}
    if adapter is not None:
        model = with_adapter(model, adapter, merges=merges)
        base = {"base": weights, "base_revision": checkpoint_revision(weights, revision)}
    model = model.eval()
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
            adapter.processor if adapter else checkpoint,
            revision,
            "processor_config.json",
            "preprocessor_config.json",
        ),
        base=base,
    )


def with_adapter(model: Any, adapter: Adapter, *, merges: bool) -> Any:
    """Return a base model with an adapter merged into its weights, or active next to them.

    Raises:
        ValueError: weights of the adapter are missing or fit nowhere: a base would answer alone.
    """
    from peft import PeftConfig, PeftModel

    folder = str(adapter.folder)
    config = PeftConfig.from_pretrained(folder)
    config.inference_mode = True
    adapted = PeftModel(model, config)
    result = adapted.load_adapter(
        folder,
        "default",
        torch_device=str(model.device),
        key_mapping=getattr(model, "_checkpoint_conversion_mapping", {}),
    )
    missing, foreign = list(result.missing_keys), list(result.unexpected_keys)
    if missing or foreign:
        example = (missing or foreign)[0]
        raise ValueError(
            f"{folder} does not fit {adapter.base}: {len(missing)} of its weights are missing and "
            f"{len(foreign)} fit nowhere; the first is {example}"
        )
    return adapted.merge_and_unload() if merges else adapted.get_base_model()


def checkpoint_revision(checkpoint: str, requested: str | None = None) -> str:
    """Return the revision at which a checkpoint would be loaded.

    Raises OSError if it does not exist, ValueError as :func:`.refuse_unreachable`.
    """
    refuse_unreachable(checkpoint)
    return _revision(checkpoint, requested, "config.json")


def _revision(checkpoint: str, revision: str | None, *files: str) -> str:
    from transformers.utils import cached_file

    options = {"_raise_exceptions_for_missing_entries": False}
    paths = (cached_file(checkpoint, name, revision=revision, **options) for name in files)
    return revision_of(checkpoint, next(filter(None, paths), None))


class Decoding(NamedTuple):
    """How replies are decoded."""

    limit: int  # most new tokens
    schema: Mapping[str, Any] | None = None  # JSON schema to enforce
    logprobs: bool = False  # record log-probabilities
    is_cancelled: Callable[[], bool] | None = None  # asked after every token whether to cancel
    temperature: float = 0.0  # of sampling from the whole distribution; 0: greedy


class _Cancelled(StoppingCriteria):  # type: ignore[misc]
    """Ends all rows of a batch once the run is cancelled."""

    def __init__(self, is_cancelled: Callable[[], bool]) -> None:
        self._is_cancelled = is_cancelled
        self.done = False

    def __call__(self, input_ids: Any, scores: Any, **_: Any) -> Any:
        self.done = self._is_cancelled()
        return torch.full((len(input_ids),), self.done, device=input_ids.device)


def generate(loaded: Loaded, batch: Sequence[Encoded], decoding: Decoding) -> list[Generated]:
    """Answer a batch."""
    return continue_rows(loaded, loaded.inputs(batch), decoding, [query.seed for query in batch])


def continue_rows(
    loaded: Loaded, inputs: dict[str, Any], decoding: Decoding, seeds: Sequence[int | None]
) -> list[Generated]:
    """Continue every row of ``inputs`` (tensors of shape (rows, tokens)), perhaps from a cache.

    A row that is sampled depends on its seed (None: torch's random numbers), not on other rows.

    Raises:
        ValueError: the schema cannot be enforced here.
        CancelledError: the run was cancelled before all of them ended.
    """
    stops = loaded.stops
    prompt = inputs["input_ids"].shape[1]
    recorder = LogprobRecorder() if decoding.logprobs else None
    processors: list[Any] = [] if recorder is None else [recorder]
    if decoding.schema is not None:
        known = partial(loaded.encoder.grammar_tokenizer, stops=tuple(stops))
        # After the recorder of the model's distribution.
        processors.append(SchemaMask(decoding.schema, known, stops, prompt))
    if decoding.temperature:
        processors.append(SeededSampler(decoding.temperature, seeds))
    cancelled = _Cancelled(decoding.is_cancelled or (lambda: False))
    with torch.no_grad():
        output = loaded.model.generate(
            **inputs,
            max_new_tokens=decoding.limit,
            do_sample=False,  # the sampler decides by the largest number
            eos_token_id=stops,
            pad_token_id=loaded.encoder.pad_id,
            stopping_criteria=StoppingCriteriaList([cancelled]),
            **({"logits_processor": processors} if processors else {}),
        )
    if cancelled.done:
        raise CancelledError
    new = output[:, prompt:]
    logprobs = [None] * len(new) if recorder is None else recorder.of(new)
    return [ended(row, stops, values) for row, values in zip(new.tolist(), logprobs, strict=True)]


def ended(
    row: Sequence[int], stops: Sequence[int], logprobs: Sequence[float] | None = None
) -> Generated:
    """Cut a row of new tokens at its first end token."""
    for at, token in enumerate(row):
        if token in stops:
            values = None if logprobs is None else tuple(logprobs[: at + 1])
            return Generated(tuple(row[:at]), "stop", values)
    return Generated(
        tuple(row), "length", None if logprobs is None else tuple(logprobs[: len(row)])
    )


def generated_tokens(new: Generated, encoder: MessageEncoder) -> GeneratedTokens | None:
    """Return a reply's tokens with their ends in its text; None without log-probabilities."""
    if new.logprobs is None:
        return None
    count = len(new.ids)
    last = new.logprobs[count] if len(new.logprobs) > count else None
    return GeneratedTokens(encoder.ends(new.ids), new.logprobs[:count], last)
