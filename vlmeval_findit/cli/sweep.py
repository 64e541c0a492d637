"""``run_findit.py sweep``: models x datasets x formats from a file, resumable."""

from __future__ import annotations

import os
import shlex
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from ..benchmarks import benchmark_of
from ..core.command import (
    INTERRUPTED,
    LATER,
    NO_MORE,
    SOME_FAILED,
    as_called,
    config_here_or_shipped,
    install,
)
from ..core.custom_prompt import prompt_set
from ..core.vlmevalkit import package_folder, quiet_log
from ..engine.answering import BackendFactories, BackendFactory, StoppedError
from ..engine.backend import CallOptions, LostCallError
from ..engine.cancel import cancelled_by_signals
from ..engine.journal.writer import DiskFullError, JournalTakenError
from ..engine.named_servers import ServerBackends, policy_of
from ..engine.server import ServerPolicy
from ..engine.started_servers import ServeBackends
from ..models.http.spending import Budget
from ..models.model_entry import ModelEntry, ModelOptions
from ..runs.best_format import worst
from ..runs.format_file import (
    BestFormats,
    averages,
    dropped_formats,
    outcome,
    race_calls,
    write_formats,
)
from ..runs.run_score import CellResult
from ..serving.processes import end
from ..serving.programs import PROGRAMS
from ..sweeps.sweep_file import Sweep, all_questions, in_best_formats, read_sweep, refuse_samples
from ..sweeps.sweep_run import UnfinishedError, run_sweep
from .access import USED_BY_EACH, Access, access_of, refuse_unused
from .early_checks import (
    check_amounts,
    check_entry,
    check_folder,
    check_rows,
    note_of_shared_names,
)
from .model_options import MODEL_GROUPS, model_options
from .printing import print_folded, print_rows, report_spending
from .progress import SweepProgress
from .shared_options import PATH, Command, is_quiet, is_verbose, option, print_note

_WITHOUT_HOST = (Access.SERVER, Access.PROVIDER, Access.BATCH)
"""For these VLMEvalKit is not needed."""


@click.command(
    cls=Command,
    groups=MODEL_GROUPS,
    examples=[
        "python run_findit.py sweep configs/smoke.yaml --dry-run",
        "python run_findit.py sweep sweep.yaml --base-url http://localhost:8000/v1",
    ],
)
@click.argument("config", metavar="FILE.yaml", type=PATH)
@option("--formats", "FILE", "Best formats, a format for each model.", type=PATH)
@option("--limit", "N", "The first N rows of every table.", type=int)
@option(
    "--work-dir",
    "DIR",
    "Overrides work_dir in the file; calls.jsonl is there too, unless --journal names it.",
    type=PATH,
)
@option("--journal", "FILE", "Overrides journal in the file.", type=PATH)
@model_options(
    "samples", "dry_run", "batch", "executor", "replicas", "logprobs", "force", "skip_missing"
)
def command(
    options: ModelOptions,
    config: Path,
    formats: Path | None,
    limit: int | None,
    work_dir: Path | None,
    journal: Path | None,
) -> int:
    """Ask models x datasets x formats from a YAML file; options override it.

    Exit status 1: calls failed (run again to ask them again); 3: the disk was full or the spending
    limit was reached; 4: no batch service was reached (run again to collect them).
    """
    sweep = read_sweep(config_here_or_shipped(config), work_dir)
    check_amounts(options, limit=limit)
    sweep = with_options(sweep, options)
    sweep = replace(sweep, limit=limit or sweep.limit, journal=journal or sweep.journal)
    refuse_samples(sweep)
    if not is_quiet() and (note := note_of_shared_names(table.name for table in sweep.tables)):
        print_note(note)
    if formats is not None:
        if sweep.race:
            raise ValueError(
                f"{config} races formats, and --formats asks each model in a single format"
            )
        if not formats.is_file():
            raise ValueError(
                f"--formats {formats}: no such file. Searches and sweeps over several formats "
                f"write one: run_findit.py search --model NAME --out {formats}"
            )
        sweep = in_best_formats(sweep, BestFormats(formats))
    return run_or_count(sweep, options, sweep.work_dir / "best_formats.yaml")


def with_options(sweep: Sweep, options: ModelOptions) -> Sweep:
    """Return a sweep with the options of a command line, which override its file."""
    return replace(
        sweep,
        models=tuple(map(options.applied, sweep.models)),
        samples=options.samples or sweep.samples,
        logprobs=options.logprobs or sweep.logprobs,
        force=options.force,
        skip_missing=options.skip_missing_images or sweep.skip_missing,
        batch=options.batch or sweep.batch,
        serve=options.serving(sweep.serve),
        max_usd=sweep.max_usd if options.max_usd is None else options.max_usd,
    )


def run_or_count(sweep: Sweep, options: ModelOptions, formats_file: Path) -> int:
    """Run a sweep, or count its calls with ``--dry-run``; returns the exit status."""
    if options.dry_run:
        from .dry_run import of_sweep

        return of_sweep(sweep)
    budget = budget_for(sweep)
    status = run(sweep, backends_for(sweep, options, budget), formats_file)
    return report_spending(budget) or status


# --- who answers ----------------------------------------------------------------------------------


def budget_for(sweep: Sweep) -> Budget:
    """Make the budget that the calls of a sweep share."""
    return Budget() if sweep.max_usd is None else Budget(sweep.max_usd)


def backends_for(sweep: Sweep, options: ModelOptions, budget: Budget) -> BackendFactories:
    """Return the backends of each model of a sweep; a ValueError for what cannot be run."""
    accesses = [
        (entry, Access.BATCH if sweep.batch else access_of(entry, sweep.serve is not None))
        for entry in sweep.models
    ]
    _refuse_unused(options, accesses)
    check_folder(sweep.work_dir)
    for entry, access in accesses:
        questions = all_questions(sweep, entry.name)
        check_entry(entry, access, questions, needs_device=options.executor == "local")
        if access not in _WITHOUT_HOST:
            check_rows(questions, sweep.skip_missing, sweep.limit)
    factories = servers_for(sweep, options, accesses, budget)
    in_process = [entry.name for entry in sweep.models if entry.name not in factories]
    if in_process:
        inference = _inference(sweep, options)
        factories |= dict.fromkeys(in_process, _vlmevalkit(options.executor, inference, budget))
    return factories


def servers_for(
    sweep: Sweep,
    options: ModelOptions,
    accesses: Sequence[tuple[ModelEntry, Access]],
    budget: Budget,
    retry: int = ServerPolicy().attempts,
) -> dict[str, BackendFactory]:
    """Return the backends of the models that servers, providers or servers of ours answer for.

    A call is tried ``retry`` times at most.
    """
    inference, batch, serving = _inference(sweep, options), sweep.batch, sweep.serve
    over_http = [entry.name for entry, access in accesses if access in _WITHOUT_HOST]
    served = [entry.name for entry, access in accesses if access is Access.SERVED]
    factories: dict[str, BackendFactory] = {}
    policy = policy_of(retry)
    if served:
        assert serving is not None
        nobody_said = inference.threads == CallOptions().threads
        calls = PROGRAMS[serving.program].calls if nobody_said else inference.threads
        started = ServeBackends(serving, replace(inference, threads=calls), sweep.work_dir, policy)
        factories |= dict.fromkeys(served, started)
    if over_http:
        if batch is not None and sweep.logprobs and batch.is_plain:
            raise ValueError(f"--logprobs: the {batch.value} interface gives none")
        headers, key = options.header, options.key
        servers = ServerBackends((), inference, headers, budget, batch, key, policy)
        factories |= dict.fromkeys(over_http, servers)
    return factories


def _inference(sweep: Sweep, options: ModelOptions) -> CallOptions:
    values: dict[str, Any] = {
        "threads": options.api_nproc,
        "timeout": options.timeout,
        "replicas": options.replicas,
        "gpus": options.gpus,
    }
    return replace(sweep.inference, **{k: v for k, v in values.items() if v is not None})


def _refuse_unused(options: ModelOptions, accesses: Sequence[tuple[ModelEntry, Access]]) -> None:
    """Refuse flags that no model uses, and flags that every model must use but some do not."""
    by_name = [(entry.name, access) for entry, access in accesses]
    on_ray = list[tuple[str, Access]]()
    if options.executor == "ray":
        elsewhere = (*_WITHOUT_HOST, Access.OPENROUTER, Access.SERVED)
        on_ray = [(name, Access.RAY) for name, access in by_name if access not in elsewhere]
    of_each = [name for name in options.specified if name in USED_BY_EACH]
    refuse_unused([name for name in options.specified if name not in of_each], [*by_name, *on_ray])
    refuse_unused(of_each, by_name)


def _vlmevalkit(executor: str, inference: CallOptions, budget: Budget) -> BackendFactory:
    """Return VLMEvalKit, which knows models on this machine and OpenRouter's."""
    if package_folder() is None:
        raise ValueError(f"VLMEvalKit is not installed: {install('run')}")
    os.environ.setdefault("PRED_FORMAT", "json")
    quiet_log(is_quiet())
    try:
        from ..host.vlmevalkit_backends import VLMEvalKitBackends
    except ImportError as error:
        raise ValueError(f"VLMEvalKit cannot be imported ({error}): {install('run')}") from None
    if executor == "local":
        return VLMEvalKitBackends(inference, budget=budget)
    from ..engine.ray_backend import RayBackend

    return VLMEvalKitBackends(inference, RayBackend, budget)


# --- the run --------------------------------------------------------------------------------------


def run(sweep: Sweep, factories: BackendFactories, formats_file: Path) -> int:
    """Run a sweep, print its scores, and write the best formats if it has several."""
    if formats_file.is_file():
        BestFormats(formats_file)  # Refused before the first call, if it is something else
    results, status = results_of(sweep, factories)
    failed = sum(result.failed for result in results)
    results = [result for result in results if result.sample == 1]
    print_rows(_row(result) for result in results if status or result.dropped is None)
    if status:
        return status
    for entry in sweep.models:
        if temperature := entry.settings.get("temperature"):
            print(f"{entry.name}: replies were sampled at temperature {temperature:g}")
    if sweep.samples > 1:
        command = f"python run_findit.py samples {shlex.quote(str(sweep.work_dir))}"
        print_folded(as_called(f"These are the first of {sweep.samples} samples; all: {command}"))
    report_formats(results, formats_file, sweep.race, sweep.models)
    _print_answering_models(results)
    _print_coordinate_checks(results)
    if failed:
        print(f"{failed} calls failed; run the same command again to ask them again.")
    return SOME_FAILED if failed else 0


def results_of(sweep: Sweep, factories: BackendFactories) -> tuple[Sequence[CellResult], int]:
    """Run a sweep: its finished cells, and the exit status of what ended it (0: nothing did)."""
    results: Sequence[CellResult] = ()
    status = INTERRUPTED
    try:
        with cancelled_by_signals(_write_from_handler) as cancel, SweepProgress() as progress:
            results = run_sweep(sweep, factories, progress, cancel)
        status = 0
        progress.print_tokens()
    except (StoppedError, KeyboardInterrupt) as error:
        print_note(str(error) or f"stopped at once; see {sweep.journal}")
    except (DiskFullError, JournalTakenError) as error:
        print_note(f"error: {error}")
        status = NO_MORE if isinstance(error, DiskFullError) else SOME_FAILED
    except LostCallError as error:
        if is_verbose():
            traceback.print_exc()
        print_note(f"error: {error}")
        status = SOME_FAILED
    except UnfinishedError as error:
        print_note(f"error: {error}")
        results = error.results
        status = NO_MORE if error.spent else LATER if error.later else SOME_FAILED
    finally:
        end(wait=status != INTERRUPTED)
    return results, status


def _write_from_handler(line: str) -> None:
    # Not print: in a signal's handler the stream may be in the middle of another line.
    os.write(2, f"{line}\n".encode())


# --- what is printed ------------------------------------------------------------------------------


def _print_answering_models(results: Sequence[CellResult]) -> None:
    """Name the runs that several models answered, or another than was asked."""
    for model, (first, *others) in _by_model(results, lambda each: each.answered_note).items():
        more = f" and {len(others)} more" if others else ""
        print_folded(f"{model} {first.question.name}{more}: {first.answered_note}")


def _print_coordinate_checks(results: Sequence[CellResult]) -> None:
    """Name the runs whose answers do not follow the declared convention."""
    for model, cells in _by_model(results, lambda each: each.coords_doubt).items():
        first, *others = cells
        more = f" and {len(others)} more" if others else ""
        print_folded(f"{model} {first.question.name}{more}: {first.coords_doubt}")
        if others:
            folder = os.path.commonpath([each.path.parent for each in cells])
            print_folded(as_called(f"  each of them: python run_findit.py coords {folder}"))


def _by_model(
    results: Sequence[CellResult], doubt: Callable[[CellResult], str | None]
) -> dict[str, list[CellResult]]:
    """Group the results of which something is said by their models."""
    by_model: dict[str, list[CellResult]] = {}
    for result in results:
        if doubt(result) is not None:
            by_model.setdefault(result.model, []).append(result)
    return by_model


def report_formats(
    results: Sequence[CellResult],
    path: Path,
    race: bool = False,
    entries: Sequence[ModelEntry] = (),
) -> None:
    """Name the best format of every model and benchmark with several, and write them down."""
    words = {entry.name: entry.prompt for entry in entries}
    outcomes: dict[str, dict[str, Mapping[str, Any]]] = {}
    contests: dict[tuple[str, str], list[CellResult]] = {}
    for result in filter(lambda result: result.compared, results):
        key = result.model, benchmark_of(result.question).name
        contests.setdefault(key, []).append(result)
    for (model, name), contest in contests.items():
        ranked, benchmark = averages(contest), benchmark_of(contest[0].question)
        if race and len({result.question.format for result in contest}) > 1:
            _print_race(contest)
        several = len(ranked) > 1 or any(result.dropped is not None for result in contest)
        if not several or any(result.failed >= result.rows for result in contest):
            continue
        any_failed = any(result.failed for result in contest)
        metric = benchmark.with_failures if any_failed else benchmark.metrics[0]
        best, headline = ranked[0], metric.title
        value = next(iter(best.metric_values.values()))
        if value == worst(benchmark.ranking[0]):
            print(f"{model}: no best format: {headline} is {value:g} in every format")
            continue
        over = f", on average over {best.datasets} tables" if best.datasets > 1 else ""
        print(f"{model}: best format on {name} {best.format} ({headline} {value:.1f}{over})")
        prompts = prompt_set(benchmark, words.get(model)).name
        outcomes.setdefault(model, {})[name] = outcome(contest, prompts, race)
    if outcomes:
        write_formats(path, outcomes)
        print_folded(f"Formats with intervals: {path} (sweep … --formats {path})")
        print_folded(
            "The best of many formats is optimistic on the rows that it was chosen on: report it "
            "on other tables."
        )


def _print_race(results: Sequence[CellResult]) -> None:
    asked, total = race_calls(results)
    saved = f"{total - asked:,} calls saved ({100 * (total - asked) / total:.0f} %)"
    print(f"{results[0].model}: the race asked {asked:,} of {total:,} queries; {saved}")
    for name, why in dropped_formats(results).items():
        print(
            f"  dropped after {why.queries} of {why.of} queries: {name} "
            f"({why.points:+.1f} to {why.behind}; chance {100 * why.chance:.1g} %)"
        )


def _row(result: CellResult) -> dict[str, Any]:
    """Return a result as :func:`.printing.print_rows` takes it."""
    return {
        "dataset": result.question.name,
        "model": result.model,
        **result.metric_values,
        "scored": result.rows,
        "rows": result.of,
        "failed calls": result.failed,
    }
