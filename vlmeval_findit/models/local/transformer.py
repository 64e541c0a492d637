"""A Hugging Face image-text model: loading, and decoding of a batch."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import torch

from ...core import first_few
from ...protocol import PROCESSOR_KEY, CancelledError
from ..adapter import Adapter, adapter_of
from ..loading_report import adapters_report, checked_loading, is_zero, report_of
from ..revision import refuse_unreachable, revision_of
from ..weight_files import shapes_in
from .encoding import Encoded, MessageEncoder
from .grammar import ReplyGrammar
from .loaded_model import Beginning, Decoding, Generated, LoadedModel, beginnings, ended
from .logits import LogprobRecorder, NumberCheck, SchemaMask, SeededSampler
from .machine import DeviceChoice


@dataclass(frozen=True, eq=False)
class Loaded(LoadedModel):
    """A model of transformers."""

    model: Any
    encoder: MessageEncoder
    record: Mapping[str, str]

    @property
    def known_tokens(self) -> int:
        return len(self.model.get_input_embeddings().weight)  # An adapter may be around it

    @property
    def end_tokens(self) -> int | Sequence[int] | None:
        tokens: int | Sequence[int] | None = self.model.generation_config.eos_token_id
        return tokens

    @property
    def dtype(self) -> str:
        return str(self.model.dtype).removeprefix("torch.")

    def zero_weights(self) -> list[str]:
        weights = self.model.named_parameters()
        return [name for name, values in weights if name.endswith("weight") and is_zero(values)]

    def spoilt_weights(self) -> list[str]:
        weights = self.model.named_parameters()
        return [name for name, values in weights if _is_spoilt(values)]

    def generate(self, batch: Sequence[Encoded], decoding: Decoding) -> list[Generated]:
        return generate(self, batch, decoding)

    @cached_property
    def takes_padding(self) -> bool:
        """Whether its cache does: a sliding window would count padding, a recurrence absorb it."""
        from transformers import DynamicCache
        from transformers.cache_utils import DynamicLayer

        cache = DynamicCache(config=self.model.config.get_text_config(decoder=True))
        return all(type(layer) is DynamicLayer for layer in cache.layers)

    def inputs(self, batch: Sequence[Encoded]) -> dict[str, Any]:
        return collate(batch, self.encoder, self.model.device)


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


def generate(loaded: Loaded, batch: Sequence[Encoded], decoding: Decoding) -> list[Generated]:
    """Answer a batch."""
    shared = beginnings(batch) if loaded.takes_padding else []
    inputs = _from_prefixes(loaded, batch, shared) if shared else loaded.inputs(batch)
    return continue_rows(loaded, inputs, decoding, [query.seed for query in batch])


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
    mask: SchemaMask | None = None
    if decoding.logprobs:
        processors.append(recorder)
    if decoding.schema is not None:
        known = partial(loaded.encoder.grammar_tokenizer, stops=tuple(stops))
        # After the recorder of the model's distribution.
        mask = SchemaMask(ReplyGrammar(decoding.schema, known, stops))
        processors.append(mask)
    if decoding.temperature:
        processors.append(SeededSampler(decoding.temperature, seeds))
    cancelled = False

    def ends_some(input_ids: Any, scores: Any, **_: Any) -> Any:
        nonlocal cancelled
        cancelled = decoding.is_cancelled()
        if mask is not None:
            mask.note(input_ids)
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
        reply = ended(row, stops, values)
        replies.append(reply._replace(flaw=numbers.flaw(at, len(reply.ids) + 1)))
    return replies


class Prefixes(NamedTuple):
    """Beginnings of one length that were read.

    ``rope_deltas`` is the state of multimodal rotary positions in the model itself (None: none);
    without it, a continuation would silently have wrong positions.
    """

    beginnings: Sequence[Beginning]
    layers: Sequence[tuple[Any, Any]]  # keys and values, (beginnings, heads, tokens, numbers)
    rope_deltas: Any


def _from_prefixes(
    loaded: Loaded, batch: Sequence[Encoded], shared: Sequence[Beginning]
) -> dict[str, Any]:
    """Read what queries begin with, once each, and return the inputs that go on from there."""
    by_length: dict[int, list[Beginning]] = {}
    for beginning in shared:
        by_length.setdefault(beginning.length, []).append(beginning)
    # Those of one length go through the model together, without padding.
    read = [_prefill(loaded, batch, alike) for alike in by_length.values()]
    order = [at for prefixes in read for each in prefixes.beginnings for at in each.places]
    rows = torch.tensor(order, device=loaded.model.device).argsort()
    cache = _joined_cache(loaded, read, rows)
    deltas = [_repeated(each.rope_deltas, each) for each in read if each.rope_deltas is not None]
    if deltas:
        loaded.model.model.rope_deltas = torch.cat(deltas)[rows]
    return _after(loaded, batch, shared, cache)


def _prefill(loaded: Loaded, batch: Sequence[Encoded], alike: Sequence[Beginning]) -> Prefixes:
    length = alike[0].length
    first = [batch[each.places[0]] for each in alike]
    cut = [replace(query, ids=query.ids[:length], types=query.types[:length]) for query in first]
    inner: Any = getattr(loaded.model, "model", None)
    if hasattr(inner, "rope_deltas"):
        inner.rope_deltas = None
    with torch.inference_mode():
        cache = loaded.model(**loaded.inputs(cut), use_cache=True, logits_to_keep=1).cache
    layers = [(layer.keys, layer.values) for layer in cache.layers]
    return Prefixes(alike, layers, copy.deepcopy(getattr(inner, "rope_deltas", None)))


def _repeated(values: Any, prefixes: Prefixes) -> Any:
    """Repeat what is known of each beginning for each query that has it."""
    counts = [len(each.places) for each in prefixes.beginnings]
    return values.repeat_interleave(torch.tensor(counts, device=values.device), dim=0)


def _joined_cache(loaded: Loaded, read: Sequence[Prefixes], rows: Any) -> Any:
    """Return the cache of all queries, padded on the left; ``rows`` puts them into order."""
    from transformers import DynamicCache

    longest = max(prefixes.beginnings[0].length for prefixes in read)
    cache = DynamicCache(config=loaded.model.config.get_text_config(decoder=True))
    with torch.inference_mode():
        for number in range(len(read[0].layers)):
            both = []
            for part in range(2):
                padded = [_padded_left(each, each.layers[number][part], longest) for each in read]
                both.append(torch.cat(padded)[rows.to(padded[0].device)])
            cache.update(*both, number)
    return cache


def _padded_left(prefixes: Prefixes, values: Any, longest: int) -> Any:
    gap = longest - values.shape[2]
    return torch.nn.functional.pad(_repeated(values, prefixes), (0, 0, gap, 0))


def _after(
    loaded: Loaded, batch: Sequence[Encoded], shared: Sequence[Beginning], cache: Any
) -> dict[str, Any]:
    """Return the inputs after prefixes: padding on the left, prefix, padding, the rest."""
    lengths = {at: each.length for each in shared for at in each.places}
    longest = max(lengths.values())
    most = max(len(query.ids) - lengths[at] for at, query in enumerate(batch))
    pad = loaded.encoder.pad_id
    rows = []
    seen = []
    for at, query in enumerate(batch):
        length = lengths[at]
        left = longest - length
        rest = query.ids[length:]
        gap = most - len(rest)
        rows.append([*[pad] * left, *query.ids[:length], *[pad] * gap, *rest])
        seen.append([0] * left + [1] * length + [0] * gap + [1] * len(rest))
    device = loaded.model.device
    return {
        "input_ids": torch.tensor(rows, device=device),
        "attention_mask": torch.tensor(seen, device=device),
        "cache": cache,
    }


def collate(batch: Sequence[Encoded], encoder: MessageEncoder, device: Any) -> dict[str, Any]:
    """Batch queries, padded on the left: tensors of shape (queries, tokens), and all images."""
    inputs = {
        "input_ids": _padded([query.ids for query in batch], encoder.pad_id),
        "attention_mask": _padded([[1] * len(query.ids) for query in batch], 0),
    }
    if "mm_token_type_ids" in encoder.processor.model_input_names:
        inputs["mm_token_type_ids"] = _padded([query.types for query in batch], 0)
    with_images = [query.features for query in batch if query.images]
    for key in with_images[0] if with_images else ():
        inputs[key] = _joined([features[key] for features in with_images])
    return {key: value.to(device) for key, value in inputs.items()}


def _joined(tensors: Sequence[Any]) -> Any:
    """Concatenate tensors, zero-padding those with fewer tiles or patches."""
    most = [max(sizes) for sizes in zip(*(tensor.shape[1:] for tensor in tensors), strict=True)]
    filled = []
    for tensor in tensors:
        whole = tensor.new_zeros(len(tensor), *most)
        whole[tuple(map(slice, tensor.shape))] = tensor
        filled.append(whole)
    return torch.cat(filled)


def _padded(rows: Sequence[Sequence[int]], fill: int) -> Any:
    longest = max(map(len, rows))
    return torch.tensor([[fill] * (longest - len(row)) + list(row) for row in rows])
