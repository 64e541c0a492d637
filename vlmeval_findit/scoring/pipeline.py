"""The way from a prediction file to its score: open, check, score the rows, check coordinates.

Each step takes what the last one returned; :mod:`.score_writing` writes the result. Needs neither
torch nor VLMEvalKit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from .. import benchmarks
from ..data import load_dataset
from ..models import find_model, settings_of_model, thought_rule
from ..protocol import (
    OF_SOMETHING_ELSE,
    USUAL_THOUGHTS,
    AnyDataset,
    Identity,
    IdentityError,
    Predictions,
    Reply,
    Settings,
    apply_force,
    contradictions,
    overrule,
    plugin_conflicts,
    settings_from,
)
from ..storage import read_identity, read_predictions
from .new_identity import installed_plugins
from .prediction_names import names_of
from .row_scoring import RunScore, check_coordinates, say_how_to_score, score_rows
from .score_writing import last_score


def score_file(
    path: Path, settings: Settings | None = None, dataset: str | None = None
) -> RunScore:
    """Score a prediction file: open it, score its rows, check their coordinates.

    Raises:
        PredictionError, DatasetNameError, IdentityError: as of :func:`open_predictions`.
        ValueError: the benchmark cannot score them; the message says how it can.
    """
    opened = open_predictions(path, settings or settings_from({}), dataset)
    with say_how_to_score(path, dataset):
        run = score_rows(opened)
    return check_coordinates(run)


def open_predictions(path: Path, settings: Settings, named: str | None = None) -> Predictions:
    """Read a prediction file and find what it is of.

    The file may have any name where its run recorded what it is, or ``named`` is its dataset. What
    its last score was told is known again.

    Raises:
        PredictionError, DatasetNameError: the file cannot be read, or is of an unknown dataset.
        IdentityError: something contradicts what the run recorded, and is not forced.
    """
    identity = read_identity(path)
    replies = read_predictions(path)
    settings = replace(settings, last=last_score(path, settings))
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
        row = find_model(recorded_row or model)
        like = identity.reads_like if identity is not None else None
        settings = settings_of_model(settings, model, row, like)
        rule = thought_rule(recorded_row or model, settings.thought_marks)
        if rule != USUAL_THOUGHTS:
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
    recorded_row = identity.answering.row if identity is not None else None
    row = find_model(recorded_row or model)
    like = identity.reads_like if identity is not None else None
    settings = settings_of_model(settings or settings_from({}), model, row, like)
    benchmark = benchmarks.benchmark_of(dataset.variant)
    of_benchmark = benchmark.identity_conflicts(dataset, replies, settings, identity)
    predictions = Predictions(model, dataset, benchmark, replies, settings, identity)
    installed = installed_plugins() if identity is not None and identity.plugins else {}
    conflicts = contradictions(predictions, of_benchmark, None, installed)
    return overrule(predictions, conflicts)
