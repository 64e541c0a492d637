"""``run_findit.py probe``: name the coordinates of a deployment, by forty scenes."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import click

from ..benchmarks import parse
from ..benchmarks.findit.variant import Variant
from ..boxes.spaces import SpaceError, space_from
from ..coords.conventions import SPACES, Convention, row_of
from ..coords.probe_verdict import (
    FEWEST,
    ProbeVerdict,
    find_other_format,
    group_by_size,
    judge_probe,
)
from ..coords.run_check import RunReplies, replies_of_run
from ..core.command import INTERRUPTED
from ..core.files import sha256_of
from ..core.question import Question
from ..core.settings import Settings, settings_from
from ..data.probe_scenes import COUNT, SIZES
from ..models.http.chat import server_space
from ..models.model_entry import ModelEntry, ModelOptions
from ..models.model_table import find_model, known_model
from ..runs.open_predictions import open_predictions
from ..sweeps.sweep_file import Sweep
from .early_checks import check_amounts, refuse_untabled
from .model_options import DRY_RUN, EXECUTOR, MODEL, MODEL_GROUPS, REPLICAS, model_options
from .printing import report_spending
from .probe_report import ProbeReport, print_probe
from .shared_options import PATH, Command, complete_models, is_quiet
from .sweep import backends_for, budget_for, results_of

_EPILOG = f"""\
\b
Exit status:
  0    the declared convention is confirmed, or none was declared and a convention
       was named that runs can be scored in
  1    another convention, two of them, a scale or an offset: boxes are not
       where they should be
  2    undecided: fewer than {FEWEST} boxes, boxes that follow nothing, rivals that
       are not excluded; also, as everywhere, a command line that is refused
  3    calls failed, so that nothing is confirmed; run again: only these are
       asked again
  130  stopped
In other commands 1 means that something failed.

The same command again uses the recorded answers. After a change of the deployment
delete the folder that it names.
"""

CONFIRMED, FAULT, UNDECIDED, FAILED = 0, 1, 2, 3
"""Exit statuses."""

_PLACEHOLDER = "grid1000"
"""The space if none is declared: images are sent, and numbers read, unchanged."""


@click.command(
    cls=Command,
    groups=MODEL_GROUPS,
    epilog=_EPILOG,
    examples=[
        "python run_findit.py probe --model Qwen3-VL=mine --base-url URL",
        "python run_findit.py probe --model FindIt-Nano-px --format xywh_json",
    ],
)
@click.option("--model", required=True, shell_complete=complete_models, help=MODEL)
@click.option("--format", "form", default="xyxy_json", help="Format that is asked for.")
@click.option(
    "--limit",
    type=int,
    default=COUNT,
    metavar="N",
    help=f"The first N scenes, {FEWEST} to {COUNT}; every {len(SIZES)} have all sizes. A verdict "
    f"needs {FEWEST} boxes.",
)
@click.option(
    "--work-dir",
    type=PATH,
    default=Path("outputs/probe"),
    metavar="DIR",
    help="Folder of the results.",
)
@model_options(DRY_RUN, EXECUTOR, REPLICAS)
def command(options: ModelOptions, model: str, form: str, limit: int, work_dir: Path) -> int:
    """Ask a deployment about forty scenes and name the coordinates that it answers in.

    --space is the declared space (else the model table's). A server's model that is not in the
    table needs none.
    """
    question = parse(f"FindIt_Probe_{form}")
    check_amounts(options)
    if not FEWEST <= limit <= COUNT:
        raise ValueError(f"--limit {limit}: from {FEWEST} to {COUNT} scenes")
    if options.like is not None:
        known_model(options.like, "--like")
    target = _target(options.entry(model), question)
    sweep = _sweep(target, question, limit, work_dir, options)
    if options.dry_run:
        from .dry_run import of_sweep

        return of_sweep(sweep)
    if sweep.journal.exists() and not is_quiet():
        folder = sweep.journal.parent
        print(f"answers of an earlier probe are in {folder}: delete it to ask again\n")
    if limit < COUNT:
        spare = limit - FEWEST
        which = f"all of them but {spare} have" if spare else "every scene has"
        print(f"--limit {limit}: a verdict needs {FEWEST} boxes, so {which} to give one\n")
    budget = budget_for(sweep)
    results, status = results_of(sweep, backends_for(sweep, options, budget))
    report_spending(budget)
    if status == INTERRUPTED or not results:
        return status if status == INTERRUPTED else FAILED
    report = _report(results[0].path, target)
    print_probe(report)
    return _status(report)


@dataclass(frozen=True, slots=True)
class _Target:
    """The model that is probed.

    ``entry`` is the model as it is asked; ``space`` what the user declares (None: the space that
    the run records or, where ``is_declared`` is False, nothing).
    """

    entry: ModelEntry
    space: Any
    is_declared: bool

    def declared(self, run: RunReplies) -> Convention | None:
        """Return the convention that is declared for the answers of a run."""
        if not self.is_declared:
            return None
        if self.space is None:
            return run.declared
        return Convention(row_of(space_from(self.space)), run.declared.order)


# --- the model ------------------------------------------------------------------------------------


def _target(entry: ModelEntry, question: Question) -> _Target:
    space = settings_from({"space": entry.space}).space
    if space is not None:
        space_from(space)
    name = entry.like or entry.name
    if entry.base_url or entry.provider is not None:
        # The declared space decides how images are sent, as in every run.
        is_declared = space is not None
        if not is_declared:
            with suppress(SpaceError):
                server_space(name, None)(question)
                is_declared = True
        return _Target(
            replace(entry, space=space if is_declared else _PLACEHOLDER), space, is_declared
        )
    if find_model(name) is not None:
        # A model of the table records its space; the declared space is compared afterwards.
        return _Target(replace(entry, space=None), space, is_declared=True)
    if space is None:
        refuse_untabled(name, ", or --base-url URL")
    return _Target(replace(entry, space=space), space, is_declared=True)


def _sweep(
    target: _Target, question: Question, limit: int, work_dir: Path, options: ModelOptions
) -> Sweep:
    """Make the probe a sweep of one cell.

    The folder's name is a digest of model and options, so that another deployment never continues
    an earlier probe; more scenes share the journal.
    """
    entry, serving = target.entry, options.serving()
    parts = [asdict(replace(entry, headers=None, prices=None, resources={})), options.header]
    parts += [asdict(entry.prompt)] if entry.prompt else []
    parts += [serving.program, serving.arguments] if serving is not None else []
    digest = sha256_of(json.dumps(parts, sort_keys=True, default=str).encode())[:8]
    folder = work_dir / digest
    return Sweep(
        models=(entry,),
        questions=(question,),
        limit=limit,
        work_dir=folder / f"{limit}",
        journal=folder / "calls.jsonl",
        serve=serving,
        max_usd=options.max_usd,
    )


# --- the result -----------------------------------------------------------------------------------


def _report(path: Path, target: _Target) -> ProbeReport:
    predictions = open_predictions(path, Settings())
    task, question = predictions.task, predictions.task.question
    run = replies_of_run(
        predictions.model, task, predictions.replies, predictions.settings, predictions.identity
    )
    assert isinstance(question, Variant)  # Else its answers were no boxes
    asked = Convention(SPACES[_PLACEHOLDER], run.declared.order)
    result = judge_probe(run.queries, target.declared(run), asked)
    other_format = find_other_format(question, predictions.replies)
    sizes = group_by_size(run.queries, result, asked)
    return ProbeReport(predictions.model, task.name, run, result, sizes, asked, other_format)


def _status(report: ProbeReport) -> int:
    result = report.result
    if result.verdict.is_fault or (result.declared is None and report.unusable is not None):
        return FAULT
    if report.counts()["failed"]:
        return FAILED
    is_named = result.verdict in (ProbeVerdict.CONFIRMED, ProbeVerdict.NAMED)
    return CONFIRMED if is_named else UNDECIDED
