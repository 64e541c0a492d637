"""``run_findit.py run``: check the command line, then start VLMEvalKit's runner."""

from __future__ import annotations

import argparse
import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

import click

from ..benchmarks import is_meant, parse
from ..core.command import SOME_FAILED, install
from ..core.formatting import nearest
from ..core.question import Question
from ..core.settings import (
    FORCE_VARIABLE,
    LOGPROBS_VARIABLE,
    judge_args,
    settings_from,
    skips_missing,
)
from ..core.settings import NAMES as SETTING_NAMES
from ..core.vlmevalkit import (
    HostFlag,
    Runner,
    find_runner,
    host_flags,
    package_folder,
    quiet_log,
)
from ..engine.backend import CallOptions
from ..engine.serve_backends import served_model
from ..engine.server_backends import ServerBackends
from ..models.http.endpoints import provider_endpoints
from ..models.http.providers.provider_table import OPENROUTER
from ..models.http.spending import Budget
from ..models.model_entry import ModelEntry, ModelOptions
from ..models.model_table import check_settings, known_model
from ..serving.processes import end
from ..sweeps.sweep_file import Sweep, refuse_samples
from .access import FINDIT_ONLY, REPLAY, Access, access_of, flag_name, refuse_unused
from .early_checks import (
    MODEL_COMMAND,
    check_amounts,
    check_answers,
    check_folder,
    check_host_dataset,
    check_model,
    check_prompt,
    check_rows,
)
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
from .shared_options import (
    PATH,
    Command,
    complete_datasets,
    complete_models,
    force_option,
    is_quiet,
    is_verbose,
    print_note,
)
from .sweep import run_or_count, with_options

MODES = ("all", "infer", "eval")

_FOR_HOST_MODELS = ("base_url", "key", "timeout", "extra_body")
"""Options that VLMEvalKit takes for its models."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """A command line of ``run``; ``rest`` are flags of VLMEvalKit's runner."""

    options: ModelOptions
    data: tuple[str, ...]
    model: tuple[str, ...]
    mode: str
    limit: int | None
    work_dir: str
    reuse: bool
    judge_args: str | None
    image_root: tuple[str, ...]
    prompts: Path | None
    rest: tuple[str, ...]

    @property
    def asks_findit(self) -> bool:
        """Whether ``--data`` names a FindIt dataset."""
        return any(map(is_meant, self.data))

    @property
    def is_http(self) -> bool:
        """Whether FindIt asks the models at an address or a provider."""
        return bool(self.options.base_url or self.options.provider) and self.asks_findit

    @property
    def settings(self) -> dict[str, Any]:
        """``--judge-args`` with ``--space``; a ValueError if they contradict."""
        settings, space = judge_args(self.judge_args), self.options.space_value
        if space is None:
            return settings
        if settings.get("space", space) != space:
            raise ValueError(
                f"--space {self.options.space} and another in --judge-args: leave either out"
            )
        return {**settings, "space": space}

    @property
    def specified(self) -> list[str]:
        """Names of the options on the command line that not every model uses."""
        names = [name for name in ("image_root", "prompts") if getattr(self, name)]
        return [*names, *self.options.specified]


class RunCommand(Command):
    """Takes several words after ``--data`` and ``--model``, as VLMEvalKit's runner does."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        expanded, option = list[str](), ""
        for word in args:
            if word.startswith("-"):
                option = word if word in ("--data", "--model") else ""
                expanded += [] if option else [word]
            else:
                expanded += [option, word] if option else [word]
        return super().parse_args(ctx, expanded)


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
    host_values = _parse_host_flags(runner, run)
    _check_named(run)
    amounts = {name: host_values[name] for name in ("nproc", "retry") if name in host_values}
    check_amounts(options, **amounts)
    entries = _entries(run)
    accesses = {entry.name: _access(entry, run) for entry in entries}
    if host_values.get("use_vllm") and {*accesses.values()} & {Access.LOCAL, Access.CHECKPOINT}:
        run = replace(run, options=replace(options, serve="vllm"))
        accesses = {entry.name: _access(entry, run) for entry in entries}
    if questions:
        _check_findit(run, [*host_values, *run.specified], entries, accesses, questions)
        check_rows(questions if run.mode != "eval" else (), skips_missing())
    else:
        _check_host(run, host_values)
    if not options.dry_run:
        check_folder(Path(run.work_dir))
    if options.dry_run or runner is None:
        from .dry_run import of_sweep

        return of_sweep(_sweep(run, questions, entries), subtracts=False)
    return _run(run, runner, entries, accesses)


def _run(
    run: RunOptions,
    runner: Runner,
    entries: Sequence[ModelEntry],
    accesses: Mapping[str, Access],
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
    if is_verbose() and "--verbose" in _names(host_flags(runner.path)):
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
    _check_named(run)
    others = [name for name in run.data if not is_meant(name)]
    flags = {"--reuse": run.reuse, "--mode": run.mode != "all"}
    settings = {"--judge-args": {*run.settings} - {"space"}}
    unused = [flag for flag, value in {**flags, **settings}.items() if value] + [*run.rest]
    if others or unused:
        what = f"{others[0]} is no dataset of FindIt's" if others else f"leave {unused[0]} out"
        raise ValueError(f"--samples: {what}: only FindIt's engine asks a query more than once")
    _check_image_roots(run, questions)
    check_folder(Path(run.work_dir))
    sweep = _sweep(run, questions, _entries(run))
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


# --- refusals before VLMEvalKit is imported -------------------------------------------------------


def _check_named(run: RunOptions) -> None:
    if run.mode not in MODES:
        raise ValueError(f"--mode {run.mode}{nearest(run.mode, MODES)}")
    if not run.data:
        raise ValueError(
            "--model without --data: which dataset is asked? "
            "(for example --data FindIt_Scenes_mini_xyxy_json)"
            if run.model
            else "nothing to ask: --data and --model are missing "
            "(--config FILE is for VLMEvalKit's own runner: python -m vlmeval)"
        )
    if not run.model:
        raise ValueError(f"--data without --model: which model is asked? {MODEL_COMMAND}")


class _HostParser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ValueError(message)


def _parse_host_flags(runner: Runner | None, run: RunOptions) -> dict[str, Any]:
    """Return the values of VLMEvalKit's flags on a command line, by their names.

    Raises:
        ValueError: VLMEvalKit's runner has no such flag, or the flag has no such value.
    """
    flags = host_flags(runner.path) if runner is not None else []
    host_names = _names(flags)
    if not host_names:
        return {}  # No runner, or its flags are not readable
    findit_names = {name for option in command.params for name in option.opts}
    parser = _HostParser(add_help=False, allow_abbrev=False, argument_default=argparse.SUPPRESS)
    for flag in flags:
        if not findit_names & set(flag.names):
            parser.add_argument(*flag.names, **flag.settings)
    values, unknown = parser.parse_known_args(run.rest)
    if unknown:
        name = unknown[0].partition("=")[0]
        if new_name := command.new_name(name):
            raise ValueError(f"{name} is {new_name} now: python run_findit.py run --help")
        raise ValueError(f"no flag {name!r}{nearest(name, sorted(findit_names | host_names))}")
    return {name: value for name, value in vars(values).items() if value not in (None, False, [])}


def _names(flags: Sequence[HostFlag]) -> set[str]:
    return {name for flag in flags for name in flag.names}


def _entries(run: RunOptions) -> list[ModelEntry]:
    if not run.asks_findit:
        # VLMEvalKit asks its models at an address.
        return [ModelOptions(like=run.options.like).entry(model) for model in run.model]
    space = run.settings.get("space")
    return [replace(run.options.entry(model), space=space) for model in run.model]


def _access(entry: ModelEntry, run: RunOptions) -> Access:
    if not run.asks_findit:
        return Access.VLMEVALKIT
    return access_of(entry, run.options.serve is not None)


def _check_findit(
    run: RunOptions,
    flags: Sequence[str],
    entries: Sequence[ModelEntry],
    accesses: Mapping[str, Access],
    questions: Sequence[Question],
) -> None:
    """Refuse flags that no model uses, and models that cannot answer the questions."""
    options = run.options
    refuse_unused(flags, [*accesses.items()])
    others = [name for name in run.data if not is_meant(name)]
    if others and (run.is_http or options.temperature is not None):
        flag = "--temperature" if options.temperature is not None else "--base-url or --provider"
        raise ValueError(f"{flag}: run FindIt's datasets and others apart")
    for name in others:
        check_host_dataset(name)
    for key in run.settings if not others else ():
        if key not in SETTING_NAMES:
            raise ValueError(f"--judge-args: no setting {key!r}{nearest(key, SETTING_NAMES)}")
    settings = settings_from(run.settings)
    check_settings(settings)
    if options.like is not None:
        known_model(options.like, "--like")
    _check_image_roots(run, questions)
    servers = None
    if run.is_http:
        budget = Budget(math.inf if options.max_usd is None else options.max_usd)
        servers = ServerBackends((), CallOptions(), options.header, budget, key=options.key)
    serving = options.serving()
    if serving is not None:
        serving.check()
    asks = not options.dry_run and run.mode != "eval"
    for entry in entries:
        access = accesses[entry.name]
        check_prompt(entry, questions)
        if servers is None:
            check_model(entry, access)
        elif asks:
            servers.check(entry)
        for question in questions:
            if serving is not None and access is Access.SERVED:
                served_model(entry, serving).describe(question)
            elif servers is None:
                check_answers(entry, access, question, settings)
            else:
                servers.describe(entry, question)
        if access is Access.OPENROUTER and asks:
            provider_endpoints(OPENROUTER)  # Its key has to be set


def _check_image_roots(run: RunOptions, questions: Sequence[Question]) -> None:
    """Refuse an image folder that does not exist, or that no dataset uses."""
    keys = list(dict.fromkeys(question.images for question in questions))
    for pair in run.image_root:
        key, _, folder = pair.partition("=")
        if key not in keys:
            raise ValueError(
                f"--image-root {pair}: no dataset of --data has the key {key!r}"
                f"{nearest(key, keys)}. Type: --image-root {keys[0]}=DIR"
            )
        if not Path(folder).is_dir() or not folder:
            raise ValueError(f"--image-root {pair}: no such folder. Type: --image-root {key}=DIR")


def _check_host(run: RunOptions, host_values: Mapping[str, Any]) -> None:
    """Refuse flags that VLMEvalKit's datasets do not use, and names that it cannot know."""
    # VLMEvalKit's --data-config gives datasets other names.
    for name in run.data if "data_config" not in host_values else ():
        check_host_dataset(name)
    for name in run.specified:
        if name in FINDIT_ONLY:
            raise ValueError(
                f"{flag_name(name)} is for FindIt's datasets (--data FindIt_…), and none is named"
            )
    if run.options.like is not None:
        known_model(run.options.like, "--like")
    for entry in _entries(run) if not run.options.base_url else ():
        check_model(entry, access_of(entry))


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
        if entry.checkpoint is not None and entry.name == REPLAY:
            preflight.add_replay(entry.checkpoint)
        elif entry.checkpoint is not None:
            make_known(entry.name, entry.checkpoint, entry.like)
        if entry.settings or entry.resources:
            preflight.add_settings(entry)
