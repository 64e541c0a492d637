"""Prediction files by their names: whose they are, and finding them below folders."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import Path

from ..benchmarks import begins, is_question, name_after_model
from ..core.predictions import PREDICTION_FORMATS, PredictionError
from ..core.run_files import RunFiles, files_below


def parse_prediction_name(path: Path) -> tuple[str, str]:
    """Return (model, dataset) of the name of a prediction file; PredictionError if it has none."""
    named = name_after_model(path.stem)
    if named is None:
        raise PredictionError(
            f"{path}: the name of a prediction file is {_pattern(path.suffix)}; "
            "of a file with another name say --data"
        )
    return named


def _pattern(suffix: str) -> str:
    return " or ".join(f"<model>_{prefix}…{suffix}" for prefix in begins())


def prediction_files(paths: Iterable[Path]) -> list[Path]:
    """Return the prediction files at or below paths, each once.

    Raises:
        PredictionError: a folder without any.
        FileNotFoundError: a path is not there.
    """
    files: dict[Path, Path] = {}
    for path in paths:
        if not path.exists():
            raise FileNotFoundError(f"{path}: no such file or folder")
        inside = [path]
        if path.is_dir():
            inside = [file for file in sorted(files_below(path)) if _is_predictions(file)]
            if not inside:
                raise PredictionError(f"{path}: no prediction file in it ({_pattern('.json')})")
        for file in inside:
            # VLMEvalKit links the files of a run's folder into the model's.
            files.setdefault(file.resolve(), file)
    return list(files.values())


def _is_predictions(path: Path) -> bool:
    if path.suffix not in PREDICTION_FORMATS or path.name.startswith(".") or not path.is_file():
        return False
    if RunFiles(path).identity.is_file() or name_after_model(path.stem) is not None:
        return True
    # Without a model it is refused by name: left out in silence, it would not be missed.
    return is_question(path.stem)


def score_command(path: Path, dataset: str | None = None, *flags: str) -> str:
    """Return the command that scores a prediction file, with the dataset if its name lacks it."""
    words = ["score", *flags]
    if name_after_model(path.stem) is None and not RunFiles(path).identity.is_file():
        words += ["--data", dataset or "DATASET"]
    return f"python run_findit.py {shlex.join([*words, str(path)])}"
