"""The score as a reward: one number a reply, in batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from ..benchmarks.findit.box_metrics import RULES, NegativeOutcome, lenient_matches, outcome
from ..benchmarks.findit.reply_scoring import read_reply
from ..benchmarks.findit.variant import Variant
from ..boxes.matching import match
from ..boxes.reading import reader
from ..boxes.records import ParsedReply, Truth
from ..boxes.spaces import Space, ToPixels, space_from, to_pixels
from ..core.formatting import nearest
from ..core.metric import Metric
from ..core.replies import Reply
from .given import Boxes, Size, Sizes, check_count, sizes_of, truths_of
from .questions import ReplyLike, SpaceLike, is_single, replies_of, variant_of

Rewards = NDArray[np.float64]


By = Literal["f1", "iou", "adherence", "pointing"]

_KEYS: Mapping[str, str] = {
    "f1": "f1",
    "iou": "miou",
    "adherence": "adherence",
    "pointing": "pointing",
}
"""The metrics of FindIt that rewards are."""


@overload
def reward(
    replies: ReplyLike,
    truths: Truth | Boxes,
    format: str,
    *,
    sizes: Size,
    space: SpaceLike,
    frames: int = ...,
    multilabel: bool = ...,
    by: By = ...,
) -> float: ...


@overload
def reward(
    replies: Sequence[ReplyLike],
    truths: Sequence[Truth | Boxes],
    format: str,
    *,
    sizes: Sizes,
    space: SpaceLike,
    frames: int = ...,
    multilabel: bool = ...,
    by: By = ...,
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
    by: By = "f1",
) -> Any:
    """Compute the reward of replies, 0 to 1 each: the score of the query alone.

    Batches are what is quick: a single reply costs as much as twenty in one.

    >>> box = [[0, 0, 320, 240]]
    >>> how = {"sizes": (640, 480), "space": "grid1000"}
    >>> reward(["[0, 0, 500, 500]", "[0, 0, 500, 100]", "hm"], [box] * 3, "xyxy_text", **how)
    array([1., 0., 0.])
    >>> reward("[0, 0, 500, 300]", box, "xyxy_text", by="iou", **how)
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
        by: what is measured: ``"f1"`` (2 x found / (said + expected), at an IoU of 0.5), ``"iou"``
            (the mean over objects of the IoU with their box), ``"adherence"`` (whether the reply is
            as its format prescribes); of points ``"pointing"`` (found / the more of said and
            expected).

    Returns:
        A number for one reply; (N,) 64-bit floats for many.

    Raises:
        ValueError: there is not one truth a reply, a box is none, or ``by`` is nothing to measure.
        VariantError, SpaceError: there is no such format or space.
    """
    variant = variant_of(format, frames, multilabel)
    metric = _metric(by, variant)
    known = space if isinstance(space, Space) else space_from(space)
    if is_single(replies):
        return float(_rewards([replies], [truths], sizes_of([sizes], 1), known, variant, metric)[0])
    return _rewards(replies, truths, sizes_of(sizes, len(replies)), known, variant, metric)


def _rewards(
    said: Sequence[ReplyLike],
    truths: Sequence[Truth | Boxes],
    sizes: Sequence[Size],
    space: Space,
    variant: Variant,
    metric: Metric,
) -> Rewards:
    replies = replies_of(said)
    check_count(truths, len(replies), "truths")
    true = truths_of(truths, variant)
    read = reader(variant.reply)
    readings = [read_reply(reply, read) for reply in replies]
    matched = match(readings, true, [to_pixels(space, *size) for size in sizes], variant.match_rule)
    counted = list(map(RULES[variant.match_rule].sums, readings, matched, true))
    found = metric.values(_columns(metric, counted))
    if metric.key != _KEYS["adherence"]:
        empty = [at for at, truth in enumerate(true) if not truth.boxes]
        found[empty] = _rejected(
            [replies[at] for at in empty], [readings[at] for at in empty], variant
        )
        # Whoever finds only what is to be ignored is not wrong.
        found[[at for at in empty if matched[at].boxes and not matched[at].counted]] = 100.0
    found[[reply.failed for reply in replies]] = np.nan
    rewards: Rewards = found / 100
    return rewards


def _rejected(
    replies: Sequence[Reply], readings: Sequence[ParsedReply], variant: Variant
) -> Rewards:
    """Tell for each reply whether it says that there is nothing, in percent."""
    count = len(replies)
    lenient = lenient_matches(
        [reply.answer for reply in replies],
        [variant.reply] * count,
        readings,
        [_NOTHING] * count,
        [ToPixels()] * count,
    )
    found = [
        outcome(reply, reading, lenient.get(at))
        for at, (reply, reading) in enumerate(zip(replies, readings, strict=True))
    ]
    return np.array([100.0 * (one is NegativeOutcome.REJECTED) for one in found])


_NOTHING = Truth((), ())


def _columns(metric: Metric, rows: Sequence[Mapping[str, float]]) -> dict[str, Rewards]:
    """Return the sums that a metric is made of, one entry a row."""
    names = {**metric.part, **metric.whole}
    return {name: np.array([row.get(name, 0) for row in rows], dtype=float) for name in names}


def _metric(by: str, variant: Variant) -> Metric:
    """Return the metric that is the reward."""
    there = {metric.key: metric for metric in RULES[variant.match_rule].metrics}
    if by not in _KEYS:
        raise ValueError(f"by: no reward {by!r}{nearest(by, _KEYS)}")
    if _KEYS[by] not in there:
        others = ", ".join(name for name, key in _KEYS.items() if key in there)
        raise ValueError(f"by: {variant.representation} has no {by} (it has: {others})")
    return there[_KEYS[by]]
