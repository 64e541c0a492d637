"""Prediction files by their names: which model and dataset they are of, and how to score them."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable
from pathlib import Path

from .. import benchmarks
from ..benchmarks.findit import PREFIX
from ..core import as_called, near_path, results_folder, suffix_of
from ..data import refuse_unmade
from ..protocol import Identity
from ..storage import (
    PREDICTION_FORMATS,
    PredictionError,
    RunFiles,
    files_below,
    run_of,
    space_mark,
)


def names_of(
    path: Path, dataset: str | None = None, identity: Identity | None = None
) -> tuple[str, str]:
    """Return model and dataset of a prediction file: by its name, else by its run's record.

    Args:
        dataset: what the user says that it is of, whatever its name says.

    Raises:
        PredictionError: neither its name nor a record nor the user says what it is of.
        DatasetNameError: its name has a dataset of a published set that is not imported yet.
    """
    in_name = benchmarks.name_after_model(path.stem)
    if in_name is not None:
        model, recorded = in_name
    elif identity is not None:
        model = identity.model
        recorded = identity.dataset
    elif dataset is not None:
        model = path.stem.removesuffix(f"_{dataset}")
        recorded = dataset
    else:
        _, prefix, name = path.stem.partition(f"_{PREFIX}")
        if prefix:
            refuse_unmade(f"{PREFIX}{name}")
        raise PredictionError(
            f"{path}: the name of a prediction file is {_pattern(path.suffix)}; "
            "for a file with another name type --data"
        )
    return model, dataset or recorded


def _pattern(suffix: str) -> str:
    return " or ".join(f"<model>_{prefix}…{suffix}" for prefix in benchmarks.shortest_prefixes())


NAME_RUNS = "name the --work-dir of runs, or make some with: python run_findit.py demo"


def refuse_missing_runs(paths: Collection[Path]) -> None:
    """Refuse runs that are not there, with the path that was probably meant.

    It is none of ``paths``; a model's folder may be meant that lies in the folder of results.

    Raises FileNotFoundError.
    """
    for path in paths:
        if path.exists():
            continue
        inside = results_folder() / path
        near = inside if inside.exists() and inside not in paths else None
        near = near or near_path(path, paths) or near_path(inside, paths)
        meant = f": did you mean {near}?" if near is not None else f"; {NAME_RUNS}"
        raise FileNotFoundError(f"{path}: does not exist{meant}")


def prediction_files(paths: Iterable[Path]) -> list[Path]:
    """Return the prediction files at or below paths, each once.

    A file of a score stands for its run, and is returned as it is if that is not named, too.

    Raises:
        PredictionError: a folder without any.
        FileNotFoundError: a path is not there.
    """
    files: dict[tuple[Path, str], Path] = {}
    paths = tuple(paths)
    refuse_missing_runs(paths)
    for path in paths:
        inside = [path]
        if path.is_dir():
            inside = sorted(files_below(path, _is_predictions))
            if not inside:
                raise PredictionError(
                    f"{path}: no prediction files in this folder ({_pattern('.json')})"
                )
        for file in inside:
            # VLMEvalKit links the files of a run's folder into the model's.
            files.setdefault(_score_of(file), file)
    return list(files.values())


def _score_of(file: Path) -> tuple[Path, str]:
    """Return the predictions that a file belongs to, and the mark of its score's other space."""
    run = run_of(file)
    if run.predictions == file:
        return file.resolve(), ""
    named = (run.predictions.with_suffix(suffix) for suffix in PREDICTION_FORMATS)
    there = [path for path in named if path.is_file()]
    if len(there) != 1:
        return file.resolve(), ""
    return there[0].resolve(), space_mark(run.mark)


def _is_predictions(path: Path) -> bool:
    is_format = suffix_of(path) in PREDICTION_FORMATS
    if not is_format or path.name.startswith(".") or not path.is_file():
        return False
    if RunFiles(path).identity.is_file() or benchmarks.name_after_model(path.stem) is not None:
        return True
    # Without a model it is refused by name: left out in silence, it would not be missed.
    return benchmarks.is_dataset_name(path.stem)


def is_of_a_run(path: Path) -> bool:
    """Tell whether the name of a file says model and dataset, or a record beside it does."""
    is_named = benchmarks.name_after_model(path.stem) is not None
    return is_named or RunFiles(path).identity.is_file()


def score_command(path: Path, dataset: str | None = None, *flags: str) -> str:
    """Return the command that scores a prediction file, with the dataset if its name lacks it."""
    words = ["score", *flags]
    if not is_of_a_run(path):
        words += ["--data", dataset or "DATASET"]
    return as_called(f"python run_findit.py {shlex.join([*words, str(path)])}")
