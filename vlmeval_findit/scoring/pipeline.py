"""The way from a prediction file to its score: open, check, score the rows, check coordinates.

Each step takes what the last one returned; :mod:`.score_files` writes the result. Needs neither
torch nor VLMEvalKit.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from .. import benchmarks
from ..boxes.spaces import SpaceError
from ..data.loading import load_dataset
from ..models.dual_encoder.encoder import EncoderError
from ..models.model_table import UnknownModelError, thought_rule
from ..protocol.contradictions import (
    OF_SOMETHING_ELSE,
    Predictions,
    apply_force,
    contradictions,
    overrule,
    plugin_conflicts,
)
from ..protocol.dataset_variant import AnyDataset
from ..protocol.identity import Identity, IdentityError
from ..protocol.replies import Reply
from ..protocol.reviews import Reviews
from ..protocol.settings import Settings, settings_from
from ..protocol.thoughts import USUAL
from ..storage.identity_file import read_identity
from ..storage.predictions import read_predictions
from .new_identity import installed_plugins
from .prediction_names import names_of
from .reviewed_score import decisions_of, score_reviewed
from .run_score import RunScore, check_coordinates, score_rows


def score_file(
    path: Path,
    settings: Settings | None = None,
    dataset: str | None = None,
    reviews: Reviews | None = None,
) -> RunScore:
    """Score a prediction file: open it, score its rows, check their coordinates.

    Raises:
        PredictionError, DatasetNameError, IdentityError: as of :func:`open_predictions`.
        ReviewsError: ``reviews`` have no row of its table, or a row is another one now.
        ValueError: the benchmark cannot score them; the message says how it can.
    """
    opened = open_predictions(path, settings or settings_from({}), dataset)
    try:
        if reviews is None:
            run = score_rows(opened)
        else:
            decided = decisions_of(opened.dataset, opened.benchmark, reviews)
            run = score_reviewed(opened, decided)
    except (SpaceError, EncoderError) as error:
        words = ["score", *_what_helps(error)]
        if dataset is not None:
            words += ["--data", dataset]
        command = f"python run_findit.py {shlex.join([*words, str(path)])}"
        raise type(error)(
            f"{error}\nThe predictions are safe in {path}; score them without running the model "
            f"again:\n  {command}"
        ) from None
    return check_coordinates(run)


def _what_helps(error: SpaceError | EncoderError) -> tuple[str, str]:
    """Return the flag of ``score`` that such an error asks for, and its value."""
    if isinstance(error, UnknownModelError):
        return "--reads-like", "MODEL"
    if isinstance(error, SpaceError):
        return "--space", "SPACE"
    return "--encoder", "ENCODER"


def open_predictions(path: Path, settings: Settings, named: str | None = None) -> Predictions:
    """Read a prediction file and find what it is of.

    The file may have any name where its run recorded what it is, or ``named`` is its dataset.

    Raises:
        PredictionError, DatasetNameError: the file cannot be read, or is of an unknown dataset.
        IdentityError: something contradicts what the run recorded, and is not forced.
    """
    identity = read_identity(path)
    replies = read_predictions(path)
    plugins = identity.plugins if identity is not None else {}
    installed = installed_plugins() if plugins else {}
    try:
        model, name = names_of(path, named, identity)
        dataset = load_dataset(name)
        benchmark = benchmarks.benchmark_of(dataset.variant)
        recorded_row = None
        recorded_variant = None
        if identity is not None:
            recorded_row = identity.answering.row
            recorded_variant = benchmarks.parse(identity.dataset)
            if identity.resolved_options:
                dataset = benchmark.for_model(dataset, model, identity.resolved_options)
        rule = thought_rule(recorded_row or model, settings.thought_marks)
        if rule != USUAL:
            replies = [replace(reply, thoughts=rule) for reply in replies]
        of_benchmark = benchmark.identity_conflicts(dataset, replies, settings, identity)
        predictions = Predictions(model, dataset, benchmark, replies, settings, identity, path)
        conflicts = contradictions(predictions, of_benchmark, recorded_variant, installed)
        return overrule(predictions, conflicts)
    except IdentityError:
        raise
    except Exception:
        # What is not known here may be a plug-in's, and what fails may be its code.
        missing = plugin_conflicts(plugins, installed)
        apply_force(missing, settings.force, f"{path}: {OF_SOMETHING_ELSE}")
        raise


def check_replies(
    model: str,
    dataset: AnyDataset,
    replies: Sequence[Reply],
    settings: Settings | None = None,
    identity: Identity | None = None,
) -> Predictions:
    """Refuse replies of no file that contradict their table, their run or the user's settings.

    Settings are by default those of the environment.

    Raises:
        IdentityError: a reply or a setting contradicts the table or what the run recorded.
    """
    settings = settings or settings_from({})
    benchmark = benchmarks.benchmark_of(dataset.variant)
    of_benchmark = benchmark.identity_conflicts(dataset, replies, settings, identity)
    predictions = Predictions(model, dataset, benchmark, replies, settings, identity)
    installed = installed_plugins() if identity is not None and identity.plugins else {}
    conflicts = contradictions(predictions, of_benchmark, None, installed)
    return overrule(predictions, conflicts)
