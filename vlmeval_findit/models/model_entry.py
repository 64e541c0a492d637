"""How a model is named and asked: entries of a sweep's file, options of the command line."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Annotated, Any

from ..boxes import stated_space
from ..core import (
    Checked,
    Config,
    ConfigError,
    Expected,
    MisplacedError,
    Name,
    Text,
    Values,
    secret_field,
)
from ..protocol import CustomPrompt, custom_prompt, settings_from, thought_marks
from ..serving import ServeOptions
from ..storage import check_model_name
from .checkpoint_row import decided_row, named_model
from .http.chat import extra_fields, server_name
from .http.providers.provider_table import find_provider
from .http.request_fields import check_temperature, refuse_unlike_json, stated_fields
from .local.refused_settings import refuse_dtype
from .model_table import find_model, meant_model
from .prices import PricesField, prices_from
from .stated_options import StatedOptions, check_value, declared_options

if TYPE_CHECKING:
    pass


def _known_row(name: str) -> str:
    if find_model(name) is None:
        raise ValueError(f"unknown model {name!r}{meant_model(name)}")
    return name


def _space(value: str | Mapping[str, Any]) -> str | Mapping[str, Any]:
    try:
        stated_space(value)
    except TypeError as error:
        raise ValueError(str(error)) from None
    return value


def _thought_marks(value: object) -> object:
    if value is not None:
        thought_marks(value)
    return value


def _recordable(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    refuse_unlike_json(settings)
    check_temperature(settings)
    if "max_usd" in settings:
        raise ValueError("max_usd is of the whole sweep: next to `models`, or --max-usd")
    secret = secret_field(settings)
    if secret is not None:
        raise ValueError(
            f"{secret} looks like a credential, and settings are recorded with the run: use "
            "`headers`, --key, or --header 'NAME: VALUE', which are not, or as a hash"
        )
    return settings


# Keys that a file may have beside ``settings`` and ``resources``, and in which of them they end
_PLACES = {
    name: row.option.place
    for name, row in declared_options().items()
    if row.option.place in ("settings", "resources")
}


# What to do instead of writing a secret into a file
KEYS_OF_SERVICES = "type --key KEY, or set the variable of the provider"


@dataclass(frozen=True, slots=True)
class ModelEntry(Config):
    """A model of a sweep."""

    read_before = tuple(_PLACES)
    instead_of_secret = KEYS_OF_SERVICES

    name: Annotated[Name, Checked(named_model)]  # of its results
    # For its class or, with endpoints, every request; part of every call's key
    settings: Annotated[Values, Checked(_recordable)] = field(default_factory=dict)
    space: Annotated[str | Mapping[str, Any], Checked(_space)] | None = None  # if not its row's
    checkpoint: Name | None = None  # folder or identifier, for a local model
    # Known model whose prompts and coordinates it shares
    like: Annotated[Name, Checked(_known_row)] | None = None
    served: Name | None = None  # name at a server or provider
    # Begins messages: "sweep.yaml, line 3: "; empty for what was typed on a command line
    where: str = field(default="", compare=False)
    # Arguments of its class, like ``settings``, on which no answer depends
    resources: Values = field(default_factory=dict)
    reads_like: Annotated[Name, Checked(_known_row)] | None = None  # see :class:`.Settings`
    # Around its thoughts: two texts, or one with a blank between them
    thought_marks: Annotated[Any, Checked(_thought_marks)] | None = None
    # Who is asked, in its protocol; None: OpenRouter, a server or this machine
    provider: Annotated[Name, Checked(lambda name: find_provider(name).name)] | None = None
    # Addresses of its servers with commas between them, or ``@FILE``; may hold a key
    base_url: Name | None = field(default=None, repr=False)
    prices: PricesField | None = None  # if the model table has none
    system: Name | None = None  # file with a system text
    prompt_template: Name | None = None  # file with a template of the request
    # Sent with every request, and recorded: of what may be a secret a hash
    headers: Mapping[Text, Annotated[str, Expected("a text", secret=True, strict=True)]] | None = (
        field(default=None, repr=False)
    )

    @property
    def prompt(self) -> CustomPrompt | None:
        """The user's words; None: the benchmark's. Raises as :func:`.custom_prompt`."""
        return custom_prompt(self.system, self.prompt_template)


# Keys that a file may have in each model
MODEL_KEYS = (*(key.name for key in fields(ModelEntry) if key.name != "where"), *_PLACES)


def entry_values(entry: Any) -> Any:
    """Return the values of a :class:`ModelEntry` from a file: a name, or a mapping.

    Keys like ``temperature`` become settings or resources; ValueError for a duplicate.
    """
    if isinstance(entry, str):
        return {"name": entry}
    if not isinstance(entry, Mapping):
        return entry
    given = {key: entry[key] for key in _PLACES.keys() & entry.keys()}
    for key, value in given.items():
        if value is not None:
            check_value(key, value)
    values = {key: value for key, value in entry.items() if key not in given}
    for key, value in given.items():
        inner = values.get(_PLACES[key]) or {}
        if not isinstance(inner, Mapping):
            break  # its type is refused afterwards
        if key in inner:
            raise MisplacedError(f"duplicate {key}: it is here and in {_PLACES[key]}", key)
        values[_PLACES[key]] = {**inner, key: value}
    return values


def like_its_checkpoint(model: ModelEntry) -> ModelEntry:
    """Return a model with the row that its checkpoint decides for, if nothing else says it."""
    if model.checkpoint is None or model.like is not None or find_model(model.name) is not None:
        return model
    row = decided_row(model.checkpoint)
    return model if row is None else replace(model, like=row.name)


class ModelOptions(StatedOptions):
    """The options of a command, and what they make of its models."""

    __slots__ = ()

    @property
    def space_value(self) -> Any:
        """The coordinate space as a name or a mapping; None: not set."""
        return None if self.space is None else settings_from({"space": self.space}).space

    def entry(self, model: str) -> ModelEntry:
        """Return the model of ``NAME``, ``NAME=CHECKPOINT`` or, elsewhere, ``NAME=SERVED``."""
        name, given, where = model.partition("=")
        elsewhere = self.provider or self.base_url or self.batch
        if elsewhere and self.provider is None:
            name, where = server_name(model)
        if given or elsewhere:
            check_model_name(name)
        else:
            named_model(name)
        if elsewhere:
            return self.applied(ModelEntry(name, served=where or None))
        return self.applied(ModelEntry(name, checkpoint=where if given else None))

    def applied(self, entry: ModelEntry) -> ModelEntry:
        """Return a model with the options that are set; they override a sweep's file."""
        provider = entry.provider
        if self.provider is not None:
            provider = find_provider(self.provider).name
            what = f"--provider {provider}: {entry.name}"
            if entry.provider not in (None, provider):
                raise ValueError(f"{what} is asked at {entry.provider}, as its entry says")
            if entry.checkpoint is not None:
                raise ValueError(f"{what} has a checkpoint, which only a model on this machine has")
        if self.space is not None:
            stated_space(self.space_value)
        if not self.serve:
            refuse_dtype(self.dtype, "--dtype")
        extra = extra_fields(self.extra_body, provider)
        if self.temperature is not None and "temperature" in extra:
            raise ValueError(
                f'--temperature {self.temperature:g} and "temperature": null in --extra-body '
                "contradict: leave one out"
            )
        try:
            stated = stated_fields(entry.settings, extra)
        except ValueError as error:
            raise ValueError(f"{entry.where}{entry.name}: {error}") from None
        if self.like is None:
            entry = like_its_checkpoint(entry)
        return replace(
            entry,
            **self.going_to("entry"),
            space=self.space_value or entry.space,
            provider=provider,
            prices=entry.prices if self.prices is None else prices_from(self.prices),
            settings={**stated, **self.going_to("settings")},
            resources={**entry.resources, **self.going_to("resources")},
        )

    def serving(self, file: ServeOptions | None = None) -> ServeOptions | None:
        """Return how this machine serves models; options override a sweep's ``file``."""
        if self.serve is None and file is None:
            return None
        serving = file
        if serving is None or self.serve not in (None, serving.program):
            assert self.serve is not None
            serving = ServeOptions(self.serve)
        given = self.going_to("serve")
        if self.gpus is not None:
            given["gpus"] = int(self.gpus)
            if self.gpus != given["gpus"]:
                raise ValueError(f"--gpus {self.gpus:g}: with --serve it should be a whole number")
        if self.serve_args is not None:
            try:
                given["arguments"] = tuple(shlex.split(self.serve_args))
            except ValueError as error:
                raise ValueError(f"--serve-args {self.serve_args}: {error}") from None
        return replace(serving, **given)


def refuse_same_names(entries: Iterable[ModelEntry]) -> None:
    """Refuse, with a ConfigError, models of one name: results, journals and keys are told by it."""
    by_name = dict[str, ModelEntry]()
    for entry in entries:
        first = by_name.setdefault(entry.name, entry)
        if first is not entry:
            asked = [each.served or each.checkpoint for each in (first, entry)]
            which = f" ({' and '.join(map(str, asked))})" if None not in asked else ""
            raise ConfigError(
                f"{entry.where}two models are called {entry.name}{which}, and results are filed by "
                "that name. Type another name for one: --model OTHER=… (in a file, `name`)"
            )


def urls_of(base_url: str | None) -> Sequence[str]:
    """Return the addresses of a ``--base-url``."""
    return [url.strip() for url in (base_url or "").split(",") if url.strip()]
