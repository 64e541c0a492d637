"""Local models: from messages to replies with their records."""

from __future__ import annotations

import logging
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
    ReplyRecord,
    image_paths,
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
from .encoding_ahead import EncodingThread
from .layout import Bounds
from .loaded_model import Decoding, Flaw, Generated, LoadedModel
from .machine import (
    Asked,
    DeviceChoice,
    choose_placement,
    in_batches,
    in_order,
    is_out_of_memory,
    limit_on,
    next_batch,
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
        self._limit = limit_on(placement.device, settings.batch_size)
        self._placement = placement
        self._is_cancelled: Callable[[], bool] = lambda: False
        self._encoding = EncodingThread(loaded.encoder)
        self._expected: tuple[Sequence[Message], Bounds] | None = None
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
            asked=lambda query: _asked(query[0], generation),
            limit=self._limit,
            answer=lambda batch: self._answer(batch, generation),
            give_up=lambda query, why: failed_answer(why, generation),
        )

    def batches(
        self, messages: Sequence[Message], variants: Sequence[DatasetVariant]
    ) -> list[list[int]]:
        """Return the places of the messages of each batch in which they would be answered.

        Messages of several variants are answered together where these are run alike.
        """
        planned = {variant: self._planned(variant) for variant in dict.fromkeys(variants)}
        alike: list[tuple[GenerationPlan, list[int]]] = []
        batches: list[list[int]] = []
        for at, variant in enumerate(variants):
            generation = planned[variant]
            if generation is None:
                batches.append([at])
                continue
            places = next((places for plan, places in alike if plan == generation), None)
            if places is None:
                alike.append((generation, [at]))
            else:
                places.append(at)
        for generation, places in alike:
            queries = [_asked(messages[at], generation) for at in places]
            waiting = in_order(queries)
            while waiting:
                batch = next_batch(waiting, queries, self._limit)
                batches.append([places[at] for at in batch])
                waiting = waiting[len(batch) :]
        return batches

    def _planned(self, variant: DatasetVariant) -> GenerationPlan | None:
        """Return how a variant is run; None if it cannot be, which its answers will say."""
        try:
            return plan_generation(self._row, variant, self._settings)
        except ValueError:
            return None

    def expect(self, messages: Sequence[Message], variant: DatasetVariant) -> None:
        """Note which messages come after the next: they are encoded while those are answered."""
        generation = self._planned(variant)
        self._expected = None if generation is None else (messages, generation.bounds)

    def _answer(
        self, batch: Sequence[tuple[Message, int | None]], generation: GenerationPlan
    ) -> list[CallResult]:
        encoded: dict[int, Encoded] = {}
        answers: dict[int, CallResult] = {}
        queries = self._encoding.take([message for message, _ in batch], generation.bounds)
        for at, query in enumerate(queries):
            if isinstance(query, OSError):
                answers[at] = failed_answer(error_line(query), generation)
                continue
            self._loaded.refuse_unknown_tokens(query)
            encoded[at] = replace(query, seed=batch[at][1])
        if encoded:
            if self._expected is not None:
                self._encoding.begin(*self._expected)
                self._expected = None
            asked = list(encoded.values())
            try:
                new = self._loaded.generate(asked, self._decoding(generation))
            except CancelledError:
                self._encoding.drop()
                raise
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


def _asked(message: Message, generation: GenerationPlan) -> Asked:
    """Return what is known of a message before its images are read."""
    images = image_paths(message) or object()
    return Asked(expected_length(message, generation.bounds), images)


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
