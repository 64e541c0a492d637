"""A Hugging Face image-text model: loading, and decoding of a batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch

from ...core import counted, first_few
from ...protocol import PROCESSOR_KEY, CancelledError
from ..adapter import Adapter, adapter_of
from ..loading_report import adapters_report, checked_loading, is_zero, report_of
from ..revision import refuse_unreachable, revision_of
from ..weight_files import shapes_in
from .encoding import Encoded, MessageEncoder, collate
from .logits import Flaw, LogprobRecorder, NumberCheck, SchemaMask, SeededSampler
from .machine import DeviceChoice


class Loaded(NamedTuple):
    """A model with its processor; ``record`` has the revisions of both, and an adapter's base."""

    model: Any
    encoder: MessageEncoder
    record: Mapping[str, str]

    def refuse_unknown_tokens(self, query: Encoded) -> None:
        """Raise ValueError for a query with tokens that the model has no embedding of."""
        known = len(self.model.get_input_embeddings().weight)  # An adapter may be around it
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
        weights = self.model.named_parameters()
        zero = [name for name, values in weights if name.endswith("weight") and is_zero(values)]
        if not zero:
            return (
                "logits are all equal, although no weight is zero: the checkpoint is broken, or "
                "its config.json is another's. Run an earlier checkpoint"
            )
        verb = "is" if len(zero) == 1 else "are"
        return (
            f"logits are all equal: {counted(len(zero), 'weight')} of the checkpoint {verb} zero "
            f"({first_few(zero)}), as if never written. Copy or save it again, or run an earlier "
            "checkpoint"
        )

    def _not_numbers(self) -> str:
        dtype = str(self.model.dtype).removeprefix("torch.")
        weights = self.model.named_parameters()
        spoilt = [name for name, values in weights if _is_spoilt(values)]
        if spoilt:
            count = counted(len(spoilt), "weight")
            verb = "holds" if len(spoilt) == 1 else "hold"
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


def _is_spoilt(values: Any) -> bool:
    """Return whether a weight holds what no other type of weights would mend."""
    if values.is_meta or values.dtype not in (torch.float16, torch.bfloat16, torch.float32):
        return False  # Elsewhere, or quantized
    if values.dtype == torch.float16:
        return bool(values.isnan().any())  # Large numbers became infinite
    return not bool(values.isfinite().all())


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

    ValueError if weights are missing, or it is an adapter that does not fit its base, or lies on
    the hub.
    """
    from transformers import AutoModelForImageTextToText, GenerationConfig

    adapter = adapter_of(checkpoint)
    weights = checkpoint
    processor = checkpoint
    if adapter is not None:
        weights = adapter.base
        processor = adapter.processor
        revision = adapter.base_revision(revision)
    model, info = AutoModelForImageTextToText.from_pretrained(
        weights,
        revision=revision,
        trust_remote_code=False,  # Known architectures only: foreign code never runs
        dtype=getattr(torch, placement.dtype),
        attn_implementation=placement.attention,
        output_loading_info=True,
        ignore_mismatched_sizes=True,  # The report has them, and is judged
        **({"device_map": "auto"} if placement.spread else {}),
    )
    if getattr(model, "_hf_peft_config_loaded", False):
        raise ValueError(
            f"{weights} is an adapter at the hub. Download it, and name the folder: "
            f"hf download {weights} --local-dir DIR"
        )
    all_there = checked_loading(weights, report_of(info, model))
    files = ("processor_config.json", "preprocessor_config.json")
    record = {
        "weights": all_there,
        "revision": checkpoint_revision(checkpoint, revision),
        PROCESSOR_KEY: checkpoint_revision(processor, revision, files),
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

    ValueError if weights are missing or fit nowhere: the base would answer alone; or if it is to be
    merged into weights that two layers share, as only one of them was trained with it.
    """
    from peft import PeftConfig, PeftModel, get_peft_model_state_dict

    folder = str(adapter.folder)
    config = PeftConfig.from_pretrained(folder)
    config.inference_mode = True
    modules = frozenset(f"base_model.model.{name}" for name, _ in model.named_modules() if name)
    tied = {
        name.rpartition(".")[0] for pair in model.all_tied_weights_keys.items() for name in pair
    }
    adapted = PeftModel(model, config)
    mapping = getattr(model, "_checkpoint_conversion_mapping", {})
    device = str(model.device)
    result = adapted.load_adapter(
        folder,
        "default",
        torch_device=device,
        key_mapping=mapping,
        ignore_mismatched_sizes=True,  # They are missing, then
    )
    expected = get_peft_model_state_dict(adapted, save_embedding_layers=False)
    own = {name: tuple(values.shape) for name, values in expected.items()}
    report = adapters_report(
        [name.replace(".default", "") for name in result.missing_keys],
        result.unexpected_keys,
        own,
        shapes_in(adapter.folder),
        modules,
    )
    checked_loading(f"{folder} does not fit {adapter.base}", report)
    shared = [name for name in sorted(tied) if any(f".{name}.lora_" in each for each in own)]
    if merges and shared:
        raise ValueError(
            f"{folder}: it changes {first_few(shared)}, which shares its weights with another "
            f"layer of {adapter.base}: merged, it would change both. Do not merge it: "
            "merge_adapter: false in the settings of its entry"
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
    flaw: Flaw | None = None  # Its logits choose no token, so that this is no reply


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
    numbers = NumberCheck()
    recorder = LogprobRecorder()
    processors: list[Any] = [numbers]
    if decoding.logprobs:
        processors.append(recorder)
    if decoding.schema is not None:
        known = partial(loaded.encoder.grammar_tokenizer, stops=tuple(stops))
        # After the recorder of the model's distribution.
        processors.append(SchemaMask(decoding.schema, known, stops, prompt))
    if decoding.temperature:
        processors.append(SeededSampler(decoding.temperature, seeds))
    cancelled = False

    def ends_some(input_ids: Any, scores: Any, **_: Any) -> Any:
        nonlocal cancelled
        cancelled = decoding.is_cancelled()
        return numbers.ended | cancelled

    with torch.inference_mode():
        output = loaded.model.generate(
            **inputs,
            max_new_tokens=decoding.limit,
            do_sample=False,  # the sampler decides by the largest number
            eos_token_id=stops,
            pad_token_id=loaded.encoder.pad_id,
            stopping_criteria=[ends_some],
            logits_processor=processors,
        )
    if cancelled:
        raise CancelledError
    new = output[:, prompt:]
    logprobs = recorder.logprobs_of(new) if decoding.logprobs else [None] * len(new)
    replies = []
    for at, (row, values) in enumerate(zip(new.tolist(), logprobs, strict=True)):
        reply = _ended(row, stops, values)
        replies.append(reply._replace(flaw=numbers.flaw(at, len(reply.ids) + 1)))
    return replies


def _ended(row: Sequence[int], stops: Sequence[int], logprobs: Sequence[float] | None) -> Generated:
    """Cut a row of new tokens at its first end token."""
    end = next((at for at, token in enumerate(row) if token in stops), len(row))
    values = None if logprobs is None else tuple(logprobs[: end + 1])
    return Generated(tuple(row[:end]), "stop" if end < len(row) else "length", values)
