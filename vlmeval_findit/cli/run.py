"""``run_findit.py run``: check the command line, then ask, or start VLMEvalKit's runner."""

from __future__ import annotations

import json
import logging
import math
import os
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from ..core import (
    EXIT_SOME_FAILED,
    RESULTS_VARIABLE,
    Runner,
    counted,
    find_runner,
    flag_name,
    hide_bars,
    host_flags,
    install_command,
    package_folder,
    quiet_log,
)
from ..engine import CellBuilder, Deployment, InVLMEvalKit
from ..models import Budget
from ..protocol import (
    FORCE_VARIABLE,
    LOGPROBS_VARIABLE,
    settings_from,
    skips_missing,
    wants_logprobs,
)
from ..serving import end_servers
from ..storage import SWEEP_JOURNAL, make_folders_of_host
from ..sweeps import SingleRuns, Sweep, ask_runs, own_journal, refuse_samples
from .command_base import (
    PATH,
    complete_datasets,
    complete_models,
    host_log_level,
    is_quiet,
    is_verbose,
    option,
    print_note,
    switch,
)
from .early_checks import check_amounts, check_folder, check_gpu_numbers, check_own_name
from .model_options import MODEL, model_options
from .other_words import flags_of
from .printing import print_rows, report_spending
from .result_lines import (
    print_doubts,
    print_readings,
    print_results,
    print_sampling,
    print_unknown_words,
)
from .run_line import (
    RunCommand,
    RunLine,
    check_image_roots,
    check_line,
    check_named,
    flag_names,
    parse_host_flags,
    refuse_foreign_words,
)
from .sweep import FORMATS_FILE, results_of, run_or_count
from .who_answers import all_deployments, budget_for, deployments_for, with_options

_FOR_HOST_MODELS = ("base_url", "key", "timeout", "extra_body")
"""Options that VLMEvalKit takes for its models."""


@click.command(
    cls=RunCommand,
    rare=("mode", "reuse", "judge_args"),
    context_settings={"ignore_unknown_options": True},
    examples=[
        "python run_findit.py run --data FindIt_Scenes_mini_xyxy_json --model FindIt-Nano",
        "python run_findit.py run --data FindIt_Scenes_mini_xywh_json --model FindIt-Nano-px",
        "python run_findit.py run --data FindIt_Scenes_mini_xyxy_json \\\n"
        "    --model Qwen3-VL=served-name --base-url http://localhost:8000/v1",
    ],
)
@option(
    "--data",
    "NAME …",
    "Datasets: FindIt's, or others.",
    multiple=True,
    shell_complete=complete_datasets,
)
@option("--model", "NAME …", f"Models: {MODEL}", multiple=True, shell_complete=complete_models)
@click.option("--mode", default="all", help="all, infer (ask only) or eval (score only).")
@option("--limit", "N", "The first N rows of every dataset.", type=int)
@option(
    "--work-dir",
    "DIR",
    "Folder of the results.",
    type=PATH,
    default="./outputs",
    envvar=RESULTS_VARIABLE,
)
@switch("--reuse", "Go on from the answers of an earlier run.")
@option("--judge-args", "JSON", "Settings of datasets, as VLMEvalKit has them.")
@option("--image-root", "KEY=DIR", "Folder of the images of a dataset (repeatable).", multiple=True)
@model_options("prompts", "samples", "dry_run", "logprobs", "force", "skip_missing_images")
@click.argument("rest", nargs=-1, type=click.UNPROCESSED, metavar="[VLMEVALKIT FLAGS]...")
def run_command(**values: Any) -> int:
    """Ask models about datasets and score the answers.

    All other flags go to VLMEvalKit's runner. The word "run" may be left out before --data.
    """
    run = RunLine(**values)
    options = run.options
    _set_environment(run)
    check_amounts(options, limit=run.limit)
    runner = None
    if options.samples is None and run.rest:
        if package_folder() is None:
            refuse_foreign_words(run.rest, flags_of(run_command), has_host=False)
        runner = find_runner(_host_arguments(run), _of_flag(run.rest[0]))
    host_values = parse_host_flags(runner, run, run_command)
    check_named(run)
    _note_results_folder(run)
    if options.samples is not None:
        return _run_samples(run)
    budget = Budget(options.max_usd or math.inf)
    retry = host_values.get("retry", 6)
    deployments: Sequence[Deployment] = ()
    if run.variants or run.is_http:
        deployments = all_deployments(_sweep(run), options, budget, retry, asks=run.asks)
    why_runner = _why_runner(run, deployments, host_values)
    if why_runner is not None and not options.dry_run:
        runner = find_runner(_host_arguments(run), why_runner)
    tables = CellBuilder(skips_missing())
    check_line(run, host_values, deployments, tables)
    if run.awaited:
        return 0
    if options.dry_run:
        from .dry_run import of_sweep

        return of_sweep(_sweep(run), options, partial(own_journal, run.work_dir))
    if why_runner is None:
        return _ask(run, tables, deployments, budget)
    assert runner is not None
    check_gpu_numbers()
    return _run(run, runner, deployments, budget)


def _run(run: RunLine, runner: Runner, deployments: Sequence[Deployment], budget: Budget) -> int:
    """Import VLMEvalKit, compare with what earlier runs recorded, and start its runner."""
    if not run.others:  # VLMEvalKit does not read its own JSON files; FindIt's are JSON anyway
        os.environ.setdefault("PRED_FORMAT", "json")
    hide_bars(is_quiet())
    # The scores of its own datasets are in its log only.
    quiet_log(logging.ERROR if is_quiet() else logging.NOTSET if run.others else host_log_level())
    make_folders_of_host()
    try:
        from ..host import OUTCOMES, preflight, register, run_host
    except ImportError as error:
        raise ValueError(
            f"VLMEvalKit cannot be imported ({error}): {install_command('run')}, "
            "or install a clone of it into this environment"
        ) from None
    register()
    options = run.options
    models = [entry.name for entry in run.entries]
    datasets = [name for name in run.data if name not in run.others]
    settings = json.dumps(run.settings) if run.settings else None
    arguments = _host_arguments(run)
    if is_verbose() and "--verbose" in flag_names(host_flags(runner.path)):
        arguments.append("--verbose")
    with preflight.models_of_command(deployments or map(InVLMEvalKit, run.entries)):
        if not any(word.partition("=")[0] == "--data-config" for word in run.rest):
            preflight.check_datasets(run.others, models)
        preflight.preflight(models, datasets, run.mode, run.work_dir, settings, run.limit)
        if run.mode != "eval":
            preflight.refuse_answers_of_others(models, run.others, run.work_dir)
        if is_verbose():
            print_note(f"VLMEvalKit: {runner.what}")
        try:
            run_host(runner, arguments, run.work_dir)
        finally:
            end_servers()
    if options.temperature:
        print_note(f"FindIt: replies sampled at temperature {options.temperature:g}")
    expected = [(model, name) for model in models for name in run.data]
    missing = OUTCOMES.missing(expected, scored=run.mode != "infer")
    for line in [*map(str, OUTCOMES.bad()), *missing]:
        print_note(f"FindIt: {line}")
    print_rows(OUTCOMES.scores())
    status = OUTCOMES.status or (EXIT_SOME_FAILED if missing else 0)
    status = report_spending(budget) or status
    if datasets:
        _say_where([run.work_dir / model for model in models], run, status)
    return status


def _say_where(folders: Iterable[Path], run: RunLine, status: int) -> None:
    """Say where answers lie and, if all is well, what to type next."""
    if is_quiet():
        return
    named = ", ".join(dict.fromkeys(map(str, folders)))
    print_note(f"FindIt: answers and scores in {named}")
    if not status:
        place = shlex.quote(str(run.work_dir))
        looks = f"score {place}" if run.mode == "infer" else f"report {place}"
        print_note(f"Next: run_findit.py {looks}")


def _why_runner(
    run: RunLine, deployments: Sequence[Deployment], host_values: Mapping[str, Any]
) -> str | None:
    """Say what VLMEvalKit's runner is needed for; None: FindIt asks all models itself."""
    if run.others:
        if package_folder() is None:  # Else names are checked when VLMEvalKit's are known
            for name in run.others:
                check_own_name(name)
        return f"--data {run.others[0]}: other datasets than FindIt's need VLMEvalKit's runner"
    for deployment in deployments:
        # Without VLMEvalKit nobody knows whose model it is: it is refused as an unknown one
        if isinstance(deployment, InVLMEvalKit) and package_folder() is not None:
            return f"--model {deployment.name}: {deployment.what} needs its runner"
    if run.mode != "all":
        return f"--mode {run.mode} needs VLMEvalKit's runner (findit score scores again)"
    # FindIt's engine retries, too
    flags = [flag_name(name) for name in host_values if name != "retry"]
    if not host_values:  # They may be unreadable
        flags = [*run.rest]
    if flags:
        return _of_flag(flags[0])
    if os.environ.get("WORLD_SIZE", "1") != "1":
        return "to share a run among the processes of torchrun needs VLMEvalKit's runner"
    table = os.environ.get("PRED_FORMAT", "").lower()
    if table not in ("", "json"):
        return f"PRED_FORMAT={table}: other tables than JSON need VLMEvalKit's runner"
    return None


def _of_flag(flag: str) -> str:
    return f"{flag.partition('=')[0]}: other flags than FindIt's need VLMEvalKit's runner"


def _ask(
    run: RunLine, tables: CellBuilder, deployments: Sequence[Deployment], budget: Budget
) -> int:
    """Ask models about datasets of FindIt's, without VLMEvalKit."""
    runs = SingleRuns(
        deployments=deployments,
        datasets=run.data,
        work_dir=run.work_dir,
        settings=settings_from(run.settings),
        limit=run.limit,
        logprobs=wants_logprobs(),
    )
    results, status = results_of(partial(ask_runs, runs, tables), run.work_dir)
    print_results(results)
    print_sampling(run.entries)
    print_doubts(results)
    print_readings(results)
    print_unknown_words(results, deployments)
    failed = sum(result.failed for result in results)
    if failed:
        print_note(
            f"{counted(failed, 'call')} failed; run the same command again to ask them again."
        )
    status = report_spending(budget) or status or (EXIT_SOME_FAILED if failed else 0)
    if results:
        _say_where([result.path.parent for result in results], run, status)
    return status


def _run_samples(run: RunLine) -> int:
    """Ask for several replies to each query as a sweep: VLMEvalKit's runner asks once."""
    flags = {"--reuse": run.reuse, "--mode": run.mode != "all"}
    settings = {"--judge-args": {*run.settings} - {"space"}}
    unused = [flag for flag, value in {**flags, **settings}.items() if value] + [*run.rest]
    if run.others or unused:
        what = f"{run.others[0]} is not FindIt's" if run.others else f"leave {unused[0]} out"
        raise ValueError(f"--samples: {what}; only FindIt's engine samples a query repeatedly")
    check_image_roots(run)
    check_folder(run.work_dir)
    sweep = _sweep(run)
    refuse_samples(sweep)
    if run.awaited:
        deployments_for(sweep, run.options, budget_for(sweep), awaited=True)
        return 0
    return run_or_count(sweep, run.options, sweep.work_dir / FORMATS_FILE)


def _sweep(run: RunLine) -> Sweep:
    reading: dict[str, Any] = {
        key: run.settings.get(key) for key in ("reads_like", "thought_marks")
    }
    sweep = Sweep(
        models=tuple(replace(entry, **reading) for entry in run.entries),
        variants=tuple(run.variants),
        limit=run.limit,
        logprobs=wants_logprobs(),
        work_dir=run.work_dir,
        journal=run.work_dir / SWEEP_JOURNAL,
        skip_missing=skips_missing(),
    )
    return with_options(sweep, run.options)


def _note_results_folder(run: RunLine) -> None:
    """Say that ``--work-dir`` was typed beside the variable that names another folder."""
    named = os.environ.get(RESULTS_VARIABLE)
    if named and Path(named) != run.work_dir:
        print_note(f"{RESULTS_VARIABLE}={named} is not used: --work-dir {run.work_dir}")


def _set_environment(run: RunLine) -> None:
    options = run.options
    if run.image_root:
        os.environ["FINDIT_IMAGES"] = ",".join(run.image_root)
    switches = {
        "FINDIT_SKIP_MISSING": options.skip_missing_images,
        FORCE_VARIABLE: options.force,
        LOGPROBS_VARIABLE: options.logprobs,
    }
    for name, is_on in switches.items():
        if is_on:
            os.environ[name] = "1"


def _host_arguments(run: RunLine) -> list[str]:
    """Return the options that VLMEvalKit's runner is started with."""
    options = run.options
    arguments = [*run.rest, "--mode", run.mode, "--work-dir", str(run.work_dir)]
    arguments += ["--data", *run.data, "--model", *(entry.name for entry in run.entries)]
    values: dict[str, Any] = {
        "judge_args": json.dumps(run.settings) if run.settings else None,
        "limit": run.limit,
        "api_nproc": options.api_nproc,
        "temperature": None if run.variants or run.is_http else options.temperature,
    }
    if not run.is_http and not options.serve:
        # A model of FindIt's never needs these, and VLMEvalKit would record the key.
        values |= {name: getattr(options, name) for name in _FOR_HOST_MODELS}
    for name, value in values.items():
        if value is not None:
            text = f"{value:g}" if isinstance(value, float) else str(value)
            arguments += [flag_name(name), text]
    if run.reuse:
        arguments.append("--reuse")
    return arguments
