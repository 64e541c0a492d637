"""``run_findit.py coords``: check the coordinates of a run's answers."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import click

from ..coords import (
    Y_FIRST,
    Convention,
    ConventionMetrics,
    CoordinateCheck,
    CoordinateVerdict,
    NotBoxesError,
    RunReplies,
    check_points,
    check_run,
    replies_of_run,
    why_too_few,
)
from ..core import as_called, counted, printable
from ..leaderboard import (
    Column,
    Field,
    FieldType,
    Table,
    TableCell,
    plain_value_column,
    table_of,
    text_of,
    to_json,
)
from ..models import check_stated
from ..protocol import Predictions, none_answered, settings_from
from ..scoring import UNANSWERED, open_predictions, open_score, prediction_files, score_command
from .command_base import (
    Command,
    data_name_option,
    force_option,
    json_option,
    option,
    results_argument,
    say,
)
from .coordinate_lines import folded, scale_and_offset, some_described
from .printing import console, print_lines, print_table, write_json

READ_AS = "if the answers were read as"
_METRICS = ("F1@0.5", "mIoU")

OTHER_CONVENTION = 1
"""The exit status if another convention fits a run."""


class CoordsCommand(Command):
    """With ``--model`` it is the probe of a deployment."""

    def make_context(
        self, info_name: str | None, args: list[str], *rest: Any, **more: Any
    ) -> click.Context:
        if any(word.partition("=")[0] == "--model" for word in args):
            from .probe import command as probe

            return probe.make_context(info_name, args, *rest, **more)
        return super().make_context(info_name, args, *rest, **more)


@click.command(
    cls=CoordsCommand,
    examples=[
        "python run_findit.py coords outputs",
        "python run_findit.py coords --model FindIt-Nano-px --format xywh_json",
        "python run_findit.py coords --model NAME --help",
    ],
)
@results_argument
@data_name_option
@option("--space", "SPACE", "Compare with this space, whatever the run says.")
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
    prediction file, a folder of them, or a file of a score in another space (score --space). On a
    terminal several runs get a line each, those in doubt first.

    With --model NAME, and no RUN, a deployment is asked about forty scenes.

    Exit status 1: another convention fits, no known one does, or two do; else 0.
    """
    settings = settings_from({"space": space, "force": force})
    check_stated(settings)
    settings = replace(settings, separately=space is not None)
    checks: list[dict[str, Any]] = []
    brief: list[tuple[bool, str]] = []
    paths = list(prediction_files(runs))
    is_brief = len(paths) > 1 and console().is_terminal
    for path in paths:
        file, score_settings = open_score(path, settings)
        run = open_predictions(file, score_settings, dataset)
        name = f"{printable(run.model)} on {run.dataset.name}"
        if none_answered(sum(reply.failed for reply in run.replies), len(run.replies)):
            say(f"{name}\n  left out: {UNANSWERED}\n")
            continue
        try:
            replies = replies_of_run(
                run.model, run.dataset, run.replies, run.settings, run.identity
            )
        except NotBoxesError as error:
            say(f"{name}\n  left out: {error}\n")
            continue
        told = _points_told(replies) if replies.are_points else _told(check_run(replies))
        names = {"run": str(path), "model": run.model, "dataset": run.dataset.name}
        checks.append({**names, **told.values, "read_as": to_json(told.table)})
        if is_brief:
            brief.append((not told.values["alarm"], f"{name}: {told.verdict}"))
            continue
        say("\n".join(folded([name, *(f"  {line}" for line in told.details)])) + "\n")
        if not told.places:  # A table would be of zeros
            say(as_called(f"what the answers say: {_errors_command(path)}\n"))
            continue
        shown = [field.name for field in told.table.fields[1:]]
        print_table(told.table.only(*shown), "--json FILE")
        say()
        for line in _advice(told, run, file, dataset):
            say(as_called(line))
    if brief:
        # A sort by the first alone keeps the order of the files.
        print_lines([line for _, line in sorted(brief, key=itemgetter(0))], "--json FILE")
        say(as_called("the check of one run in full: python run_findit.py coords FILE"))
    if json_file is not None:
        write_json(json_file, checks)
    return OTHER_CONVENTION if any(check["alarm"] for check in checks) else 0


def _errors_command(path: Path) -> str:
    return f"python run_findit.py {shlex.join(['errors', str(path)])}"


class _Told(NamedTuple):
    """What is printed of a check."""

    places: int  # Boxes or points that answers have
    values: dict[str, Any]  # of the JSON file
    table: Table
    verdict: str
    details: Sequence[str]
    declared: Convention
    other: Convention | None  # the convention that fits instead


def _told(check: CoordinateCheck) -> _Told:
    diagnosis = check.diagnosis
    fit = check.diagnosis.fit
    is_other = fit is not None and diagnosis.verdict is CoordinateVerdict.OTHER
    return _Told(
        places=diagnosis.boxes,
        values=check.as_dict(),
        table=conventions_table(check.lines, diagnosis.declared, _METRICS),
        verdict=_verdict(check),
        details=[*_details(check)],
        declared=diagnosis.declared,
        other=fit.best if fit is not None and is_other else None,
    )


def _points_told(replies: RunReplies) -> _Told:
    check = check_points(replies)
    diagnosis = check.diagnosis
    fit = check.diagnosis.fit
    headline = replies.metrics[0].name
    values = {line.convention.name: line.metric_values[headline] for line in check.lines}

    def with_value(convention: Convention) -> str:
        text = text_of(Field("", FieldType.VALUE), TableCell(values[convention.name]))
        return f"{convention.description}: {headline} {text}"

    declared = f"declared {with_value(diagnosis.declared)}"
    details = [
        f"{counted(diagnosis.points, 'point')} "
        f"in {diagnosis.answered} of {diagnosis.queries} queries"
    ]
    if not diagnosis.points:
        verdict = _nothing_to_judge("points", diagnosis.queries)
        details = []
    elif fit is None:
        lacks = why_too_few(diagnosis.points, diagnosis.answered, diagnosis.places, "points")
        verdict = f"{declared}; {lacks}"
    elif diagnosis.verdict is CoordinateVerdict.FITS:
        verdict = f"{declared}: it fits"
    elif diagnosis.verdict is CoordinateVerdict.NONE:
        verdict = f"{declared}; the points do not follow the objects in any convention"
    elif diagnosis.verdict is CoordinateVerdict.OTHER:
        agree = f"{fit.agree} of {diagnosis.answered} answers agree"
        answered = f"answered {with_value(fit.best)}"
        verdict = f"{declared}; {answered}; {agree}: the run's convention is wrong"
    else:
        verdict = f"{declared}; undecided, cannot exclude {with_value(fit.best)}"
    details += verdict.split("; ")
    if fit is not None and fit.best.name != diagnosis.declared.name:
        details.append(evidence(fit.llr, fit.z, f"{fit.z_hits:.1f} in hits"))
    is_other = fit is not None and diagnosis.verdict is CoordinateVerdict.OTHER
    return _Told(
        places=diagnosis.points,
        values=diagnosis.as_dict(),
        table=conventions_table(
            check.lines, diagnosis.declared, [metric.name for metric in replies.metrics]
        ),
        verdict=verdict,
        details=details,
        declared=diagnosis.declared,
        other=fit.best if fit is not None and is_other else None,
    )


def _advice(told: _Told, run: Predictions, file: Path, dataset: str | None) -> Iterator[str]:
    """Yield the command that corrects a run if another convention fits."""
    other = told.other
    if other is None:
        return
    if other.order.name == Y_FIRST.name:
        yield "no format reads y before x: ask for [x, y] (--prompt-template), or exchange the two"
        yield "numbers in the prediction file and score it again.\n"
    elif other.order.remark:
        yield "no format has this order: ask for the top left and the bottom right corner"
        yield "(--prompt-template), or exchange them in the prediction file and score it again.\n"
    elif other.order.name != told.declared.order.name:
        command = ["search", "--model", run.model, "--data", run.dataset.variant.table]
        yield "find the format that it answers best in:"
        yield f"  python run_findit.py {shlex.join(command)}\n"
    elif not other.space.is_upright:
        yield f"no --space reads {other.space.description}: send the image as it is stored,"
        yield "and ask again.\n"
    elif other.space.space is None:
        yield f"no --space reads {other.space.description}; a plug-in can"
        yield "(docs/how-to/benchmarks.md#a-coordinate-space-or-a-representation):"
        yield f"  {score_command(file, dataset, '--plugin', 'FILE.py', '--space', 'NAME')}\n"
    else:
        values = other.space.space.as_dict()
        space = json.dumps(values) if len(values) > 1 else str(values["kind"])
        yield "score it in that space; the recorded score stays:"
        yield f"  {score_command(file, dataset, '--space', space)}\n"


def conventions_table(
    lines: Sequence[ConventionMetrics], declared: Convention, names: Sequence[str] = _METRICS
) -> Table:
    """Make a table with a row for each convention: the metrics if answers are read in it."""

    def read_as(line: ConventionMetrics) -> str:
        mark = " (declared)" if line.convention.name == declared.name else ""
        return f"{line.convention.description}{mark}"

    def value_of(metric: str) -> Column[ConventionMetrics]:
        return plain_value_column(metric, lambda line: line.metric_values[metric])

    columns: list[Column[ConventionMetrics]] = [
        Column("convention", lambda line: line.convention.name),
        Column(READ_AS, read_as),
        *map(value_of, names),
    ]
    return table_of("Conventions", columns, lines)


def _details(check: CoordinateCheck) -> Iterator[str]:
    """Yield the lines about a run, before long ones are folded."""
    diagnosis = check.diagnosis
    fit = check.diagnosis.fit
    if not diagnosis.boxes:
        yield _verdict(check)
        return
    boxes = counted(diagnosis.boxes, "box")
    yield f"{boxes} in {diagnosis.answered} of {diagnosis.queries} queries"
    yield from _verdict(check).split("; ")
    if fit is None or diagnosis.verdict is CoordinateVerdict.NONE:
        return
    if fit.best.name != diagnosis.declared.name:
        yield evidence(fit.llr, fit.z, f"{fit.z_iou:.1f} in IoU")
    nearest = fit.unlisted
    read_as = ""
    if nearest.convention.name != fit.best.name:
        read_as = f", read as {nearest.convention.description}"
    yield f"fitted scale and offset{read_as}: {scale_and_offset(nearest.distortion)}"
    lookalikes = [name for name in fit.lookalikes if name != fit.best.name]
    if lookalikes:
        yield f"these images cannot tell it from: {some_described(lookalikes)}"


def _nothing_to_judge(noun: str, queries: int) -> str:
    asked = counted(queries, "query", "queries")
    return f"nothing to judge: no {noun} were read in the answers to {asked}"


def _verdict(check: CoordinateCheck) -> str:
    diagnosis = check.diagnosis
    fit = check.diagnosis.fit
    values = {line.convention.name: line.metric_values[_METRICS[0]] for line in check.lines}

    def with_f1(convention: Convention) -> str:
        value = "the same F1"
        if convention.name in values:
            cell = TableCell(values[convention.name])
            value = f"F1 {text_of(Field('', FieldType.VALUE), cell)}"
        return f"{convention.description}: {value}"

    if not diagnosis.boxes:
        return _nothing_to_judge("boxes", diagnosis.queries)
    declared = f"declared {with_f1(diagnosis.declared)}"
    if fit is None:
        lacks = why_too_few(diagnosis.boxes, diagnosis.answered, diagnosis.places)
        return f"{declared}; {lacks}"
    if diagnosis.verdict is CoordinateVerdict.FITS:
        return f"{declared}: it fits{', with a small drift' if diagnosis.drift else ''}"
    agree = f"{fit.agree} of {diagnosis.answered} answers agree"
    near = fit.unlisted.convention.description
    second = fit.second
    share = f"{100 * second.share:.0f} % of the answers are {second.convention.description}"
    other = f"answered {with_f1(fit.best)}; {agree}: the run's convention is wrong"
    unlisted = f"the answers follow {near}, scaled or moved: no convention known"
    if diagnosis.resize is not None:
        unlisted = f"the answers are {diagnosis.resize.words}: no convention known"
    sentences = {
        CoordinateVerdict.OTHER: other,
        CoordinateVerdict.UNLISTED: unlisted,
        CoordinateVerdict.MIXED: f"{share}: two conventions",
        CoordinateVerdict.NONE: "the boxes do not follow the objects in any convention",
    }
    undecided = f"undecided, cannot exclude {some_described(fit.rivals) or with_f1(fit.best)}"
    return f"{declared}; {sentences.get(diagnosis.verdict, undecided)}"


def evidence(log_likelihood: float, errors: float, more: str) -> str:
    """Say how much better the convention of the answers fits than the declared one.

    Args:
        log_likelihood: its lead, in nats.
        errors: the lead over images, in standard errors.
        more: the same in another measure.
    """
    over_images = "more than 100" if errors > 100 else f"{errors:.1f}"
    return (
        f"log-likelihood {log_likelihood:.0f} above the declared convention's: {over_images} "
        f"standard errors over images, {more}"
    )
