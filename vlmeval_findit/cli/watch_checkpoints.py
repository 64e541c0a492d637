"""``run_findit.py watch-checkpoints``: evaluate each checkpoint of a training as it appears."""

from __future__ import annotations

import io
import signal
import sys
import time
from collections.abc import Collection, Sequence
from contextlib import redirect_stdout
from glob import escape
from pathlib import Path

import click

from ..core import (
    EXIT_INTERRUPTED,
    EXIT_LIMIT_REACHED,
    EXIT_SOME_FAILED,
    RESULTS_VARIABLE,
    agreeing,
    as_called,
    counted,
    error_line,
    not_there,
)
from ..export import TARGETS, exporter
from ..leaderboard import curve_table, group_comparable, learning_curves, reward_table
from ..scoring import RowData, Run, RunError, load_runs, prediction_files
from ..storage import PredictionError, check_model_name
from ..sweeps import (
    Checkpoint,
    checkpoints_in,
    evaluate_checkpoint,
    is_refused,
    logged_rewards,
    unfinished_in,
    what_is_missing,
)
from .command_base import PATH, complete_datasets, is_quiet, is_verbose, option, say, switch
from .export import default_folder
from .printing import print_folded, print_table
from .run import run_command as run
from .run_line import RunCommand
from .unread_output import is_unread

_SECONDS = 10
"""Seconds between two reads of the folder."""

_TRACKERS = tuple(name for name, target in TARGETS.items() if "project" in target.flags)


@click.command(
    cls=RunCommand,
    context_settings={"ignore_unknown_options": True},
    examples=[
        "python run_findit.py watch-checkpoints DIR --data FindIt_Scenes_mini_xyxy_json  # yours",
    ],
)
@click.argument("folder", metavar="DIR", type=PATH)
@option(
    "--data",
    "NAME …",
    "Datasets: queries that the training does not see.",
    multiple=True,
    required=True,
    shell_complete=complete_datasets,
)
@option("--name", "NAME", "Name of the training [default: that of DIR].")
@option(
    "--work-dir",
    "DIR",
    "Folder of the results.",
    type=PATH,
    default=Path("outputs"),
    envvar=RESULTS_VARIABLE,
)
@switch("--once", "Evaluate the checkpoints that are there, and end.")
@option("--until", "STEP", "End after the checkpoint of this step.", type=int)
@click.option(
    "--to",
    "tracker",
    type=click.Choice(_TRACKERS),
    help="Also log the curve there, after each checkpoint, as `export` does.",
)
@click.argument("rest", nargs=-1, type=click.UNPROCESSED, metavar="[FLAGS OF run]...")
def command(
    folder: Path,
    data: tuple[str, ...],
    name: str | None,
    work_dir: Path,
    once: bool,
    until: int | None,
    tracker: str | None,
    rest: tuple[str, ...],
) -> int:
    """Evaluate each checkpoint of a training as it appears; say which is best, and how certainly.

    A checkpoint is a folder in DIR whose name ends in its step, as checkpoint-300. It is evaluated
    when it is complete, as the model NAME-step-300, with the other flags of `run`. The base
    model can be step 0: run --model NAME-step-0=BASE.

    Rewards that TRL's GRPO logged are shown by step.

    The table after each checkpoint is corrected for all looks: in at most 5 % of trainings is any
    checkpoint called significantly better by chance.

    It ends when nobody reads its output any more (`| head`), once the checkpoints that are there
    are evaluated.

    Exit status 1: a checkpoint could not be evaluated, or calls failed; run again to go on.
    """
    name = check_model_name(name or folder.resolve().name)
    flags = [word for dataset in data for word in ("--data", dataset)]
    flags += ["--work-dir", str(work_dir), *rest]
    if is_quiet():
        flags.append("-q")
    if is_verbose():
        flags.append("-v")
    if once and not folder.is_dir():
        raise ValueError(f"{folder}: the folder {not_there(folder)}")
    first = _first_whole(checkpoints_in(folder))
    if first is None:
        _check_flags(name, folder, flags)
        if not once:
            say(f"{folder} has no complete checkpoint yet: waiting for the first")
    else:
        _check_model(name, first, flags)
    earlier = signal.signal(signal.SIGTERM, lambda *_: sys.exit(EXIT_INTERRUPTED))
    statuses: dict[Checkpoint, int] = {}
    waiting: set[Checkpoint] = set()
    left_out: set[str] = set()
    try:
        while True:
            new = [each for each in checkpoints_in(folder) if each not in statuses]
            if first is None:
                first = _first_whole(new)
                if first is not None:
                    _check_model(name, first, flags)
            for checkpoint in new:
                statuses[checkpoint] = _evaluate(checkpoint, name, flags)
                if statuses[checkpoint] in (EXIT_INTERRUPTED, EXIT_LIMIT_REACHED):
                    return statuses[checkpoint]
                _print_rewards(name, checkpoint.path)
                _print_curves(name, work_dir, tracker, left_out)
            _report_unfinished(folder, waiting)
            last = max((checkpoint.step for checkpoint in statuses), default=-1)
            if once or (until is not None and last >= until):
                break
            if is_unread():
                return _stopped(statuses)
            time.sleep(_SECONDS)
    except KeyboardInterrupt:
        return _stopped(statuses)
    finally:
        signal.signal(signal.SIGTERM, earlier)
    if not statuses:
        raise ValueError(
            f"{folder} has no complete checkpoint: a folder whose name ends in its step "
            "(checkpoint-300), with config.json or adapter_config.json and its weights"
        )
    print_folded(as_called(f"every answer: python run_findit.py report {work_dir}"))
    return EXIT_SOME_FAILED if any(statuses.values()) else 0


def _stopped(statuses: Collection[Checkpoint]) -> int:
    were = agreeing(len(statuses), "was", "were")
    say(f"{counted(len(statuses), 'checkpoint')} {were} evaluated; the same command goes on")
    return EXIT_INTERRUPTED


def _evaluate(checkpoint: Checkpoint, name: str, flags: Sequence[str]) -> int:
    """Evaluate a checkpoint, and say if a part was left out; return the exit status of ``run``."""
    status = evaluate_checkpoint(checkpoint, name, flags)
    if status not in (0, EXIT_INTERRUPTED, EXIT_LIMIT_REACHED):
        say(f"{checkpoint.path}: not all of it was evaluated (status {status})")
    return status


def _report_unfinished(folder: Path, reported: set[Checkpoint]) -> None:
    """Report each checkpoint that is not complete once, and add it to ``reported``."""
    for checkpoint in unfinished_in(folder):
        if checkpoint not in reported:
            reported.add(checkpoint)
            why = what_is_missing(checkpoint.path) or "until now"
            say(
                f"{checkpoint.path} is not complete ({why}): it is still being written, or what "
                "wrote it was ended. It is evaluated once it is complete; else delete it"
            )


def _first_whole(checkpoints: Sequence[Checkpoint]) -> Checkpoint | None:
    """Return the first checkpoint that has its weights; each other is refused in its turn."""
    return next((each for each in checkpoints if not is_refused(each)), None)


def _check_model(name: str, checkpoint: Checkpoint, flags: Sequence[str]) -> None:
    """Refuse what `run` would refuse of a checkpoint."""
    arguments = ["--model", f"{checkpoint.model(name)}={checkpoint.path}", *flags, "--dry-run"]
    with redirect_stdout(io.StringIO()), run.make_context("run", arguments) as context:
        run.invoke(context)


def _check_flags(name: str, folder: Path, flags: Sequence[str]) -> None:
    """Refuse what `run` would refuse of every checkpoint, before there is any."""
    model = f"{name}-step-N={folder.resolve() / 'checkpoint-N'}"
    with run.make_context("run", ["--model", model, *flags]) as context:
        context.params["awaited"] = True
        run.invoke(context)


def _has_replies(folder: Path) -> bool:
    try:
        return bool(prediction_files([folder]))
    except PredictionError:
        return False  # It was refused, or ended before its first reply


def _print_rewards(name: str, checkpoint: Path) -> None:
    """Print the rewards that the trainer logged until a checkpoint, if it logged any."""
    try:
        logged = logged_rewards(checkpoint)
    except (OSError, ValueError) as error:
        print_folded(f"{checkpoint}: its rewards cannot be read: {error_line(error)}")
        return
    if logged:
        table = reward_table(f"rewards of {name}, until step {logged[-1].step}", logged)
        print_folded(table.title)
        print_table(table, str(checkpoint))
        for note in table.notes:
            print_folded(note.text)


def _print_curves(name: str, work_dir: Path, tracker: str | None, said: set[str]) -> None:
    """Print the curves, and log them; what is not on them is said once, and added to ``said``."""

    def leave_out(why: str) -> None:
        if why not in said:
            said.add(why)
            print_folded(f"not on the curve: {why}")

    keep = RowData.SUMS if tracker is None else RowData.DETAILS
    runs = list[Run]()
    for folder in sorted(work_dir.glob(f"{escape(name)}-step-*")):
        try:
            runs += load_runs([folder], keep=keep)
        except RunError as error:
            leave_out(str(error) if _has_replies(folder) else f"{folder}: its run has no replies")
    datasets, others = group_comparable(runs)
    for each in others:
        leave_out(as_called(f"{each.run.path}: {each.reason}"))
    for curve in learning_curves(datasets):
        table = curve_table(curve)
        print_folded(table.title)
        print_table(table, f"the report of {work_dir}")
        for note in table.notes:
            print_folded(note.text)
    if tracker is not None and datasets:
        comparable = [run for dataset in datasets for run in dataset.runs]
        for line in exporter(tracker)(comparable, default_folder(tracker, [work_dir])):
            print_folded(line)
