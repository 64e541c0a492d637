"""``run_findit.py run``: check the command line, then start VLMEvalKit's runner."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from ..benchmarks import is_meant, parse
from ..core.command import SOME_FAILED, install
from ..core.question import Question
from ..core.settings import FORCE_VARIABLE, LOGPROBS_VARIABLE, skips_missing
from ..core.vlmevalkit import Runner, find_runner, host_flags, package_folder, quiet_log
from ..models.model_entry import ModelEntry
from ..serving.processes import end
from ..sweeps.sweep_file import Sweep, refuse_samples
from .access import Access, flag_name
from .early_checks import check_amounts, check_folder, check_rows
from .model_options import (
    DRY_RUN,
    LOGPROBS,
    MODEL,
    MODEL_GROUPS,
    SAMPLES,
    SKIP_MISSING,
    model_options,
)
from .printing import print_rows, report_spending
from .run_line import (
    RunCommand,
    RunOptions,
    check_findit,
    check_host,
    check_image_roots,
    check_named,
    flag_names,
    parse_host_flags,
)
from .shared_options import (
    PATH,
    complete_datasets,
    complete_models,
    force_option,
    is_quiet,
    is_verbose,
    print_note,
)
from .sweep import run_or_count, with_options

_FOR_HOST_MODELS = ("base_url", "key", "timeout", "extra_body")
"""Options that VLMEvalKit takes for its models."""


@click.command(
    cls=RunCommand,
    groups=MODEL_GROUPS,
    context_settings={"ignore_unknown_options": True},
    examples=[
        "python run_findit.py run --data FindIt_Demo_xyxy_json --model FindIt-Nano",
        "python run_findit.py run --data A B --model Qwen3-VL=mine --base-url URL",
    ],
)
@click.option(
    "--data",
    multiple=True,
    shell_complete=complete_datasets,
    metavar="NAME …",
    help="Datasets: FindIt's, or others.",
)
@click.option(
    "--model",
    multiple=True,
    shell_complete=complete_models,
    metavar="NAME …",
    help=f"Models: {MODEL}",
)
@click.option("--mode", default="all", help="all, infer (ask only) or eval (score only).")
@click.option("--limit", type=int, metavar="N", help="The first N rows of every dataset.")
@click.option("--work-dir", default="./outputs", metavar="DIR", help="Folder of the results.")
@click.option("--reuse", is_flag=True, help="Go on from the answers of an earlier run.")
@click.option("--judge-args", metavar="JSON", help="Settings of datasets, as VLMEvalKit has them.")
@click.option(
    "--image-root",
    multiple=True,
    metavar="KEY=DIR",
    help="Folder of the images of a dataset (repeatable).",
)
@click.option(
    "--prompts",
    type=PATH,
    metavar="CLONE",
    help="Use the prompts of the release, from a clone of it.",
)
@model_options(SAMPLES, DRY_RUN, LOGPROBS, force_option, SKIP_MISSING)
@click.argument("rest", nargs=-1, type=click.UNPROCESSED, metavar="[VLMEVALKIT FLAGS]...")
def command(**values: Any) -> int:
    """Ask models about datasets and score the answers.

    All other flags go to VLMEvalKit's runner. The word "run" may be left out before --data.
    """
    run = RunOptions(**values)
    options = run.options
    _set_environment(run)
    check_amounts(options, limit=run.limit)
    questions = [parse(name) for name in run.data if is_meant(name)]
    if options.samples is not None:
        return _run_samples(run, questions)
    runner = None
    if not options.dry_run or package_folder() is not None:
        runner = find_runner([*run.rest, *_flags_for_host(run, run.model)])
    host_values = parse_host_flags(runner, run, command)
    check_named(run)
    amounts = {name: host_values[name] for name in ("nproc", "retry") if name in host_values}
    check_amounts(options, **amounts)
    entries = run.entries()
    accesses = {entry.name: run.access(entry) for entry in entries}
    if questions:
        check_findit(run, [*host_values, *run.specified], entries, accesses, questions)
        check_rows(questions if run.mode != "eval" else (), skips_missing())
    else:
        check_host(run, host_values)
    if not options.dry_run:
        check_folder(Path(run.work_dir))
    if options.dry_run or runner is None:
        from .dry_run import of_sweep

        return of_sweep(_sweep(run, questions, entries), subtracts=False)
    return _run(run, runner, entries, accesses)


def _run(
    run: RunOptions, runner: Runner, entries: Sequence[ModelEntry], accesses: Mapping[str, Access]
) -> int:
    """Import VLMEvalKit, compare with what earlier runs recorded, and start its runner."""
    os.environ.setdefault("PRED_FORMAT", "json")
    quiet_log(is_quiet())
    try:
        from ..host import register
        from ..host.outcomes import OUTCOMES
        from ..host.preflight import check_datasets, preflight, share_budget
        from ..host.registration import run_host
    except ImportError as error:
        raise ValueError(
            f"VLMEvalKit cannot be imported ({error}): {install('run')}, "
            "or install a clone of it into this environment"
        ) from None
    register()
    options, serving = run.options, run.options.serving()
    for entry in entries:
        _make_known(entry, run, accesses[entry.name])
    models = [entry.name for entry in entries]
    datasets = [name for name in run.data if is_meant(name)]
    if not any(word.partition("=")[0] == "--data-config" for word in run.rest):
        check_datasets([name for name in run.data if name not in datasets])
    settings = json.dumps(run.settings) if run.settings else None
    preflight(models, datasets, run.mode, Path(run.work_dir), settings, run.limit)
    budget = share_budget(models, run.mode, options.max_usd, options.timeout)
    if not is_quiet():
        print_note(f"VLMEvalKit: {runner.what}")
    flags = [*run.rest, *_flags_for_host(run, models)]
    if serving is not None and options.api_nproc is None:
        flags += ["--api-nproc", str(serving.calls)]
    if is_verbose() and "--verbose" in flag_names(host_flags(runner.path)):
        flags.append("--verbose")
    try:
        run_host(runner, flags)
    finally:
        end()
    if options.temperature:
        print_note(f"FindIt: replies sampled at temperature {options.temperature:g}")
    expected = [(model, name) for model in models for name in datasets]
    missing = OUTCOMES.missing(expected, scored=run.mode != "infer")
    for line in [*map(str, OUTCOMES.bad()), *missing]:
        print_note(f"FindIt: {line}")
    if is_quiet():
        print_rows(OUTCOMES.scores())
    elif expected:
        folders = dict.fromkeys(str(Path(run.work_dir) / model) for model in models)
        print_note(f"FindIt: answers and scores in {', '.join(folders)}")
    return report_spending(budget) or OUTCOMES.status or (SOME_FAILED if missing else 0)


def _run_samples(run: RunOptions, questions: Sequence[Question]) -> int:
    """Ask for several replies to each query as a sweep: VLMEvalKit's runner asks once.

    Raises:
        ValueError: an option is not for sweeps, or a model does not sample.
    """
    check_named(run)
    others = [name for name in run.data if not is_meant(name)]
    flags = {"--reuse": run.reuse, "--mode": run.mode != "all"}
    settings = {"--judge-args": {*run.settings} - {"space"}}
    unused = [flag for flag, value in {**flags, **settings}.items() if value] + [*run.rest]
    if others or unused:
        what = f"{others[0]} is no dataset of FindIt's" if others else f"leave {unused[0]} out"
        raise ValueError(f"--samples: {what}: only FindIt's engine asks a query more than once")
    check_image_roots(run, questions)
    check_folder(Path(run.work_dir))
    sweep = _sweep(run, questions, run.entries())
    refuse_samples(sweep)
    return run_or_count(sweep, run.options, sweep.work_dir / "best_formats.yaml")


def _sweep(run: RunOptions, questions: Sequence[Question], entries: Sequence[ModelEntry]) -> Sweep:
    folder = Path(run.work_dir)
    sweep = Sweep(
        models=tuple(entries),
        questions=tuple(questions),
        limit=run.limit,
        work_dir=folder,
        journal=folder / "calls.jsonl",
        skip_missing=skips_missing(),
    )
    return with_options(sweep, run.options)


def _set_environment(run: RunOptions) -> None:
    options = run.options
    variables = {
        "FINDIT_IMAGES": ",".join(run.image_root),
        "FINDIT_SKIP_MISSING": "1" * options.skip_missing_images,
        "FINDIT_PROMPTS": str(run.prompts or ""),
        FORCE_VARIABLE: "1" * options.force,
        LOGPROBS_VARIABLE: "1" * options.logprobs,
    }
    os.environ.update({name: value for name, value in variables.items() if value})


def _flags_for_host(run: RunOptions, models: Sequence[str]) -> list[str]:
    """Return the options that VLMEvalKit's runner is started with."""
    options = run.options
    flags = ["--mode", run.mode, "--work-dir", run.work_dir]
    flags += ["--data", *run.data, "--model", *models]
    values: dict[str, Any] = {
        "judge_args": json.dumps(run.settings) if run.settings else None,
        "limit": run.limit,
        "api_nproc": options.api_nproc,
        "temperature": None if run.asks_findit else options.temperature,
    }
    if not run.is_http and not options.serve:
        # A model of FindIt's never needs these, and VLMEvalKit would record the key.
        values |= {name: getattr(options, name) for name in _FOR_HOST_MODELS}
    for name, value in values.items():
        if value is not None:
            flags += [flag_name(name), f"{value:g}" if isinstance(value, float) else str(value)]
    return flags + ["--reuse"] * run.reuse


def _make_known(entry: ModelEntry, run: RunOptions, access: Access) -> None:
    from ..host import preflight
    from ..host.local import make_known
    from ..host.vlmevalkit_entries import CUSTOM_PROMPTS

    serving = run.options.serving()
    if entry.prompt is not None:
        CUSTOM_PROMPTS[entry.name] = entry.prompt
    if access is Access.PROVIDER:
        preflight.add_provider(entry, run.options)
    elif access is Access.SERVER:
        preflight.add_server(entry, run.options)
    elif access is Access.SERVED and serving is not None:
        folder = Path(run.work_dir) / "servers"
        preflight.add_served(entry, serving, folder, run.options.timeout)
    else:
        if entry.checkpoint is not None:
            make_known(entry.name, entry.checkpoint, entry.like)
        if entry.settings or entry.resources:
            preflight.add_settings(entry)
