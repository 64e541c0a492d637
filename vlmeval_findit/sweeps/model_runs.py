"""What sweeps and single runs share: where a run's files are, and models that stop."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from ..engine import (
    Cell,
    Deployment,
    ModelStoppedError,
    Output,
    Watcher,
    check_output,
    prepare_output,
    sample_setting,
)
from ..protocol import Described, Settings, StopReason
from ..scoring import CellResult
from ..storage import PREDICTION_FORMATS, RunFiles, is_writable, sample_path


class UnfinishedError(RuntimeError):
    """Some models were stopped; ``results`` are all finished cells."""

    def __init__(self, results: Iterable[CellResult], stopped: Iterable[ModelStoppedError]) -> None:
        errors = list(stopped)
        super().__init__("\n".join(map(str, errors)))
        self.results = list(results)
        self.spent = any(error.stop is StopReason.SPENT for error in errors)
        self.later = all(error.stop is StopReason.LATER for error in errors)


class StoppedModels:
    """Models that must not be called any more; the others are asked all the same."""

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher
        self._errors: dict[str, ModelStoppedError] = {}

    def __contains__(self, model: str) -> bool:
        return model in self._errors

    def ask(self, model: str, ask: Callable[[], list[CellResult]]) -> list[CellResult]:
        """Ask a model, unless it stopped before; return the cells that finished."""
        if model in self._errors:
            return []
        try:
            return ask()
        except ModelStoppedError as error:
            self._watcher.stopped(str(error))
            self._errors[model] = error
            return list(error.results)

    def check(self, results: Iterable[CellResult]) -> None:
        """Raise an UnfinishedError with all results if a model stopped."""
        if self._errors:
            raise UnfinishedError(results, self._errors.values())


def prepare_cell(work_dir: Path, cell: Cell, settings: Settings, deployment: Deployment) -> Output:
    """Prepare a cell's files where VLMEvalKit would put them; more samples are below them."""
    path = path_of(work_dir, cell)
    described = _described(cell, deployment)
    return prepare_output(path, cell, settings, described, deployment.version)


def check_cell(work_dir: Path, cell: Cell, settings: Settings, deployment: Deployment) -> None:
    """Refuse a cell that :func:`prepare_cell` refuses; nothing is prepared."""
    path = path_of(work_dir, cell)
    check_output(path, cell, settings, _described(cell, deployment), deployment.version)


def own_journal(work_dir: Path, cell: Cell) -> Path:
    """Return the journal of a cell that is a run of its own; it need not exist."""
    return RunFiles(path_of(work_dir, cell)).calls


def path_of(work_dir: Path, cell: Cell) -> Path:
    """Return a cell's prediction file; a ValueError if it cannot be written."""
    path = work_dir / cell.model / f"{cell.model}_{cell.dataset.name}.json"
    path = sample_path(path, cell.sample) if cell.sample > 1 else path
    existing = next(each for each in path.absolute().parents if each.exists())
    if not existing.is_dir():
        raise ValueError(f"{path}: {existing} is a file. Move it away, or name another --work-dir")
    if not is_writable(existing):
        raise ValueError(f"{path}: {existing} cannot be written to. Name another --work-dir")
    return path


def is_begun(predictions: Path) -> bool:
    """Return whether a run left predictions, or a journal of its own."""
    files = [*map(predictions.with_suffix, PREDICTION_FORMATS), RunFiles(predictions).calls]
    return any(path.exists() for path in files)


def _described(cell: Cell, deployment: Deployment) -> Described:
    described = deployment.describe(cell.variant)
    recorded = {**described.answering.settings, **sample_setting(cell.sample)}
    return described._replace(answering=replace(described.answering, settings=recorded))
