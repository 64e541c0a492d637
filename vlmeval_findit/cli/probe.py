"""``run_findit.py coords --model NAME``: the coordinates of a deployment, by forty scenes."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import click

from ..benchmarks import parse
from ..benchmarks.findit import FindItVariant
from ..boxes import MatchRule, SpaceError, space_from
from ..coords import (
    FEWEST_PROBE_BOXES,
    SPACES,
    Convention,
    ProbeVerdict,
    RunReplies,
    find_other_format,
    group_by_size,
    judge_probe,
    replies_of_run,
    space_row_of,
)
from ..core import EXIT_INTERRUPTED, sha256_of
from ..data import PROBE_SCENE_COUNT, PROBE_SIZES
from ..models import (
    ModelEntry,
    ModelOptions,
    find_model,
    server_space,
    space_or_variable,
    why_not_of_row,
)
from ..protocol import PROMPTS_VARIABLE, DatasetVariant, Settings, settings_from
from ..scoring import (
    answered_note_of,
    count_replies,
    count_unseen,
    open_predictions,
    prompt_tokens,
    reply_note,
)
from ..storage import PROBE_FILE, SWEEP_JOURNAL
from ..sweeps import Sweep, run_sweep
from .command_base import WRITTEN, complete_models, is_quiet, option, say
from .early_checks import check_amounts, refuse_untabled
from .model_options import MODEL, AskingCommand, model_options
from .printing import report_spending
from .probe_report import ProbeReport, print_probe
from .sweep import results_of
from .who_answers import budget_for, deployments_for

_EPILOG = f"""\
\b
Exit status:
  0    the declared convention is confirmed, or none was declared and a convention
       was named that runs can be scored in
  1    another convention, two of them, a scale or an offset: boxes are not
       where they should be
  2    undecided: fewer than {FEWEST_PROBE_BOXES} boxes, boxes that follow nothing, rivals that
       are not excluded; also, as everywhere, a command line that is refused
  3    calls failed, so that nothing is confirmed; run again: only these are
       asked again
  130  stopped
In other commands 1 means that something failed.

The same command again uses the recorded answers. After a change of the deployment
delete the folder that it names. Commands over a folder of runs leave a probe out.
"""

CONFIRMED, FAULT, UNDECIDED, FAILED = 0, 1, 2, 3
"""Exit statuses."""

_PLACEHOLDER = "grid1000"
"""The space if none is declared: images are sent, and numbers read, unchanged."""


@click.command(
    cls=AskingCommand,
    epilog=_EPILOG,
    examples=[
        "python run_findit.py coords --model FindIt-Nano-px --format xywh_json",
        "python run_findit.py coords --model mine --base-url http://localhost:8000/v1  # yours",
    ],
)
@click.option("--model", required=True, shell_complete=complete_models, help=MODEL)
@click.option("--format", "form", default="xyxy_json", help="Format that is asked for.")
@option(
    "--limit",
    "N",
    f"The first N scenes, {FEWEST_PROBE_BOXES} to {PROBE_SCENE_COUNT}; every {len(PROBE_SIZES)} "
    f"have all sizes. A verdict needs {FEWEST_PROBE_BOXES} boxes.",
    type=int,
    default=PROBE_SCENE_COUNT,
)
@option("--work-dir", "DIR", "Folder of the results.", type=WRITTEN, default=Path("outputs/probe"))
@model_options("prompts", "dry_run", "executor", "replicas")
def command(options: ModelOptions, model: str, form: str, limit: int, work_dir: Path) -> int:
    """Ask a deployment about forty scenes and name the coordinates that it answers in.

    --space is the declared space (else the model table's). A server's model that is not in the
    table needs none.
    """
    variant = parse(f"FindIt_Probe_{form}")
    if isinstance(variant, FindItVariant) and variant.match_rule is not MatchRule.BOX_OVERLAP:
        raise ValueError(
            f"--format {form}: the probe asks for boxes; did you mean --format xyxy_json? "
            "Points of a run are checked by: run_findit.py coords FILE"
        )
    check_amounts(options)
    if not FEWEST_PROBE_BOXES <= limit <= PROBE_SCENE_COUNT:
        raise ValueError(
            f"--limit {limit} is out of range: {FEWEST_PROBE_BOXES} to {PROBE_SCENE_COUNT} scenes"
        )
    entry, declared = _target(options.entry(model), variant)
    sweep = _sweep(entry, variant, limit, work_dir, options)
    if options.dry_run:
        from .dry_run import of_sweep

        return of_sweep(sweep, options)
    if sweep.journal.exists() and not is_quiet():
        folder = sweep.journal.parent
        say(f"answers of an earlier probe are in {folder}: delete it to ask again\n")
    if limit < PROBE_SCENE_COUNT:
        spare = limit - FEWEST_PROBE_BOXES
        which = f"all of them but {spare} have" if spare else "every scene has"
        say(
            f"--limit {limit}: a verdict needs {FEWEST_PROBE_BOXES} boxes, so {which} to give one\n"
        )
    budget = budget_for(sweep)
    deployments = deployments_for(sweep, options, budget)
    results, status = results_of(partial(run_sweep, sweep, deployments), sweep.journal)
    report_spending(budget)
    if status == EXIT_INTERRUPTED or not results:
        return status if status == EXIT_INTERRUPTED else FAILED
    report = _report(results[0].path, declared)
    print_probe(report)
    return _status(report)


Declared = Callable[[RunReplies], Convention | None]
"""Returns the convention that is declared for the answers of a run."""


def _target(entry: ModelEntry, variant: DatasetVariant) -> tuple[ModelEntry, Declared]:
    """Return the model as it is asked, and what is declared of it."""
    name = entry.like or entry.name
    stated = settings_from({"space": entry.space}).space
    space = stated

    def declared(run: RunReplies) -> Convention:
        if space is None:
            return run.declared
        return Convention(space_row_of(space_from(space)), run.declared.order)

    if entry.base_url or entry.provider is not None:
        # The declared space decides how images are sent, as in every run.
        space = space_or_variable(stated, find_model(name))
        if space is None:
            try:
                server_space(name, None)(variant)
            except SpaceError:
                return replace(entry, space=_PLACEHOLDER), lambda run: None
    elif find_model(name) is not None and not _runs_otherwise(entry):
        # A model of the table records its space; the declared space is compared afterwards.
        return replace(entry, space=None), declared
    elif space is None:
        refuse_untabled(entry, ", or --base-url URL")
    return replace(entry, space=stated), declared


def _runs_otherwise(entry: ModelEntry) -> bool:
    """Return whether only the stated space lets a checkpoint run like the model that it names."""
    row = find_model(entry.like or entry.name)
    if row is None or entry.checkpoint is None:
        return False
    return why_not_of_row(row, entry.checkpoint) is not None


def _sweep(
    entry: ModelEntry, variant: DatasetVariant, limit: int, work_dir: Path, options: ModelOptions
) -> Sweep:
    """Make the probe a sweep of one cell.

    The folder's name is a digest of model and options, so that another deployment never continues
    an earlier probe; more scenes share the journal.
    """
    serving = options.serving()
    parts = [asdict(replace(entry, headers=None, prices=None, resources={})), options.header]
    parts += [asdict(entry.prompt)] if entry.prompt else []
    parts += [serving.program, serving.arguments] if serving is not None else []
    words = os.environ.get(PROMPTS_VARIABLE)
    parts += [words] if words else []
    digest = sha256_of(json.dumps(parts, sort_keys=True, default=str).encode())[:8]
    folder = work_dir / digest
    return Sweep(
        models=(entry,),
        variants=(variant,),
        limit=limit,
        work_dir=folder / f"{limit}",
        journal=folder / SWEEP_JOURNAL,
        mark=folder / PROBE_FILE,
        serve=serving,
        max_usd=options.max_usd,
    )


def _report(path: Path, declared: Declared) -> ProbeReport:
    predictions = open_predictions(path, Settings())
    model = predictions.model
    dataset = predictions.dataset
    replies = predictions.replies
    run = replies_of_run(model, dataset, replies, predictions.settings, predictions.identity)
    assert isinstance(dataset.variant, FindItVariant)  # Else its answers were no boxes
    asked = Convention(SPACES[_PLACEHOLDER], run.declared.order)
    result = judge_probe(run.queries, declared(run), asked)
    sizes = group_by_size(run.queries, result, asked)
    other_format = find_other_format(dataset.variant, replies)
    counts = count_replies(replies) + count_unseen(prompt_tokens(predictions))
    notes = (answered_note_of(replies, predictions.identity), reply_note(counts))
    said = tuple(filter(None, notes))
    return ProbeReport(model, dataset.name, run, result, sizes, asked, other_format, said)


def _status(report: ProbeReport) -> int:
    result = report.result
    if result.verdict.is_fault or (result.declared is None and report.unusable is not None):
        return FAULT
    if report.counts()["failed"]:
        return FAILED
    is_named = result.verdict in (ProbeVerdict.CONFIRMED, ProbeVerdict.NAMED)
    return CONFIRMED if is_named else UNDECIDED
