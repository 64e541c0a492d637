"""The score as a reward: one number a reply, in batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from ..benchmarks.findit.metrics import RULES, Outcome, outcome, salvaged_matches
from ..benchmarks.findit.scoring import read_reply
from ..benchmarks.findit.variant import Variant
from ..boxes.matching import match
from ..boxes.reading import reader
from ..boxes.records import Reading, Truth
from ..boxes.spaces import Space, ToPixels, space_from, to_pixels
from ..core.metric import Metric
from ..core.replies import Reply
from ..core.spelling import nearest
from .questions import Said, SpaceLike, is_one, replies_of, variant_of
from .sizes import Size, Sizes, one_each, sizes_of
from .truths import Boxes, truths_of

Rewards = NDArray[np.float64]


class By(Enum):
    """What a reward measures; the values are keys of FindIt's metrics."""

    F1 = "f1"
    """2 x found / (said + expected), at an IoU of 0.5."""
    IOU = "miou"
    """The mean over objects of the IoU with their box."""
    ADHERENCE = "adherence"
    """Whether the reply is as its format prescribes."""
    POINTING = "pointing"
    """Of points: found / the more of said and expected."""


_METRICS = {
    judged: {by: metric for by in By for metric in rule.metrics if metric.key == by.value}
    for judged, rule in RULES.items()
}


@overload
def reward(
    replies: Said,
    truths: Truth | Boxes,
    format: str,
    *,
    sizes: Size,
    space: SpaceLike,
    frames: int = ...,
    multilabel: bool = ...,
    by: By | str = ...,
) -> float: ...


@overload
def reward(
    replies: Sequence[Said],
    truths: Sequence[Truth | Boxes],
    format: str,
    *,
    sizes: Sizes,
    space: SpaceLike,
    frames: int = ...,
    multilabel: bool = ...,
    by: By | str = ...,
) -> Rewards: ...


def reward(
    replies: Any,
    truths: Any,
    format: str,
    *,
    sizes: Any,
    space: SpaceLike,
    frames: int = 1,
    multilabel: bool = False,
    by: By | str = By.F1,
) -> Any:
    """The reward of replies, 0 to 1 each: the score of the query alone.

    Batches are what is quick: a single reply costs as much as twenty in one.

    >>> box = [[0, 0, 320, 240]]
    >>> how = {"sizes": (640, 480), "space": "grid1000"}
    >>> reward(["[0, 0, 500, 500]", "[0, 0, 500, 100]", "hm"], [box] * 3, "xyxy_text", **how)
    array([1., 0., 0.])
    >>> reward("[0, 0, 500, 300]", box, "xyxy_text", by="miou", **how)
    0.6000000238418579

    Where nothing is to be found, saying so in the form that was asked for is 1, as is finding
    ignored objects alone, and all else is 0: silence and words are no answer.  A failed call (None)
    is NaN: there is nothing to reward.

    Args:
        replies: one text, or many; or completions of a chat, as trainers give them: each the list
            of its messages.
        truths: as of :func:`.score`: of the one, or one a reply.
        format: as in a FindIt name.
        sizes: (width, height) in pixels of the original picture.
        space: in which coordinates the model answers.
        frames: how many frames every query has.
        multilabel: whether boxes have labels of their own.
        by: what is measured: ``"f1"``, ``"iou"``, ``"adherence"``, ``"pointing"``.

    Returns:
        A number for one reply; (N,) 64-bit floats for many.

    Raises:
        ValueError: there is not one truth a reply, a box is none, or ``by`` is nothing to measure.
        VariantError, SpaceError: there is no such format or space.
    """
    variant = variant_of(format, frames, multilabel)
    by = _by(by, variant)
    known = space if isinstance(space, Space) else space_from(space)
    if is_one(replies):
        return float(_rewards([replies], [truths], sizes_of([sizes], 1), known, variant, by)[0])
    return _rewards(replies, truths, sizes_of(sizes, len(replies)), known, variant, by)


def _rewards(
    said: Sequence[Said],
    truths: Sequence[Truth | Boxes],
    sizes: Sequence[Size],
    space: Space,
    variant: Variant,
    by: By,
) -> Rewards:
    replies = replies_of(said)
    one_each(truths, len(replies), "truths")
    true = truths_of(truths, variant)
    read = reader(variant.reply)
    readings = [read_reply(reply, read) for reply in replies]
    matched = match(readings, true, [to_pixels(space, *size) for size in sizes], variant.judged)
    metric = _METRICS[variant.judged][by]
    counted = list(map(RULES[variant.judged].sums, readings, matched, true))
    found = metric.values(_columns(metric, counted))
    if by is not By.ADHERENCE:
        empty = [at for at, truth in enumerate(true) if not truth.boxes]
        found[empty] = _rejected(
            [replies[at] for at in empty], [readings[at] for at in empty], variant
        )
        # Whoever finds only what is to be ignored is not wrong.
        found[[at for at in empty if matched[at].boxes and not matched[at].counted]] = 100.0
    found[[reply.failed for reply in replies]] = np.nan
    rewards: Rewards = found / 100
    return rewards


def _rejected(replies: Sequence[Reply], readings: Sequence[Reading], variant: Variant) -> Rewards:
    """Whether each reply says that there is nothing, in percent."""
    count = len(replies)
    salvaged = salvaged_matches(
        [reply.answer for reply in replies],
        [variant.reply] * count,
        readings,
        [_NOTHING] * count,
        [ToPixels()] * count,
    )
    found = [
        outcome(reply, reading, salvaged.get(at))
        for at, (reply, reading) in enumerate(zip(replies, readings, strict=True))
    ]
    return np.array([100.0 * (one is Outcome.REJECTED) for one in found])


_NOTHING = Truth((), ())


def _columns(metric: Metric, rows: Sequence[Mapping[str, float]]) -> dict[str, Rewards]:
    """The sums that a metric is made of, one entry a row."""
    names = {**metric.part, **metric.whole}
    return {name: np.array([row.get(name, 0) for row in rows], dtype=float) for name in names}


def _by(said: By | str, variant: Variant) -> By:
    known = {name: one for one in By for name in (one.value, one.name.lower())}
    if isinstance(said, str):
        if said not in known:
            raise ValueError(f"by: no reward {said!r}{nearest(said, known)}")
        said = known[said]
    there = _METRICS[variant.judged]
    if said not in there:
        others = ", ".join(one.value for one in there)
        raise ValueError(f"by: {variant.representation} has no {said.value} (it has: {others})")
    return said
