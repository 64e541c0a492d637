"""``run_findit.py sweep``: models x datasets x formats from a file, resumable."""

from __future__ import annotations

import os
import shlex
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import click

from ..analysis import BestFormats
from ..core import (
    EXIT_INTERRUPTED,
    EXIT_LATER,
    EXIT_LIMIT_REACHED,
    EXIT_SOME_FAILED,
    as_called,
    config_here_or_shipped,
    install_command,
    package_folder,
    quiet_log,
)
from ..engine import (
    BackendFactories,
    BackendFactory,
    CallOptions,
    CancelToken,
    CellBuilder,
    DiskFullError,
    JournalTakenError,
    LostCallError,
    OwnModels,
    ServedModelBackends,
    ServerBackends,
    ServerPolicy,
    StoppedError,
    Watcher,
    cancelled_by_signals,
    naming_model,
    policy_of,
)
from ..models import Budget, ModelEntry, ModelOptions, with_logprobs
from ..scoring import CellResult
from ..serving import PROGRAMS, end_servers
from ..sweeps import (
    Sweep,
    UnfinishedError,
    all_variants,
    in_best_formats,
    read_sweep,
    refuse_samples,
    run_sweep,
)
from .access import (
    LOCAL,
    USED_BY_EACH,
    Access,
    access_of,
    refuse_unused,
    refuse_unused_keys,
    unused_sweep_keys,
)
from .command_base import PATH, Command, is_quiet, is_verbose, option, print_note, say
from .early_checks import (
    check_amounts,
    check_entry,
    check_folder,
    check_rows,
    note_of_shared_names,
)
from .model_options import MODEL_GROUPS, model_options
from .overriding import check_overridden
from .printing import print_folded, report_spending
from .progress import SweepProgress
from .result_lines import print_doubts, print_results, print_sampling, report_formats

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
    check_overridden(options, {"space": options.space_value}, sweep.models)
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
            raise ValueError(
                f"--formats {formats}: the file does not exist. Searches and sweeps over several "
                f"formats write one: run_findit.py search --model NAME --out {formats}"
            )
        sweep = in_best_formats(sweep, BestFormats(formats))
    return run_or_count(sweep, options, sweep.work_dir / "best_formats.yaml")


def with_options(sweep: Sweep, options: ModelOptions) -> Sweep:
    """Return a sweep with the options of a command line, which override its file.

    Raises ValueError for a key of a model that has no effect, if it is of a file.
    """
    changed = _overridden(sweep, options)
    for stated, entry in zip(sweep.models, changed.models, strict=True):
        if stated.where:
            refuse_unused_keys(stated, _access(changed, entry))
    return changed


def _overridden(sweep: Sweep, options: ModelOptions) -> Sweep:
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
    if formats_file.is_file():
        BestFormats(formats_file)  # Refused before the first call, if it is something else
    if options.dry_run:
        from .dry_run import of_sweep

        return of_sweep(sweep, options)
    budget = budget_for(sweep)
    status = run_and_print(sweep, backends_for(sweep, options, budget), formats_file)
    return report_spending(budget) or status


# --- who answers ----------------------------------------------------------------------------------


def budget_for(sweep: Sweep) -> Budget:
    """Make the budget that the calls of a sweep share."""
    return Budget() if sweep.max_usd is None else Budget(sweep.max_usd)


def backends_for(
    sweep: Sweep, options: ModelOptions, budget: Budget, *, asks: bool = True
) -> BackendFactories:
    """Return the backends of each model of a sweep; a ValueError for what cannot be run.

    A dry run (``asks``: False) needs neither images nor keys, nor VLMEvalKit, programs and devices;
    all else is checked as in a run. Models of VLMEvalKit's own have no backend then.
    """
    accesses = [(entry, _access(sweep, entry)) for entry in sweep.models]
    _refuse_unused(sweep, options, accesses)
    check_folder(sweep.work_dir)
    tables = CellBuilder(sweep.skip_missing if asks else None)
    needs_device = asks and options.executor == "local"
    for entry, access in accesses:
        variants = all_variants(sweep, entry.name)
        check_entry(entry, access, variants, needs_key=asks, needs_device=needs_device)
        if access not in _WITHOUT_HOST:
            check_rows(variants, tables, sweep.limit, sweep.pictures)
    factories = servers_for(sweep, options, accesses, budget, asks=asks)
    others = [(entry.name, access) for entry, access in accesses if entry.name not in factories]
    if others and asks:
        factories |= _in_process(others, options.executor, _inference(sweep, options), budget)
    elif others:
        own = (*LOCAL, Access.OPENROUTER)
        described = OwnModels(partial(_vlmevalkit, options.executor, sweep.inference, budget))
        factories |= {name: described for name, access in others if access in own}
    return factories


def _access(sweep: Sweep, entry: ModelEntry) -> Access:
    return Access.BATCH if sweep.batch else access_of(entry, sweep.serve is not None)


def _in_process(
    models: Iterable[tuple[str, Access]], executor: str, inference: CallOptions, budget: Budget
) -> dict[str, BackendFactory]:
    """Return the backends of models that VLMEvalKit makes; those of FindIt's make it wait."""
    if package_folder() is None:
        raise ValueError(f"VLMEvalKit is not installed: {install_command('run')}")
    host = cache(lambda: _vlmevalkit(executor, inference, budget))
    local = OwnModels(host)
    return {name: local if access in LOCAL else host() for name, access in models}


def servers_for(
    sweep: Sweep,
    options: ModelOptions,
    accesses: Sequence[tuple[ModelEntry, Access]],
    budget: Budget,
    retry: int = ServerPolicy().attempts,
    *,
    asks: bool = True,
) -> dict[str, BackendFactory]:
    """Return the backends of the models that servers, providers or servers of ours answer for.

    A call is tried ``retry`` times at most. ``asks``: as for :func:`backends_for`.
    """
    inference = _inference(sweep, options)
    batch = sweep.batch
    serving = sweep.serve
    over_http = [entry.name for entry, access in accesses if access in _WITHOUT_HOST]
    served = [entry.name for entry, access in accesses if access is Access.SERVED]
    factories: dict[str, BackendFactory] = {}
    policy = policy_of(retry)
    if served:
        assert serving is not None
        nobody_said = inference.threads == CallOptions().threads
        calls = PROGRAMS[serving.program].calls if nobody_said else inference.threads
        threads = replace(inference, threads=calls)
        started = ServedModelBackends(serving, threads, sweep.work_dir, policy, asks=asks)
        factories |= dict.fromkeys(served, started)
    if sweep.logprobs:
        for entry, access in accesses:
            if access in (*_WITHOUT_HOST, Access.SERVED):
                with naming_model(entry):
                    with_logprobs(entry.settings)
    if over_http:
        if batch is not None and sweep.logprobs and batch.is_plain:
            raise ValueError(f"--logprobs: the {batch.value} interface gives none")
        headers, key = options.header, options.key
        servers = ServerBackends((), inference, headers, budget, batch, key, policy, asks)
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


def _refuse_unused(
    sweep: Sweep, options: ModelOptions, accesses: Sequence[tuple[ModelEntry, Access]]
) -> None:
    """Refuse flags and keys that no model uses, and flags that not all use that must."""
    by_name = [(entry.name, access) for entry, access in accesses]
    on_ray = list[tuple[str, Access]]()
    if options.executor == "ray":
        elsewhere = (*_WITHOUT_HOST, Access.OPENROUTER, Access.SERVED)
        on_ray = [(name, Access.RAY) for name, access in by_name if access not in elsewhere]
    of_each = [name for name in options.specified if name in USED_BY_EACH]
    refuse_unused([name for name in options.specified if name not in of_each], [*by_name, *on_ray])
    refuse_unused(of_each, by_name)
    for line in unused_sweep_keys(sweep.places, [*by_name, *on_ray]):
        print_note(line)


def _vlmevalkit(executor: str, inference: CallOptions, budget: Budget) -> BackendFactory:
    """Import VLMEvalKit, which knows models on this machine and OpenRouter's."""
    os.environ.setdefault("PRED_FORMAT", "json")
    quiet_log(is_quiet())
    try:
        from ..host import VLMEvalKitBackends
    except ImportError as error:
        raise ValueError(
            f"VLMEvalKit cannot be imported ({error}): {install_command('run')}"
        ) from None
    if executor == "local":
        return VLMEvalKitBackends(inference, budget=budget)
    from ..engine import RayBackend

    return VLMEvalKitBackends(inference, RayBackend, budget)


# --- the run --------------------------------------------------------------------------------------


def run_and_print(sweep: Sweep, factories: BackendFactories, formats_file: Path) -> int:
    """Run a sweep, print its scores, and write the best formats if it has several."""
    results, status = results_of(partial(run_sweep, sweep, factories), sweep.journal)
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
    print_doubts(results)
    if failed:
        say(f"{failed} calls failed; run the same command again to ask them again.")
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
    except (DiskFullError, JournalTakenError) as error:
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
    finally:
        end_servers(wait=status != EXIT_INTERRUPTED)
    return results, status


def _write_from_handler(line: str) -> None:
    # Not print: in a signal's handler the stream may be in the middle of another line.
    os.write(2, f"{line}\n".encode())
