"""Models of a sweep that this machine serves itself (``--serve``): who answers, and how.

They are asked as servers of one's own are.  What a run of them is says the checkpoint as of a model
in this process, and the program with its version.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, fields, replace
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

from ..boxes.spaces import Space, space_from
from ..core.config import Config, Count, Name, Values, config_from
from ..core.identity import Answering, Described
from ..core.question import Question
from ..core.settings import settings_from
from ..core.spelling import nearest
from ..models.checkpoints import row_of_checkpoint
from ..models.families import Bounds, space_within
from ..models.http.chat import ChatModel, server_model, token_limit
from ..models.http.services import server_space
from ..models.revision import known_revision, refuse_missing, revision_of
from ..models.row import ModelRow
from ..models.table import local_names
from .answering import as_described
from .backend import Backend, WorkResult, not_loaded
from .calls import given_key
from .cancel import CancelToken
from .config import Inference, ModelEntry
from .plan import WorkItem
from .server_programs import PROGRAMS, Serving
from .serving import LocalServers, ServingError, serve

_ELSEWHERE = {
    "device": "--gpus says on which GPUs servers run",
    "attention": "--serve-args hands flags to the server's program",
}


@dataclass(frozen=True, slots=True)
class ServedSettings(Config):
    """What may be said of a model that is served here; None leaves it to the row or checkpoint."""

    called: ClassVar[str] = "setting under --serve"
    revision: Name | None = None
    dtype: Name | None = None
    min_pixels: Count | None = None
    max_pixels: Count | None = None
    patches: Count | None = None
    max_new_tokens: Count | None = None
    template: Values = field(default_factory=dict)

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> ServedSettings:
        """The settings that are given by name.

        Raises:
            ValueError: there is no such setting, or a server would not heed it.
        """
        limit, rest = token_limit(given)
        for name in rest.keys() & _ELSEWHERE.keys():
            raise ValueError(f"{name} has no effect under --serve: {_ELSEWHERE[name]}")
        rest.pop("batch_size", None)  # servers make their own batches
        return config_from(cls, {**rest, "max_new_tokens": limit})


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A checkpoint that is served by a program on this machine.

    ``name`` is that of the results, ``row`` says how it is asked and read; ``space`` is the
    coordinate space, where the row's is not meant.
    """

    name: str
    checkpoint: str
    row: ModelRow
    serving: Serving
    settings: ServedSettings
    space: str | Mapping[str, Any] | None = None

    def chat(self) -> ChatModel:
        """How its servers are asked: greedily, within the row's image bounds where they take them.

        Raises:
            ValueError: bounds are said, and the program takes none.
        """
        assert self.row.local is not None
        family, program = self.row.local, PROGRAMS[self.serving.program]
        said = [self.settings.min_pixels, self.settings.max_pixels, self.settings.patches]
        if any(one is not None for one in said) and not program.takes_bounds:
            raise ValueError(
                f"min_pixels, max_pixels and patches have no effect under --serve {program.name}: "
                "it takes no image bounds with a request. --serve vllm does"
            )
        template = {**family.template, **self.settings.template}
        sent: dict[str, Any] = {"chat_template_kwargs": template} if template else {}
        if family.keeps:
            sent.update(program.keeps_tokens)
        called = program.served_name(self.name, self.checkpoint)
        limit = self.settings.max_new_tokens
        made = server_model(self.name, called, self.space, sent, limit, self.row.name)
        asked = made.manner
        return replace(
            made,
            row=self.row,
            space=self._space,
            manner=lambda space: replace(asked(space), by_question=self._processor),
        )

    def _bounds(self, question: Question) -> Bounds:
        """The image bounds in force; empty where they are the server's."""
        assert self.row.local is not None
        if PROGRAMS[self.serving.program].takes_bounds:
            wanted = {
                name: getattr(self.settings, name)
                for name in ("min_pixels", "max_pixels", "patches")
            }
            return replace(self.row.local.bounds(question).overridden(wanted), two_step=False)
        return Bounds()

    def _processor(self, question: Question) -> Mapping[str, Any]:
        """The field of a request that bounds what its images are resized to."""
        assert self.row.local is not None
        bounds, counted = self._bounds(question), self.row.local.pixels_counted
        if bounds.patches is not None:
            said: dict[str, Any] = {"crop_to_patches": True, "max_patches": bounds.patches}
        else:
            areas = {"min_pixels": bounds.min_pixels, "max_pixels": bounds.max_pixels}
            said = {name: area * counted for name, area in areas.items() if area is not None}
        return {"mm_processor_kwargs": said} if said else {}

    def _space(self, question: Question) -> Space:
        said = settings_from({"space": self.space}).space
        if said is not None:
            return space_from(said)
        space, bounds = self.row.space(question), self._bounds(question)
        if space.kind != "smart_resize" or self.row.states_space:
            return space
        if bounds.min_pixels is None or bounds.max_pixels is None:
            bounds = processors_own(Path(self.checkpoint)) or bounds
        if bounds.min_pixels is None or bounds.max_pixels is None:
            return server_space(self.row.name, None)(question)  # says what to type
        return space_within(space, bounds)

    def describe(self, question: Question) -> Described:
        """What a run of it is, as far as is known without asking the hub."""
        found, space = self.chat().describe(question, [])
        settings = dict(found.settings)
        if self.serving.arguments:
            settings["server arguments"] = list(self.serving.arguments)
        if self.settings.dtype is not None:
            settings["dtype"] = self.settings.dtype
        return Described(
            replace(
                found,
                checkpoint=self.checkpoint,
                revision=known_revision(self.checkpoint, self.settings.revision),
                settings=settings,
                server=PROGRAMS[self.serving.program].described,
            ),
            space,
        )

    def key(self) -> dict[str, Any]:
        """What is part of its calls' keys: another program may answer otherwise."""
        said = {
            one.name: value
            for one in fields(self.settings)
            if (value := getattr(self.settings, one.name))
        }
        known = known_revision(self.checkpoint, self.settings.revision) or self.checkpoint
        return {**given_key(said, known), "server": self.serving.program}

    def on_this_machine(self, found: Answering) -> Answering:
        """The same run with the commit that the hub says, where its client is installed."""
        if found.revision is not None:
            return found
        return replace(found, revision=_revision_at_hub(self.checkpoint, self.settings.revision))

    def servers(self, log_folder: Path) -> LocalServers:
        """Its servers, not started yet.

        Raises:
            ValueError: they cannot be.
        """
        refuse_missing(self.checkpoint)
        how = self.settings.revision, self.settings.dtype
        return LocalServers(self.serving, self.checkpoint, self.name, log_folder, *how)


@cache  # of all cells, and of a hub that does not answer
def _revision_at_hub(checkpoint: str, wanted: str | None) -> str | None:
    with suppress(ImportError, OSError, ValueError):
        from huggingface_hub import hf_hub_download

        path = hf_hub_download(checkpoint, "config.json", revision=wanted)
        return revision_of(checkpoint, path)
    return None


def processors_own(checkpoint: Path) -> Bounds | None:
    """The image bounds that a checkpoint's own files say; None where there are none here."""
    for name in ("preprocessor_config.json", "processor_config.json"):
        with suppress(OSError, ValueError, AttributeError):
            said = json.loads((checkpoint / name).read_text(encoding="utf-8"))
            said = said.get("image_processor", said)
            size = said.get("size") or {}
            least = said.get("min_pixels") or size.get("shortest_edge")
            return Bounds(least, said.get("max_pixels") or size.get("longest_edge"))
    return None


def served_model(entry: ModelEntry, serving: Serving) -> ServedModel:
    """A model of a sweep or a command line as this machine serves it.

    Raises:
        ValueError: no row says how it is run, its checkpoint is not there, or a setting cannot be.
    """
    given = dict(entry.settings)
    if entry.checkpoint is not None:
        row = row_of_checkpoint(entry.name, entry.checkpoint, entry.row)
        checkpoint = entry.checkpoint
    elif entry.name in local_names():
        row, checkpoint = local_names()[entry.name]
    else:
        near = nearest(entry.name, local_names())
        raise ValueError(f"no model {entry.name!r} on this machine{near}")
    given = {**{k: v for k, v in row.settings.items() if k != "space"}, **given}
    checkpoint = str(given.pop("model_path", checkpoint))
    return ServedModel(entry.name, checkpoint, row, serving, ServedSettings.of(given), entry.space)


class ServedBackend:
    """Answers calls by servers that are started when the first call comes.

    They go on for the next items, and end when another model's servers start, or
    :func:`.serving.end` says so.

    Args:
        model: who is served.
        log_folder: the servers' logs go there.
        calls: at a time to each server.
        service: how they are asked: the fields of :class:`.http_backend.Service` beside who.
    """

    def __init__(
        self, model: ServedModel, log_folder: Path, calls: int, service: Mapping[str, Any]
    ) -> None:
        self._model = model
        self._log_folder = log_folder
        self._calls = calls
        self._service = service
        self._asked: Backend | None = None

    @property
    def capacity(self) -> Mapping[str, int]:
        return self._asked.capacity if self._asked is not None else {}

    async def answer(
        self, items: Iterable[WorkItem], cancel: CancelToken
    ) -> AsyncGenerator[WorkResult, None]:
        coming = iter(items)
        first = next(coming, None)
        if first is None or cancel.requested:
            return
        # Not at the top: what asks is not imported where nothing is asked.
        from .http_backend import HttpBackend, Service

        try:
            servers = self._model.servers(self._log_folder)
            with cancel.on_request(partial(servers.close, wait=False)):
                living = await asyncio.to_thread(serve, servers)
        except (ServingError, ValueError) as error:
            if not cancel.requested:
                yield not_loaded(first, error)
            return
        service = Service(self._model.chat(), living, **self._service)
        self._asked = HttpBackend(lambda: service, self._calls, each=True)
        async with aclosing(self._asked.answer(chain([first], coming), cancel)) as results:
            async for result in results:
                yield result


class ServedHost:
    """Answers with models that are served here.

    Args:
        serving: how.
        inference: how calls are made.
        work_dir: the servers' logs go into ``servers`` there.
    """

    def __init__(self, serving: Serving, inference: Inference, work_dir: Path) -> None:
        serving.check()
        self._serving = serving
        self._inference = inference
        self._log_folder = work_dir / "servers"

    def check(self, entry: ModelEntry) -> None:
        """Refuse what could not be served."""
        where = f"line {entry.line}: " if entry.line else ""
        try:
            if entry.headers or entry.resources:
                raise ValueError("headers and resources have no effect under --serve")
            refuse_missing(self._model(entry).checkpoint)
            self._model(entry).chat()
        except ValueError as error:
            raise ValueError(f"{where}{entry.name}: {error}") from None

    def answered_by(self, entry: ModelEntry, question: Question) -> object:
        return as_described(self, entry, question)

    def settings(self, entry: ModelEntry) -> Mapping[str, Any]:
        return self._model(entry).key()

    def describe(self, entry: ModelEntry, question: Question) -> Described:
        return self._model(entry).describe(question)

    def on_this_machine(self, entry: ModelEntry, found: Answering) -> Answering:
        return self._model(entry).on_this_machine(found)

    @property
    def version(self) -> Mapping[str, str]:
        return {}

    def backend(self, entry: ModelEntry) -> Backend:
        inference, how = self._inference, {"timeout": self._inference.timeout}
        return ServedBackend(self._model(entry), self._log_folder, inference.threads, how)

    def _model(self, entry: ModelEntry) -> ServedModel:
        return served_model(entry, self._serving)
