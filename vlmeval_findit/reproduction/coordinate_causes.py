"""Causes in the coordinates: replies in another space or order, padded, resized, scaled or moved.

The coordinate check names the convention; it never looks at the published value.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..benchmarks.findit import FindItVariant, format_problem
from ..boxes import REPRESENTATIONS, SPACE_KINDS, Size, Space
from ..coords import (
    SPACES,
    Convention,
    CoordinateVerdict,
    Diagnosis,
    Distortion,
    NotBoxesError,
    PointFit,
    ResizeFit,
    RunFit,
    bent_axes,
    box_ious,
    fit_resize,
    least_gain,
    mean_iou,
    space_row_of,
    why_too_few,
)
from ..data import NOT_STATED
from .cause_evidence import Evidence
from .figure_metric import ReadReplies, figure_metric, row_shares
from .picture_groups import picture_shape
from .reproduction_records import CauseLook, ConditionAgreement

COORDINATES = "coordinates"
SPACE = "space"

# An undecided check is no proof: what fits best is a possible cause if it explains so much.
_EXPLAINS_MUCH = 0.6

_EXPLAINS_NOTHING = "no convention explains what is missing"

# Scales that habits of models do not reach
_HABITS = 0.85


def check_coordinates(evidence: Evidence) -> CauseLook:
    """Look whether the same replies follow another convention than they are read in."""
    try:
        diagnosis = evidence.diagnosis
    except NotBoxesError as error:
        return CauseLook(COORDINATES, str(error))
    declared = diagnosis.declared
    verdict = diagnosis.verdict
    fit = diagnosis.fit
    if fit is None:
        noun = "points" if evidence.are_points else "boxes"
        arrays = evidence.arrays
        lacks = why_too_few(arrays.boxes, arrays.answered, arrays.places, noun)
        return CauseLook(COORDINATES, lacks)
    if verdict is CoordinateVerdict.NONE:
        return CauseLook(COORDINATES, "the boxes follow the objects in no convention")
    drift = isinstance(diagnosis, Diagnosis) and diagnosis.drift
    if verdict is CoordinateVerdict.FITS and not drift:
        return CauseLook(COORDINATES, f"replies are {declared.description}, as declared")
    look = _in_one_convention(evidence, fit, is_sure=verdict is CoordinateVerdict.OTHER)
    if isinstance(fit, RunFit):
        if verdict is CoordinateVerdict.UNLISTED or drift:
            look = _scaled_or_moved(evidence, fit)
        elif verdict is CoordinateVerdict.MIXED:
            look = _two_conventions(evidence, fit)
        return _better(_resized(evidence, fit), look)
    return look


# Points by which two conventions, of which the better counts for each reply, may be ahead of one
_EITHER_GAINS = 3.0


def _better(one: CauseLook | None, other: CauseLook) -> CauseLook:
    """Return the look at one resize, unless the other look explains clearly more."""
    if one is None or one.cause is None:
        return other
    if other.cause is None or other.cause.explains is None or one.cause.explains is None:
        return one
    is_ahead = other.cause.explains > one.cause.explains + _EITHER_GAINS
    return other if is_ahead else one


def _in_one_convention(evidence: Evidence, fit: RunFit | PointFit, is_sure: bool) -> CauseLook:
    """Look at what the figure would be in the convention that fits best."""
    other = _best_named(evidence, fit)
    declared = evidence.runs[0].declared
    if other.name == declared.name:
        return CauseLook(COORDINATES, f"{declared.description} fits best, as declared")
    value = evidence.value_of(evidence.replies_in(other))
    if not (evidence.matters(value) if is_sure else evidence.matters(value, _EXPLAINS_MUCH)):
        return CauseLook(COORDINATES, _EXPLAINS_NOTHING)
    theirs, read_as = _words_of_both(other, declared)
    cause = evidence.cause(
        COORDINATES,
        f"The replies are {theirs}, and are read as {read_as}",
        value,
        _advice(evidence, other),
        may_be=not is_sure,
    )
    return CauseLook(COORDINATES, "another convention fits", cause)


# --- a resize whose rule or number no convention has ----------------------------------------------


def _resized(evidence: Evidence, fit: RunFit) -> CauseLook | None:
    """Look whether each size of pictures has one scale of its own; None if that explains nothing.

    A resize is one fault of one deployment, however many conventions some of its sizes fit.
    """
    diagnosis = evidence.diagnosis
    found = diagnosis.resize if isinstance(diagnosis, Diagnosis) else None
    if found is None:
        found = fit_resize(evidence.arrays, fit.best.order)
        listed = mean_iou(evidence.arrays, fit.best)
        if found is None or found.iou < listed + least_gain(evidence.arrays, found):
            return None
    value = evidence.value_of(evidence.replies_in(found.convention))
    if not evidence.matters(value, _EXPLAINS_MUCH):
        return None
    if bent_axes(evidence.arrays, found.convention):
        return None
    cause = evidence.cause(
        COORDINATES,
        _resize_words(found, evidence.runs[0].declared),
        value,
        "Send pictures as they are: something resizes, crops or pads them before the model, and "
        f"the replies are not scaled back. To see how, type: {_probe_command(evidence)}",
    )
    return CauseLook(COORDINATES, "each size of pictures has a scale of its own", cause)


_AS_DECLARED = 0.06  # Share by which measured sides may differ from those declared


def _resize_words(found: ResizeFit, declared: Convention) -> str:
    """Say of which pictures a resize is: of all, unless some sizes are as declared."""
    order = found.convention.order.name
    as_declared = []
    if not found.rule and order == declared.order.name:
        as_declared = [size for size in found.sizes if _is_as_declared(found, size, declared)]
    # A square is like another square, resized or not.
    if all(width == height for width, height in as_declared):
        return f"The replies are {found.words}, {order}: one resize of all pictures"
    others = {size: to for size, to in found.sizes.items() if size not in as_declared}
    which = _which_pictures(list(others), as_declared)
    words = replace(found, sizes=others).words
    pixels = Convention(SPACES["pixels"], declared.order)
    if all(_is_as_declared(found, size, pixels) for size in others):
        words = pixels.space.description
    return (
        f"The replies about {which} are {words}, the others {declared.description}: only some of "
        "the pictures are treated so"
    )


def _is_as_declared(found: ResizeFit, size: Size, declared: Convention) -> bool:
    """Return whether the measured size of an image is that of a convention."""
    a_map = declared.space.map_of(np.array(size, float)[:, None])
    ratio = np.array(found.sizes[size]) / a_map.scale[:, 0]
    return bool((np.abs(np.log(ratio)) <= _AS_DECLARED).all() and not a_map.offset.any())


def _which_pictures(these: Sequence[Size], others: Sequence[Size]) -> str:
    """Name some of the pictures by a shape that the others do not have, else by their number.

    >>> _which_pictures([(480, 640), (300, 400)], [(640, 480)])
    'tall pictures'
    >>> _which_pictures([(480, 640)], [(640, 480), (300, 400)])
    'pictures of 1 of 3 sizes'
    """
    shapes = {picture_shape(size) for size in these}
    if len(shapes) == 1 and not shapes & {picture_shape(size) for size in others}:
        return shapes.pop()
    return f"pictures of {len(these)} of {len(these) + len(others)} sizes"


def _words_of_both(other: Convention, declared: Convention) -> tuple[str, str]:
    """Describe two conventions by what differs: the space, the order, or both."""
    if other.order.name == declared.order.name:
        return other.space.description, declared.space.description
    if other.space.name == declared.space.name:
        remark = f" ({other.order.remark})" if other.order.remark else ""
        return f"{other.order.name}{remark}", declared.order.name
    return other.description, declared.description


def _best_named(evidence: Evidence, fit: RunFit | PointFit) -> Convention:
    """Return the best convention, or the published one if it cannot be told from it."""
    best = fit.best
    if isinstance(fit, PointFit):
        return best
    published = evidence.figure.conditions.space
    for name in (best.name, *fit.lookalikes):
        space, _, order = name.partition("/")
        row = SPACES.get(space)
        is_published = row is not None and row.space is not None and row.space.kind == published
        if row is not None and is_published and order == best.order.name:
            return best._replace(space=row)
    return best


def _advice(evidence: Evidence, other: Convention) -> str:
    declared = evidence.runs[0].declared
    if other.order.name != declared.order.name:
        return _order_advice(evidence, other)
    space = other.space.space
    if space is None:
        return (
            f"No --space reads {other.space.description}: the deployment answers otherwise than "
            f"published. To see how, type: {_probe_command(evidence)}"
        )
    if _is_typed(evidence) and _is_default(evidence, space):
        return "Type the same command without --space"
    typed = f"Type the same command with --space {_typed(space)}"
    if space.kind == "letterbox":
        return f"Send pictures without padding them to a square. To read these replies: {typed}"
    return typed


def _is_typed(evidence: Evidence) -> bool:
    """Return whether the user states a space, and not the figure."""
    condition = evidence.condition(SPACE)
    is_published = condition is not None and condition.agreement is ConditionAgreement.AS_PUBLISHED
    return evidence.attempt.setup.entry.space is not None and not is_published


def _is_default(evidence: Evidence, space: Space) -> bool:
    """Return whether replies are read in a space where the user states none."""
    published = evidence.figure.conditions.space
    if published != NOT_STATED:
        return space.kind == published
    row = evidence.row
    return row is not None and row.space(evidence.attempt.setup.variants[0]) == space


def _typed(space: Space) -> str:
    """Return a space as it is typed.

    >>> _typed(Space("pixels")), _typed(Space("letterbox", side=1000))
    ('pixels', '\\'{"kind": "letterbox", "side": 1000}\\'')
    """
    values = space.as_dict()
    return space.kind if len(values) == 1 else shlex.quote(json.dumps(values))


def _order_advice(evidence: Evidence, other: Convention) -> str:
    setup = evidence.attempt.setup
    variant = setup.variants[0]
    name = other.order.name
    if not setup.prompts and name in REPRESENTATIONS and isinstance(variant, FindItVariant):
        in_order = replace(variant, representation=name)
        if format_problem(in_order) is None:
            return f"Type the same command with --format {in_order.format}"
    if evidence.differs("prompt"):
        return f"Type the same command without {evidence.typed_words}"
    return (
        "The published model does not answer so: check that the checkpoint and its chat template "
        f"are the published ones. To see the order, type: {_probe_command(evidence)}"
    )


def _probe_command(evidence: Evidence) -> str:
    entry = evidence.attempt.setup.entry
    elsewhere = " --base-url URL" if entry.base_url else ""
    if entry.provider is not None:
        elsewhere = f" --provider {entry.provider}"
    given = entry.served if entry.base_url or entry.provider else entry.checkpoint
    name = f"{entry.name}={given}" if given else entry.name
    return f"python run_findit.py coords --model {shlex.quote(name)}{elsewhere}"


# --- part of the replies, and frames that no row has ----------------------------------------------


def _two_conventions(evidence: Evidence, fit: RunFit) -> CauseLook:
    """Look at what the figure would be if each reply were read in the better of two conventions."""
    second = fit.second.convention
    declared = evidence.runs[0].declared
    first = fit.best if fit.best.name != second.name else declared
    share = fit.second.share
    words = second.description
    resized = _resize_of_rest(evidence, first, second)
    if resized is not None:
        second = resized.convention
        words = f"{resized.words}, {second.order.name}"
        share = _share_in_second(evidence, first, second)
    finding = f"{100 * share:.0f} % of the replies are {words}, the others {first.description}"
    value = _value_in_either(evidence, [first, second])
    if not evidence.matters(value):
        return CauseLook(COORDINATES, _EXPLAINS_NOTHING)
    for one in (first, second):
        alone = evidence.value_of(evidence.replies_in(one))
        is_enough = alone is not None and value is not None and alone >= value - _EITHER_GAINS
        if one.name != declared.name and is_enough and evidence.matters(alone):
            return _named_alone(evidence, one, alone)
    by_size = _split_by_picture(evidence, first, second)
    if by_size:
        cause = evidence.cause(
            COORDINATES,
            f"{finding}, by the {by_size} of the picture: one deployment that treats some "
            "pictures otherwise",
            value,
            "Send pictures as they are: something turns, crops, pads or resizes some of them. To "
            f"see it, type: {_probe_command(evidence)}",
            may_be=True,
        )
        return CauseLook(COORDINATES, "two conventions fit, by the picture", cause)
    cause = evidence.cause(
        COORDINATES,
        finding,
        value,
        "Ask one deployment in one version: several answer, or the prompt leaves open which "
        f"coordinates are wanted. To see it, type: {_probe_command(evidence)}",
    )
    return CauseLook(COORDINATES, "two conventions fit", cause)


def _resize_of_rest(evidence: Evidence, first: Convention, second: Convention) -> ResizeFit | None:
    """Return the rule of a resize that explains better than a listed one what the first misses."""
    arrays = evidence.arrays
    rest = arrays.only(np.flatnonzero(box_ious(arrays, first) < 0.5))
    found = fit_resize(rest, second.order)
    if found is None or not found.rule:
        return None
    is_better = found.iou >= mean_iou(rest, second) + least_gain(rest, found)
    return found if is_better else None


def _share_in_second(evidence: Evidence, first: Convention, second: Convention) -> float:
    """Return the share of boxes that fit better in the second convention."""
    arrays = evidence.arrays
    return float((box_ious(arrays, second) > box_ious(arrays, first)).mean())


def _named_alone(evidence: Evidence, one: Convention, value: float | None) -> CauseLook:
    declared = evidence.runs[0].declared
    theirs, read_as = _words_of_both(one, declared)
    cause = evidence.cause(
        COORDINATES,
        f"The replies are {theirs}, and are read as {read_as}",
        value,
        _advice(evidence, one),
    )
    return CauseLook(COORDINATES, "another convention fits", cause)


_SPLIT = 0.6  # Of what tells two conventions apart is told by the picture


def _split_by_picture(evidence: Evidence, first: Convention, second: Convention) -> str:
    """Say by what of the picture replies are in one convention or the other; "" if by nothing.

    Replies that fit in only one of both count.
    """
    in_first = [share for each in evidence.replies_in(first) for share in _shares(evidence, each)]
    in_second = [share for each in evidence.replies_in(second) for share in _shares(evidence, each)]
    told = [
        (scored, right)
        for scored, left, right in zip(evidence.scored, in_first, in_second, strict=True)
        if left != right
    ]
    for name, of in (
        ("shape", lambda scored: scored.query.width > scored.query.height),
        ("size", lambda scored: (scored.query.width, scored.query.height)),
    ):
        groups: dict[object, list[float]] = {}
        for scored, right in told:
            groups.setdefault(of(scored), []).append(right)
        every = [right for _, right in told]
        usual = sum((right - np.mean(every)) ** 2 for right in every)
        within = sum((right - np.mean(group)) ** 2 for group in groups.values() for right in group)
        if len(groups) > 1 and usual > 0 and within <= (1 - _SPLIT) * usual:
            return name
    return ""


def _shares(evidence: Evidence, replies: ReadReplies) -> list[float]:
    rows = row_shares(evidence.figure, replies)
    return [rows[scored.query.index].share for scored in replies.scored]


def _value_in_either(evidence: Evidence, both: Sequence[Convention]) -> float | None:
    if figure_metric(evidence.figure).by_rows:
        return None
    values = []
    for replies in zip(*(evidence.replies_in(each) for each in both), strict=True):
        readings = [row_shares(evidence.figure, each) for each in replies]
        total = 0.0
        for index, row in readings[0].items():
            total += row.weight * max(reading[index].share for reading in readings)
        weight = sum(row.weight for row in readings[0].values())
        if not weight:
            return None
        values.append(100 * total / weight)
    return sum(values) / len(values)


def _scaled_or_moved(evidence: Evidence, fit: RunFit) -> CauseLook:
    """Look at what the figure would be without the scale and the offset of the boxes."""
    unlisted = fit.unlisted
    base = unlisted.convention
    undone = _without_distortion(base, unlisted.distortion)
    value = evidence.value_of(evidence.replies_in(undone))
    # Weak models draw boxes to the middle, and were published so.
    is_habit = unlisted.distortion.is_small
    finding = f"The boxes are {_distortion_words(unlisted.distortion)} ({base.description})"
    bent = bent_axes(evidence.arrays, undone)
    if bent:
        finding = (
            f"The boxes are bent {' and '.join(bent)}: no scale and offset maps them onto their "
            f"objects. Nearest: {_distortion_words(unlisted.distortion)} ({base.description})"
        )
    explains_it = evidence.matters(value)
    if is_habit:
        explains_it = explains_it and evidence.closes(evidence.gain(value))
    if not explains_it:
        return CauseLook(COORDINATES, _EXPLAINS_NOTHING)
    cause = evidence.cause(
        COORDINATES,
        finding,
        value,
        "Send pictures as they are: something crops, pads or resizes them before the model, "
        f"or rescales its replies. To see how, type: {_probe_command(evidence)}",
        may_be=bool(bent) or (is_habit and unlisted.distortion.scale.min() >= _HABITS),
    )
    return CauseLook(COORDINATES, "bent" if bent else "scaled or moved", cause)


def _without_distortion(base: Convention, distortion: Distortion) -> Convention:
    map_of = base.space.map_of
    row = base.space._replace(map_of=lambda sizes: map_of(sizes).distorted(distortion), space=None)
    return base._replace(space=row)


def _distortion_words(distortion: Distortion) -> str:
    across, down = distortion.scale.tolist()
    right, below = (100 * distortion.at_origin).tolist()
    return (
        f"scaled by {across:.2f} across and {down:.2f} down, and moved by {right:.0f} % and "
        f"{below:.0f} % of the picture"
    )


# --- the published space --------------------------------------------------------------------------


def check_space(evidence: Evidence) -> CauseLook:
    """Look at the same replies in the published space, where the user states another one."""
    condition = evidence.condition(SPACE)
    if condition is None or not condition.published:
        return CauseLook(SPACE, "the figure does not say in which space replies are")
    if not evidence.differs(SPACE):
        return CauseLook(SPACE, f"{condition.here}, as published")
    result = f"read as {condition.here}, published {condition.published}"
    published = _published_space(evidence, condition.published)
    if published is None:
        return CauseLook(SPACE, f"{result}, whose bounds are not told")
    try:
        order = evidence.runs[0].declared.order
    except NotBoxesError as error:
        return CauseLook(SPACE, str(error))
    value = evidence.value_of(evidence.replies_in(Convention(space_row_of(published), order)))
    if not evidence.matters(value):
        return CauseLook(SPACE, result)
    advice = "Type the same command without --space"
    cause = evidence.cause(SPACE, f"The replies are {result}", value, advice, stated=True)
    return CauseLook(SPACE, "another one than published", cause)


def _published_space(evidence: Evidence, kind: str) -> Space | None:
    """Return the published space with published bounds, else with those of the model's row."""
    needs = SPACE_KINDS[kind].needs
    if not needs:
        return Space(kind)
    bounds = evidence.figure.conditions.bounds
    if bounds != NOT_STATED and bounds.min_pixels and bounds.max_pixels:
        return Space(kind, min_pixels=bounds.min_pixels, max_pixels=bounds.max_pixels)
    row = evidence.row
    usual = row.space(evidence.attempt.setup.variants[0]) if row is not None else None
    return usual if usual is not None and usual.kind == kind else None
