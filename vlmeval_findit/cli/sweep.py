"""``run_findit.py sweep``: whole grids from a file, on one engine that loses nothing."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

from ..benchmarks import benchmark_of
from ..core.command import INTERRUPTED, LATER, NO_MORE, SOME_FAILED, config_here_or_shipped, install
from ..core.vlmevalkit import package_folder
from ..engine.answering import Host, Hosts, StoppedError
from ..engine.backend import Inference
from ..engine.cancel import cancelled_by_signals
from ..engine.finished import LateHost
from ..engine.journal.writer import DiskFullError, NotOursError
from ..engine.served import ServedHost
from ..engine.servers import ServersHost
from ..models.http.spending import Budget
from ..runs.best_format import worst
from ..runs.cell_result import Result
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
from .batch import add_batch_flag, batch_kind, check_batch
from .export_config import export
from .parsing import Parser
from .printing import print_rows, report_spending
from .progress import SweepProgress, at_once_lines, tokens_line
from .provider import PRICES_HELP, add_provider_flag, all_at_provider
from .refusals import check_amounts, check_sweep
from .serve import add_serve_flags, serving_from
from .ways import Way, given_flags, refuse_unused, way_of

CONFIDENCES_HELP = (
    "record how probable the tokens of every reply were; answers of earlier runs without are "
    "asked for again"
)
FORCE_HELP = "go on although something contradicts what a run recorded; the result says so"

ASKED_THERE = (Way.SERVER, Way.PROVIDER, Way.BATCH)
"""Ways of asking for which VLMEvalKit is not needed."""


def main(argv: Sequence[str]) -> int:
    """Models x datasets x formats from a YAML file.

    Returns 0 when every call was answered, 1 when some failed (run again to ask them again), 3 when
    the disk was full or the spending limit was reached, 4 when no batch service was reached (run
    again to collect them), 130 when it was stopped.
    """
    parser = Parser(prog="run_findit.py sweep", description=__doc__)
    parser.add_argument("config", type=Path, help="configs/<name>.yaml")
    parser.add_argument("--formats", type=Path, help="best formats: each model in its own")
    parser.add_argument("--dry-run", action="store_true", help="count, and ask nothing")
    parser.add_argument(
        "--export-config", type=Path, metavar="FILE", help="write VLMEvalKit's --config instead"
    )
    parser.add_argument("--limit", type=int, help="the first so many rows of every table")
    parser.add_argument(
        "--work-dir",
        type=Path,
        help="overrides work_dir in the file; calls.jsonl too is there, where nothing names it",
    )
    parser.add_argument("--journal", type=Path, help="overrides journal in the file")
    parser.add_argument("--confidences", action="store_true", help=CONFIDENCES_HELP)
    parser.add_argument("--force", action="store_true", help=FORCE_HELP)
    add_executor_flags(parser)
    add_batch_flag(parser)
    args = parser.parse_args(argv)
    sweep = _overridden(read_sweep(config_here_or_shipped(args.config), args.work_dir), args)
    sweep = all_at_provider(sweep, args)
    if args.formats:
        if sweep.race is not None:
            why = "--formats asks each model in one only"
            raise ValueError(f"{args.config} races formats, and {why}")
        sweep = in_best_formats(sweep, _formats(args.formats))
    if args.export_config:
        return export(sweep, args.export_config)
    if args.dry_run:
        from .dry_run import of_sweep

        return of_sweep(sweep, bool(args.endpoints or sweep.batch))
    budget = budget_for(sweep, args)
    hosts = hosts_for(sweep, args, budget)
    status = run(sweep, hosts, sweep.work_dir / "best_formats.yaml")
    return report_spending(budget) or status


def _formats(path: Path) -> BestFormats:
    if not path.is_file():
        raise ValueError(
            f"--formats {path}: no such file. Searches and sweeps over several formats write one: "
            f"run_findit.py search --model NAME --out {path}"
        )
    return BestFormats(path)


def add_executor_flags(parser: argparse.ArgumentParser) -> None:
    """The flags that say who answers."""
    parser.add_argument(
        "--executor",
        choices=("local", "ray"),
        default="local",
        help="ray: replicas of the model over a Ray cluster (RAY_ADDRESS, else a local one)",
    )
    parser.add_argument("--replicas", type=int, help="of the model on a Ray cluster")
    parser.add_argument(
        "--gpus", type=float, help="of each replica on a Ray cluster; of this machine with --serve"
    )
    add_serve_flags(parser)
    parser.add_argument(
        "--endpoints",
        "--base-url",
        metavar="URL,URL|@FILE",
        help="OpenAI-compatible servers of one model, up to and with /v1; @FILE: one a line, "
        "followed while the file changes",
    )
    add_provider_flag(parser)
    parser.add_argument(
        "--header",
        action="append",
        default=[],
        metavar="'NAME: VALUE'",
        help="of every request to the endpoints or the provider (again and again)",
    )
    parser.add_argument("--threads", type=int, help="calls at a time to an API or each endpoint")
    parser.add_argument("--timeout", type=float, help="seconds for one attempt of such a call")
    parser.add_argument(
        "--max-usd", type=float, help="stop before calls over HTTP cost more US dollars than this"
    )
    parser.add_argument("--prices", metavar="IN,OUT", help=PRICES_HELP)


def budget_for(sweep: Sweep, args: argparse.Namespace) -> Budget:
    """What the calls of a sweep may cost together: what the flag says goes before the file.

    Raises:
        ValueError: it is no amount.
    """
    check_amounts({"max_usd": args.max_usd})
    limit = sweep.max_usd if args.max_usd is None else args.max_usd
    if limit is None:
        return Budget()
    return Budget(limit)


def hosts_for(sweep: Sweep, args: argparse.Namespace, budget: Budget) -> Hosts:
    """Who answers the calls of a sweep, and spends from a budget.

    Raises:
        ValueError: flags contradict, or what they need is not installed.
    """
    given = {name: getattr(args, name) for name in ("threads", "timeout", "replicas", "gpus")}
    inference = replace(sweep.inference, **{k: v for k, v in given.items() if v is not None})
    check_amounts(given)
    called, serving = bool(args.endpoints or sweep.batch), sweep.serve
    ways = [
        (entry, Way.BATCH if sweep.batch else way_of(entry, called, serving is not None))
        for entry in sweep.models
    ]
    here = [(entry, way) for entry, way in ways if way not in ASKED_THERE]
    not_on_ray = (Way.OPENROUTER, Way.SERVED)
    on_ray = [entry for entry, way in here if way not in not_on_ray and args.executor == "ray"]
    pairs = [*ways, *((entry, Way.RAY) for entry in on_ray)]
    refuse_unused(given_flags(args), [(entry.name, way) for entry, way in pairs])
    check_sweep(sweep, here)
    hosts: dict[str, Host] = {}
    found = [way for _, way in ways]
    if any(way not in (*ASKED_THERE, Way.SERVED) for way in found):
        others = _host_here(args, inference, budget)
        hosts |= {entry.name: others for entry, way in here if way is not Way.SERVED}
    if Way.SERVED in found:
        assert serving is not None
        served = ServedHost(serving, _for_servers(inference, serving), sweep.work_dir)
        hosts |= {entry.name: served for entry, way in here if way is Way.SERVED}
    if len(here) < len(ways):
        urls = args.endpoints.split(",") if args.endpoints else []
        check_batch(sweep)
        servers = ServersHost(urls, inference, args.header, budget, sweep.batch)
        hosts |= {entry.name: servers for entry, way in ways if way in ASKED_THERE}
    return hosts


def _for_servers(inference: Inference, serving: Serving) -> Inference:
    """Calls at a time as the servers' program takes them, where nobody said a number."""
    if inference.threads != Inference().threads:
        return inference
    return replace(inference, threads=PROGRAMS[serving.program].calls)


def _host_here(args: argparse.Namespace, inference: Inference, budget: Budget) -> Host:
    """VLMEvalKit, which knows models on this machine and OpenRouter's.

    Raises:
        ValueError: it is not installed.
    """
    if package_folder() is None:
        raise ValueError(f"VLMEvalKit is not installed: {install('run')}")
    return cast(Host, LateHost(partial(_import_host, args, inference, budget)))


def _import_host(args: argparse.Namespace, inference: Inference, budget: Budget) -> Host:
    os.environ.setdefault("PRED_FORMAT", "json")
    # VLMEvalKit calls it an error that nobody wrote a .env file into its folder.
    logging.getLogger().addFilter(lambda record: ".env file" not in record.getMessage())
    try:
        from ..host.sweep_host import VLMEvalKitHost
    except ImportError as error:
        raise ValueError(f"VLMEvalKit cannot be imported ({error}): {install('run')}") from None
    if args.executor == "local":
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
    report_formats(results, formats_file, sweep.race)
    for result in results:
        if result.doctor is not None:
            print(f"{result.model} {result.question.name}: {result.doctor}")
    failed = sum(result.failed for result in results)
    if failed:
        print(f"{failed} calls failed; run the same command again to ask them again.")
    return SOME_FAILED if failed else 0


def results_of(sweep: Sweep, hosts: Hosts) -> tuple[Sequence[Result], int]:
    """Run a sweep: its finished cells, and the exit status of what ended it (0: nothing did)."""
    status = INTERRUPTED
    try:
        results, status = _results_of(sweep, hosts)
        return results, status
    finally:
        end(wait=status != INTERRUPTED)


def _results_of(sweep: Sweep, hosts: Hosts) -> tuple[Sequence[Result], int]:
    with cancelled_by_signals(_say) as stop, SweepProgress() as progress:
        try:
            results = run_sweep(sweep, hosts, progress, stop)
        except (StoppedError, KeyboardInterrupt) as error:
            print(str(error) or f"stopped at once; see {sweep.journal}", file=sys.stderr)
            return (), INTERRUPTED
        except DiskFullError as error:
            print(f"error: {error}", file=sys.stderr)
            return (), NO_MORE
        except NotOursError as error:
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


def report_formats(results: Sequence[Result], path: Path, race: Race | None = None) -> None:
    """Name the best format of every model and benchmark with several, and write them down."""
    found: dict[str, dict[str, Mapping[str, Any]]] = {}
    contests: dict[tuple[str, str], list[Result]] = {}
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


def _print_race(results: Sequence[Result]) -> None:
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


def _overridden(sweep: Sweep, args: argparse.Namespace) -> Sweep:
    given: dict[str, Any] = {"limit": args.limit, "journal": args.journal, "force": args.force}
    given["confidences"] = args.confidences or sweep.confidences
    given["batch"] = batch_kind(args)
    given["serve"] = serving_from(args, sweep.serve)
    check_amounts({"limit": args.limit})
    return replace(sweep, **{name: value for name, value in given.items() if value is not None})


def _row(result: Result) -> dict[str, Any]:
    """A result with the columns that :func:`.printing.print_rows` shows."""
    return {
        "dataset": result.question.name,
        "model": result.model,
        **result.figures,
        "scored": result.rows,
        "rows": result.of,
        "failed calls": result.failed,
    }
