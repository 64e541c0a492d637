"""Models of a sweep that this machine serves itself (``--serve``).

They are asked like other servers; their identity has the checkpoint, as for local models, and the
server program with its version.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cache, cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..boxes import Space, SpaceError, stated_space
from ..core import no_effect, read_json, validate
from ..models import (
    ANY_CHECKPOINT,
    NEEDED_FIELDS,
    Adapter,
    Bounds,
    Budget,
    ChatModel,
    Endpoint,
    LocalFamily,
    ModelEntry,
    ModelRow,
    RunSettings,
    adapter_of,
    base_settings,
    bounds_in_request,
    chat_model,
    check_like,
    find_model,
    judge_loading,
    known_revision,
    local_names,
    meant_model,
    once_a_variant,
    options_to,
    refuse_missing,
    report_of_log,
    revision_of,
    row_of_checkpoint,
    sampling_of,
    space_or_variable,
    space_within,
    stated_bounds,
    token_limit,
    unknown_bounds,
)
from ..protocol import Answering, DatasetVariant, Described
from ..serving import (
    ALL_TOKENS_FIELD,
    BOUNDS_FIELD,
    PROGRAMS,
    TEMPLATE_FIELD,
    LocalServers,
    ServeOptions,
    ServerProgram,
    programs_with,
    start_servers,
)
from .backend import CallOptions
from .calls import of_answers
from .deployment import at_its_place, naming_model
from .over_http import OverHttp
from .own_models import refuse_other_checkpoint

if TYPE_CHECKING:
    from .http_backend import HttpService

_BOUNDS = ("min_pixels", "max_pixels", "patches")
_ELSEWHERE = {
    "batch_size": "--api-nproc says how many calls each server has at once",
    "device": "--gpus says on which GPUs servers run",
    "engine": "the server's program computes its models",
    "attention": "--serve-args hands flags to the server's program",
}


@dataclass(frozen=True)
class ServedModel:
    """A checkpoint served by a program on this machine."""

    name: str
    checkpoint: str
    row: ModelRow
    serving: ServeOptions
    settings: RunSettings

    @cached_property
    def adapter(self) -> Adapter | None:
        return adapter_of(self.checkpoint, self.settings.merge_adapter)

    @property
    def program(self) -> ServerProgram:
        return PROGRAMS[self.serving.program]

    @property
    def _family(self) -> LocalFamily:
        assert self.row.local is not None
        return self.row.local

    @property
    def _weights(self) -> tuple[str, str | None]:
        """Return the checkpoint, or the base of an adapter, and its revision at the hub."""
        adapter = self.adapter
        revision = self.settings.revision
        if adapter is None:
            return self.checkpoint, revision
        return adapter.base, adapter.base_revision(revision)

    def chat(self) -> ChatModel:
        """Return how its servers are asked; ValueError for what they cannot be asked."""
        settings = self.settings
        program = self.program
        bounds = [name for name in _BOUNDS if getattr(settings, name)]
        if bounds and BOUNDS_FIELD not in program.fields:
            why = f"--serve {program.name} accepts no image bounds in a request"
            raise ValueError(no_effect(bounds[0], why, _type_another(BOUNDS_FIELD)))
        stated_bounds(self.row, settings)  # refuses those of other processors
        template = {**self._family.template, **settings.template}
        sent: dict[str, Any] = {TEMPLATE_FIELD: template} if template else {}
        if self._family.preserves:
            sent[ALL_TOKENS_FIELD] = False
        for name in sent.keys() - program.fields.keys():
            raise ValueError(
                f"--serve {program.name}: it takes no {name}, which {NEEDED_FIELDS[name]}. "
                f"{_type_another(name)}"
            )
        sent |= sampling_of(settings)
        served_name = program.served_name(self.name, self.checkpoint, settings.revision)
        limit = settings.max_new_tokens
        row = None if self.row is ANY_CHECKPOINT else self.row.name
        chat = chat_model(self.name, None, served_name, settings.space, sent, limit, row)
        assert chat.known is not None
        known = once_a_variant(partial(self._space, chat.known))
        space = chat.space
        if settings.space is None:
            space = once_a_variant(partial(self._space_or_variable, known))
        return replace(
            chat,
            row=self.row,
            thoughts=self.row.thoughts,
            space=space,
            known=known,
            by_variant=self._processor,
            started=program.name,
        )

    def _bounds(self, variant: DatasetVariant) -> Bounds:
        """Return the image bounds in force; empty if the server decides."""
        if BOUNDS_FIELD not in self.program.fields:
            return Bounds()
        bounds = stated_bounds(self.row, self.settings)
        return replace(self._family.bounds(variant).overridden(bounds), two_step=False)

    def _processor(self, variant: DatasetVariant) -> Mapping[str, Any]:
        return bounds_in_request(self._bounds(variant), self._family.pixels_counted)

    def _space(self, usual: Callable[[DatasetVariant], Space], variant: DatasetVariant) -> Space:
        """Return the row's space within the bounds in force; ``usual`` if none are known."""
        space = self.row.space(variant)
        if space.kind != "smart_resize":
            return space
        weights, _ = self._weights
        for bounds in (self._bounds(variant), _bounds_of_files(Path(weights))):
            if bounds.min_pixels is not None and bounds.max_pixels is not None:
                return space_within(space, bounds)
        if variant.in_boxes and BOUNDS_FIELD not in self.program.fields:
            raise unknown_bounds(self.name, space, f"\n{_type_another(BOUNDS_FIELD)}")
        return usual(variant)  # its error says what to type

    def _space_or_variable(
        self, known: Callable[[DatasetVariant], Space], variant: DatasetVariant
    ) -> Space:
        """Return the known space; where its bounds are not known, a variable may state them."""
        try:
            return known(variant)
        except SpaceError:
            said = space_or_variable(None, self.row)
            if said is None:
                raise
            return stated_space(said)

    def describe(self, variant: DatasetVariant) -> Described:
        described = self.chat().describe(variant, [])
        answering = described.answering
        asked = self.settings
        checkpoint = self.checkpoint
        more = {"server arguments": list(self.serving.arguments), "dtype": asked.dtype}
        base = base_settings(checkpoint, asked.revision, asked.merge_adapter)
        settings = {**answering.settings, **{k: v for k, v in more.items() if v}, **base}
        who: Any = {"checkpoint": checkpoint, "server": self.program.described}
        revision = known_revision(checkpoint, asked.revision)
        answering = replace(answering, **who, revision=revision, settings=settings)
        named = {"checkpoint": revision or checkpoint, "server": self.serving.program}
        return described._replace(answering=answering, named=named)

    def on_this_machine(self, answering: Answering) -> Answering:
        """Add the commit from the hub, if its client is installed."""
        weights, revision = self._weights
        if answering.settings.get("base") == weights:
            known = {"base_revision": _revision_at_hub(weights, revision)}
            return replace(answering, settings={**answering.settings, **known})
        if answering.revision is not None:
            return answering
        known_there = _revision_at_hub(self.checkpoint, self.settings.revision)
        return replace(answering, revision=known_there)

    @property
    def stated(self) -> Mapping[str, Any]:
        """The settings that were stated and answers depend on."""
        values = {name: value for name, value in asdict(self.settings).items() if value}
        return of_answers(values)

    def started(self, log_folder: Path) -> Callable[[], list[Endpoint]]:
        """Start its servers if needed; return a function that lists the servers that answer."""
        refuse_missing(self.checkpoint)
        flags = () if self.adapter is None else tuple(self.adapter.vllm_flags(self.name))
        weights, revision = self._weights
        options = log_folder, revision, self.settings.dtype, flags
        servers = start_servers(
            LocalServers(self.serving, weights, self.name, *options, judge=_refusal)
        )

        def living() -> list[Endpoint]:
            return [Endpoint(s.url, label=s.name, gpus=s.gpus) for s in servers.living()]

        return living


def _refusal(log_text: str) -> str | None:
    """Say which weights a program that loads with transformers has not found."""
    return judge_loading(report_of_log(log_text)).refusal


def _type_another(name: str) -> str:
    """Return which programs to start instead of one that does not take a field."""
    return f"Type --serve {' or --serve '.join(programs_with(name))}"


@cache  # all cells share it, and the hub may not answer
def _revision_at_hub(checkpoint: str, revision: str | None) -> str | None:
    with suppress(ImportError, OSError, ValueError):
        from huggingface_hub import hf_hub_download

        path = hf_hub_download(checkpoint, "config.json", revision=revision)
        return revision_of(checkpoint, path)
    return None


def _bounds_of_files(checkpoint: Path) -> Bounds:
    for name in ("preprocessor_config.json", "processor_config.json"):
        with suppress(OSError, ValueError, AttributeError):
            processor = read_json(checkpoint / name)
            processor = processor.get("image_processor", processor)
            size = processor.get("size") or {}
            least = processor.get("min_pixels") or size.get("shortest_edge")
            return Bounds(least, processor.get("max_pixels") or size.get("longest_edge"))
    return Bounds()


def served_model(entry: ModelEntry, serving: ServeOptions) -> ServedModel:
    """Return a model as this machine serves it; ValueError if it cannot."""
    if entry.checkpoint is not None:
        who = entry.name, entry.checkpoint, entry.like
        row = row_of_checkpoint(*who, space_stated=entry.space is not None)
        checkpoint = entry.checkpoint
    elif entry.name in local_names():
        row, checkpoint = local_names()[entry.name]
    else:
        near = meant_model(entry.name, local_names())
        raise ValueError(f"unknown local model {entry.name!r}{near}")
    limit, given = token_limit({"space": entry.space, **entry.settings})
    for name in given.keys() & _ELSEWHERE.keys():
        raise ValueError(no_effect(name, f"under --serve, {_ELSEWHERE[name]}"))
    checkpoint = str(given.pop("model_path", checkpoint))
    settings = validate(RunSettings, {**given, "max_new_tokens": limit})
    model = ServedModel(entry.name, checkpoint, row, serving, settings)
    if model.adapter is None:
        return model
    if not model.program.takes_adapters:
        raise ValueError(
            f"--serve {serving.program}: {checkpoint} is an adapter. Type --serve vllm, or "
            "leave --serve out"
        )
    if settings.merge_adapter:
        raise ValueError(no_effect("merge_adapter", f"--serve {serving.program} does not merge"))
    model.adapter.vllm_flags(entry.name)  # refuses what it cannot serve
    return replace(model, settings=replace(settings, merge_adapter=False))


class Served(OverHttp):
    """A model that this machine serves; logs go to ``servers`` in the work dir."""

    called = "a model that this machine serves (--serve)"
    uses = OverHttp.uses - {"max_usd"} | options_to("serve") | {"like", "dtype", "gpus"}

    @property
    def serving(self) -> ServeOptions:
        assert self.asking.serving is not None
        return self.asking.serving

    @cached_property
    def model(self) -> ServedModel:
        """The checkpoint, and how it is served; ValueError if it cannot be."""
        return served_model(self.entry, self.serving)

    def check(self) -> None:
        entry = self.entry
        super().check()
        with at_its_place(entry):
            if entry.checkpoint is not None:
                refuse_other_checkpoint(entry)
            else:
                self._check_known()
        with naming_model(entry):
            refuse_missing(self.model.checkpoint)
            self.model.chat()

    def check_options(self) -> None:
        super().check_options()
        if self.entry.checkpoint is not None:
            with at_its_place(self.entry):
                check_like(self.name, self.entry.checkpoint, self.entry.like)
        with naming_model(self.entry):
            for name in ("headers", "resources"):
                if getattr(self.entry, name):
                    raise ValueError(no_effect(name, "under --serve, FindIt starts the servers"))

    def check_programs(self) -> None:
        if self.asking.asks:  # Calls may be counted on a machine without the program and the GPUs
            self.serving.check()

    def _check_known(self) -> None:
        """Refuse a known model that is not there, or that is said to be like another."""
        row, checkpoint = local_names()[self.name]
        like = self.entry.like
        if like is not None and find_model(like) is not row:
            raise ValueError(
                no_effect(
                    "like",
                    f"{self.name} is asked as its own row says",
                    f"Leave it out, or name a checkpoint: {self.name}=CHECKPOINT",
                )
            )
        refuse_missing(checkpoint)

    @property
    def stated(self) -> Mapping[str, Any]:
        return self.model.stated

    def describe(self, variant: DatasetVariant) -> Described:
        return self.model.describe(variant)

    def on_this_machine(self, answering: Answering) -> Answering:
        return self.model.on_this_machine(answering)

    def service(self) -> HttpService:
        from .http_backend import HttpService

        servers = self.model.started(self.asking.work_dir / "servers")
        how = self.asking.calls.timeout, Budget(), self.asking.policy
        return HttpService(self.model.chat(), servers, *how)

    @property
    def calls_at_a_time(self) -> int:
        # As many as the program does best with, unless somebody said how many.
        stated = self.asking.calls.threads
        return self.model.program.calls if stated == CallOptions().threads else stated
