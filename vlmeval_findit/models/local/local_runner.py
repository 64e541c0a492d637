"""Local models: from messages to replies with their records."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from ...core import error_line, quoted_line
from ...protocol import (
    NUMPY,
    CallResult,
    CancelledError,
    DatasetVariant,
    Message,
    PartKind,
    ReplyRecord,
    opened_by,
    rule_of,
    split_thought,
)
from ..adapter import adapter_of, refuse_without_peft
from ..model_row import LocalFamily, ModelRow
from ..reply_tokens import GeneratedTokens, answer_tokens
from ..revision import refuse_missing, refuse_unreachable
from ..weight_files import refuse_unloadable
from .encoding import Encoded, MessageEncoder
from .loaded_model import Decoding, Flaw, Generated, LoadedModel
from .machine import (
    BatchLimit,
    DeviceChoice,
    choose_placement,
    in_batches,
    is_out_of_memory,
    this_machine,
)
from .model_images import ImageSet, expected_length
from .run_plan import GenerationPlan, plan_generation
from .run_settings import RunSettings
from .template_trial import refuse_endless_templates
from .which_engine import engine_of

log = logging.getLogger(__name__)


class LocalRunner:
    """A model on this machine."""

    def __init__(
        self,
        loaded: LoadedModel,
        row: ModelRow,
        settings: RunSettings,
        checkpoint: str,
        placement: DeviceChoice,
    ) -> None:
        self._loaded = loaded
        self._row = row
        self._settings = settings
        # On a CPU more than eight gain nothing (prefill is bound by arithmetic), and running out of
        # memory may kill the process; a GPU reports it.
        is_cpu = placement.device == "cpu"
        most = settings.batch_size or (8 if is_cpu else 32)
        tokens = 16_384 if is_cpu else math.inf
        self._limit = BatchLimit(most, tokens)
        # Variants share pixels, so more of them fit; a number that the user stated is that of both.
        self._variants_limit = BatchLimit(settings.batch_size or 4 * most, 4 * tokens)
        self._placement = placement
        self._is_cancelled: Callable[[], bool] = lambda: False
        self._who = {"row": row.name, "identifier": checkpoint, **loaded.record}

    def __str__(self) -> str:
        who = "{row} from {identifier} ({revision})".format(**self._who)
        return f"{who} on {self._placement}, up to {self._limit.most} queries at once"

    def cancelled_by(self, is_cancelled: Callable[[], bool]) -> None:
        """Set the function that says whether to raise CancelledError between two tokens."""
        self._is_cancelled = is_cancelled

    def answer_batch(
        self,
        messages: Sequence[Message],
        variant: DatasetVariant,
        *,
        logprobs: bool = False,
        seeds: Sequence[int] = (),
    ) -> list[CallResult]:
        """Answer messages of one variant; what is unreadable or too large is a failed call.

        ``seeds`` are of each reply's random numbers, where replies are sampled (default: torch's).
        """
        generation = plan_generation(self._row, variant, self._settings, logprobs=logprobs)
        return in_batches(
            list(zip(messages, seeds or (None,) * len(messages), strict=True)),
            length=lambda asked: expected_length(asked[0], generation.bounds),
            limit=self._limit,
            answer=lambda batch: self._answer(batch, generation),
            give_up=lambda asked, why: failed_answer(why, generation),
        )

    def answer_variants(
        self,
        messages: Sequence[Message],
        variant: DatasetVariant,
        *,
        logprobs: bool = False,
        seeds: Sequence[int] = (),
    ) -> list[CallResult]:
        """Answer messages that share their images with one prefill, or as :meth:`answer_batch`."""
        generation = plan_generation(self._row, variant, self._settings, logprobs=logprobs)
        encoded = self._encode_variants(messages, seeds, generation)
        prefix = None
        try:
            prefix = self._loaded.prefill(encoded) if len(encoded) > 1 else None
        except Exception as error:
            if not is_out_of_memory(error):
                raise
        if prefix is None:
            return self.answer_batch(messages, variant, logprobs=logprobs, seeds=seeds)
        decoding = self._decoding(generation)

        def go_on(batch: Sequence[Encoded]) -> list[CallResult]:
            new = self._loaded.continue_variants(prefix, batch, decoding)
            return self._replies(batch, new, generation)

        return in_batches(
            encoded,
            length=lambda query: len(query.ids),
            limit=self._variants_limit,
            answer=go_on,
            give_up=lambda query, why: failed_answer(why, generation),
        )

    def _encode_variants(
        self, messages: Sequence[Message], seeds: Sequence[int], generation: GenerationPlan
    ) -> list[Encoded]:
        """Encode messages with one reading of their images; empty if that is not possible."""
        shown = {tuple(p for p in each if p.kind is PartKind.IMAGE) for each in messages}
        if len(shown) != 1:
            return []
        encoder = self._loaded.encoder
        try:
            first = encoder.encode(messages[0], ImageSet(generation.bounds))
        except OSError:
            return []
        encoded = []
        for message, seed in zip(messages, seeds or (None,) * len(messages), strict=True):
            query = encoder.encode_like(first, message)
            if query is None:
                return []
            self._loaded.refuse_unknown_tokens(query)
            encoded.append(replace(query, seed=seed))
        return encoded

    def _answer(
        self, batch: Sequence[tuple[Message, int | None]], generation: GenerationPlan
    ) -> list[CallResult]:
        images = ImageSet(generation.bounds)
        encoded: dict[int, Encoded] = {}
        answers: dict[int, CallResult] = {}
        for at, (message, seed) in enumerate(batch):
            try:
                query = self._loaded.encoder.encode(message, images)
            except OSError as error:
                answers[at] = failed_answer(error_line(error), generation)
                continue
            self._loaded.refuse_unknown_tokens(query)
            encoded[at] = replace(query, seed=seed)
        if encoded:
            asked = list(encoded.values())
            new = self._loaded.generate(asked, self._decoding(generation))
            answers |= zip(encoded, self._replies(asked, new, generation), strict=True)
        return [answers[at] for at in range(len(batch))]

    @cached_property
    def _whys(self) -> dict[Flaw, str]:
        return {}  # Looking at all weights takes seconds

    def _why(self, flaw: Flaw) -> str:
        if flaw not in self._whys:
            self._whys[flaw] = self._loaded.why(flaw)
            log.error("FindIt: no answer: %s", self._whys[flaw])  # Once, as others have it, too
        return self._whys[flaw]

    def _decoding(self, generation: GenerationPlan) -> Decoding:
        temperature = self._settings.temperature or 0.0
        how = (generation.limit, generation.schema, generation.logprobs)
        return Decoding(*how, self._is_cancelled, temperature)

    def _replies(
        self, queries: Sequence[Encoded], new: Sequence[Generated], generation: GenerationPlan
    ) -> list[CallResult]:
        encoder = self._loaded.encoder
        replies = []
        for query, got in zip(queries, new, strict=True):
            if got.flaw is not None:
                replies.append(_failed(self._why(got.flaw), generation))
                continue
            its_tokens = None
            count = len(got.ids)
            if got.logprobs is not None:
                ends = encoder.ends(got.ids)
                of_end = got.logprobs[count:]
                its_tokens = GeneratedTokens(ends, got.logprobs[:count], *of_end)
            text = encoder.decode(got.ids)
            record = ReplyRecord(
                space=generation.space,
                finish_reason=got.finish_reason,
                images=query.images,
                tokens={"prompt": len(query.ids), "reply": count},
                model=self._who,
            )
            replies.append(without_thought(generation, query.text, text, record, its_tokens))
        return replies


def without_thought(
    generation: GenerationPlan,
    prompt: str,
    text: str,
    record: ReplyRecord,
    its_tokens: GeneratedTokens | None = None,
) -> CallResult:
    """Return a reply without its thought, which its record gets."""
    marks = generation.family.thought
    rule = rule_of(marks)
    opened = opened_by(prompt, rule) if marks else ""
    split = split_thought(opened + text, rule)
    whole = replace(
        record,
        thought=split.thought,
        ends_in_thought=split.ends_inside,
        token_logprobs=its_tokens and answer_tokens(its_tokens, opened, text, rule),
    )
    return CallResult(split.answer.strip(), whole)


def failed_answer(why: str, generation: GenerationPlan) -> CallResult:
    """Return the result of a failed call, which the next run repeats."""
    log.error("FindIt: no answer: %s", why)
    return _failed(why, generation)


def _failed(why: str, generation: GenerationPlan) -> CallResult:
    record = ReplyRecord(space=generation.space, call={"error": why})
    return CallResult("", record, quoted_line(why, 500))


def load_local(checkpoint: str, row: ModelRow, settings: RunSettings) -> LocalRunner:
    """Load a checkpoint for this machine; OSError if it does not exist."""
    if row.local is None:
        raise ValueError(f"{row.name} does not run on this machine")
    for refuse in (refuse_missing, refuse_unloadable, refuse_unreachable, refuse_without_peft):
        refuse(checkpoint)
    adapter_of(checkpoint, settings.merge_adapter)  # refuses to merge what is no adapter
    engine = engine_of(row, checkpoint, settings)
    encoder = _encoder(row.local, checkpoint, settings, engine)
    if engine == NUMPY:
        from .arrays.model import load_arrays

        placement = DeviceChoice("cpu", "float32", "NumPy's")
        with _told_of(checkpoint, "model"):
            computed = load_arrays(checkpoint, encoder)
        return LocalRunner(computed, row, settings, checkpoint, placement)
    from .transformer import load

    placement = choose_placement(
        this_machine(), settings.device, settings.dtype, settings.attention
    )
    merges = settings.merge_adapter is not False
    with _told_of(checkpoint, "model"):
        loaded = load(checkpoint, encoder, placement, settings.revision, merges=merges)
    return LocalRunner(loaded, row, settings, checkpoint, placement)


def _encoder(
    family: LocalFamily, checkpoint: str, settings: RunSettings, engine: str, **where: Any
) -> MessageEncoder:
    """Load the processor of a checkpoint, of the engine's kind."""
    with _told_of(checkpoint, "processor"):
        if engine == NUMPY:
            from .arrays.processor import ArrayProcessor

            processor: Any = ArrayProcessor(Path(checkpoint))
        else:
            from .transformer import load_processor

            processor = load_processor(checkpoint, settings.revision, **where)
    switches = {**family.template, **settings.template}
    refuse_endless_templates(checkpoint, processor.chat_template, switches)
    return MessageEncoder(processor, family, settings.template)


@contextmanager
def _told_of(checkpoint: str, what: str) -> Iterator[None]:
    """Name the checkpoint where its files raise what no caller expects: they may hold anything."""
    try:
        yield
    except (OSError, ImportError, CancelledError):
        raise
    except Exception as error:
        is_told = isinstance(error, ValueError) and checkpoint in str(error)
        if is_told or is_out_of_memory(error):
            raise
        raise ValueError(
            f"{checkpoint}: its {what} cannot be made of the files ({error_line(error)}). Copy "
            "those that were saved with the weights, or save the model again"
        ) from error


class ProcessorMissingError(ValueError):
    """The processor, or what it needs, is not on this machine."""


def encode_as_shown(
    row: ModelRow, checkpoint: str, variant: DatasetVariant, message: Message
) -> Encoded:
    """Encode a message (images as file paths) as the model would get it; download nothing.

    Raises ProcessorMissingError without the processor, OSError for an unreadable image.
    """
    settings = RunSettings()
    generation = plan_generation(row, variant, settings)
    engine = engine_of(row, checkpoint, settings)
    try:
        encoder = _encoder(generation.family, checkpoint, settings, engine, local_files_only=True)
    except (ImportError, OSError) as error:
        raise ProcessorMissingError(f"{checkpoint}: {str(error).splitlines()[0]}") from None
    return encoder.encode(message, ImageSet(generation.bounds))
