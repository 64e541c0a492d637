"""``run_findit.py export``: scored runs for other programs."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import click

from ..boxes import CONFIDENCE_DEFINITIONS, DEFAULT_CONFIDENCE
from ..core import EXIT_SOME_FAILED, flag_name, missing_extra
from ..export import TARGETS, TRAINERS, ExportError, exporter, licence_note
from .command_base import (
    BESIDE_RUNS,
    PATH,
    WRITTEN_FOLDER,
    Command,
    Decorator,
    beside_runs,
    option,
    runs_argument,
    say,
)

if TYPE_CHECKING:
    from ..scoring import Run


def _targets_of(flag: str) -> list[str]:
    return [target for target, row in TARGETS.items() if flag in row.flags]


def _flag(name: str, metavar: str | None, text: str, **settings: Any) -> Decorator[Any]:
    text = f"{', '.join(_targets_of(name))}: {text}"
    return click.option(flag_name(name), metavar=metavar, help=text, **settings)


class _TargetName(click.Choice[str]):
    """The name of a target; who names the metadata of some is told which write them."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        name = str(value).lower()
        writers = [target for target, row in TARGETS.items() if row.metadata == name]
        if writers:
            flags = " and ".join(f"--to {target}" for target in writers)
            self.fail(f"{name}.json is written by {flags}", param, ctx)
        return super().convert(value, param, ctx)


_SERVERS = "; ".join(f"{name}: {row.server}" for name, row in TARGETS.items() if row.server)


@click.command(
    cls=Command,
    examples=["python run_findit.py export outputs --to coco"],
    sections={"Targets": lambda: [(name, row.what) for name, row in TARGETS.items()]},
)
@runs_argument
@click.option("--to", "target", required=True, type=_TargetName(tuple(TARGETS)), metavar="TARGET")
@option(
    "--out",
    "DIR",
    f"Folder that is written [default: export/TARGET, {BESIDE_RUNS}; {_SERVERS}].",
    type=WRITTEN_FOLDER,
)
@_flag(
    "confidence",
    None,
    f"the score of a box, in runs with --logprobs ({DEFAULT_CONFIDENCE}).",
    type=click.Choice(tuple(CONFIDENCE_DEFINITIONS)),
)
@_flag("licence", "NAME", "the hub's name for it, as cc-by-4.0.")
@_flag("project", "NAME", "project, or experiment of MLflow (findit).")
@_flag("pictures", "N", "worst answers of a run, on their images (8).", type=click.IntRange(min=0))
@_flag("trainer", "NAME", f"{', '.join(TRAINERS)} (trl).", type=click.Choice(TRAINERS))
@_flag(
    "errors",
    "TYPE",
    "queries with an error of this type, as `errors` names it; may be repeated (any type).",
    multiple=True,
)
@_flag("right", None, "also write what the model got right, to train on both.", is_flag=True)
@_flag(
    "formats",
    "FILE",
    "write answers in the best formats of this file, which search or sweep wrote.",
    type=PATH,
)
@_flag("yes_test_data", None, "write queries of test data all the same.", is_flag=True)
def command(runs: tuple[Path, ...], target: str, out: Path | None, **flags: Any) -> int:
    """Export scored runs to what other programs read; no model is asked.

    The same runs again: files are written again, trackers keep what they have. Exit status 1:
    another program or server refused; run the same command again to go on.
    """
    # A flag that is not set is None, False or empty; 0 pictures is a value.
    specified = {k: v for k, v in flags.items() if v is not None and v is not False and v != ()}
    for name in specified:
        if name not in TARGETS[target].flags:
            users = " or ".join(_targets_of(name))
            raise ValueError(f"{flag_name(name)} is for --to {users}. Leave it out")
    if "licence" in specified:
        for note in licence_note(specified["licence"]):
            say(f"note: {note}", file=sys.stderr)
    if out is None:
        out = default_folder(target, runs)
        if out is not None:
            WRITTEN_FOLDER.begin(out, "--out")
    # They import pyarrow and scipy, which a --help need not wait for.
    from ..scoring import load_runs

    try:
        for line in exporter(target)(_checked(load_runs(runs), out), out, **specified):
            # Indented lines are to be copied.
            whole = line.startswith(" ")
            say(line if whole else fill(line, 80, break_long_words=False, break_on_hyphens=False))
    except ExportError as error:
        say(f"error: {error}\nrun the same command again to go on", file=sys.stderr)
        return EXIT_SOME_FAILED
    except ModuleNotFoundError as error:
        # A tracker has the name of its package; those that no extra brings are installed alone.
        if error.name != target or missing_extra(error):
            raise
        raise ValueError(f"{target} is not installed: pip install {target}") from None
    return 0


def default_folder(target: str, runs: Sequence[Path]) -> Path | None:
    """Return the folder of a target; None where a server takes the results."""
    server = TARGETS[target].server
    if server and os.environ.get(server):
        return None
    return beside_runs(runs, "export") / target


def _checked(runs: Sequence[Run], out: Path | None) -> Sequence[Run]:
    """Refuse runs inside the folder that is written, and scores that do not belong together.

    These are scores in another space or with reviews, and those of a dataset by two scorers. Runs
    in which no call was answered are left out, which is said, unless there is no other.
    """
    # It imports scipy.
    from ..leaderboard import of_answered_calls, of_one_scorer

    runs, unanswered = of_answered_calls(runs)
    if not runs:
        raise ValueError(f"{unanswered[0].run.path}: {unanswered[0].reason}")
    for each in unanswered:
        say(f"left out: {each.run.path}: {each.reason}", file=sys.stderr)
    for run in runs:
        if out and run.path.resolve().is_relative_to(out.resolve()):
            # No command would find it there any more.
            raise ValueError(f"--out {out}: the run {run.path} is in it. Name another folder")
        if run.other_space:
            raise ValueError(
                f"{run.path}: scored in another space than the run recorded. Name its prediction "
                "file: the recorded score is exported"
            )
        if run.provenance.reviews is not None:
            raise ValueError(
                f"{run.files.score}: scored with reviews, but exports have the table's labels. "
                f"Name its predictions: {run.path}"
            )
    _, others = of_one_scorer(runs)
    if others:
        raise ValueError(f"{others[0].run.path}: {others[0].reason}")
    return runs
