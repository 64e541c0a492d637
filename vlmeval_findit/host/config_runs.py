"""All models, datasets and runs of a ``--config`` are checked before VLMEvalKit makes the first.

Its runner makes a model when the models before it are asked and paid, and ends with a traceback
where that fails; a dataset that fails it skips.
"""

from __future__ import annotations

import argparse
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import vlmeval.api
import vlmeval.dataset
import vlmeval.vlm
from vlmeval.config import supported_VLM
from vlmeval.dataset.video_dataset_config import supported_video_datasets

from ..core import (
    EXIT_REFUSED,
    TextError,
    object_or_empty,
    parse_json,
    quoted_value,
    read_text,
    suggestion,
)
from ..engine import Deployment
from ..models import ModelEntry, find_model
from .api import DeployedModel, OverHttpModel
from .datasets import VariantDataset
from .free_questions import refuse_conversations
from .inference import prepare_run
from .local import FindItLocalModel
from .model_descriptions import Entry, refuse_another_row
from .model_objects import checkpoint_of
from .vlmevalkit_backends import VLMEvalKitModel
from .who_answered import AnswerFiles, who_answers


class ConfigLine(NamedTuple):
    """What the runner's command line says of a ``--config``."""

    config: str | None
    work_dir: str
    mode: str
    limit: int | None


def refuse_later_runs(work_dir: Path) -> None:
    """End the runner with what is wrong with any entry of its ``--config``.

    ``work_dir``: as of :func:`check_runs`.
    """
    try:
        check_runs(sys.argv[1:], work_dir)
    except ValueError as error:
        sys.stderr.write(f"error: {error}\n")
        raise SystemExit(EXIT_REFUSED) from None


def check_runs(arguments: Sequence[str], work_dir: Path | None = None) -> None:
    """Raise a ValueError that names file and entry, if a ``--config`` cannot be run as it is.

    Nothing is loaded and nobody is asked.

    Args:
        arguments: of VLMEvalKit's runner; without a ``--config`` nothing is checked.
        work_dir: where it writes (None: ``--work-dir``).
    """
    line = _line_of(arguments)
    if line.config is None or not line.config.endswith(".json"):
        return
    try:
        values = object_or_empty(parse_json(read_text(Path(line.config))))
    except (OSError, TextError, ValueError):
        return
    refused = _refusals_of(line.config)
    models: dict[str, Deployment | None] = {}
    datasets: dict[str, VariantDataset | _OfVLMEvalKit] = {}
    for name, entry in object_or_empty(values.get("model")).items():
        with refused("model", name):
            models[name] = _model(name, entry)
    for name, entry in object_or_empty(values.get("data")).items():
        with refused("data", name):
            datasets[name] = _dataset(name, entry, line)
    if line.mode == "eval":
        return
    folder = work_dir or Path(line.work_dir)
    asked = {name: deployment for name, deployment in models.items() if deployment is not None}
    for name, deployment in asked.items():
        for called, dataset in datasets.items():
            with refused("model", name):
                if isinstance(dataset, VariantDataset):
                    prepare_run(dataset, name, folder / name, deployment)
                else:
                    refuse_conversations(name, dataset.cls, dataset.name)
                    files = AnswerFiles(folder / name, name, dataset.name, f"{name}_{called}")
                    who_answers(files, deployment)


def _line_of(arguments: Sequence[str]) -> ConfigLine:
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--config")
    parser.add_argument("--work-dir", default="./outputs")
    parser.add_argument("--mode", default="all")
    parser.add_argument("--limit")
    stated = parser.parse_known_args(arguments)[0]
    limit = int(stated.limit) if (stated.limit or "").isdecimal() else None
    return ConfigLine(stated.config, stated.work_dir, stated.mode, limit)


def _refusals_of(config: str) -> Callable[[str, str], AbstractContextManager[None]]:
    """Return what lets refusals name file and entry, by the entry's place and name."""

    @contextmanager
    def refused(place: str, name: str) -> Iterator[None]:
        try:
            yield
        except (OSError, TypeError, ValueError) as error:
            raise ValueError(f"{config}: {place}.{name}: {error}") from None

    return refused


# --- models ---------------------------------------------------------------------------------------


def _model(name: str, stated: Any) -> Deployment | None:
    """Refuse an entry of which no model could be made; return what answers, if it is FindIt's."""
    entry = {key: value for key, value in object_or_empty(stated).items() if key != "class"}
    if "class" not in object_or_empty(stated):
        if name not in supported_VLM:
            raise ValueError(f"unknown model, and no class{suggestion(name, supported_VLM)}")
        maker: Any = supported_VLM[name]
    else:
        called = stated["class"]
        maker = getattr(vlmeval.api, str(called), None) or getattr(vlmeval.vlm, str(called), None)
        if maker is None:
            known = [each for each in (*dir(vlmeval.api), *dir(vlmeval.vlm)) if each[0].isupper()]
            near = suggestion(str(called), known)
            raise ValueError(f"VLMEvalKit has no class {quoted_value(called)}{near}")
    cls = getattr(maker, "func", maker)
    arguments = {**getattr(maker, "keywords", {}), **entry}
    if cls is FindItLocalModel:
        FindItLocalModel.check(**arguments)
        return _made_later(name, cls, arguments)
    if inspect.isclass(cls) and issubclass(cls, OverHttpModel):
        made = cls(**arguments)  # Without a call
        if isinstance(made, DeployedModel):
            asked = made.asked.entry
            refuse_another_row(name, find_model(asked.like or asked.name), asked.name)
            made.asked.check()
            return made.asked
        return _made_later(name, cls, arguments)
    inspect.signature(cls).bind(**arguments)
    return _made_later(name, cls, arguments) if hasattr(cls, "describe") else None


def _made_later(name: str, cls: type, arguments: Mapping[str, Any]) -> Deployment:
    """Return a model as VLMEvalKit will make it."""
    made = Entry(cls, arguments, arguments, checkpoint=checkpoint_of(None, arguments))
    return VLMEvalKitModel(ModelEntry(name), passed=made)


# --- datasets -------------------------------------------------------------------------------------


class _OfVLMEvalKit(NamedTuple):
    """A dataset that VLMEvalKit asks about."""

    name: str
    cls: Any  # None: one of its table of videos


def _dataset(name: str, stated: Any, line: ConfigLine) -> VariantDataset | _OfVLMEvalKit:
    """Refuse an entry of which no dataset could be made; return FindIt's, or whose it is."""
    entry = dict(object_or_empty(stated))
    if not entry:
        if name not in supported_video_datasets:
            near = suggestion(name, supported_video_datasets)
            raise ValueError(f"it has no class, and is no video dataset{near}")
        return _OfVLMEvalKit(name, None)
    called = entry.pop("class", None)
    cls = getattr(vlmeval.dataset, str(called), None)
    if cls is None:
        known = [each for each in dir(vlmeval.dataset) if each[0].isupper()]
        near = suggestion(str(called), known)
        raise ValueError(f"VLMEvalKit has no dataset class {quoted_value(called)}{near}")
    if not (inspect.isclass(cls) and issubclass(cls, VariantDataset)):
        return _OfVLMEvalKit(str(entry.get("dataset", name)), cls)
    limit = entry.pop("limit", None) if line.limit is None else line.limit
    ours: VariantDataset = cls(**{**entry, "mode": line.mode, "limit": limit})
    return ours
