"""``run_findit.py reproduce``: whether a setup gives the published number."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click

from ..benchmarks.findit import FAMILY_PROMPTS
from ..core import EXIT_INTERRUPTED, EXIT_LIMIT_REACHED, installed
from ..data import load_dataset, published_figures, read_figures
from ..engine import (
    Asking,
    AtOpenRouter,
    AtProvider,
    AtServer,
    InVLMEvalKit,
    Served,
    deployment_of,
)
from ..models import (
    Budget,
    HttpClient,
    ModelEntry,
    ModelOptions,
    RunningProgram,
    identifying_servers,
    make_endpoints,
    running_program,
    urls_of,
)
from ..protocol import PROMPTS_VARIABLE, PictureSample, Predictions, Settings, none_answered
from ..reproduction import (
    REPRODUCTION,
    Answerer,
    AnsweringProgram,
    Experiments,
    FigureVerdict,
    Reproduction,
    Setup,
    Stated,
    StoredReproduction,
    StoredTable,
    choose_figure,
    compare_reproductions,
    find_causes,
    judge_attempt,
    plan_setup,
    read_reproduction,
    refuse_other_things,
    stored_reproduction,
    stored_table,
    write_reproduction,
)
from ..scoring import open_predictions, versions_now
from ..sweeps import Sweep, run_sweep
from .command_base import (
    FILE,
    PATH,
    complete_models,
    completion,
    figures_option,
    is_quiet,
    json_option,
    option,
    print_note,
)
from .early_checks import check_amounts
from .model_options import AskingCommand, model_options
from .printing import report_spending
from .reproduce_report import (
    print_against,
    print_badge,
    print_checked,
    print_earlier_answers,
    print_failed,
    print_further_calls,
    print_judgement,
    print_setup,
    print_unexplained,
)
from .sweep import results_of
from .who_answers import budget_for, deployments_for

AGREES, LOWER, CANNOT_BE_TOLD, FAILED = 0, 1, 2, 3
"""Exit statuses."""

_STATUS = {
    FigureVerdict.AGREES: AGREES,
    FigureVerdict.HIGHER: AGREES,
    FigureVerdict.LOWER: LOWER,
    FigureVerdict.CANNOT_BE_TOLD: CANNOT_BE_TOLD,
}

_EPILOG = """\
\b
Exit status:
  0    the value agrees with the published one, or is higher
  1    it is lower; what was noticed is listed with what to type
  2    it cannot be told: too few pictures; also, as everywhere, a command line
       that is refused
  3    calls failed or --max-usd was reached, so that nothing can be told;
       run again: only what has no answer is asked
  130  stopped
In other commands 1 means that something failed.

The same command again asks nothing. After a change of the deployment delete the
folder that it names.
"""


@click.command(
    cls=AskingCommand,
    epilog=_EPILOG,
    examples=[
        "python run_findit.py reproduce FindIt-Nano",
        "python run_findit.py reproduce InternVL3-8B --set RefCOCO_testA  # with RefCOCOFull",
    ],
)
@click.argument("model", required=False, shell_complete=complete_models)
@click.option(
    "--model",
    "same_model",
    metavar="MODEL",
    show_default=False,
    help="The model, as other commands name it.",
    shell_complete=complete_models,
)
@click.option(
    "--set",
    "set_name",
    metavar="SET",
    default="",
    show_default=False,
    help="Reproduce the figure of this set: RefCOCO_testA …; else the figure whose conditions are "
    "known best.",
    shell_complete=completion(lambda: {figure.set_name for figure in published_figures()}),
)
@option("--limit", "N", "Queries of each dataset; pictures come whole.", type=int, default=500)
@option("--seed", "N", "Draws the pictures.", type=int, default=0)
@option(
    "--prompts",
    "NAME",
    "Ask in these words, not in the published ones: findit-own-1, qwen3-vl-1 …",
    default="",
    show_default=False,
    shell_complete=completion(lambda: FAMILY_PROMPTS),
)
@click.option(
    "--format",
    "form",
    metavar="NAME",
    default="",
    show_default=False,
    help="Ask for this format, not for the published one: xyxy_json …",
)
@option("--max-tokens", "N", "Most tokens of a reply, not as many as published.", type=int)
@option("--work-dir", "DIR", "Folder of the results.", type=PATH, default=Path("outputs/reproduce"))
@option(
    "--against", "FILE", "Compare with somebody's reproduction.json of the same figure.", type=FILE
)
@figures_option
@json_option
@model_options("dry_run", "force", "skip_missing_images", "executor", "replicas")
def command(**values: Any) -> int:
    """Tell whether a setup gives a model's published number, and if not, why.

    A sample of pictures is asked about as the figure was measured: prompt, format, coordinate
    space, bounds of images, decoding. What cannot be set is listed.

    MODEL is NAME, NAME=CHECKPOINT (a folder or hub identifier) or, at a server, NAME=SERVED; it is
    compared with a figure of either name.
    """
    line = ReproduceLine(**values)
    check_amounts(line.options, limit=line.limit, max_tokens=line.max_tokens)
    theirs = read_reproduction(line.against) if line.against is not None else None
    entry = line.options.entry(_one_model(line.model, line.same_model))
    own = read_figures(line.figures_file) if line.figures_file is not None else ()
    figure = choose_figure(entry, line.set_name, own)
    deployment = _answering_program(entry, line.options)
    sample = PictureSample(line.limit, line.seed)
    setup = plan_setup(figure, entry, deployment, sample, line.stated)
    if theirs is not None:
        tables = _tables(setup)
        refuse_other_things(figure.set.metric, tables, versions_now(), theirs, str(line.against))
    budget = budget_for(line.usual)
    experiments = _experiments(line, deployment, budget)
    if line.options.dry_run:
        return _dry_run(setup, experiments, line.options)
    if not is_quiet():
        print_setup(setup)
        journal = experiments.sweep(setup).journal
        if journal.exists():
            print_earlier_answers(journal.parent)
    try:
        reproduction = _reproduce(setup, experiments)
    except _UnfinishedError as error:
        return error.status
    finally:
        report_spending(budget)
    if reproduction is None:
        return FAILED
    _write(line, reproduction, experiments.folder(setup), theirs)
    return _STATUS[reproduction.judgement.verdict]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReproduceLine:
    """What was typed."""

    options: ModelOptions
    model: str | None  # As the argument
    same_model: str | None  # After --model
    set_name: str
    limit: int
    seed: int
    prompts: str
    form: str
    max_tokens: int | None
    work_dir: Path
    against: Path | None
    figures_file: Path | None
    json_file: Path | None

    @property
    def stated(self) -> Stated:
        return Stated(self.prompts or _prompts_of_environment(), self.form, self.max_tokens)

    @property
    def usual(self) -> Sweep:
        """A sweep with what all setups share."""
        options = self.options
        return Sweep(
            models=(),
            serve=options.serving(),
            max_usd=options.max_usd,
            force=options.force,
            skip_missing=options.skip_missing_images,
        )


def _experiments(line: ReproduceLine, deployment: AnsweringProgram, budget: Budget) -> Experiments:
    ask_sweep = partial(_ask_sweep, line.options, budget)
    # What another version of a program answered is not taken for the answers of this one.
    who = (*line.options.header, deployment.engine)
    return Experiments(ask_sweep, line.work_dir, line.usual, who)


def _dry_run(setup: Setup, experiments: Experiments, options: ModelOptions) -> int:
    from .dry_run import of_sweep

    with _prompts(setup.prompts):
        status = of_sweep(experiments.sweep(setup), options)
    print_further_calls(setup)
    return status


def _write(
    line: ReproduceLine,
    reproduction: Reproduction,
    folder: Path,
    theirs: StoredReproduction | None,
) -> None:
    """Write a reproduction next to its runs, and compare it with somebody's."""
    stored = stored_reproduction(reproduction, folder)
    write_reproduction(folder / REPRODUCTION, stored)
    print_badge(stored, folder / REPRODUCTION)
    more = {}
    if theirs is not None:
        compared = compare_reproductions(stored, theirs, str(line.against))
        print_against(compared, str(line.against))
        more["against"] = asdict(compared)
    if line.json_file is not None:
        write_reproduction(line.json_file, stored, more)


def _one_model(argument: str | None, option: str | None) -> str:
    """Return the model that is named, as other commands do it or without --model."""
    named = [name for name in (argument, option) if name is not None]
    if len(named) != 1:
        both = f", not {' and '.join(named)}" if named else ""
        raise ValueError(f"name one model: python run_findit.py reproduce MODEL{both}")
    return named[0]


def _tables(setup: Setup) -> Mapping[str, StoredTable]:
    """Return the tables of a setup, by dataset."""
    datasets = [load_dataset(variant.name) for variant in setup.variants]
    return {dataset.variant.board_dataset: stored_table(dataset) for dataset in datasets}


def _reproduce(setup: Setup, experiments: Experiments) -> Reproduction | None:
    """Ask, judge and explain, printing each as it comes; None if no call was answered."""
    attempt = experiments.attempt(setup)
    if none_answered(attempt.failed, attempt.queries):
        print_failed(attempt)
        return None
    judgement = judge_attempt(attempt)
    print_judgement(attempt, judgement)
    checked = []
    try:
        for look in find_causes(attempt, judgement, experiments.ask):
            print_checked(look)
            checked.append(look)
    except _UnfinishedError as error:
        if error.status == EXIT_INTERRUPTED:
            raise
        # The verdict stands without the looks that are left.
        print_note("the next look asks pictures and was not finished: run again to go on")
    else:
        if judgement.verdict is FigureVerdict.LOWER:
            print_unexplained(checked)
    return Reproduction(attempt, judgement, checked)


# --- who answers ----------------------------------------------------------------------------------


def _answering_program(entry: ModelEntry, options: ModelOptions) -> AnsweringProgram:
    """Return who answers, and by which program."""
    match deployment_of(entry, Asking(serving=options.serving())):
        case Served() as served:
            program = served.model.program
            # A dry run needs no program.
            name = program.name if options.dry_run else program.described
            return AnsweringProgram(Answerer.SERVED, name)
        case AtProvider() | AtOpenRouter():
            return AnsweringProgram(Answerer.PROVIDER, entry.provider or "")
        case AtServer():
            running = None if options.dry_run else asyncio.run(_program_at(entry, options))
            words = "" if running is None else running.words
            return AnsweringProgram(Answerer.SERVER, words, running)
        case InVLMEvalKit():
            return AnsweringProgram(Answerer.HOST)
    return AnsweringProgram(Answerer.HERE, _with_version("transformers"))


def _with_version(package: str) -> str:
    return " ".join([package, *installed((package,)).values()])


async def _program_at(entry: ModelEntry, options: ModelOptions) -> RunningProgram | None:
    """Return the program behind base URLs; None if one of them does not say what it is.

    Raises:
        ValueError: the servers are of several setups, whose answers would be taken for one's.
    """
    servers = identifying_servers(
        make_endpoints(urls_of(entry.base_url), options.key, options.header)
    )
    name = entry.served or entry.name
    async with HttpClient(timeout=20.0) as client:
        looks = [running_program(client, server, name) for server in servers]
        found = await asyncio.gather(*looks)
    programs = {program for program in found if program is not None}
    if len(programs) > 1:
        told = sorted(_setup_words(program) for program in programs)
        raise ValueError(
            f"--base-url: the servers are of {len(told)} setups ({'; '.join(told)}): name those of "
            "one"
        )
    silent = [server.name for server, program in zip(servers, found, strict=True) if not program]
    if programs and silent:
        # What one says is not said of the others.
        (program,) = programs
        print_note(
            f"{', '.join(silent)}: not told which program and checkpoint answer; the others say "
            f"{_setup_words(program)}, so that it is not known of the whole"
        )
        return None
    return next(iter(programs), None)


def _setup_words(program: RunningProgram) -> str:
    return " ".join(filter(None, (program.words, program.checkpoint, program.revision[:8])))


# --- asking ---------------------------------------------------------------------------------------


class _UnfinishedError(RuntimeError):
    """A setup was not asked to its end; ``status`` is the exit status."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


def _ask_sweep(
    options: ModelOptions, budget: Budget, sweep: Sweep, prompts: str
) -> Sequence[Predictions]:
    """Ask a sweep of one model, and open its predictions in the order of its variants."""
    with _prompts(prompts):
        deployments = deployments_for(sweep, options, budget)
        results, status = results_of(partial(run_sweep, sweep, deployments), sweep.journal)
        if status or len(results) < len(sweep.variants):
            raise _UnfinishedError(
                status if status in (EXIT_INTERRUPTED, EXIT_LIMIT_REACHED) else FAILED
            )
        paths = {result.variant: result.path for result in results}
        return [open_predictions(paths[variant], Settings()) for variant in sweep.variants]


def _prompts_of_environment() -> str:
    """Return the prompt set that FINDIT_PROMPTS names; "" if it names none."""
    named = os.environ.get(PROMPTS_VARIABLE, "")
    if named and named not in FAMILY_PROMPTS:
        raise ValueError(
            f"FINDIT_PROMPTS={named}: figures are published in the words of a family. Unset it, "
            "or type --prompts NAME"
        )
    return named


@contextmanager
def _prompts(name: str) -> Iterator[None]:
    """Ask in the words of a prompt set, as ``run --prompts`` does, until the end of the block."""
    before = os.environ.pop(PROMPTS_VARIABLE, None)
    if name:
        os.environ[PROMPTS_VARIABLE] = name
    try:
        yield
    finally:
        os.environ.pop(PROMPTS_VARIABLE, None)
        if before is not None:
            os.environ[PROMPTS_VARIABLE] = before
