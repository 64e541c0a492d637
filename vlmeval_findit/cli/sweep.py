"""``run_findit.py sweep``: whole grids from a file, on one engine that loses nothing."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Mapping, Sequence
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
from ..core.vlmevalkit import package_folder
from ..engine.answering import Host, Hosts, StoppedError
from ..engine.backend import Inference
from ..engine.cancel import cancelled_by_signals
from ..engine.journal.writer import DiskFullError, JournalTakenError
from ..engine.served import ServedHost
from ..engine.servers import ServersHost
from ..models.http.spending import Budget
from ..models.options import ModelOptions
from ..runs.best_format import worst
from ..runs.cell_results import CellResult
from ..runs.format_file import (
    BestFormats,
    averages,
    dropped_formats,
    outcome,
    race_calls,
    write_formats,
)
from ..serving.processes import end
from ..serving.programs import PROGRAMS, Serving
from ..sweeps.config import Race, Sweep, in_best_formats, read_sweep
from ..sweeps.run import UnfinishedError, run_sweep
from .model_options import (
    BATCH,
    CONFIDENCES,
    DRY_RUN,
    EXECUTOR,
    REPLICAS,
    SKIP_MISSING,
    model_options,
)
from .options import PATH, Command, force_option
from .printing import print_folded, print_rows, report_spending
from .progress import SweepProgress, at_once_lines, tokens_line
from .refusals import check_amounts, check_sweep
from .ways import USED_BY_EACH, Way, refuse_unused, way_of

ASKED_THERE = (Way.SERVER, Way.PROVIDER, Way.BATCH)
"""Ways of asking for which VLMEvalKit is not needed."""


@click.command(
    cls=Command,
    examples=[
        "python run_findit.py sweep configs/smoke.yaml --dry-run",
        "python run_findit.py sweep sweep.yaml --base-url http://localhost:8000/v1",
    ],
)
@click.argument("config", metavar="FILE.yaml", type=PATH)
@click.option(
    "--formats", type=PATH, metavar="FILE", help="Best formats: each model is asked in its own."
)
@click.option("--limit", type=int, metavar="N", help="The first N rows of every table.")
@click.option(
    "--work-dir",
    type=PATH,
    metavar="DIR",
    help="Overrides work_dir in the file; calls.jsonl too is there, where nothing names it.",
)
@click.option("--journal", type=PATH, metavar="FILE", help="Overrides journal in the file.")
@model_options(DRY_RUN, BATCH, EXECUTOR, REPLICAS, CONFIDENCES, force_option, SKIP_MISSING)
def command(
    how: ModelOptions,
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
    check_amounts(how, limit=limit)
    sweep = with_options(sweep, how)
    sweep = replace(sweep, limit=limit or sweep.limit, journal=journal or sweep.journal)
    if formats is not None:
        if sweep.race is not None:
            why = "--formats asks each model in one only"
            raise ValueError(f"{config} races formats, and {why}")
        sweep = in_best_formats(sweep, _formats(formats))
    return ask(sweep, how, sweep.work_dir / "best_formats.yaml")


def with_options(sweep: Sweep, how: ModelOptions) -> Sweep:
    """Return a sweep with the options of a command line, which override its file.

    Raises:
        ValueError: one of them cannot be used.
    """
    return replace(
        sweep,
        models=tuple(map(how.applied, sweep.models)),
        confidences=how.confidences or sweep.confidences,
        force=how.force,
        skip_missing=how.skip_missing_images or sweep.skip_missing,
        batch=how.batch or sweep.batch,
        serve=how.serving(sweep.serve),
        max_usd=sweep.max_usd if how.max_usd is None else how.max_usd,
    )


def ask(sweep: Sweep, how: ModelOptions, formats_file: Path) -> int:
    """Run a sweep, or count its calls, and write the best formats; returns the exit status."""
    if how.dry_run:
        from .dry_run import of_sweep

        return of_sweep(sweep)
    budget = budget_for(sweep)
    status = run(sweep, hosts_for(sweep, how, budget), formats_file)
    return report_spending(budget) or status


def _formats(path: Path) -> BestFormats:
    if not path.is_file():
        raise ValueError(
            f"--formats {path}: no such file. Searches and sweeps over several formats write one: "
            f"run_findit.py search --model NAME --out {path}"
        )
    return BestFormats(path)


def budget_for(sweep: Sweep) -> Budget:
    """What the calls of a sweep may cost together."""
    return Budget() if sweep.max_usd is None else Budget(sweep.max_usd)


def hosts_for(sweep: Sweep, how: ModelOptions, budget: Budget) -> Hosts:
    """Who answers the calls of a sweep, and spends from a budget.

    Raises:
        ValueError: options contradict, or what they need is not installed.
    """
    said = {
        "threads": how.api_nproc,
        "timeout": how.timeout,
        "replicas": how.replicas,
        "gpus": how.gpus,
    }
    given: dict[str, Any] = {name: value for name, value in said.items() if value is not None}
    inference = replace(sweep.inference, **given)
    serving = sweep.serve
    ways = [
        (entry, Way.BATCH if sweep.batch else way_of(entry, serving is not None))
        for entry in sweep.models
    ]
    here = [(entry, way) for entry, way in ways if way not in ASKED_THERE]
    not_on_ray = (Way.OPENROUTER, Way.SERVED)
    on_ray = [entry for entry, way in here if way not in not_on_ray and how.executor == "ray"]
    by_name = [(entry.name, way) for entry, way in ways]
    refuse_unused(
        [name for name in how.given if name not in USED_BY_EACH],
        [*by_name, *((entry.name, Way.RAY) for entry in on_ray)],
    )
    refuse_unused([name for name in how.given if name in USED_BY_EACH], by_name)
    check_sweep(sweep, here)
    hosts: dict[str, Host] = {}
    found = [way for _, way in ways]
    if any(way not in (*ASKED_THERE, Way.SERVED) for way in found):
        others = _host_here(how.executor, inference, budget)
        hosts |= {entry.name: others for entry, way in here if way is not Way.SERVED}
    if Way.SERVED in found:
        assert serving is not None
        served = ServedHost(serving, _for_servers(inference, serving), sweep.work_dir)
        hosts |= {entry.name: served for entry, way in here if way is Way.SERVED}
    if len(here) < len(ways):
        if sweep.batch is not None and sweep.confidences and sweep.batch.is_plain:
            raise ValueError(f"--confidences: the {sweep.batch.value} interface gives none")
        servers = ServersHost((), inference, how.header, budget, sweep.batch, how.key)
        hosts |= {entry.name: servers for entry, way in ways if way in ASKED_THERE}
    return hosts


def _for_servers(inference: Inference, serving: Serving) -> Inference:
    """Calls at a time as the servers' program takes them, where nobody said a number."""
    if inference.threads != Inference().threads:
        return inference
    return replace(inference, threads=PROGRAMS[serving.program].calls)


def _host_here(executor: str, inference: Inference, budget: Budget) -> Host:
    """VLMEvalKit, which knows models on this machine and OpenRouter's.

    Raises:
        ValueError: it is not installed.
    """
    if package_folder() is None:
        raise ValueError(f"VLMEvalKit is not installed: {install('run')}")
    os.environ.setdefault("PRED_FORMAT", "json")
    # VLMEvalKit calls it an error that nobody wrote a .env file into its folder.
    logging.getLogger().addFilter(lambda record: ".env file" not in record.getMessage())
    try:
        from ..host.sweep_host import VLMEvalKitHost
    except ImportError as error:
        raise ValueError(f"VLMEvalKit cannot be imported ({error}): {install('run')}") from None
    if executor == "local":
        return VLMEvalKitHost(inference, budget=budget)
    from ..engine.ray_backend import RayBackend

    return VLMEvalKitHost(inference, RayBackend, budget)


def run(sweep: Sweep, hosts: Hosts, formats_file: Path) -> int:
    """Run a sweep, print its scores, write the best formats where there were several."""
    if formats_file.is_file():
        BestFormats(formats_file)  # refused before the first call, if it is something else
    results, status = results_of(sweep, hosts)
    print_rows(_row(result) for result in results if status or result.dropped is None)
    if status:
        return status
    for entry in sweep.models:
        if temperature := entry.settings.get("temperature"):
            print(f"{entry.name}: replies were sampled at temperature {temperature:g}")
    report_formats(results, formats_file, sweep.race)
    _print_doubts(results)
    failed = sum(result.failed for result in results)
    if failed:
        print(f"{failed} calls failed; run the same command again to ask them again.")
    return SOME_FAILED if failed else 0


def _print_doubts(results: Sequence[CellResult]) -> None:
    """Name the runs whose answers follow another convention than the declared one."""
    by_model: dict[str, list[CellResult]] = {}
    for result in results:
        if result.coords_doubt is not None:
            by_model.setdefault(result.model, []).append(result)
    for model, doubtful in by_model.items():
        first = doubtful[0]
        more = f" and {len(doubtful) - 1} more" if len(doubtful) > 1 else ""
        print_folded(f"{model} {first.question.name}{more}: {first.coords_doubt}")
        if more:
            folder = os.path.commonpath([result.path.parent for result in doubtful])
            print_folded(as_called(f"  each of them: python run_findit.py coords {folder}"))


def results_of(sweep: Sweep, hosts: Hosts) -> tuple[Sequence[CellResult], int]:
    """Run a sweep: its finished cells, and the exit status of what ended it (0: nothing did)."""
    status = INTERRUPTED
    try:
        results, status = _results_of(sweep, hosts)
        return results, status
    finally:
        end(wait=status != INTERRUPTED)


def _results_of(sweep: Sweep, hosts: Hosts) -> tuple[Sequence[CellResult], int]:
    with cancelled_by_signals(_say) as stop, SweepProgress() as progress:
        try:
            results = run_sweep(sweep, hosts, progress, stop)
        except (StoppedError, KeyboardInterrupt) as error:
            print(str(error) or f"stopped at once; see {sweep.journal}", file=sys.stderr)
            return (), INTERRUPTED
        except DiskFullError as error:
            print(f"error: {error}", file=sys.stderr)
            return (), NO_MORE
        except JournalTakenError as error:
            print(f"error: {error}", file=sys.stderr)
            return (), SOME_FAILED
        except UnfinishedError as error:
            print(f"error: {error}", file=sys.stderr)
            status = NO_MORE if error.spent else LATER if error.later else SOME_FAILED
            return error.results, status
    if line := tokens_line(progress.state.tokens):
        print(line, file=sys.stderr)
    for line in at_once_lines(progress.state.at_once):
        print(line, file=sys.stderr)
    return results, 0


def _say(line: str) -> None:
    # Not print: in a signal's handler the stream may be in the middle of another line.
    os.write(2, f"{line}\n".encode())


def report_formats(results: Sequence[CellResult], path: Path, race: Race | None = None) -> None:
    """Name the best format of every model and benchmark with several, and write them down."""
    found: dict[str, dict[str, Mapping[str, Any]]] = {}
    contests: dict[tuple[str, str], list[CellResult]] = {}
    for result in results:
        if result.compared:
            key = result.model, benchmark_of(result.question).name
            contests.setdefault(key, []).append(result)
    for (model, name), own in contests.items():
        ranked, benchmark = averages(own), benchmark_of(own[0].question)
        several = len({result.question.format for result in own}) > 1
        if race is not None and several:
            _print_race(own)
        several = len(ranked) > 1 or any(result.dropped is not None for result in own)
        if several and all(result.failed < result.rows for result in own):
            best = ranked[0]
            over = f", on average over {best.columns} tables" if best.columns > 1 else ""
            figure = next(iter(best.figures.values()))
            headline = benchmark.metrics[0].title
            if figure == worst(benchmark.ranking[0]):
                where = f"{figure:g} in all {len(ranked)} formats"
                print(f"{model}: no best format: {headline} is {where}")
                continue
            print(f"{model}: best format on {name} {best.format} ({headline} {figure:.1f}{over})")
            seed = None if race is None else race.seed
            found.setdefault(model, {})[name] = outcome(own, benchmark.prompts()[0].name, seed)
    if found:
        write_formats(path, found)
        print(f"Formats with intervals: {path} (sweep … --formats {path})")
        print(
            "The best of many formats is optimistic on the rows that it was chosen on. Report it "
            f"on other tables (sweep … --formats {path}), or choose on half of the pictures and "
            f"report on the rest: leaderboard {results[0].path.parents[1]} --choose-on half"
        )


def _print_race(results: Sequence[CellResult]) -> None:
    """What the race of one model saved, and which formats it dropped after how many queries."""
    asked, of = race_calls(results)
    saved = f"{of - asked:,} calls saved ({100 * (of - asked) / of:.0f} %)"
    print(f"{results[0].model}: the race asked {asked:,} of {of:,} queries; {saved}")
    for result in dropped_formats(results):
        why = result.dropped
        assert why is not None
        print(
            f"  dropped after {why.queries} of {why.of} queries: {result.question.format} "
            f"({why.points:+.1f} to {why.behind}; chance {100 * why.chance:.1g} %)"
        )


def _row(result: CellResult) -> dict[str, Any]:
    """A result with the columns that :func:`.printing.print_rows` shows."""
    return {
        "dataset": result.question.name,
        "model": result.model,
        **result.figures,
        "scored": result.rows,
        "rows": result.of,
        "failed calls": result.failed,
    }
