"""Local models: from messages to replies with their records."""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

from ...boxes.spaces import space_from
from ...core.command import install
from ...core.formatting import nearest
from ...core.identity import Answering, Described
from ...core.question import Message, PartKind, Question
from ...core.replies import FAILED, Recorded, opened_by, split_thought
from ..adapter import adapter_of, refuse_without_peft
from ..bounds import Bounds, space_within
from ..model_row import LocalFamily, ModelRow
from ..reply_tokens import GeneratedTokens, answer_tokens
from ..revision import base_settings, known_revision, refuse_missing, refuse_unreachable
from .batching import BatchLimit, in_batches, is_out_of_memory
from .device import DeviceChoice, first_try
from .images import ImageSet, expected_length
from .run_settings import RunSettings

if TYPE_CHECKING:
    from .encoding import Encoded, MessageEncoder

log = logging.getLogger(__name__)

HOST_CLASS = "FindItLocalModel"
"""VLMEvalKit's class of all local models."""

GRAMMARS = "llguidance"
"""The library for constrained decoding (:mod:`.logits`)."""


class LocalReply(NamedTuple):
    """A reply with its record."""

    text: str
    recorded: Recorded


@dataclass(frozen=True, slots=True)
class GenerationPlan:
    """How the queries of a question are run and recorded."""

    row: ModelRow
    family: LocalFamily
    bounds: Bounds
    limit: int
    space: dict[str, Any]
    schema: Mapping[str, Any] | None = None
    logprobs: bool = False


def plan(
    row: ModelRow, question: Question, settings: RunSettings, *, logprobs: bool = False
) -> GenerationPlan:
    """Combine the protocol and the user's settings for a question.

    Raises:
        ValueError: the row does not run locally, bounds contradict or are not the processor's, or a
            thinking model should be constrained.
    """
    if row.local is None:
        raise ValueError(f"{row.name} does not run on this machine")
    if question.reply_schema is not None and row.opens_thought:
        raise ValueError(
            f"{row.name} thinks before it answers, and a grammar holds from the first word: "
            f"{question.name} needs a model that does not"
        )
    given = asdict(settings)
    said = space_from(settings.space) if settings.space is not None else row.space(question)
    wanted = {key: given[key] for key in ("min_pixels", "max_pixels", "patches")}
    for key in wanted.keys() - row.local.layout.takes:
        if wanted[key] is not None:
            takes = nearest(key, sorted(row.local.layout.takes))
            raise ValueError(f"{key}: the image processor of {row.name} takes no such bound{takes}")
    bounds = row.local.bounds(question).overridden(wanted)
    return GenerationPlan(
        row=row,
        family=row.local,
        bounds=bounds,
        limit=settings.max_new_tokens or question.max_new_tokens,
        space=(said if settings.space is not None else space_within(said, bounds)).as_dict(),
        schema=question.reply_schema,
        logprobs=logprobs,
    )


def describe(
    row: ModelRow, checkpoint: str, question: Question, settings: RunSettings
) -> Described:
    """Describe a run of a checkpoint without torch or network; raises as :func:`plan`."""
    how = plan(row, question, settings)
    if how.schema is not None and find_spec(GRAMMARS) is None:
        raise ValueError(f"{question.name} needs {GRAMMARS}: {install('local')}")
    refuse_without_peft(checkpoint)
    set_by_user = {
        "bounds": how.bounds.as_dict(),
        "max_new_tokens": how.limit,
        "template": {**how.family.template, **settings.template},
        "engine": "transformers",
        "dtype": settings.dtype,
        "attention": settings.attention,
        **({} if how.schema is None else {"reply_schema": how.schema}),
        **({"temperature": settings.temperature} if settings.temperature else {}),
        **base_settings(checkpoint, settings.revision, settings.merge_adapter),
    }
    return Described(
        Answering(
            kind=HOST_CLASS,
            row=row.name,
            checkpoint=checkpoint,
            revision=known_revision(checkpoint, settings.revision),
            settings=set_by_user,
            runs_here=True,
        ),
        how.space,
    )


def on_this_machine(found: Answering, settings: RunSettings) -> Answering:
    """Add what torch and the hub know, without loading the model."""
    from .device import choose, this_machine
    from .transformer import checkpoint_revision

    assert found.checkpoint is not None
    placed = choose(this_machine(), settings.device, settings.dtype, settings.attention)
    known = {"dtype": placed.dtype, "attention": placed.attention}
    adapter = adapter_of(found.checkpoint)
    if adapter is not None and adapter.base_folder is None:
        revision = adapter.base_revision(settings.revision)
        known["base_revision"] = checkpoint_revision(adapter.base, revision)
    return replace(
        found,
        revision=checkpoint_revision(found.checkpoint, settings.revision),
        settings={**found.settings, **known},
    )


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
        self._told: Callable[[], bool] = lambda: False
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

    def cancelled_by(self, told: Callable[[], bool]) -> None:
        """Set the function that says whether to raise CancelledError between two tokens."""
        self._told = told

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
        how = plan(self._row, question, self._settings, logprobs=logprobs)
        return in_batches(
            list(zip(messages, seeds or (None,) * len(messages), strict=True)),
            length=lambda asked: _expected(asked[0], how.bounds),
            limit=self._limit,
            answer=lambda batch: self._answer(batch, how),
            give_up=lambda asked, why: failed_answer(why, how),
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

        how = plan(self._row, question, self._settings, logprobs=logprobs)
        encoded = self._encode_variants(messages, how)
        if encoded and seeds:
            pairs = zip(encoded, seeds, strict=True)
            encoded = [replace(one, seed=seed) for one, seed in pairs]
        shared = common_length([one.ids for one in encoded]) if encoded else 0
        if len(messages) < 2 or not shared or not covers_images(encoded[0], shared):
            return self.answer_batch(messages, question, logprobs=logprobs, seeds=seeds)
        try:
            prefix = prefill(self._loaded, encoded[0], shared)
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            return self.answer_batch(messages, question, logprobs=logprobs, seeds=seeds)
        go_on = partial(continue_variants, self._loaded, prefix, how=self._decoding(how))
        return in_batches(
            encoded,
            length=lambda one: len(one.ids),
            limit=self._variants_limit,
            answer=lambda batch: [
                self._answered(one, new, how) for one, new in zip(batch, go_on(batch), strict=True)
            ],
            give_up=lambda one, why: failed_answer(why, how),
            free=free_memory,
        )

    def _encode_variants(self, messages: Sequence[Message], how: GenerationPlan) -> list[Any]:
        """Encode messages with one look at their images; empty if that is not possible."""
        encoder = self._loaded.encoder
        if not messages or not all(_paths(one) == _paths(messages[0]) for one in messages):
            return []
        try:
            first = encoder.encode(messages[0], ImageSet(how.bounds), how.bounds)
        except OSError:
            return []
        others = [encoder.encode_like(first, message) for message in messages[1:]]
        return [] if None in others else [first, *others]

    def _answer(
        self, batch: Sequence[tuple[Message, int | None]], how: GenerationPlan
    ) -> list[LocalReply]:
        from .transformer import generate

        images = ImageSet(how.bounds)
        encoded: dict[int, Any] = {}
        answers: dict[int, LocalReply] = {}
        for at, (message, seed) in enumerate(batch):
            try:
                one = self._loaded.encoder.encode(message, images, how.bounds)
                encoded[at] = replace(one, seed=seed)
            except OSError as error:
                answers[at] = failed_answer(f"{type(error).__name__}: {error}", how)
        asked = list(encoded.values())
        if asked:
            new = generate(self._loaded, asked, self._decoding(how))
            for at, generated in zip(encoded, new, strict=True):
                answers[at] = self._answered(encoded[at], generated, how)
        return [answers[at] for at in range(len(batch))]

    def _decoding(self, how: GenerationPlan) -> Any:
        from .transformer import Decoding

        temperature = self._settings.temperature or 0.0
        return Decoding(how.limit, how.schema, how.logprobs, self._told, temperature)

    def _answered(self, one: Any, new: Any, how: GenerationPlan) -> LocalReply:
        from .transformer import generated_tokens

        encoder = self._loaded.encoder
        text, said = encoder.decode(new.ids), generated_tokens(new, encoder)
        tokens = {"prompt": len(one.ids), "reply": len(new.ids)}
        return spoken(how, one.text, text, new.finish_reason, one.images, tokens, self._who, said)


def spoken(
    how: GenerationPlan,
    prompt: str,
    text: str,
    finish_reason: str,
    images: Sequence[Any],
    tokens: dict[str, int],
    who: dict[str, str],
    its_tokens: GeneratedTokens | None = None,
) -> LocalReply:
    """Return a reply without its thought, and its record."""
    marks = how.family.thought
    opened = opened_by(prompt, marks) if marks else ""
    said = split_thought(opened + text)
    return LocalReply(
        said.answer.strip(),
        Recorded(
            space=how.space,
            finish_reason=finish_reason,
            images=tuple(images),
            thought=said.thought,
            ends_in_thought=said.ends_inside,
            tokens=tokens,
            model=who,
            token_logprobs=its_tokens and answer_tokens(its_tokens, opened, text),
        ),
    )


def failed_answer(why: str, how: GenerationPlan) -> LocalReply:
    """Return the reply of a failed call, which the host's next run repeats."""
    log.error("FindIt: no answer: %s", why)
    return LocalReply(f"{FAILED} via API. {why}", Recorded(space=how.space, call={"error": why}))


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
    from .device import choose, this_machine
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
    how = plan(row, question, RunSettings())
    return _encoder(how.family, checkpoint).encode(message, ImageSet(how.bounds), how.bounds)


def _encoder(family: LocalFamily, checkpoint: str) -> MessageEncoder:
    try:
        from .encoding import MessageEncoder
        from .transformer import load_processor

        return MessageEncoder(load_processor(checkpoint, local_files_only=True), family)
    except (ImportError, OSError) as error:
        raise ProcessorMissingError(f"{checkpoint}: {str(error).splitlines()[0]}") from None
