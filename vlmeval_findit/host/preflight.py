"""Refuse before the host starts: its loop would log an error, skip the dataset and exit with 0."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from vlmeval.config import supported_VLM
from vlmeval.dataset import DATASET_CLASSES, SUPPORTED_DATASETS
from vlmeval.dataset.video_dataset_config import supported_video_datasets

from ..core import suggestion
from ..engine import Deployment, InProcess, OverHttp
from ..models import meant_model
from ..storage import check_model_name, is_users_table
from .free_questions import refuse_conversations
from .inference import prepare_run
from .local import make_known
from .model_descriptions import entry_of
from .vlmevalkit_backends import ASKED, VLMEvalKitModel, asked
from .who_answered import AnswerFiles, who_answers


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
        is_theirs = isinstance(asked(model), VLMEvalKitModel)
        if datasets and is_theirs and entry_of(model).cls is None:
            raise ValueError(f"unknown model {model!r}{meant_model(model, supported_VLM)}")
    for name in datasets:
        known = next(c for c in DATASET_CLASSES if name in c.supported_datasets())
        dataset = known(name, judge_args=judge_args, mode=mode, limit=limit)
        if mode != "eval":
            dataset.take(limit)
        for model in models:
            if mode != "eval":
                prepare_run(dataset, model, work_dir / model)


def refuse_answers_of_others(models: Sequence[str], names: Iterable[str], work_dir: Path) -> None:
    """Refuse datasets of VLMEvalKit's that other models answered in a folder; IdentityError."""
    for name in names:
        for model in models:
            files = AnswerFiles(work_dir / model, model, name, f"{model}_{name}")
            who_answers(files, asked(model))


def check_datasets(names: Iterable[str], models: Sequence[str]) -> None:
    """Raise ValueError for datasets that the host would skip with status 0.

    So do those of conversations where a model of FindIt's is asked, and those of videos where
    FindIt asks it over HTTP: the host would ask another in its place.
    """
    ours = next(filter(_is_of_findit, models), None)
    for name in names:
        for cls in _classes_of(name) if ours is not None else ():
            refuse_conversations(str(ours), cls, name)
        elsewhere = next((each for each in models if isinstance(asked(each), OverHttp)), None)
        if elsewhere is not None and _is_of_videos(name):
            raise ValueError(
                f"{name}: FindIt asks {elsewhere} questions about images, and these are videos. "
                f"For VLMEvalKit's own: python -m vlmeval --data {name}"
            )
        is_known = name in supported_video_datasets or _classes_of(name)
        if not is_known and not is_users_table(name):
            known = [*SUPPORTED_DATASETS, *supported_video_datasets]
            raise ValueError(f"VLMEvalKit has no dataset {name!r}{suggestion(name, known)}")


def _is_of_findit(model: str) -> bool:
    return isinstance(asked(model), OverHttp) or entry_of(model).is_findit


def _classes_of(name: str) -> list[Any]:
    """Return the classes of the host's that have a dataset of this name."""
    return [each for each in DATASET_CLASSES if name in each.supported_datasets()]


def _is_of_videos(name: str) -> bool:
    """Return whether a dataset of the host's is of videos."""
    if name in supported_video_datasets:
        return True
    return any(getattr(each, "MODALITY", "") == "VIDEO" for each in _classes_of(name))


@contextmanager
def models_of_command(deployments: Iterable[Deployment]) -> Iterator[None]:
    """Make the models of a command line known to VLMEvalKit, until the command ends.

    Another command of the same process, as in a notebook, may give a name to another model.
    """
    asked_before = dict(ASKED)
    known_before = dict(supported_VLM)
    try:
        for deployment in deployments:
            _add_model(deployment)
        yield
    finally:
        _restore(ASKED, asked_before)
        _restore(supported_VLM, known_before)


def _restore(table: dict[str, Any], before: Mapping[str, Any]) -> None:
    """Make a table that others hold what it was before."""
    table.clear()
    table.update(before)


def _add_model(deployment: Deployment) -> None:
    """Make a model known: what VLMEvalKit makes, by VLMEvalKit's class."""
    name = deployment.name
    if not isinstance(deployment, InProcess):
        ASKED[name] = deployment
        return
    entry = deployment.entry
    if entry.checkpoint is not None:
        stated = entry.space is not None
        make_known(name, entry.checkpoint, entry.like, space_stated=stated)
    maker = supported_VLM.get(name)
    more = {**entry.settings, **entry.resources}
    if maker is not None and more:
        supported_VLM[name] = partial(maker, **more)
    # Its maker has them now.
    ASKED[name] = VLMEvalKitModel(replace(entry, settings={}, resources={}))
