"""Check the coordinates of a run: its replies as numbers, and what other conventions would give."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..benchmarks.findit import (
    METRICS_BY_RULE,
    FindItVariant,
    ScoredReply,
    match_replies,
    reply_format,
)
from ..boxes import NO_RECTANGLE, MatchResult, MatchRule, ParsedReply, match, space_from
from ..protocol import Identity, Metric, Reply, Settings, add_up
from .conventions import ORDERS, SPACES, Convention, Distortion, conventions, space_row_of
from .diagnosis import ALIKE_DISTANCE, Diagnosis, RunFit, SecondConvention, diagnose
from .likelihood import convention_distance, screen_conventions, to_boxes
from .point_check import X_FIRST, Y_FIRST, PointDiagnosis, diagnose_points
from .run_arrays import AnsweredQuery, RunArrays, run_arrays

_LINES = 8
_ALWAYS = ("grid1000", "unit", "pixels")


class NotBoxesError(ValueError):
    """A run without boxes, or with replies in several spaces."""


@dataclass(frozen=True)
class RunReplies:
    """The replies of a run and the convention that its score reads them in."""

    declared: Convention
    matched: Sequence[ScoredReply]
    match_rule: MatchRule = MatchRule.BOX_OVERLAP

    @property
    def are_points(self) -> bool:
        return self.match_rule is MatchRule.POINT_IN_OBJECT

    @property
    def metrics(self) -> Sequence[Metric]:
        """Return the two metrics that lines show."""
        return METRICS_BY_RULE[self.match_rule].metrics[:2]

    @property
    def queries(self) -> list[AnsweredQuery]:
        return [each for reply in self.matched for each in _queries(reply, self.declared)]


def replies_of_run(
    model: str, dataset: Any, replies: Sequence[Reply], settings: Settings, run: Identity | None
) -> RunReplies:
    """Read a run's replies as its score does.

    Raises:
        NotBoxesError: the answers are no boxes, or in several spaces.
        SpaceError: the coordinate space is unknown.
    """
    variant = dataset.variant
    if not isinstance(variant, FindItVariant):
        raise NotBoxesError(f"{variant.name}: its answers are neither boxes nor points")
    matched, spaces = match_replies(model, dataset, replies, settings, run)
    if len(spaces) > 1:
        raise NotBoxesError(f"{variant.name}: its replies are in {len(spaces)} coordinate spaces")
    space = spaces[0].space if spaces else space_from("grid1000")
    if variant.match_rule is MatchRule.POINT_IN_OBJECT:
        return RunReplies(Convention(space_row_of(space), X_FIRST), matched, variant.match_rule)
    row = run.answering.row or "" if run is not None else ""
    name = reply_format(model, variant, settings, row).numbers.name
    # Other formats (eight numbers, say) were read into corners.
    order = ORDERS.get(name, ORDERS["xyxy"])
    return RunReplies(Convention(space_row_of(space), order), matched)


def _queries(reply: ScoredReply, declared: Convention) -> Iterator[AnsweredQuery]:
    query = reply.query
    truth = reply.query.truth
    reading = reply.reading
    corners = np.array(reading.boxes, float).reshape(-1, 4).T
    numbers = (declared.order.numbers @ corners).T.tolist()
    usable = [i for i, box in enumerate(reading.boxes) if tuple(box) != NO_RECTANGLE]
    where = reading.frames or [0] * len(reading.boxes)
    labelled = bool(truth.labels and reading.labels)
    for frame in sorted({0, *truth.frames, *where}):
        true = [i for i, at in enumerate(truth.frames) if at == frame]
        stated = [i for i in usable if where[i] == frame]
        yield AnsweredQuery(
            query.width,
            query.height,
            query.images[0],
            [truth.boxes[i] for i in true],
            [numbers[i] for i in stated],
            [truth.labels[i] for i in true] if labelled else (),
            [reading.labels[i] for i in stated] if labelled else (),
        )


def matched_in(run: RunReplies, convention: Convention) -> list[MatchResult]:
    """Match the replies as if they were in another convention; boxes are in pixels."""
    read = _readings_in(run, convention)
    truths = [each.query.truth for each in run.matched]
    return match(read, truths, match_rule=run.match_rule)


def _readings_in(run: RunReplies, convention: Convention) -> list[ParsedReply]:
    """Read the replies in a convention, in pixels."""
    readings = [each.reading for each in run.matched]
    boxes = np.array([box for reading in readings for box in reading.boxes], float).reshape(-1, 4)
    sizes = np.array([(m.query.width, m.query.height) for m in run.matched], float).reshape(-1, 2).T
    owner = np.repeat(np.arange(len(readings)), [len(reading.boxes) for reading in readings])
    frame = convention.space.map_of(sizes).of(owner)
    numbers = run.declared.order.numbers @ boxes.T
    shares = to_boxes(numbers, frame, convention.order.corners).corners
    pixels = iter((shares * np.tile(sizes[:, owner], (2, 1))).T.tolist())
    return [
        reading._replace(boxes=tuple(tuple(next(pixels)) for _ in reading.boxes))
        for reading in readings
    ]


def metrics_in(run: RunReplies, convention: Convention) -> dict[str, float | None]:
    """Compute two metrics in percent with the replies read in a convention.

    They are F1@0.5 and mIoU of boxes, pointing accuracy and points inside of points.
    """
    read = [each.reading for each in run.matched]
    truths = [each.query.truth for each in run.matched]
    matched = matched_in(run, convention)
    total = add_up(map(METRICS_BY_RULE[run.match_rule].sums, read, matched, truths))
    return {metric.name: metric.value(total) for metric in run.metrics}


# --- results --------------------------------------------------------------------------------------


class ConventionMetrics(NamedTuple):
    """The metric values in a convention."""

    convention: Convention
    metric_values: Mapping[str, float | None]


@dataclass(frozen=True)
class CoordinateCheck:
    """A diagnosis, and the metric values that other conventions would give."""

    diagnosis: Diagnosis
    lines: Sequence[ConventionMetrics]

    def as_dict(self) -> dict[str, Any]:
        diagnosis = self.diagnosis
        fit = diagnosis.fit
        return {
            "verdict": diagnosis.verdict.value,
            "alarm": diagnosis.verdict.alarms,
            "declared": diagnosis.declared.name,
            "boxes": diagnosis.boxes,
            "queries": diagnosis.queries,
            "answered": diagnosis.answered,
            "places": round(diagnosis.places, 1),
            "drift": diagnosis.drift,
            "resize": diagnosis.resize.words if diagnosis.resize is not None else None,
            "fit": fit and _evidence(fit),
        }


def _evidence(fit: RunFit) -> dict[str, Any]:
    bent = fit.unlisted
    return {
        "best": fit.best.name,
        "description": fit.best.space.description,
        **{name: round(getattr(fit, name), 2) for name in ("llr", "z", "z_iou", "signal")},
        "distance": round(fit.distance, 4),
        "agree": fit.agree,
        "alike": list(fit.lookalikes),
        "rivals": list(fit.rivals),
        "distortion": {
            "in": bent.convention.name,
            "gain": round(bent.gain, 1),
            "distance": round(bent.distance, 4),
            **distortion_as_dict(bent.distortion),
        },
        "second": _second_as_dict(fit.second) if fit.second.is_clear else None,
    }


def _second_as_dict(second: SecondConvention) -> dict[str, Any]:
    return {
        "convention": second.convention.name,
        "share": round(second.share, 3),
        "gain": round(second.gain, 1),
    }


def distortion_as_dict(distortion: Distortion) -> dict[str, Any]:
    """Return scale, offset (of the corner) and their standard errors by axis."""
    values = {
        "scale": distortion.scale,
        "scale_error": distortion.scale_error,
        "offset": distortion.at_origin,
        "offset_error": distortion.at_origin_error,
    }
    return {
        axis: {name: round(float(both[i]), 4) for name, both in values.items()}
        for i, axis in enumerate("xy")
    }


def check_run(run: RunReplies) -> CoordinateCheck:
    """Check a run."""
    arrays = run_arrays(run.queries)
    diagnosis = diagnose(arrays, run.declared)
    lines = [
        ConventionMetrics(each, metrics_in(run, each))
        for each in conventions_to_show(arrays, diagnosis)
    ]
    return CoordinateCheck(diagnosis, lines)


def conventions_to_show(arrays: RunArrays, diagnosis: Diagnosis) -> list[Convention]:
    """Choose the conventions to show (declared, best, likely, usual), without lookalikes."""
    declared = diagnosis.declared
    fit = diagnosis.fit
    first = [declared] if fit is None else [declared, fit.best]
    usual = [Convention(SPACES[name], declared.order) for name in _ALWAYS]
    known = conventions(declared)
    few = arrays.some(200)
    nats = screen_conventions(few, known)[0].sum(1) - [convention.cost for convention in known]
    likely = [known[i] for i in np.argsort(-nats, kind="stable")[:40]]
    shown: list[Convention] = []
    for convention in [*first, *likely, *usual]:
        room = len(shown) < _LINES or convention in usual
        if room and all(
            convention_distance(arrays, other, convention) >= ALIKE_DISTANCE for other in shown
        ):
            shown.append(convention)
    return shown


# --- points ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PointCheck:
    """A diagnosis of points, and the metric values that other conventions would give."""

    diagnosis: PointDiagnosis
    lines: Sequence[ConventionMetrics]


def check_points(run: RunReplies) -> PointCheck:
    """Check a run of points."""
    diagnosis = diagnose_points(run_arrays(run.queries), run.declared)
    space = run.declared.space
    shown = [run.declared, Convention(space, Y_FIRST)]
    if diagnosis.fit is not None:
        shown.append(diagnosis.fit.best)
    for name in _ALWAYS:
        shown.append(Convention(SPACES[name], X_FIRST))
    each = {convention.name: convention for convention in shown}
    return PointCheck(
        diagnosis, [ConventionMetrics(item, metrics_in(run, item)) for item in each.values()]
    )
