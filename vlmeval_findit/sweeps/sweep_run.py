"""Run a sweep: stage by stage, model by model, from its file to scores."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from itertools import chain

from ..analysis import choose_best_format
from ..core import Lock, write_text_once
from ..engine import (
    ONE_WRITER,
    CancelToken,
    Cell,
    CellBuilder,
    Deployment,
    Engine,
    Journal,
    Output,
    Watcher,
    clean_up,
    merge_predictions,
    note_batch_journal,
)
from ..protocol import DatasetVariant
from ..scoring import CellResult
from ..storage import MORE_SAMPLES
from .format_race import FormatRace
from .model_runs import StoppedModels, check_cell, is_begun, path_of, prepare_cell
from .sweep_cells import (
    Sweep,
    cells_by_stage,
    cells_to_ask,
    extra_variants,
    scoring_settings,
    stage_variants,
)


def run_sweep(
    sweep: Sweep, deployments: Sequence[Deployment], watcher: Watcher, cancel: CancelToken
) -> list[CellResult]:
    """Make every call of a sweep that has no answer yet, and write all its files.

    ``deployments`` answer for its models, in their order.

    Raises:
        ValueError: something was refused before the first call.
        JournalError: replies cannot be written any more, for example on a full disk.
        UnfinishedError: a model must not be called any more.
        StoppedError: a stop was requested.
        KeyboardInterrupt: a stop was requested twice.
    """
    sweep_lock = sweep.work_dir / ".sweep.lock"
    with ExitStack() as stack:

        def open_journal() -> Journal:
            return stack.enter_context(Journal(sweep.journal))

        engine = Engine(watcher, cancel, open_journal)
        for deployment in deployments:
            deployment.check()
        if sweep.mark is not None:
            write_text_once(sweep.mark, '{"written by": "vlmeval_findit"}\n')
        if sweep.batch is not None:
            note_batch_journal(sweep.work_dir, sweep.journal)
        stack.enter_context(Lock(sweep_lock, ONE_WRITER))
        for entry in sweep.models:
            folder = sweep.work_dir / entry.name
            for run_folder in (folder, *folder.glob(f"{MORE_SAMPLES}/*")):
                clean_up(run_folder)
        return _stages(sweep, deployments, engine, CellBuilder(sweep.skip_missing))


def _stages(
    sweep: Sweep, deployments: Sequence[Deployment], engine: Engine, tables: CellBuilder
) -> list[CellResult]:
    count = len(sweep.stages)
    racers = deployments if sweep.race else ()
    races = {racer.name: FormatRace(engine, racer, count) for racer in racers}
    extra = extra_variants(sweep)
    stopped = StoppedModels(engine.watcher)
    results: list[CellResult] = []
    for stage in range(count):
        prepared = []
        for deployment in deployments:
            name = deployment.name
            if name in stopped:
                continue
            racing = races.get(name)
            winner = _winner(name, results, extra, racing) if stage else None
            done = {result.variant for result in results if result.model == name}
            done.update(racing.front if racing else ())
            variants = stage_variants(sweep, name, stage, winner)
            new = [variant for variant in variants if variant not in done]
            cells = cells_to_ask(sweep, deployment, new, tables)
            prepared.append((deployment, _prepare(sweep, deployment, cells)))
        for _, outputs in prepared:
            for output in outputs:
                merge_predictions(output, engine.journal, engine.digests)
        for deployment, outputs in prepared[1:]:
            engine.check(deployment, outputs)
        if not stage:
            for deployment, _ in prepared:
                _check_later_stages(sweep, deployment, engine, tables)
        if sweep.batch is not None and not sweep.race and len(prepared) > 1:
            for deployment, outputs in prepared:
                engine.submit(deployment, outputs)
        for deployment, outputs in prepared:
            racing = races.get(deployment.name)
            ask = partial(_ask, engine, deployment, outputs, extra, racing)
            for result in stopped.ask(deployment.name, ask):
                results.append(replace(result, compared=extra.get(result.variant, True)))
    stopped.check(results)
    return results


def _winner(
    model: str,
    results: Iterable[CellResult],
    extra: Container[DatasetVariant],
    racing: FormatRace | None,
) -> DatasetVariant:
    """Return a cell in the format that leads after a model's finished stages."""
    if racing is not None:
        return racing.front[0]
    of_model = (result for result in results if result.model == model)
    return choose_best_format([result for result in of_model if result.variant not in extra])


def _ask(
    engine: Engine,
    deployment: Deployment,
    outputs: Sequence[Output],
    extra: Container[DatasetVariant],
    racing: FormatRace | None,
) -> list[CellResult]:
    if racing is None:
        return engine.run_model(deployment, outputs)
    others = [output for output in outputs if output.cell.variant in extra]
    raced = [output for output in outputs if output.cell.variant not in extra]
    return engine.run_model(deployment, others) + racing.stage(raced)


def _check_later_stages(
    sweep: Sweep, deployment: Deployment, engine: Engine, tables: CellBuilder
) -> None:
    """Refuse what a later stage would be refused for, whichever format wins the first."""
    settings = scoring_settings(sweep, deployment.entry)
    later = dict.fromkeys(chain.from_iterable(cells_by_stage(sweep)[1:]))
    for cell in cells_to_ask(sweep, deployment, later, tables):
        check_cell(sweep.work_dir, cell, settings, deployment)
        if engine.journal.size or is_begun(path_of(sweep.work_dir, cell)):
            output = prepare_cell(sweep.work_dir, cell, settings, deployment)
            merge_predictions(output, engine.journal, engine.digests)
            engine.check(deployment, [output])


def _prepare(sweep: Sweep, deployment: Deployment, cells: Iterable[Cell]) -> list[Output]:
    settings = scoring_settings(sweep, deployment.entry)
    return [prepare_cell(sweep.work_dir, cell, settings, deployment) for cell in cells]
