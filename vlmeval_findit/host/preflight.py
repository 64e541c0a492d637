"""Refuse before the host starts: its loop would log an error, skip the dataset and exit with 0."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from vlmeval.config import supported_VLM
from vlmeval.dataset import DATASET_CLASSES, SUPPORTED_DATASETS
from vlmeval.dataset.video_dataset_config import supported_video_datasets

from ..core.formatting import nearest
from ..core.predictions import check_model_name
from ..core.settings import settings_from
from ..core.table_files import is_users_table
from ..models.http.addresses import header_lines, provider_endpoints, server_headers
from ..models.http.providers.provider_table import OPENROUTER
from ..models.http.spending import Budget
from ..models.model_entry import ModelEntry, ModelOptions
from ..serving.programs import ServeOptions
from .api import API_CLASSES, FindItOpenRouter, FindItProvider, FindItServed, FindItServer
from .inference import prepare_run
from .vlmevalkit_entries import entry_of


def preflight(
    models: Sequence[str],
    datasets: Sequence[str],
    mode: str,
    work_dir: Path,
    judge_args: str | None = None,
    limit: int | None = None,
) -> None:
    """Build every FindIt dataset as VLMEvalKit will; raise ValueError for what it would skip."""
    for model in models:
        check_model_name(model)
        if datasets and entry_of(model).cls is None:
            raise ValueError(f"no model {model!r}{nearest(model, supported_VLM)}")
    for name in datasets:
        known = next(c for c in DATASET_CLASSES if name in c.supported_datasets())
        dataset = known(name, judge_args=judge_args, mode=mode)
        if limit is not None:
            dataset.data = dataset.data.iloc[:limit]
        for model in models:
            if mode != "eval":
                prepare_run(dataset, model, work_dir / model)


def check_datasets(names: Iterable[str]) -> None:
    """Raise ValueError for datasets that the host would skip with status 0."""
    for name in names:
        is_known = name in supported_video_datasets or any(
            name in cls.supported_datasets() for cls in DATASET_CLASSES
        )
        if not is_known and not is_users_table(name):
            known = [*SUPPORTED_DATASETS, *supported_video_datasets]
            raise ValueError(f"VLMEvalKit has no dataset {name!r}{nearest(name, known)}")


def add_server(entry: ModelEntry, options: ModelOptions) -> None:
    """Register a model behind OpenAI-compatible servers.

    Args:
        entry: the model; ``settings`` are more fields of every request.
        options: its ``key``, ``timeout`` and ``header`` are used.

    Raises:
        ValueError: the name, a URL, the key or a header is invalid.
    """
    headers = server_headers(options.header)
    maker = partial(FindItServer, **_arguments(entry, options), headers=headers)
    maker()  # refuses invalid arguments now
    # In this process it replaces VLMEvalKit's entry of the same name.
    supported_VLM[entry.name] = maker


def add_served(
    entry: ModelEntry, serving: ServeOptions, log_folder: Path, timeout: float | None
) -> None:
    """Register a model that this machine serves; ``timeout`` is that of a call."""
    supported_VLM[entry.name] = partial(
        FindItServed,
        model=entry.name,
        log_folder=str(log_folder),
        serve=asdict(serving),
        checkpoint=entry.checkpoint,
        like=entry.like,
        timeout=timeout or 600.0,
        retry=6,
        **entry.settings,
    )


def add_settings(entry: ModelEntry) -> None:
    """Add settings and resources to a model of the host.

    Raises ValueError if the host has no model of this name.
    """
    if entry.name not in supported_VLM:
        raise ValueError(f"no model {entry.name!r}{nearest(entry.name, supported_VLM)}")
    more = {**entry.settings, **entry.resources}
    supported_VLM[entry.name] = partial(supported_VLM[entry.name], **more)


def add_provider(entry: ModelEntry, options: ModelOptions) -> None:
    """Register a model of a provider; the arguments are those of :func:`add_server`."""
    headers = header_lines(options.header)
    more: dict[str, Any] = {"provider": entry.provider, "headers": headers}
    # In this process it replaces OpenRouter's entry of the same name.
    supported_VLM[entry.name] = partial(FindItProvider, **_arguments(entry, options), **more)


def _arguments(entry: ModelEntry, options: ModelOptions) -> dict[str, Any]:
    return {
        "model": entry.name,
        "base_url": entry.base_url,
        "served": entry.served,
        "space": settings_from({"space": entry.space}).space,
        "extra_body": dict(entry.settings),
        "like": entry.like,
        "key": options.key,
        "timeout": options.timeout or 600.0,
        "retry": 6,
        "prices": entry.prices,
    }


def share_budget(
    models: Sequence[str], mode: str, max_usd: float | None, timeout: float | None = None
) -> Budget:
    """Let all models over HTTP of a run share a budget and a timeout.

    Raises ValueError if a key is missing, or if no model costs anything.
    """
    host_entries = {model: entry_of(model) for model in models}
    # A class of a --config file overrides the table's entry of the same name.
    entries = [
        entry
        for model, entry in zip(models, map(supported_VLM.get, models), strict=True)
        if entry is not None and host_entries[model].cls is getattr(entry, "func", entry)
    ]
    over_http = [entry for entry in entries if getattr(entry, "func", None) in API_CLASSES]
    if max_usd is not None and not (over_http and max_usd > 0):
        raise ValueError("--max-usd takes US dollars, and limits models over an API only")
    if mode != "eval":
        for host_entry in host_entries.values():
            if host_entry.cls is FindItOpenRouter:
                provider_endpoints(OPENROUTER)  # its key has to be there
            elif host_entry.cls is FindItProvider:
                FindItProvider(**host_entry.arguments)
    budget = Budget(math.inf if max_usd is None else max_usd)
    for entry in over_http:
        entry.keywords["budget"] = budget
        if timeout is not None:
            entry.keywords["timeout"] = timeout
        if max_usd is not None and mode != "eval":
            entry()  # refuses a limit where no price is known
    return budget
