"""Models that this machine serves itself, as VLMEvalKit's: ``--serve``, and its ``--use-vllm``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..core.identity import Answering, Described
from ..core.question import Question
from ..engine.backend import Backend
from ..engine.config import ModelEntry
from ..engine.served import ServedBackend, ServedModel, served_model
from ..engine.server_programs import Serving
from ..engine.serving import serve
from .api import _ChatAPI, settings_of

_OF_CALLS = ("retry", "timeout")


class FindItServed(_ChatAPI):
    """A checkpoint that is started as OpenAI-compatible servers on this machine's GPUs.

    Args:
        model: the name by which results go.
        checkpoint: a folder or an identifier (default: that of the name).
        row: the row of the model table that it is run like (default: that of the name).
        serve: the program, a row of :data:`..engine.serving.PROGRAMS`.
        gpus, tensor_parallel, server_arguments: as of :class:`..engine.serving.Serving`.
        log_folder: where the servers' logs go.
        space: the coordinate space, where the row's is not meant.
        settings: the fields of :class:`..engine.served.ServedSettings`; ``retry`` and ``timeout``
            of calls.

    Raises:
        ServingError: a server does not come up.
        ValueError: something of this cannot be.
    """

    takes_space = True

    def __init__(self, model: str, log_folder: str = "outputs/servers", **given: Any) -> None:
        served, calls = _served(model, given)
        living = serve(served.servers(Path(log_folder)))
        super().__init__(served.chat(), living, settings_of(calls))

    @classmethod
    def backend(cls, calls: int, model: str, log_folder: str = "", **given: Any) -> Backend:
        """Who answers a run with the constructor's arguments, so many calls at a time."""
        served, how = _served(model, given)
        said = settings_of(how)
        servers = max(len(served.serving.devices()), 1)
        service = {"timeout": said.timeout, "policy": said.policy}
        return ServedBackend(served, Path(log_folder), max(calls // servers, 1), service)

    @classmethod
    def describe(
        cls, question: Question, model: str, log_folder: str = "", **given: Any
    ) -> Described:
        """What a run with the constructor's arguments is; nothing is started."""
        return _served(model, given)[0].describe(question)

    @classmethod
    def on_this_machine(
        cls, found: Answering, model: str, log_folder: str = "", **given: Any
    ) -> Answering:
        """The same with what the hub says."""
        return _served(model, given)[0].on_this_machine(found)

    @classmethod
    def asked_with(cls, model: str, log_folder: str = "", **given: Any) -> dict[str, Any]:
        """What of the constructor's arguments is part of every call's key."""
        return _served(model, given)[0].key()


def _served(model: str, given: Mapping[str, Any]) -> tuple[ServedModel, dict[str, Any]]:
    """The model, and the settings of its calls."""
    rest = dict(given)
    calls = {name: rest.pop(name) for name in _OF_CALLS if name in rest}
    serving = Serving(
        rest.pop("serve", "vllm"),
        rest.pop("gpus", None),
        rest.pop("tensor_parallel", 1),
        tuple(rest.pop("server_arguments", ())),
    )
    serving.check()
    said = {name: rest.pop(name, None) for name in ("checkpoint", "row", "space")}
    return served_model(ModelEntry(model, settings=rest, **said), serving), calls


def served_arguments(entry: ModelEntry, serving: Serving, log_folder: Path) -> dict[str, Any]:
    """The arguments of :class:`FindItServed` for a model of a command line."""
    return {
        "model": entry.name,
        "checkpoint": entry.checkpoint,
        "row": entry.row,
        "serve": serving.program,
        "gpus": serving.gpus,
        "tensor_parallel": serving.tensor_parallel,
        "server_arguments": list(serving.arguments),
        "log_folder": str(log_folder),
    }
