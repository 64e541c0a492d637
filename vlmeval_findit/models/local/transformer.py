"""A Hugging Face image-text model: loading, and decoding of a batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch

from ...protocol.call_results import CancelledError
from ..adapter import Adapter, adapter_of
from ..revision import refuse_unreachable, revision_of
from .encoding import Encoded, MessageEncoder, collate
from .logits import LogprobRecorder, SchemaMask, SeededSampler
from .machine import DeviceChoice


class Loaded(NamedTuple):
    """A model with its processor; ``record`` has the revisions of both, and an adapter's base."""

    model: Any
    encoder: MessageEncoder
    record: Mapping[str, str]

    def inputs(self, batch: Sequence[Encoded]) -> dict[str, Any]:
        return collate(batch, self.encoder, self.model.device)

    @property
    def stops(self) -> list[int]:
        """End tokens of the checkpoint, its tokenizer and its family."""
        says = self.model.generation_config.eos_token_id
        tokenizer = self.encoder.tokenizer
        vocabulary = tokenizer.get_vocab()
        named = map(vocabulary.get, self.encoder.family.stops)
        of_checkpoint = [says] if isinstance(says, int) else says or []
        every = {*of_checkpoint, tokenizer.eos_token_id, *named}
        return sorted(token for token in every if token is not None)


def load_processor(checkpoint: str, revision: str | None = None, **where: Any) -> Any:
    """Load the processor of a checkpoint; ``where`` are transformers' options."""
    from transformers import AutoProcessor

    adapter = adapter_of(checkpoint)
    if adapter is not None:
        checkpoint = adapter.processor
        revision = adapter.base_revision(revision)
    return AutoProcessor.from_pretrained(
        checkpoint, revision=revision, trust_remote_code=False, **where
    )


def load(
    checkpoint: str,
    encoder: MessageEncoder,
    placement: DeviceChoice,
    revision: str | None = None,
    *,
    merges: bool = True,
) -> Loaded:
    """Load a checkpoint; of its generation settings only the end tokens are used.

    ValueError if it is an adapter that does not fit its base, or lies on the hub.
    """
    from transformers import AutoModelForImageTextToText, GenerationConfig

    adapter = adapter_of(checkpoint)
    weights = checkpoint
    processor = checkpoint
    if adapter is not None:
        weights = adapter.base
        processor = adapter.processor
        revision = adapter.base_revision(revision)
    model = AutoModelForImageTextToText.from_pretrained(
        weights,
        revision=revision,
        trust_remote_code=False,  # Known architectures only: foreign code never runs
        dtype=getattr(torch, placement.dtype),
        attn_implementation=placement.attention,
        **({"device_map": "auto"} if placement.spread else {}),
    )
    if getattr(model, "_hf_peft_config_loaded", False):
        raise ValueError(
            f"{weights} is an adapter at the hub. Download it, and name the folder: "
            f"hf download {weights} --local-dir DIR"
        )
    files = ("processor_config.json", "preprocessor_config.json")
    record = {
        "revision": checkpoint_revision(checkpoint, revision),
        "processor_revision": checkpoint_revision(processor, revision, files),
    }
    if adapter is not None:
        model = with_adapter(model, adapter, merges=merges)
        record |= {"base": weights, "base_revision": checkpoint_revision(weights, revision)}
    model = model.eval()
    if not placement.spread:
        model = model.to(placement.device)
    model.generation_config = GenerationConfig(
        do_sample=False,
        num_beams=1,
        eos_token_id=model.generation_config.eos_token_id,
        pad_token_id=encoder.pad_id,
    )
    return Loaded(model, encoder, record)


def with_adapter(model: Any, adapter: Adapter, *, merges: bool) -> Any:
    """Return a base model with an adapter merged into its weights, or active next to them.

    ValueError if weights are missing or fit nowhere: the base would answer alone.
    """
    from peft import PeftConfig, PeftModel

    folder = str(adapter.folder)
    config = PeftConfig.from_pretrained(folder)
    config.inference_mode = True
    adapted = PeftModel(model, config)
    mapping = getattr(model, "_checkpoint_conversion_mapping", {})
    device = str(model.device)
    result = adapted.load_adapter(folder, "default", torch_device=device, key_mapping=mapping)
    missing = result.missing_keys
    foreign = result.unexpected_keys
    if missing or foreign:
        raise ValueError(
            f"{folder} does not fit {adapter.base}: {len(missing)} of its weights are missing and "
            f"{len(foreign)} fit nowhere; the first is {[*missing, *foreign][0]}"
        )
    return adapted.merge_and_unload() if merges else adapted.get_base_model()


def checkpoint_revision(
    checkpoint: str, requested: str | None = None, files: Sequence[str] = ("config.json",)
) -> str:
    """Return the revision at which a checkpoint would be loaded, by the first of its ``files``.

    Raises OSError if it does not exist, ValueError as :func:`.refuse_unreachable`.
    """
    from transformers.utils import cached_file

    refuse_unreachable(checkpoint)
    options = {"revision": requested, "_raise_exceptions_for_missing_entries": False}
    paths = (cached_file(checkpoint, name, **options) for name in files)
    return revision_of(checkpoint, next(filter(None, paths), None))


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


def generate(loaded: Loaded, batch: Sequence[Encoded], decoding: Decoding) -> list[Generated]:
    """Answer a batch."""
    return continue_rows(loaded, loaded.inputs(batch), decoding, [query.seed for query in batch])


def continue_rows(
    loaded: Loaded, inputs: dict[str, Any], decoding: Decoding, seeds: Sequence[int | None]
) -> list[Generated]:
    """Continue every row of ``inputs`` (tensors of shape (rows, tokens)), perhaps from a cache.

    A row that is sampled depends on its seed (None: torch's random numbers), not on other rows.
    CancelledError if the run was cancelled before all of them ended.
    """
    stops = loaded.stops
    prompt = inputs["input_ids"].shape[1]
    recorder = LogprobRecorder()
    processors: list[Any] = [recorder] if decoding.logprobs else []
    if decoding.schema is not None:
        known = partial(loaded.encoder.grammar_tokenizer, stops=tuple(stops))
        # After the recorder of the model's distribution.
        processors.append(SchemaMask(decoding.schema, known, stops, prompt))
    if decoding.temperature:
        processors.append(SeededSampler(decoding.temperature, seeds))
    cancelled = False

    def ends_all(input_ids: Any, scores: Any, **_: Any) -> Any:
        nonlocal cancelled
        cancelled = decoding.is_cancelled()
        return torch.full((len(input_ids),), cancelled, device=input_ids.device)

    with torch.inference_mode():
        output = loaded.model.generate(
            **inputs,
            max_new_tokens=decoding.limit,
            do_sample=False,  # the sampler decides by the largest number
            eos_token_id=stops,
            pad_token_id=loaded.encoder.pad_id,
            stopping_criteria=[ends_all],
            **({"logits_processor": processors} if processors else {}),
        )
    if cancelled:
        raise CancelledError
    new = output[:, prompt:]
    logprobs = recorder.logprobs_of(new) if decoding.logprobs else [None] * len(new)
    return [_ended(row, stops, values) for row, values in zip(new.tolist(), logprobs, strict=True)]


def _ended(row: Sequence[int], stops: Sequence[int], logprobs: Sequence[float] | None) -> Generated:
    """Cut a row of new tokens at its first end token."""
    end = next((at for at, token in enumerate(row) if token in stops), len(row))
    values = None if logprobs is None else tuple(logprobs[: end + 1])
    return Generated(tuple(row[:end]), "stop" if end < len(row) else "length", values)
