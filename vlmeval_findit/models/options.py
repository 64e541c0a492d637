"""How models are chosen and asked, in the words of the command line."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from ..boxes.spaces import space_from
from ..core.formatting import nearest
from ..core.predictions import check_model_name
from ..core.settings import settings_from
from ..serving.programs import ServeOptions
from .entry import ModelEntry
from .http.batch.records import BatchKind
from .http.chat import extra_fields, server_name
from .http.providers.table import find_provider
from .model_table import like_its_base
from .prices import prices_from

DTYPES = ("bfloat16", "float16", "float32", "float64", "half", "float")
"""Types of the weights on this machine; programs of servers have names of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelOptions:
    """The options that ``run``, ``search``, ``sweep`` and ``probe`` share; None: not set."""

    like: str | None = None
    system: str | None = None  # file
    prompt_template: str | None = None  # file
    space: str | None = None  # a name, or JSON with bounds
    base_url: str | None = None  # several with commas between them, or @FILE
    provider: str | None = None
    batch: BatchKind | None = None
    key: str | None = None
    header: tuple[str, ...] = ()  # NAME: VALUE
    extra_body: str | None = None  # JSON
    temperature: float | None = None
    samples: int | None = None
    batch_size: int | None = None
    dtype: str | None = None
    device: str | None = None
    serve: str | None = None
    gpus: float | None = None
    tensor_parallel: int | None = None
    serve_args: str | None = None
    executor: str = "local"
    replicas: int | None = None
    api_nproc: int | None = None
    timeout: float | None = None
    max_usd: float | None = None
    prices: str | None = None  # IN,OUT
    logprobs: bool = False
    force: bool = False
    skip_missing_images: bool = False
    dry_run: bool = False

    @property
    def specified(self) -> list[str]:
        """Names of the options that are set."""
        values = {option: getattr(self, option.name) for option in fields(self)}
        return [option.name for option, value in values.items() if value != option.default]

    @property
    def space_value(self) -> Any:
        """The coordinate space as a name or a mapping; None: not set."""
        return None if self.space is None else settings_from({"space": self.space}).space

    def entry(self, model: str) -> ModelEntry:
        """Return the model of ``NAME``, ``NAME=CHECKPOINT`` or, elsewhere, ``NAME=SERVED``.

        Raises:
            ValueError: the name or an option cannot be used.
        """
        name, given, where = model.partition("=")
        if self.provider is None and (self.base_url or self.batch):
            name, where = server_name(model)
        if self.provider or self.base_url or self.batch:
            made = ModelEntry(check_model_name(name), served=where or None)
        else:
            made = ModelEntry(check_model_name(name), checkpoint=where if given else None)
        return self.applied(made)

    def applied(self, entry: ModelEntry) -> ModelEntry:
        """Return a model with the options that are set; they override a sweep's file.

        Raises:
            ValueError: an option cannot be used, or the model is asked at another provider.
        """
        provider = entry.provider
        if self.provider is not None:
            provider = find_provider(self.provider).name
            if entry.provider not in (None, provider):
                raise ValueError(
                    f"--provider {provider}: {entry.name} is to be asked at {entry.provider} by "
                    "its entry"
                )
            if entry.checkpoint is not None:
                raise ValueError(
                    f"--provider {provider}: {entry.name} has a checkpoint, which is of a model "
                    "on this machine"
                )
        if self.space is not None:
            space_from(self.space_value)
        if self.dtype is not None and self.dtype not in DTYPES and not self.serve:
            raise ValueError(f"--dtype {self.dtype}{nearest(self.dtype, DTYPES)}")
        settings = {"temperature": self.temperature, "dtype": self.dtype}
        resources = {"batch_size": self.batch_size, "device": self.device}
        if self.like is None:
            entry = like_its_base(entry)
        return replace(
            entry,
            like=self.like or entry.like,
            system=self.system or entry.system,
            prompt_template=self.prompt_template or entry.prompt_template,
            space=self.space_value or entry.space,
            provider=provider,
            base_url=self.base_url or entry.base_url,
            prices=entry.prices if self.prices is None else prices_from(self.prices),
            settings={**entry.settings, **extra_fields(self.extra_body), **_given(settings)},
            resources={**entry.resources, **_given(resources)},
        )

    def serving(self, file: ServeOptions | None = None) -> ServeOptions | None:
        """Return how this machine serves models; options override a sweep's ``file``.

        Raises:
            ValueError: it cannot be; the message says what to type.
        """
        if self.serve is None and file is None:
            return None
        made = file
        if made is None or self.serve not in (None, made.program):
            assert self.serve is not None
            made = ServeOptions(self.serve)
        if self.gpus is not None:
            if self.gpus != int(self.gpus):
                raise ValueError(
                    f"--gpus {self.gpus:g}: a whole number of this machine's, for --serve"
                )
            made = replace(made, gpus=int(self.gpus))
        if self.tensor_parallel is not None:
            made = replace(made, tensor_parallel=self.tensor_parallel)
        if self.serve_args is not None:
            try:
                made = replace(made, arguments=tuple(shlex.split(self.serve_args)))
            except ValueError as error:
                raise ValueError(f"--serve-args {self.serve_args}: {error}") from None
        return made


def _given(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def urls_of(base_url: str | None) -> Sequence[str]:
    """Return the addresses of a ``--base-url``."""
    return [url.strip() for url in (base_url or "").split(",") if url.strip()]
