"""Refuse before the host starts: its loop would log an error, skip the dataset and exit with 0."""

from __future__ import annotations

import json
import math
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from vlmeval.config import supported_VLM
from vlmeval.dataset import DATASET_CLASSES

from ..models.services import extra_fields, openrouter_key, server_name, server_space
from ..models.spending import Budget
from ..predictions import check_model_name
from ..scoring import settings_from
from ..variant import nearest, parse
from .api import FindItOpenRouter, FindItServer
from .entries import entry_of
from .inference import prepare_run
from .models import FindItReplay


def preflight(wanted: Wanted) -> None:
    """Make every dataset once, as the host will, and hold every run against what lies there.

    Raises:
        ValueError: what a dataset refuses; a model that the host does not know; a run that is
            another than the one that lies there.
    """
    for model in wanted.models:
        check_model_name(model)
        if wanted.datasets and entry_of(model).cls is None:
            raise ValueError(f"VLMEvalKit has no model {model!r}{nearest(model, supported_VLM)}")
    for name, said in wanted.datasets.items():
        known = next(c for c in DATASET_CLASSES if name in c.supported_datasets())
        dataset = known(name, judge_args=wanted.judge_args, mode=wanted.mode, **said)
        if wanted.limit:
            dataset.data = dataset.data.iloc[: wanted.limit]
        for model in wanted.models:
            if wanted.mode != "eval":
                prepare_run(dataset, model, wanted.work_dir / model)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a command line asks for: models over datasets of ours, with what is said of each."""

    models: Sequence[str]
    datasets: Mapping[str, Mapping[str, Any]]
    mode: str
    work_dir: Path
    judge_args: str | None = None
    limit: int | None = None


def add_replay(path: str) -> None:
    """Make ``Replay`` answer from a prediction file or a folder of them."""
    supported_VLM["Replay"] = partial(FindItReplay, predictions=path)


def add_server(model: str, names: Sequence[str], args: Namespace) -> str:
    """Make a model of an OpenAI-compatible server known, by the name that is returned.

    Args:
        model: NAME or NAME=THE_SERVERS_NAME.
        names: the datasets that it will be asked.
        args: the command line: ``base_url``, ``judge_args``, ``extra_body``, ``key`` and so on.

    Raises:
        SpaceError: the coordinate space of its replies to one of the datasets is not known.
        ValueError: the name, the URL or the key cannot be used.
    """
    name, served = server_name(model)
    space = settings_from(json.loads(args.judge_args) if args.judge_args else {}).space
    rule = server_space(name, space)
    for dataset in names:
        rule(parse(dataset))
    maker = partial(
        FindItServer,
        model=name,
        base_url=args.base_url,
        served=served,
        space=space,
        extra_body=extra_fields(args.extra_body),
        key=args.key,
        timeout=args.timeout or 600.0,
        retry=6,
    )
    maker()  # what cannot be used is refused now
    # For this process the user's server goes before an entry of the host's with the same name.
    supported_VLM[name] = maker
    return name


def share_budget(models: Sequence[str], mode: str, max_usd: float | None) -> Budget:
    """Let the proprietary models of a run spend from one budget.

    Raises:
        ValueError: there is no key for them; or a limit for models that cost nothing here.
    """
    paid = [
        entry
        for entry in map(supported_VLM.get, models)
        if getattr(entry, "func", None) is FindItOpenRouter
    ]
    if max_usd is not None and not (paid and max_usd > 0):
        raise ValueError("--max-usd takes US dollars, and limits models through OpenRouter only")
    if paid and mode != "eval":
        openrouter_key()
    budget = Budget(math.inf if max_usd is None else max_usd)
    for entry in paid:
        entry.keywords["budget"] = budget
    return budget
