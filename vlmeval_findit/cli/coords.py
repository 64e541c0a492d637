"""``run_findit.py coords``: in which coordinates a run's answers really are."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from textwrap import wrap
from typing import Any

import click

from ..coords.conventions import Convention, Distortion
from ..coords.diagnosis import Diagnosis, RunFit, Verdict
from ..coords.run_check import CoordinateCheck, NotBoxesError, check_run, replies_of_run
from ..core.command import as_called
from ..core.settings import settings_from
from ..core.spelling import visible
from ..leaderboard.render import to_json
from ..leaderboard.table import Cell, Field, FieldType, Table, Value, text_of
from ..runs.open_predictions import open_predictions
from ..runs.prediction_names import prediction_files, score_command
from ..runs.score_files import open_score
from .options import Command, data_name_option, force_option, json_option, runs_argument
from .printing import console, print_lines, print_table, write_json

WIDTH = 80
READ_AS = "if the answers were read as"
_METRICS = ("F1@0.5", "mIoU")
ALARM = 1
"""The exit status where a run's convention is another one."""


@click.command(cls=Command, examples=["python run_findit.py coords outputs"])
@runs_argument
@data_name_option
@click.option("--space", metavar="SPACE", help="Compare with this space, whatever the run says.")
@force_option
@json_option
def command(
    runs: tuple[Path, ...],
    dataset: str | None,
    space: str | None,
    force: bool,
    json_file: Path | None,
) -> int:
    """Print in which coordinates each run's answers really are; no model is needed.

    Where another coordinate space fits, the command follows that scores the run in it. RUN is a
    prediction file, a folder of such, or a file of a score in another space (score --space). On a
    terminal several runs get a line each, those in doubt first.

    Exit status 0: the declared convention fits, or nothing can be said; 1: another one fits.
    """
    settings = settings_from({"space": space, "force": force})
    settings = replace(settings, beside=space is not None)
    told: list[dict[str, Any]] = []
    alarms = 0
    paths = list(prediction_files(runs))
    brief: list[tuple[bool, str]] | None = [] if len(paths) > 1 and console().is_terminal else None
    for path in paths:
        predictions, how = open_score(path, settings)
        found = open_predictions(predictions, how, dataset)
        name = f"{visible(found.model)} on {found.task.name}"
        try:
            run = replies_of_run(
                found.model, found.task, found.replies, found.settings, found.identity
            )
        except NotBoxesError as error:
            print(f"{name}\n  left out: {error}\n")
            continue
        seen = check_run(run)
        alarms += seen.diagnosis.verdict.alarms
        told.append({"run": str(path), "model": found.model, "dataset": found.task.name})
        readings = readings_table(seen)
        told[-1] |= {**seen.as_dict(), "read_as": to_json(readings)}
        if brief is not None:
            brief.append((not seen.diagnosis.verdict.alarms, f"{name}: {verdict_line(seen)}"))
            continue
        print("\n".join(folded([name, *(f"  {line}" for line in lines_of(seen))])) + "\n")
        print_table(readings.only(READ_AS, *_METRICS), "--json FILE")
        print()
        if (space_text := fitting_space(seen.diagnosis)) is not None:
            print("score it in that space, beside the recorded score:")
            print(f"  {as_called(score_command(predictions, dataset, '--space', space_text))}\n")
        elif is_of_another_order(seen.diagnosis):
            command = ["search", "--model", found.model, "--data", found.task.question.table]
            print("find the format that it answers best in:")
            print(as_called(f"  python run_findit.py {shlex.join(command)}\n"))
    if brief:
        # A sort by the first alone keeps the order of the files.
        print_lines([line for _, line in sorted(brief, key=itemgetter(0))], "--json FILE")
        print(as_called("what a run's verdict rests on: python run_findit.py coords FILE"))
    if json_file is not None:
        write_json(json_file, told)
    return ALARM if alarms else 0


def fitting_space(diagnosis: Diagnosis) -> str | None:
    """Return what ``--space`` takes for the convention that fits; None where no space says it."""
    found = diagnosis.fit
    if diagnosis.verdict is not Verdict.OTHER or found is None or found.best.space.space is None:
        return None
    if is_of_another_order(diagnosis):
        return None
    values = found.best.space.space.as_dict()
    return json.dumps(values) if len(values) > 1 else str(values["kind"])


def is_of_another_order(diagnosis: Diagnosis) -> bool:
    """Tell whether the numbers of a box come in another order than was asked for."""
    found = diagnosis.fit
    if diagnosis.verdict is not Verdict.OTHER or found is None:
        return False
    return found.best.order.name != diagnosis.declared.order.name


def folded(lines: Sequence[str]) -> Iterator[str]:
    """Lines that a terminal shows whole; what goes on is indented."""
    for line in map(str.rstrip, lines):
        indent = " " * (len(line) - len(line.lstrip()) + 2)
        yield from wrap(line, WIDTH, subsequent_indent=indent, drop_whitespace=True) or [line]


def lines_of(seen: CoordinateCheck) -> Iterator[str]:
    """What is printed of a run, line by line, before long lines are folded."""
    diagnosis = seen.diagnosis
    yield f"{diagnosis.boxes} boxes in {diagnosis.answered} of {diagnosis.queries} queries"
    yield verdict_line(seen)
    if diagnosis.fit is not None and diagnosis.verdict is not Verdict.NONE:
        yield from _evidence(diagnosis, diagnosis.fit)


def readings_table(seen: CoordinateCheck) -> Table:
    """Make one row a convention: what the metrics are if the answers are read in it."""
    rows: list[list[Value]] = []
    for line in seen.lines:
        name, means = line.convention.name, line.convention.description
        mark = " (declared)" if name == seen.diagnosis.declared.name else ""
        rows.append([name, f"{means}{mark}", *(line.figures[metric] for metric in _METRICS)])
    metrics = [Field(name, FieldType.VALUE) for name in _METRICS]
    return Table("Readings", [Field("convention"), Field(READ_AS), *metrics], rows)


def _percent(value: float | None) -> str:
    return text_of(Field("", FieldType.VALUE), Cell(value))


def _f1(seen: CoordinateCheck, convention: Convention) -> str:
    for line in seen.lines:
        if line.convention.name == convention.name:
            return f"F1 {_percent(line.figures['F1@0.5'])}"
    return "the same F1"


def verdict_line(seen: CoordinateCheck) -> str:
    """The verdict in one sentence."""
    diagnosis, found = seen.diagnosis, seen.diagnosis.fit
    declared = f"declared {diagnosis.declared.description}: {_f1(seen, diagnosis.declared)}"
    if found is None:
        return f"{declared}; too few boxes to say more"
    best = f"{found.best.description}: {_f1(seen, found.best)}"
    if diagnosis.verdict is Verdict.OTHER:
        agree = f"{found.agree} of {diagnosis.answered} answers agree"
        return f"{declared}; {best}; {agree}: the run's convention is wrong"
    if diagnosis.verdict is Verdict.UNLISTED:
        near = found.unlisted.convention.description
        return f"{declared}; the answers follow {near}, scaled or moved: no convention known"
    if diagnosis.verdict is Verdict.MIXED:
        share = f"{100 * found.second.share:.0f} % of the answers"
        return f"{declared}; {share} are {found.second.convention.description}: two conventions"
    if diagnosis.verdict is Verdict.NONE:
        return f"{declared}; the boxes do not follow the objects in any convention"
    if diagnosis.verdict is Verdict.FITS:
        return f"{declared}: it fits{', with a small drift' if diagnosis.drift else ''}"
    return f"{declared}; undecided, cannot exclude {some(found.rivals) or best}"


def some(names: Sequence[str], most: int = 4) -> str:
    """The first of some names, and how many more there are."""
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + rest


def _evidence(diagnosis: Diagnosis, found: RunFit) -> Iterator[str]:
    if found.best.name != diagnosis.declared.name:
        ahead = f"{found.best.name} is {found.llr:.0f} nats ahead of the declared"
        yield f"{ahead} (z {found.z:.1f} over pictures; of IoU {found.z_iou:.1f})"
    bent = found.unlisted
    yield (f"fitted in {bent.convention.name}: {scale_and_offset(bent.distortion)}")
    others = [name for name in found.alike if name != found.best.name]
    if others:
        yield f"not to be told from {found.best.name} on this data: {some(others)}"


def scale_and_offset(how: Distortion) -> str:
    """A bend in words."""
    return f"{_axis(how, 0)}; {_axis(how, 1)}"


def _axis(how: Distortion, axis: int) -> str:
    scale = f"{how.scale[axis]:.3f} ± {how.scale_error[axis]:.3f}"
    offset = f"{100 * how.at_origin[axis]:+.1f} ± {100 * how.at_origin_error[axis]:.1f} %"
    return f"{'xy'[axis]} × {scale}, {offset}"
