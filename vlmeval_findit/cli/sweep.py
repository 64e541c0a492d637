"""``run_findit.py sweep``: models x datasets x formats from a file, resumable."""

from __future__ import annotations

import os
import shlex
import traceback
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import click

from ..analysis import BestFormats
from ..core import (
    EXIT_INTERRUPTED,
    EXIT_LATER,
    EXIT_LIMIT_REACHED,
    EXIT_SOME_FAILED,
    as_called,
    config_here_or_shipped,
    counted,
    not_there,
)
from ..engine import (
    CancelToken,
    Deployment,
    DiskFullError,
    JournalCutError,
    JournalTakenError,
    LostCallError,
    StoppedError,
    UnwrittenError,
    Watcher,
    cancelled_by_signals,
)
from ..models import ModelOptions
from ..scoring import CellResult
from ..serving import end_servers
from ..sweeps import Sweep, UnfinishedError, in_best_formats, read_sweep, refuse_samples, run_sweep
from .command_base import PATH, is_quiet, is_verbose, option, print_note, say
from .early_checks import check_amounts, note_of_shared_names
from .model_options import AskingCommand, model_options
from .overriding import check_overridden
from .printing import print_folded, report_spending
from .progress import SweepProgress
from .result_lines import (
    print_doubts,
    print_results,
    print_sampling,
    print_unknown_words,
    report_formats,
)
from .who_answers import budget_for, deployments_for, with_options

FORMATS_FILE = "best_formats.yaml"


@click.command(
    cls=AskingCommand,
    examples=[
        "python run_findit.py sweep configs/smoke.yaml --dry-run",
        "python run_findit.py sweep configs/smoke.yaml  # needs photographs: the extra data",
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
    "prompts",
    "samples",
    "dry_run",
    "batch",
    "executor",
    "replicas",
    "logprobs",
    "force",
    "skip_missing_images",
)
def sweep_command(
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
    check_overridden(options, {"space": options.space_value}, sweep.models, sweep.serve)
    sweep = with_options(sweep, options)
    sweep = replace(sweep, limit=limit or sweep.limit, journal=journal or sweep.journal)
    refuse_samples(sweep)
    if not is_quiet() and (note := note_of_shared_names(table.name for table in sweep.tables)):
        print_note(note)
    if formats is not None:
        if sweep.race:
            raise ValueError(
                f"{config} races formats, but --formats names one for each model. Leave it out"
            )
        if not formats.is_file():
            made = (
                ". Searches and sweeps over several formats write one: run_findit.py search "
                f"--model NAME --out {formats}"
            )
            raise ValueError(f"--formats {formats}: the file {not_there(formats, made)}")
        sweep = in_best_formats(sweep, BestFormats(formats))
    return run_or_count(sweep, options, sweep.work_dir / FORMATS_FILE)


def run_or_count(sweep: Sweep, options: ModelOptions, formats_file: Path) -> int:
    """Run a sweep, or count its calls with ``--dry-run``; returns the exit status."""
    if formats_file.is_file():
        BestFormats(formats_file)  # Refused before the first call, if it is something else
    if options.dry_run:
        from .dry_run import of_sweep

        return of_sweep(sweep, options)
    budget = budget_for(sweep)
    status = run_and_print(sweep, deployments_for(sweep, options, budget), formats_file)
    return report_spending(budget) or status


# --- the run --------------------------------------------------------------------------------------


def run_and_print(sweep: Sweep, deployments: Sequence[Deployment], formats_file: Path) -> int:
    """Run a sweep, print its scores, and write the best formats if it has several."""
    results, status = results_of(partial(run_sweep, sweep, deployments), sweep.journal)
    failed = sum(result.failed for result in results)
    results = [result for result in results if result.sample == 1]
    print_results([result for result in results if status or result.dropped is None])
    if status:
        return status
    print_sampling(sweep.models)
    if sweep.samples > 1:
        command = f"python run_findit.py samples {shlex.quote(str(sweep.work_dir))}"
        print_folded(as_called(f"These are the first of {sweep.samples} samples; all: {command}"))
    report_formats(results, formats_file, sweep.race, sweep.models)
    # `run` shares this module, and needs no leaderboard.
    from .ablation_lines import report_ablations

    report_ablations(results if len(sweep.stages) == 1 else (), sweep.work_dir)
    print_doubts(results)
    print_unknown_words(results, deployments)
    if failed:
        say(f"{counted(failed, 'call')} failed; run the same command again to ask them again.")
    return EXIT_SOME_FAILED if failed else 0


def results_of(
    run_cells: Callable[[Watcher, CancelToken], Sequence[CellResult]], answers: Path
) -> tuple[Sequence[CellResult], int]:
    """Run cells: those that finished, and the exit status of what ended it (0: nothing did).

    ``answers`` is the place of the journal, or of several.
    """
    results: Sequence[CellResult] = ()
    status = EXIT_INTERRUPTED
    try:
        with cancelled_by_signals(_write_from_handler) as cancel, SweepProgress() as progress:
            results = run_cells(progress, cancel)
        status = 0
        progress.print_tokens()
    except (StoppedError, KeyboardInterrupt) as error:
        print_note(str(error) or f"stopped at once; see {answers}")
    except (DiskFullError, JournalCutError, JournalTakenError, UnwrittenError) as error:
        print_note(f"error: {error}")
        status = EXIT_LIMIT_REACHED if isinstance(error, DiskFullError) else EXIT_SOME_FAILED
    except LostCallError as error:
        if is_verbose():
            traceback.print_exc()
        print_note(f"error: {error}")
        status = EXIT_SOME_FAILED
    except UnfinishedError as error:  # reported by the progress
        results = error.results
        status = (
            EXIT_LIMIT_REACHED if error.spent else EXIT_LATER if error.later else EXIT_SOME_FAILED
        )
        if status == EXIT_SOME_FAILED:
            print_note("Once that is mended, type the same command again: it goes on.")
    finally:
        end_servers(wait=status != EXIT_INTERRUPTED)
    return results, status


def _write_from_handler(line: str) -> None:
    # Not print: in a signal's handler the stream may be in the middle of another line.
    os.write(2, f"{line}\n".encode())
