"""Local models: from messages to replies with their records."""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from ...core.question import Message, PartKind, Question
from ...core.replies import FAILED, Recorded, opened_by, split_thought
from ..adapter import refuse_without_peft
from ..model_row import ModelRow
from ..reply_tokens import GeneratedTokens, answer_tokens
from ..revision import refuse_missing, refuse_unreachable
from .layout import Bounds
from .machine import (
    BatchLimit,
    DeviceChoice,
    choose,
    first_try,
    in_batches,
    is_out_of_memory,
    this_machine,
)
from .model_images import ImageSet, expected_length
from .run_plan import GenerationPlan, RunSettings, plan

if TYPE_CHECKING:
    from .encoding import Encoded

log = logging.getLogger(__name__)


class LocalReply(NamedTuple):
    """A reply with its record."""

    text: str
    recorded: Recorded


class LocalRunner:
    """A transformers model on this machine."""

    def __init__(
        self,
        loaded: Any,
        row: ModelRow,
        settings: RunSettings,
        checkpoint: str,
        placement: DeviceChoice,
    ) -> None:
        self._loaded = loaded
        self._row = row
        self._settings = settings
        queries, tokens = first_try(placement)
        most = settings.batch_size or queries
        self._limit = BatchLimit(most, tokens)
        # Variants share pixels, so more of them fit.
        self._variants_limit = BatchLimit(4 * most, 4 * tokens)
        self._placement = placement
        self._is_cancelled: Callable[[], bool] = lambda: False
        self._who = {
            "row": row.name,
            "identifier": checkpoint,
            "revision": loaded.revision,
            "processor_revision": loaded.processor_revision,
            **loaded.base,
        }

    def __str__(self) -> str:
        return (
            f"{self._who['row']} from {self._who['identifier']} ({self._who['revision']}) on "
            f"{self._placement}, up to {self._limit.most} queries at once"
        )

    @property
    def at_once(self) -> int:
        """Four batches: enough to group by length, little to lose in a crash."""
        return 4 * self._limit.most

    def cancelled_by(self, is_cancelled: Callable[[], bool]) -> None:
        """Set the function that says whether to raise CancelledError between two tokens."""
        self._is_cancelled = is_cancelled

    def answer_batch(
        self,
        messages: Sequence[Message],
        question: Question,
        *,
        logprobs: bool = False,
        seeds: Sequence[int] = (),
    ) -> list[LocalReply]:
        """Answer messages of one question; what is unreadable or too large is a failed call.

        ``seeds`` are of each reply's random numbers, where replies are sampled (default: torch's).
        """
        generation = plan(self._row, question, self._settings, logprobs=logprobs)
        return in_batches(
            list(zip(messages, seeds or (None,) * len(messages), strict=True)),
            length=lambda asked: _expected(asked[0], generation.bounds),
            limit=self._limit,
            answer=lambda batch: self._answer(batch, generation),
            give_up=lambda asked, why: failed_answer(why, generation),
            free=free_memory,
        )

    def answer_variants(
        self,
        messages: Sequence[Message],
        question: Question,
        *,
        logprobs: bool = False,
        seeds: Sequence[int] = (),
    ) -> list[LocalReply]:
        """Answer messages that share their images with one prefill, or else as
        :meth:`answer_batch`.
        """
        from .shared_prefix import common_length, continue_variants, covers_images, prefill

        generation = plan(self._row, question, self._settings, logprobs=logprobs)
        encoded = self._encode_variants(messages, generation)
        if encoded and seeds:
            pairs = zip(encoded, seeds, strict=True)
            encoded = [replace(query, seed=seed) for query, seed in pairs]
        shared = common_length([query.ids for query in encoded]) if encoded else 0
        if len(messages) < 2 or not shared or not covers_images(encoded[0], shared):
            return self.answer_batch(messages, question, logprobs=logprobs, seeds=seeds)
        try:
            prefix = prefill(self._loaded, encoded[0], shared)
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            return self.answer_batch(messages, question, logprobs=logprobs, seeds=seeds)
        go_on = partial(
            continue_variants, self._loaded, prefix, decoding=self._decoding(generation)
        )
        return in_batches(
            encoded,
            length=lambda query: len(query.ids),
            limit=self._variants_limit,
            answer=lambda batch: [
                self._answered(query, new, generation)
                for query, new in zip(batch, go_on(batch), strict=True)
            ],
            give_up=lambda query, why: failed_answer(why, generation),
            free=free_memory,
        )

    def _encode_variants(
        self, messages: Sequence[Message], generation: GenerationPlan
    ) -> list[Any]:
        """Encode messages with one reading of their images; empty if that is not possible."""
        encoder = self._loaded.encoder
        if not messages or not all(_paths(query) == _paths(messages[0]) for query in messages):
            return []
        try:
            first = encoder.encode(messages[0], ImageSet(generation.bounds), generation.bounds)
        except OSError:
            return []
        others = [encoder.encode_like(first, message) for message in messages[1:]]
        return [] if None in others else [first, *others]

    def _answer(
        self, batch: Sequence[tuple[Message, int | None]], generation: GenerationPlan
    ) -> list[LocalReply]:
        from .transformer import generate

        images = ImageSet(generation.bounds)
        encoded: dict[int, Any] = {}
        answers: dict[int, LocalReply] = {}
        for at, (message, seed) in enumerate(batch):
            try:
                query = self._loaded.encoder.encode(message, images, generation.bounds)
                encoded[at] = replace(query, seed=seed)
            except OSError as error:
                answers[at] = failed_answer(f"{type(error).__name__}: {error}", generation)
        asked = list(encoded.values())
        if asked:
            new = generate(self._loaded, asked, self._decoding(generation))
            for at, generated in zip(encoded, new, strict=True):
                answers[at] = self._answered(encoded[at], generated, generation)
        return [answers[at] for at in range(len(batch))]

    def _decoding(self, generation: GenerationPlan) -> Any:
        from .transformer import Decoding

        temperature = self._settings.temperature or 0.0
        return Decoding(
            generation.limit,
            generation.schema,
            generation.logprobs,
            self._is_cancelled,
            temperature,
        )

    def _answered(self, query: Any, new: Any, generation: GenerationPlan) -> LocalReply:
        from .transformer import generated_tokens

        encoder = self._loaded.encoder
        text, generated = encoder.decode(new.ids), generated_tokens(new, encoder)
        tokens = {"prompt": len(query.ids), "reply": len(new.ids)}
        return spoken(
            generation,
            query.text,
            text,
            new.finish_reason,
            query.images,
            tokens,
            self._who,
            generated,
        )


def spoken(
    generation: GenerationPlan,
    prompt: str,
    text: str,
    finish_reason: str,
    images: Sequence[Any],
    tokens: dict[str, int],
    who: dict[str, str],
    its_tokens: GeneratedTokens | None = None,
) -> LocalReply:
    """Return a reply without its thought, and its record."""
    marks = generation.family.thought
    opened = opened_by(prompt, marks) if marks else ""
    split = split_thought(opened + text)
    return LocalReply(
        split.answer.strip(),
        Recorded(
            space=generation.space,
            finish_reason=finish_reason,
            images=tuple(images),
            thought=split.thought,
            ends_in_thought=split.ends_inside,
            tokens=tokens,
            model=who,
            token_logprobs=its_tokens and answer_tokens(its_tokens, opened, text),
        ),
    )


def failed_answer(why: str, generation: GenerationPlan) -> LocalReply:
    """Return the reply of a failed call, which the host's next run repeats."""
    log.error("FindIt: no answer: %s", why)
    return LocalReply(
        f"{FAILED} via API. {why}", Recorded(space=generation.space, call={"error": why})
    )


def _paths(message: Message) -> list[str]:
    return [part.value for part in message if part.kind is PartKind.IMAGE]


def _expected(message: Message, bounds: Bounds) -> float:
    texts = [part.value for part in message if part.kind is PartKind.TEXT]
    return expected_length(_paths(message), texts, bounds)


def free_memory() -> None:
    """Release what a failed batch held."""
    import torch

    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def load_local(checkpoint: str, row: ModelRow, settings: RunSettings) -> LocalRunner:
    """Load a checkpoint for this machine; OSError if it does not exist."""
    from .encoding import MessageEncoder
    from .transformer import load, load_processor

    if row.local is None:
        raise ValueError(f"{row.name} does not run on this machine")
    refuse_missing(checkpoint)
    refuse_unreachable(checkpoint)
    refuse_without_peft(checkpoint)
    placement = choose(this_machine(), settings.device, settings.dtype, settings.attention)
    processor = load_processor(checkpoint, settings.revision)
    encoder = MessageEncoder(processor, row.local, settings.template)
    merges = settings.merge_adapter is not False
    loaded = load(checkpoint, encoder, placement, settings.revision, merges=merges)
    return LocalRunner(loaded, row, settings, checkpoint, placement)


class ProcessorMissingError(ValueError):
    """The processor, or what it needs, is not on this machine."""


def shown(row: ModelRow, checkpoint: str, question: Question, message: Message) -> Encoded:
    """Encode a message (images as file paths) as the model would get it; download nothing.

    Raises ProcessorMissingError without the processor, OSError for an unreadable image.
    """
    generation = plan(row, question, RunSettings())
    try:
        from .encoding import MessageEncoder
        from .transformer import load_processor

        processor = load_processor(checkpoint, local_files_only=True)
    except (ImportError, OSError) as error:
        raise ProcessorMissingError(f"{checkpoint}: {str(error).splitlines()[0]}") from None
    encoder = MessageEncoder(processor, generation.family)
    return encoder.encode(message, ImageSet(generation.bounds), generation.bounds)
