"""What is printed of a probe: a table by size of the image, and the verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..boxes.records import Reason
from ..boxes.representation import NO_RECTANGLE
from ..boxes.spaces import Space
from ..coords.conventions import Convention, Floats
from ..coords.probe import FEWEST, OtherFormat, ProbeResult, ProbeVerdict, SizeGroup
from ..coords.run_check import RunReplies, distortion_as_dict
from ..core.spelling import visible
from ..data.probe.scenes import COUNT
from ..leaderboard.render import to_json
from ..leaderboard.table import Field, FieldType, Note, Table, Value
from .coords import folded, scale_and_offset, some
from .printing import print_folded, print_table

_LOST = 0.5
"""A median IoU below it says that a model does not find the shape."""

_WITHOUT = (None, Reason.NO_BOX)
"""Reasons of a reply without boxes that was read all the same."""


@dataclass(frozen=True)
class OtherFormatResult:
    """The form that replies have instead of the one that was asked for, and what they say so read.

    Without ``run`` and ``result`` no format asks for it.
    """

    form: OtherFormat
    run: RunReplies | None = None
    result: ProbeResult | None = None


@dataclass(frozen=True)
class Probed:
    """A probe: its run at ``path``, what was found, and how boxes were ``asked`` for."""

    model: str
    dataset: str
    path: Path
    run: RunReplies
    result: ProbeResult
    sizes: Sequence[SizeGroup]
    asked: Convention
    other_format: OtherFormatResult | None = None

    @property
    def failed(self) -> int:
        """How many calls failed."""
        return sum(one.reply.failed for one in self.run.matched)

    @property
    def is_named(self) -> bool:
        return self.result.verdict in (ProbeVerdict.CONFIRMED, ProbeVerdict.NAMED)

    @property
    def space(self) -> Space | None:
        """The space that runs are to declare; None where the score has none such."""
        named = self.result.named
        if named is None:
            return None
        # With nothing declared pictures were sent as they are, and pixels are those of the sent.
        return Space("pixels") if named.space.name == "original" else named.space.space

    @property
    def unusable(self) -> str | None:
        """Why no run can be scored in what was named; None where one can, or nothing was named."""
        named = self.result.named
        if named is None or not self.result.verdict.is_clear:
            return None
        if named.order.name != self.asked.order.name:
            return f"numbers come as {named.order.name}, and {self.asked.order.name} was asked for"
        if self.space is None:
            return "no coordinate space of ours is like this: mend the deployment"
        return None

    def counts(self) -> dict[str, int]:
        """How many answers have boxes, have none, cannot be read, and how many calls failed."""
        kinds = Counter(map(_kind, self.run.matched))
        return {kind: kinds[kind] for kind in ("boxes", "no box", "not readable", "failed")}

    def reasons(self) -> Counter[str]:
        """Why answers could not be read."""
        unread = (one for one in self.run.matched if _kind(one) == "not readable")
        return Counter(one.reading.reason.value for one in unread if one.reading.reason)


def _kind(one: Any) -> str:
    if one.reply.failed:
        return "failed"
    if any(tuple(box) != NO_RECTANGLE for box in one.reading.boxes):
        return "boxes"
    return "no box" if one.reading.boxes or one.reading.reason in _WITHOUT else "not readable"


# --- the terminal ---------------------------------------------------------------------------------


def print_probe(probed: Probed) -> None:
    """Print the report of a probe, in lines of at most 80 characters."""
    head = [f"{visible(probed.model)}, asked {probed.dataset}", *_counted(probed)]
    table = sizes_table(probed)
    print("\n".join(folded(head)) + "\n")
    print_table(table, "--json FILE")
    for note in table.notes:
        print_folded(note.text)
    print("\n" + "\n".join(folded([_verdict(probed), *_details(probed), *_next(probed)])))


def needed(scenes: int) -> str:
    """What a probe of fewer scenes than there are needs."""
    spare = scenes - FEWEST
    which = f"all of them but {spare} have" if spare else "every scene has"
    return f"--limit {scenes}: a result needs {FEWEST} boxes, so {which} to give one\n"


def _next(probed: Probed) -> Iterator[str]:
    """What else could be asked, where replies had another form or were too few."""
    scenes, instead = len(probed.run.matched), probed.other_format
    if instead is not None:
        share = f"{instead.form.count} of {scenes} replies"
        if instead.form.question is None:
            key = visible(instead.form.key)
            yield f"{share} have their boxes under '{key:.60}', which no format asks for"
        else:
            name = instead.form.question.name.partition("_Probe_")[2]
            yield f"{share} are as {name} asks for them: ask so, with --format {name}"
    if instead is not None and instead.run is not None and instead.result is not None:
        yield f"read so: {_verdict(replace(probed, run=instead.run, result=instead.result))}"
    if probed.result.diagnosis.boxes < FEWEST and scenes < COUNT:
        yield f"--limit {COUNT} asks {COUNT - scenes} scenes more, and these are not asked again"


def _counted(probed: Probed) -> Iterator[str]:
    counts = probed.counts()
    total = sum(counts.values())
    yield (
        f"{total} scenes: {counts['boxes']} answered with boxes, {counts['no box']} without a box, "
        f"{counts['not readable']} not readable, {counts['failed']} calls failed"
    )
    for reason, count in probed.reasons().most_common():
        yield f"  not readable: {count} {reason}"
    for error, count in _errors(probed).most_common(3):
        yield f"  failed: {count} {visible(error)}"


def _errors(probed: Probed) -> Counter[str]:
    failed = (one.reply for one in probed.run.matched if one.reply.failed)
    return Counter(str(reply.recorded.call.get("error") or reply.text)[:200] for reply in failed)


def sizes_table(probed: Probed) -> Table:
    """Make one row an image size: number / true pixel, said and by convention, and the IoU."""
    result = probed.result
    columns: dict[str, Callable[[SizeGroup], Floats | None]] = {"answered": lambda one: one.ratio}
    if result.declared is not None:
        columns["declared"] = lambda one: one.declared
    if result.named is not None and result.named != result.declared:
        columns["named"] = lambda one: one.named
    rows: list[list[Value]] = []
    for one in probed.sizes:
        ratios = [ratio for of in columns.values() for ratio in _pair(of(one))]
        rows.append([f"{one.width}x{one.height}", one.boxes, *ratios, _number(one.iou)])
    ratios_of = [Field(f"{name} {axis}", FieldType.RATIO) for name in columns for axis in "xy"]
    fields = [
        Field("image"),
        Field("boxes", FieldType.COUNT),
        *ratios_of,
        Field("IoU", FieldType.PROBABILITY),
    ]
    return Table("Sizes", fields, rows, [Note("", ["x, y: number / true pixel; medians"])])


def _pair(ratio: Floats | None) -> list[float | None]:
    return [None, None] if ratio is None else [_number(value) for value in ratio]


def _number(value: float) -> float | None:
    """Return the number; None where there were no boxes."""
    return None if np.isnan(value) else float(value)


def _verdict(probed: Probed) -> str:
    result = probed.result
    verdict, named = result.verdict, result.named
    declared = "nothing was declared"
    if result.declared is not None:
        declared = f"declared {result.declared.description}"
    if verdict is ProbeVerdict.CONFIRMED:
        return f"{declared}: confirmed"
    if verdict is ProbeVerdict.NOTHING or result.diagnosis.fit is None or named is None:
        if result.diagnosis.boxes < FEWEST:
            why = f"{result.diagnosis.boxes} boxes are too few (at least {FEWEST})"
        else:
            why = "the boxes do not follow the objects in any convention"
        return f"{declared}; {why}: nothing can be said"
    return f"{declared}; {_SAID[verdict](probed, named.description)}"


def _other(probed: Probed, named: str) -> str:
    found, answered = probed.result.diagnosis.fit, probed.result.diagnosis.answered
    agree = 0 if found is None else found.agree
    return f"the answers are {named} ({agree} of {answered} agree): ANOTHER CONVENTION"


def _mixed(probed: Probed, named: str) -> str:
    found = probed.result.diagnosis.fit
    if found is None or found.second is None:
        return f"the answers are {named}, but not all of them: TWO CONVENTIONS"
    share, other = 100 * found.second.share, found.second.convention.description
    return f"the answers are {named}, but about {share:.0f} % are {other}: TWO CONVENTIONS"


def _undecided(probed: Probed, named: str) -> str:
    found = probed.result.diagnosis.fit
    rivals = () if found is None else found.rivals
    more = f"; not excluded: {some(rivals)}" if rivals else ""
    return f"the answers are most like {named}{more}: undecided"


_SAID: Mapping[ProbeVerdict, Callable[[Probed, str], str]] = {
    ProbeVerdict.NAMED: lambda probed, named: f"the answers are {named}",
    ProbeVerdict.OTHER: _other,
    ProbeVerdict.MIXED: _mixed,
    ProbeVerdict.DRIFT: lambda probed, named: f"the answers are {named}, but SCALED OR MOVED",
    ProbeVerdict.UNLISTED: lambda probed, named: (
        f"the answers are nearest to {named}, but SCALED OR MOVED: no convention known"
    ),
    ProbeVerdict.UNDECIDED: _undecided,
}


def _details(probed: Probed) -> Iterator[str]:
    result, found = probed.result, probed.result.diagnosis.fit
    if found is None or result.named is None or result.nearest is None or result.distortion is None:
        return
    yield f"fitted in {result.nearest.name}: {scale_and_offset(result.distortion)}"
    alike = [name for name in found.alike if name != result.named.name]
    if alike and result.verdict.is_clear:
        yield f"not to be told from {result.named.name} on these scenes: {some(alike)}"
    if result.verdict is ProbeVerdict.OTHER:
        yield f"{found.llr:.0f} nats ahead of what is declared"
    lost = [f"{one.width}x{one.height}" for one in probed.sizes if one.iou < _LOST]
    if lost and result.verdict.is_clear:
        yield f"hardly found on {', '.join(lost)}: there the model errs, and not the convention"
    if probed.unusable is not None:
        yield f"no run can be scored like this: {probed.unusable}"


# --- a file ---------------------------------------------------------------------------------------


def as_dict(probed: Probed) -> dict[str, Any]:
    """All of it, for a file."""
    result, found = probed.result, probed.result.diagnosis.fit
    return {
        "model": probed.model,
        "dataset": probed.dataset,
        "run": str(probed.path),
        "verdict": result.verdict.value,
        "declared": result.declared and result.declared.name,
        "named": result.named and result.named.name,
        "description": result.named and result.named.description,
        "space": None if probed.unusable or not probed.space else probed.space.as_dict(),
        "unusable": probed.unusable,
        "answers": probed.counts(),
        "other_format": probed.other_format
        and {
            "replies": probed.other_format.form.count,
            "asked_for_by": probed.other_format.form.question
            and probed.other_format.form.question.name,
            "key": probed.other_format.form.key or None,
        },
        "sizes": to_json(sizes_table(probed)),
        "fit": None
        if found is None
        else {
            "nats_ahead_of_declared": round(found.llr, 2),
            "alike": list(found.alike),
            "rivals": list(found.rivals),
            "drift": round(found.unlisted.gain, 2),
            "fitted_in": result.nearest and result.nearest.name,
            "distortion": result.distortion and distortion_as_dict(result.distortion),
        },
    }
