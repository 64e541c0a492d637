"""Ask models about datasets, a run at a time and each with its journal, as VLMEvalKit does.

The files are those of a run under VLMEvalKit, in the same folders: either goes on where the other
ended.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from ..benchmarks import parse
from ..core import counted, refuse_duplicates
from ..engine import (
    CancelToken,
    Cell,
    CellBuilder,
    Deployment,
    Engine,
    Journal,
    JournalView,
    Output,
    PendingBatches,
    Watcher,
    clean_up,
    merge_predictions,
)
from ..models import refuse_same_names
from ..protocol import Settings
from ..scoring import CellResult
from ..storage import RunFiles, check_model_name
from .model_runs import StoppedModels, is_begun, prepare_cell

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class SingleRuns:
    """Every model over every dataset."""

    deployments: Sequence[Deployment]
    datasets: Sequence[str]  # names as they are typed: files have them
    work_dir: Path
    settings: Settings  # of scoring
    limit: int | None = None  # rows of every table; None: all
    logprobs: bool = False

    def __post_init__(self) -> None:
        refuse_same_names(deployment.entry for deployment in self.deployments)
        refuse_duplicates(self.datasets)


def ask_runs(
    runs: SingleRuns,
    tables: CellBuilder,
    watcher: Watcher,
    cancel: CancelToken,
) -> list[CellResult]:
    """Make every call of the runs that has no answer yet, and write their files.

    ``tables`` loads the datasets, unless it did so before.

    Raises:
        ValueError: something was refused before the first call.
        JournalError: replies cannot be written any more, for example on a full disk.
        UnfinishedError: a model must not be called any more; other models were.
        StoppedError: a stop was requested.
        KeyboardInterrupt: a stop was requested twice.
    """
    prepared = []
    for stated in runs.deployments:
        deployment = stated.in_space(runs.settings.space)
        outputs = [_output(runs, deployment, tables, name) for name in runs.datasets]
        prepared.append((deployment, outputs))
    pending = PendingBatches.of(runs.work_dir)
    for deployment, outputs in prepared:
        for output in outputs:
            _check(deployment, output, watcher, cancel)
            pending.refuse(output.cell, RunFiles(output.path).calls)
    stopped = StoppedModels(watcher)
    results: list[CellResult] = []
    for deployment, outputs in prepared:
        for output in outputs:
            ask = partial(_ask, deployment, output, watcher, cancel)
            results += stopped.ask(deployment.name, ask)
    stopped.check(results)
    return results


def _output(runs: SingleRuns, deployment: Deployment, tables: CellBuilder, name: str) -> Output:
    check_model_name(deployment.name)
    variant = parse(name)
    cell = tables.cell(
        deployment.name,
        variant,
        runs.limit,
        deployment.key(variant),
        logprobs=runs.logprobs,
        prompt=deployment.entry.prompt,
    )
    if name != variant.name:
        cell = _named(cell, name)
    return prepare_cell(runs.work_dir, cell, runs.settings, deployment)


def _named(cell: Cell, name: str) -> Cell:
    """Return a cell of a dataset under another name of it."""
    dataset = replace(cell.dataset, name=name)
    return replace(cell, prompts=replace(cell.prompts, dataset=dataset))


def _check(deployment: Deployment, output: Output, watcher: Watcher, cancel: CancelToken) -> None:
    """Refuse a run that cannot go on from what is there, when others would be paid."""
    if is_begun(output.path):
        with _engine(deployment, output, watcher, cancel) as engine:
            engine.check(deployment, [output])


def _ask(
    deployment: Deployment, output: Output, watcher: Watcher, cancel: CancelToken
) -> list[CellResult]:
    folder = output.path.parent
    folder.mkdir(parents=True, exist_ok=True)
    clean_up(folder)
    with _engine(deployment, output, watcher, cancel) as engine:
        results = engine.run_model(deployment, [output])
        _warn_of_failures(output, results, engine.journal)
    return results


@contextmanager
def _engine(
    deployment: Deployment, output: Output, watcher: Watcher, cancel: CancelToken
) -> Iterator[Engine]:
    """Open the journal of a run, with all answers that its files have."""
    with Journal(RunFiles(output.path).calls) as journal:
        engine = Engine(watcher, cancel, lambda: journal)
        merge_predictions(output, journal, engine.digests)
        yield engine


def _warn_of_failures(output: Output, results: Sequence[CellResult], journal: JournalView) -> None:
    failed = sum(result.failed for result in results)
    if failed:
        records = map(journal.get, output.cell.call_keys())
        why = next((record["error"] for record in records if record and record["error"]), "")
        name = output.cell.dataset.name
        log.warning(
            "%s on %s: %s failed; the first: %s",
            output.cell.model,
            name,
            counted(failed, "call"),
            why,
        )
