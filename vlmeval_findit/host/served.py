"""Models served on this machine as VLMEvalKit's: ``--serve``, and its own ``--use-vllm``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from ..core.config import config_from
from ..core.identity import Answering, Described
from ..core.question import Question
from ..engine.backend import Backend
from ..engine.http_backend import HttpBackend
from ..engine.serve_backends import ServedModel, served_model
from ..models.entry import ModelEntry
from ..serving.programs import ServeOptions
from .api import ApiSettings, _ChatAPI, settings_of

_LOGS = "outputs/servers"
_OF_CALLS = ("retry", "timeout")


class FindItServed(_ChatAPI):
    """A checkpoint that is started as OpenAI-compatible servers on this machine's GPUs.

    Args:
        model: name of the results.
        log_folder: of the servers.
        serve: the program, or the fields of :class:`..serving.programs.ServeOptions`.
        checkpoint: a folder or an identifier (default: of the name).
        like: known model whose prompts and coordinates it shares (default: of the name).
        space: the coordinate space (default: the row's).
        settings: as of a model in this process; ``retry`` and ``timeout`` of calls.

    Raises:
        ServingError: a server does not start.
        ValueError: an argument is invalid.
    """

    takes_space = True

    def __init__(self, model: str, log_folder: str = _LOGS, **arguments: Any) -> None:
        served, calls = _served(model, **arguments)
        super().__init__(served.chat(), served.started(Path(log_folder)), calls)

    @classmethod
    def backend(cls, calls: int, log_folder: str = _LOGS, **arguments: Any) -> Backend:
        """Return the backend of a run with the constructor's arguments, ``calls`` at a time."""
        served, how = _served(**arguments)
        each = max(calls // len(served.serving.devices()), 1)
        said: dict[str, Any] = {"timeout": how.timeout, "policy": how.policy}
        return HttpBackend(partial(served.service, Path(log_folder), **said), each)

    @classmethod
    def describe(cls, question: Question, **arguments: Any) -> Described:
        """Describe a run with the constructor's arguments; nothing is started."""
        return _served(**arguments)[0].describe(question)

    @classmethod
    def on_this_machine(cls, found: Answering, **arguments: Any) -> Answering:
        """Add the revision from the hub."""
        return _served(**arguments)[0].on_this_machine(found)

    @classmethod
    def asked_with(cls, **arguments: Any) -> dict[str, Any]:
        """Return the constructor's arguments that are part of every call's key."""
        return _served(**arguments)[0].key()


def _served(
    model: str,
    log_folder: str = _LOGS,
    serve: str | Mapping[str, Any] = "vllm",
    checkpoint: str | None = None,
    like: str | None = None,
    space: str | Mapping[str, Any] | None = None,
    **settings: Any,
) -> tuple[ServedModel, ApiSettings]:
    """Return the model and the settings of its calls."""
    calls = {name: settings.pop(name) for name in _OF_CALLS if name in settings}
    serving = config_from(ServeOptions, {"program": serve} if isinstance(serve, str) else serve)
    serving.check()
    entry = ModelEntry(model, settings, checkpoint=checkpoint, like=like, space=space)
    return served_model(entry, serving), settings_of(calls)
