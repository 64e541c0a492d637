"""Models on this machine as VLMEvalKit's: one class for all families."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from vlmeval.smp import get_logger

from ..benchmarks import parse
from ..core import validate
from ..engine import describe_local, local_on_this_machine
from ..models import (
    HostMessage,
    LocalCompletion,
    ModelRow,
    RunSettings,
    answer_from,
    from_host_message,
    load_local,
    local_names,
    name_taken,
    refuse_missing,
    row_of_checkpoint,
    row_to_run,
)
from ..protocol import Answering, DatasetVariant, Described, Message
from .baseline_models import FindItModel, RecordedReply, recorded_reply, variant_of
from .free_questions import FREE_QUESTION, free_message, text_alone

Maker = Callable[..., Any]


class FindItLocalModel(FindItModel):
    """A Hugging Face image-text model on this machine, as a row of the model table says.

    Any number of threads may share it: they are served one after the other.

    Args:
        like: a row of the model table (default: the row that the checkpoint's files decide for).
        model_path: a folder or an identifier (default: the first checkpoint of the row).
        settings: the fields of :class:`..models.local.run_plan.RunSettings`.

    Raises:
        ValueError: an unknown row or setting, or no row is known to fit the checkpoint.
        OSError: the checkpoint does not exist.
    """

    takes_space = True

    def __init__(
        self, like: str | None = None, model_path: str | None = None, **settings: Any
    ) -> None:
        super().__init__()
        known, checkpoint = row_to_run(like, model_path, settings.get("space"))
        refuse_missing(checkpoint)
        self._runner = load_local(checkpoint, known, validate(RunSettings, settings))
        self._lock = threading.RLock()
        get_logger("FindIt").info("FindIt: %s", self._runner)

    @classmethod
    def describe(
        cls,
        variant: DatasetVariant,
        like: str | None = None,
        model_path: str | None = None,
        **settings: Any,
    ) -> Described:
        """Describe a run with the constructor's arguments; nothing is loaded."""
        return describe_local(variant, like, model_path, **settings)

    @classmethod
    def on_this_machine(cls, answering: Answering, **arguments: Any) -> Answering:
        """Add the device and the hub's revision; the model is not loaded."""
        return local_on_this_machine(answering, **arguments)

    def cancelled_by(self, is_stopped: Callable[[], bool]) -> None:
        """Generate no further token once ``is_stopped`` returns true."""
        self._runner.cancelled_by(is_stopped)

    def generate(self, message: Any, dataset: str | None = None) -> RecordedReply | str:
        """Return the reply to a message in any form that VLMEvalKit has for it."""
        if variant_of(dataset) is None:
            return self.generate_inner(message, dataset)
        reply: RecordedReply = super().generate(message, dataset)
        return reply

    def generate_inner(
        self, message: HostMessage, dataset: str | None = None
    ) -> RecordedReply | str:
        """Return the reply to one message: to a question that is not FindIt's, its text alone."""
        if dataset is not None and variant_of(dataset) is not None:
            return self.generate_batch([message], dataset)[0]
        asked = [free_message(message)]
        (reply,) = self._replies(self._runner.answer_batch, asked, FREE_QUESTION, {})
        return text_alone(answer_from(reply))

    def generate_batch(
        self, messages: Sequence[HostMessage], dataset: str, **how: Any
    ) -> list[RecordedReply]:
        """Return the replies to a batch of messages.

        With a true ``logprobs`` they record those of their tokens; ``seeds`` are of each message's
        random numbers, if the model samples.
        """
        asked = [*map(from_host_message, messages)]
        return self._replies(self._runner.answer_batch, asked, parse(dataset), how)

    def generate_variants(
        self, messages: Sequence[HostMessage], dataset: str, **how: Any
    ) -> list[RecordedReply]:
        """Return the replies to messages over the same images, which are prefilled once.

        ``dataset`` is any of their names: they have images and frames in common.
        """
        asked = [*map(from_host_message, messages)]
        return self._replies(self._runner.answer_variants, asked, parse(dataset), how)

    def _replies(
        self,
        ask: Callable[..., Sequence[LocalCompletion]],
        messages: Sequence[Message],
        variant: DatasetVariant,
        how: Mapping[str, Any],
    ) -> list[RecordedReply]:
        with self._lock:
            answers = ask(messages, variant, **how)
            return [recorded_reply(answer.text, answer.recorded) for answer in answers]


def local_maker(row: ModelRow, checkpoint: str) -> Maker:
    """Return an entry of ``supported_VLM``."""
    return partial(FindItLocalModel, model_path=checkpoint, like=row.name)


def make_known(
    name: str, checkpoint: str, like: str | None = None, *, space_stated: bool = False
) -> None:
    """Register a checkpoint among the host's models; see :func:`.row_of_checkpoint`.

    Raises ValueError if no row fits, the checkpoint does not exist, or the name is VLMEvalKit's.
    """
    from vlmeval.config import supported_VLM

    known = row_of_checkpoint(name, checkpoint, like, space_stated=space_stated)
    entry = supported_VLM.get(name)
    if entry is not None and not hasattr(getattr(entry, "func", entry), "describe"):
        raise ValueError(name_taken(name, checkpoint))
    supported_VLM[name] = local_maker(known, checkpoint)


def local_models() -> dict[str, Maker]:
    """Return the entries of ``supported_VLM`` for models on this machine."""
    return {name: local_maker(row, checkpoint) for name, (row, checkpoint) in local_names().items()}
