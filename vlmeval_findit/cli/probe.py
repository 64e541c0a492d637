"""``run_findit.py probe``: in which coordinates a deployment answers, asked about forty scenes."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import click
import yaml

from ..benchmarks import parse
from ..benchmarks.findit.variant import Variant
from ..boxes.spaces import SpaceError, space_from
from ..coords.conventions import SPACES, Convention, row_of
from ..coords.probe import FEWEST, find_other_format, group_by_size, judge_probe
from ..coords.run_check import RunReplies, replies_of_run
from ..core.command import INTERRUPTED, as_called
from ..core.files import atomic_write, sha256_of
from ..core.question import Question
from ..core.settings import Settings, settings_from
from ..core.spelling import nearest
from ..data.probe.scenes import COUNT, SIZES
from ..models.entry import ModelEntry
from ..models.http.chat import server_space
from ..models.model_table import MODELS, find_model, known_model
from ..models.options import ModelOptions
from ..runs.open_predictions import open_predictions
from ..sweeps.config import Sweep, read_sweep
from .early_checks import check_amounts
from .model_options import DRY_RUN, EXECUTOR, MODEL, REPLICAS, model_options
from .options import PATH, Command, complete_models, is_quiet, json_option
from .printing import report_spending, write_json
from .probe_text import OtherFormatResult, Probed, as_dict, needed, print_probe
from .sweep import backends_for, budget_for, results_of

_EPILOG = f"""\
\b
Exit status:
  0    the declared convention is confirmed, or none was declared and one that
       runs can be scored in was named
  1    another convention, two of them, a scale or an offset: boxes are not
       where they should be
  2    undecided: fewer than {FEWEST} boxes, boxes that follow nothing, rivals that
       are not excluded; also, as everywhere, a command line that is refused
  3    calls failed, so that nothing is confirmed (run again: what was answered
       is not asked again)
  130  stopped
Elsewhere 1 says that something failed; here it says that something was found.

A deployment is asked once: the same command again reads what it said. After a change of the
deployment type --refresh.
"""

CONFIRMED, FAULT, UNDECIDED, FAILED = 0, 1, 2, 3
"""Exit statuses."""

_STAND_IN = "grid1000"
"""Where nothing is declared: pictures are sent as they are, numbers are taken as they come."""


@click.command(
    cls=Command,
    epilog=_EPILOG,
    examples=[
        "python run_findit.py probe --model Qwen3-VL-8B --base-url http://localhost:8000/v1",
        "python run_findit.py probe --model mine=NAME --base-url URL --save mine.yaml",
    ],
)
@click.option("--model", shell_complete=complete_models, help=f"{MODEL[0].upper()}{MODEL[1:]}.")
@click.option(
    "--config", type=PATH, metavar="FILE", help="A sweep's file, as --save writes: its model."
)
@click.option("--format", "form", default="xyxy_json", help="How boxes are asked for.")
@click.option(
    "--limit",
    type=int,
    default=COUNT,
    metavar="N",
    help=f"The first N scenes, {FEWEST} to {COUNT}; every {len(SIZES)} have all sizes. A result "
    f"needs {FEWEST} boxes.",
)
@click.option("--work-dir", type=PATH, default=Path("outputs/probe"), metavar="DIR")
@click.option("--refresh", is_flag=True, help="Ask again what was asked before.")
@click.option("--plot", type=PATH, metavar="FILE", help="Plot true against said coordinates.")
@json_option
@click.option(
    "--save",
    type=PATH,
    metavar="FILE.yaml",
    help="Write what was named as a sweep's file, for sweep and probe --config.",
)
@model_options(DRY_RUN, EXECUTOR, REPLICAS)
def command(
    options: ModelOptions,
    model: str | None,
    config: Path | None,
    form: str,
    limit: int,
    work_dir: Path,
    refresh: bool,
    plot: Path | None,
    json_file: Path | None,
    save: Path | None,
) -> int:
    """Ask a deployment about forty scenes and name the coordinates that it answers in.

    --space says what is declared (else the model table's); a server's model that the table does not
    have is named without.
    """
    question = parse(f"FindIt_Probe_{form}")
    check_amounts(options)
    if not FEWEST <= limit <= COUNT:
        raise ValueError(f"--limit {limit}: from {FEWEST} to {COUNT} scenes")
    wanted = _wanted(_entry(model, config, options), question)
    sweep = _sweep(wanted, question, limit, work_dir, options)
    if options.dry_run:
        from .dry_run import of_sweep

        return of_sweep(sweep)
    if refresh:
        _set_aside(sweep.journal.parent)
    elif sweep.journal.exists() and not is_quiet():
        print(f"answers of an earlier probe lie in {sweep.journal.parent}: --refresh asks again\n")
    if limit < COUNT:
        print(needed(limit))
    budget = budget_for(sweep)
    results, status = results_of(sweep, backends_for(sweep, options, budget))
    report_spending(budget)
    if status == INTERRUPTED or not results:
        return status if status == INTERRUPTED else FAILED
    probed = _probed(results[0].path, wanted)
    print_probe(probed)
    if plot is not None:
        _plot(probed, plot)
    if json_file is not None:
        write_json(json_file, {**as_dict(probed), "exit_status": _status(probed)})
    if save is not None:
        print(_saved(probed, wanted.entry, save))
    return _status(probed)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """Who is probed.

    ``entry`` is the model as it is asked; ``said`` the space that the user declares (None: what the
    run says of itself, or, where ``is_declared`` is not set, nothing).
    """

    entry: ModelEntry
    said: Any
    is_declared: bool


# --- who is asked ---------------------------------------------------------------------------------


def _wanted(entry: ModelEntry, question: Question) -> _Wanted:
    said = settings_from({"space": entry.space}).space
    if said is not None:
        space_from(said)
    row = find_model(entry.like or entry.name)
    if entry.base_url or entry.provider is not None:
        # How images are sent depends on what is declared, as in every run.
        declared = said is not None or _row_says(entry, question)
        return _Wanted(replace(entry, space=said if declared else _STAND_IN), said, declared)
    if row is None:
        if said is None:
            raise ValueError(
                f"no model {entry.like or entry.name!r} in the model table"
                f"{nearest(entry.like or entry.name, MODELS)}; one that the table does not have "
                "needs --like or --space, or --base-url"
            )
        return _Wanted(replace(entry, space=said), said, True)
    # A model of ours records its own space; what is said is held against it afterwards.
    return _Wanted(replace(entry, space=None), said, True)


def _row_says(entry: ModelEntry, question: Question) -> bool:
    try:
        server_space(entry.like or entry.name, None)(question)
    except SpaceError:
        return False
    return True


def _entry(model: str | None, config: Path | None, options: ModelOptions) -> ModelEntry:
    if options.like is not None:
        known_model(options.like, "--like")
    if config is None:
        if model is None:
            raise ValueError("--model or --config: who is asked?")
        return options.entry(model)
    known = {entry.name: entry for entry in read_sweep(config).models}
    name = model or next(iter(known))
    if name not in known or (model is None and len(known) > 1):
        raise ValueError(
            f"{config}: which model? --model {' or '.join(known)}{nearest(name, known)}"
        )
    return options.applied(replace(known[name], line=0))


def _sweep(
    wanted: _Wanted, question: Question, limit: int, work_dir: Path, options: ModelOptions
) -> Sweep:
    """The probe as a sweep of one cell.

    What makes it another run is part of the folder's name, so that nothing is refused for being
    another one; scenes that are added share the journal.
    """
    entry, serving = wanted.entry, options.serving()
    parts = [asdict(replace(entry, headers=None, prices=None, resources={})), options.header]
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


def _set_aside(folder: Path) -> None:
    """Give an earlier probe another name: what was paid for is kept."""
    if folder.exists():
        number = 1
        while (aside := folder.with_name(f"{folder.name}.{number}")).exists():
            number += 1
        folder.rename(aside)


# --- what is found --------------------------------------------------------------------------------


def _probed(path: Path, wanted: _Wanted) -> Probed:
    found = open_predictions(path, Settings())
    own = found.settings
    run = replies_of_run(found.model, found.task, found.replies, own, found.identity)
    question = found.task.question
    assert isinstance(question, Variant)  # else its answers were no boxes
    asked = Convention(SPACES[_STAND_IN], run.declared.order)
    result = judge_probe(run.queries, _declared(wanted, run), asked)
    other = find_other_format(question, found.replies)
    instead = None
    if other is not None and other.question is not None:
        task = replace(found.task, question=other.question)
        read_so = replies_of_run(found.model, task, found.replies, own, found.identity)
        made = judge_probe(read_so.queries, _declared(wanted, read_so), asked)
        instead = OtherFormatResult(other, read_so, made)
    elif other is not None:
        instead = OtherFormatResult(other)
    return Probed(
        model=found.model,
        dataset=found.task.name,
        path=path,
        run=run,
        result=result,
        sizes=group_by_size(run.queries, result, asked),
        asked=asked,
        other_format=instead,
    )


def _declared(wanted: _Wanted, run: RunReplies) -> Convention | None:
    if not wanted.is_declared:
        return None
    if wanted.said is None:
        return run.declared
    return Convention(row_of(space_from(wanted.said)), run.declared.order)


def _status(probed: Probed) -> int:
    result = probed.result
    if result.verdict.is_fault or (result.declared is None and probed.unusable is not None):
        return FAULT
    if probed.failed:
        return FAILED
    return CONFIRMED if probed.is_named else UNDECIDED


def _plot(probed: Probed, path: Path) -> None:
    from ..report.probe_plot import draw

    path.parent.mkdir(parents=True, exist_ok=True)
    draw(probed.run.queries, probed.result, probed.asked, path)
    print(f"plot: {path}")


def _saved(probed: Probed, entry: ModelEntry, path: Path) -> str:
    """Write a sweep's file, where something was named that runs can be scored in.

    Returns:
        What is said of it: that it is written, or why it is not.
    """
    result, space = probed.result, probed.space
    if result.named is None or not result.verdict.is_clear:
        return f"{path} is not written: nothing was named"
    if probed.unusable is not None or space is None:
        return f"{path} is not written: {probed.unusable}"
    said = space.as_dict()
    model: dict[str, Any] = {
        "name": entry.name,
        "provider": entry.provider,
        "served": entry.served,
        "checkpoint": entry.checkpoint,
        "like": entry.like,
        "space": said if len(said) > 1 else space.kind,
        "settings": dict(entry.settings),
        "resources": dict(entry.resources),
    }
    whole = {
        "models": [{key: value for key, value in model.items() if value}],
        "datasets": [probed.dataset],
    }
    # An address may hold a key: it is for the command line.
    where = " --base-url URL" if entry.base_url else ""
    head = (
        f"# Named by run_findit.py probe: {result.named.description}.\n"
        "# Name the datasets that you want, then:\n"
        f"#   python run_findit.py sweep {path.name}{where}\n"
        f"#   python run_findit.py probe --config {path.name}{where}\n"
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as f:
        f.write(as_called(head))
        yaml.safe_dump(whole, f, sort_keys=False, allow_unicode=True, width=100)
    return f"saved: {path}"
