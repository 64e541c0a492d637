"""Output of a probe: a table by image size, and the verdict."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..benchmarks.findit import ScoredReply
from ..boxes import NO_RECTANGLE, AnswerKind, Space
from ..coords import (
    FEWEST_PROBE_BOXES,
    Convention,
    CoordinateVerdict,
    OtherFormat,
    ProbeResult,
    ProbeVerdict,
    RunReplies,
    SizeGroup,
    why_too_few,
)
from ..core import as_called, counted, printable
from ..data import PROBE_SCENE_COUNT
from ..leaderboard import Column, FieldType, Note, Table, count_column, table_of
from .command_base import say
from .coordinate_lines import folded, scale_and_offset, some_described
from .printing import WHOLE_OUTPUT, print_folded, print_table

_POOR = 0.5
"""Below this median IoU a model does not find the shape."""


@dataclass(frozen=True)
class ProbeReport:
    """A probe: its run, and the result of its answers.

    ``asked`` is the convention in which boxes were asked for, ``other_format`` the format that more
    replies have, ``notes`` who else answered, and what is odd in replies.
    """

    model: str
    dataset: str
    run: RunReplies
    result: ProbeResult
    sizes: Sequence[SizeGroup]
    asked: Convention
    other_format: OtherFormat | None = None
    notes: Sequence[str] = ()

    @property
    def space(self) -> Space | None:
        """The space that runs should declare; None if scores cannot be computed in it."""
        named = self.result.named
        return None if named is None else named.space.space

    @property
    def unusable(self) -> str | None:
        """The reason why no run can be scored in the named convention; None if runs can."""
        named = self.result.named
        if named is None or not self.result.verdict.is_clear:
            return None
        if named.order.name != self.asked.order.name:
            return f"numbers come as {named.order.name}, and {self.asked.order.name} was asked for"
        if self.space is None:
            return "FindIt has no coordinate space like it: correct the deployment"
        return None

    def counts(self) -> dict[str, int]:
        """Count answers with boxes, without, not readable ones, and failed calls."""
        kinds = Counter(map(_kind, self.run.matched))
        return {kind: kinds[kind] for kind in ("boxes", "no box", "not readable", "failed")}


def _kind(reply: ScoredReply) -> str:
    if reply.reply.failed:
        return "failed"
    if any(tuple(box) != NO_RECTANGLE for box in reply.reading.boxes):
        return "boxes"
    return "no box" if reply.kind is AnswerKind.NO_BOX else "not readable"


def _why_unreadable(reply: ScoredReply) -> str:
    reason = reply.reading.reason
    return reason.value if reason else "no rectangle"


# --- the terminal ---------------------------------------------------------------------------------


def print_probe(report: ProbeReport) -> None:
    """Print the report of a probe, in lines of at most 80 characters."""
    head = [f"{printable(report.model)}, asked {report.dataset}", *_counts(report)]
    table = _sizes_table(report)
    say("\n".join(folded(head)) + "\n")
    print_table(table, WHOLE_OUTPUT)
    for note in table.notes:
        print_folded(note.text)
    lines = [_verdict(report), *_details(report), *_advice(report)]
    say("\n" + "\n".join(folded(lines)))


def _counts(report: ProbeReport) -> Iterator[str]:
    counts = report.counts()
    matched = report.run.matched
    yield (
        f"{len(matched)} scenes: {counts['boxes']} answered with boxes, {counts['no box']} without "
        f"a box, {counts['not readable']} not readable, {counted(counts['failed'], 'call')} failed"
    )
    unread = (_why_unreadable(reply) for reply in matched if _kind(reply) == "not readable")
    for reason, count in Counter(unread).most_common():
        yield f"  not readable: {count} {reason}"
    failed = (reply.reply for reply in matched if reply.reply.failed)
    errors = Counter(str(call.recorded.call.get("error") or call.text)[:200] for call in failed)
    for error, count in errors.most_common(3):
        yield f"  failed: {count} {printable(error)}"
    yield from report.notes


def _sizes_table(report: ProbeReport) -> Table:
    """Make a table with a row for each image size: number / true pixel, and the IoU."""
    result = report.result
    ratios: list[Column[SizeGroup]] = [*_ratio_columns("got", lambda size: size.ratio)]
    if result.declared is not None:
        ratios += _ratio_columns("declared", lambda size: size.declared)
    if result.named not in (None, result.declared):
        ratios += _ratio_columns("named", lambda size: size.named)
    columns: list[Column[SizeGroup]] = [
        Column("image", lambda size: f"{size.width}x{size.height}"),
        count_column("boxes", lambda size: size.boxes),
        *ratios,
        Column("IoU", lambda size: _known(size.iou), FieldType.PROBABILITY),
    ]
    notes = [Note("", ["x, y: number / true pixel; medians"])]
    return table_of("Sizes", columns, report.sizes, notes)


def _ratio_columns(
    name: str, pair: Callable[[SizeGroup], NDArray[np.float64] | None]
) -> list[Column[SizeGroup]]:
    """Return the columns of a number across and down over the true pixel."""
    return [
        Column(f"{name} x", lambda size: _at(pair(size), 0), FieldType.RATIO),
        Column(f"{name} y", lambda size: _at(pair(size), 1), FieldType.RATIO),
    ]


def _at(pair: NDArray[np.float64] | None, place: int) -> float | None:
    return None if pair is None else _known(pair[place])


def _known(number: float) -> float | None:
    return None if np.isnan(number) else float(number)


def _verdict(report: ProbeReport) -> str:
    result = report.result
    verdict = result.verdict
    named = result.named
    diagnosis = result.diagnosis
    declared = "nothing was declared"
    if result.declared is not None:
        declared = f"declared {result.declared.description}"
    if verdict is ProbeVerdict.CONFIRMED:
        return f"{declared}: confirmed"
    fit = diagnosis.fit
    if verdict is ProbeVerdict.NOTHING or fit is None or named is None:
        why = "the boxes do not follow the objects in any convention"
        if diagnosis.verdict is CoordinateVerdict.TOO_FEW:
            counts = diagnosis.boxes, diagnosis.answered, diagnosis.places
            why = why_too_few(*counts, fewest=FEWEST_PROBE_BOXES)
        return f"{declared}; {why}: undecided"
    second = fit.second
    rivals = some_described(fit.rivals)
    not_excluded = f"; not excluded: {rivals}" if rivals else ""
    sentences: Mapping[ProbeVerdict, str] = {
        ProbeVerdict.NAMED: "{named}",
        ProbeVerdict.OTHER: "{named} ({agree} of {answered} agree): ANOTHER CONVENTION",
        ProbeVerdict.MIXED: "{named}, but about {share:.0f} % are {second}: TWO CONVENTIONS",
        ProbeVerdict.DRIFT: "{named}, but SCALED OR MOVED",
        ProbeVerdict.UNLISTED: "nearest to {named}, but SCALED OR MOVED: no convention known",
        ProbeVerdict.UNDECIDED: f"most like {{named}}{not_excluded}: undecided",
    }
    text = sentences[verdict].format(
        named=named.description,
        agree=fit.agree,
        answered=diagnosis.answered,
        share=100 * second.share,
        second=second.convention.description,
    )
    if diagnosis.resize is not None:
        text = f"{diagnosis.resize.words}: no convention known"
    return f"{declared}; the answers are {text}"


def _details(report: ProbeReport) -> Iterator[str]:
    result = report.result
    fit = report.result.diagnosis.fit
    if fit is None or result.named is None or result.nearest is None or result.distortion is None:
        return
    nearest = result.nearest.description
    yield f"fitted scale and offset, read as {nearest}: {scale_and_offset(result.distortion)}"
    lookalikes = [name for name in fit.lookalikes if name != result.named.name]
    if lookalikes and result.verdict.is_clear:
        yield f"these scenes cannot tell it from: {some_described(lookalikes)}"
    if result.verdict is ProbeVerdict.OTHER:
        yield f"log-likelihood {fit.llr:.0f} above that of what is declared"
    poor = [f"{size.width}x{size.height}" for size in report.sizes if size.iou < _POOR]
    if poor and result.verdict.is_clear:
        yield f"hardly detected on {', '.join(poor)}: an error of the model, not of the convention"
    if report.unusable is not None:
        yield f"no run can be scored in it: {report.unusable}"
        yield as_called("find the format that it follows: python run_findit.py search --help")
    elif report.space is not None and result.verdict in (ProbeVerdict.NAMED, ProbeVerdict.OTHER):
        values = report.space.as_dict()
        space = json.dumps(values) if len(values) > 1 else report.space.kind
        yield f"run with this model's space: --space {shlex.quote(space)}"


def _advice(report: ProbeReport) -> Iterator[str]:
    """Say what else could be asked, where replies had another format or were too few."""
    scenes = len(report.run.matched)
    other = report.other_format
    if other is not None:
        name = other.variant.name.partition("_Probe_")[2]
        yield f"{other.count} of {scenes} replies are as {name} asks for them: type --format {name}"
    if report.result.diagnosis.boxes < FEWEST_PROBE_BOXES and scenes < PROBE_SCENE_COUNT:
        more = PROBE_SCENE_COUNT - scenes
        yield (
            f"--limit {PROBE_SCENE_COUNT} asks {more} scenes more, and these are not asked again"
        )
