"""Models on this machine as VLMEvalKit's: one class for all families."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from vlmeval.smp import get_logger

from ..core import refuse_unknown
from ..engine import describe_local, local_on_this_machine, refuse_loading
from ..models import (
    HostMessage,
    ModelRow,
    RunSettings,
    from_host_message,
    load_local_client,
    local_names,
    name_taken,
    names_of_settings,
    refuse_missing,
    row_of_checkpoint,
    row_to_run,
    run_settings,
)
from ..protocol import Answering, DatasetVariant, Described, ModelClient, refused_if_it_quotes
from .baseline_models import FindItModel, RecordedReply, recorded_reply, variant_of
from .free_questions import FREE_QUESTION, free_message, text_alone

Maker = Callable[..., Any]


class FindItLocalModel(FindItModel):
    """A Hugging Face image-text model on this machine, as a row of the model table says.

    Any number of threads may share it: they are served one after the other.

    Args:
        like: a row of the model table (default: the row that the checkpoint's files decide for).
        model_path: a folder or an identifier (default: the first checkpoint of the row).
        settings: the fields of :class:`..models.local.run_settings.RunSettings`.

    Raises:
        ValueError: an unknown row or setting, or no row is known to fit the checkpoint.
        OSError: the checkpoint does not exist.
    """

    takes_space = True

    def __init__(
        self, like: str | None = None, model_path: str | None = None, **settings: Any
    ) -> None:
        super().__init__()
        _refuse_unknown(settings)
        self._client = load_local_client(like, model_path, **settings)
        self._lock = threading.RLock()
        get_logger("FindIt").info("FindIt: %s", self._client.runner)

    @classmethod
    def check(cls, like: str | None = None, model_path: str | None = None, **settings: Any) -> None:
        """Refuse the constructor's arguments, as far as files and tables say; nothing is loaded."""
        _refuse_unknown(settings)
        row, checkpoint = row_to_run(like, model_path, settings.get("space"))
        refuse_missing(checkpoint)
        refuse_loading(row, checkpoint, run_settings(settings))

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

    def client(self) -> ModelClient:
        return self._client

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
        variant = variant_of(dataset)
        is_free = variant is None
        asked = free_message(message) if is_free else from_host_message(message)
        with self._lock:
            (answer,) = self._client.runner.answer_batch([asked], variant or FREE_QUESTION)
        answer = refused_if_it_quotes(answer)
        return text_alone(answer) if is_free else recorded_reply(answer)


def _refuse_unknown(settings: Mapping[str, Any]) -> None:
    refuse_unknown(settings, ["like", "model_path", *names_of_settings(RunSettings)])


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
