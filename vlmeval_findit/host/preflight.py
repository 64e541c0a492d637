"""Refuse before the host starts: its loop would log an error, skip the dataset and exit with 0."""

from __future__ import annotations

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
from ..models.http.addresses import header_lines, server_headers
from ..models.http.spending import Budget
from ..models.model_entry import ModelEntry, ModelOptions
from ..serving.programs import ServeOptions
from .api import API_CLASSES, FindItProvider, FindItServed, FindItServer
from .inference import prepare_run
from .local import make_known
from .vlmevalkit_entries import CUSTOM_PROMPTS, entry_of


def preflight(
    models: Sequence[str],
    datasets: Sequence[str],
    mode: str,
    work_dir: Path,
    judge_args: str | None,
    limit: int | None,
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


def add_model(
    entry: ModelEntry, options: ModelOptions, serving: ServeOptions | None, log_folder: Path
) -> None:
    """Register a model of a command line; in this process it replaces VLMEvalKit's of that name.

    Args:
        entry: the model, at a server or a provider if it has an address.
        options: their ``key``, ``header`` and ``timeout`` are used.
        serving: how this machine serves it; None: it does not.
        log_folder: of the servers of this machine.
    """
    if entry.prompt is not None:
        CUSTOM_PROMPTS[entry.name] = entry.prompt
    timeout = options.timeout or 600.0
    if entry.provider is not None or entry.base_url is not None:
        arguments: dict[str, Any] = {
            "model": entry.name,
            "base_url": entry.base_url,
            "served": entry.served,
            "space": settings_from({"space": entry.space}).space,
            "extra_body": dict(entry.settings),
            "like": entry.like,
            "key": options.key,
            "timeout": timeout,
            "retry": 6,
            "prices": entry.prices,
        }
        if entry.provider is None:
            headers = server_headers(options.header)
            supported_VLM[entry.name] = partial(FindItServer, **arguments, headers=headers)
        else:
            arguments |= {"provider": entry.provider, "headers": header_lines(options.header)}
            supported_VLM[entry.name] = partial(FindItProvider, **arguments)
    elif serving is not None:
        supported_VLM[entry.name] = partial(
            FindItServed,
            model=entry.name,
            log_folder=str(log_folder),
            serve=asdict(serving),
            checkpoint=entry.checkpoint,
            like=entry.like,
            timeout=timeout,
            retry=6,
            **entry.settings,
        )
    else:
        if entry.checkpoint is not None:
            make_known(entry.name, entry.checkpoint, entry.like)
        more = {**entry.settings, **entry.resources}
        if more and entry.name in supported_VLM:
            supported_VLM[entry.name] = partial(supported_VLM[entry.name], **more)


def share_budget(
    models: Sequence[str], asks: bool, max_usd: float | None, timeout: float | None
) -> Budget:
    """Let all models over HTTP of a run share a budget and a timeout.

    With ``asks`` a ValueError where a limit is set and no price is known.
    """
    budget = Budget() if max_usd is None else Budget(max_usd)
    for maker in map(supported_VLM.get, models):
        if getattr(maker, "func", None) in API_CLASSES:
            maker.keywords["budget"] = budget
            if timeout is not None:
                maker.keywords["timeout"] = timeout
            if max_usd is not None and asks:
                maker()
    return budget
