"""The score as a reward: a number for each reply, in batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..benchmarks.findit import (
    FORMAT_FAILURES,
    METRICS_BY_RULE,
    FindItVariant,
    box_answer_kind,
    lenient_matches,
)
from ..boxes import (
    AnswerKind,
    FormatFailure,
    MatchRule,
    ParsedReply,
    Space,
    ToPixels,
    Truth,
    match,
    reader,
    stated_space,
    to_pixels,
)
from ..core import suggestion
from ..protocol import Metric, Reply, read_reply
from .custom_variants import (
    NOTHING_TO_FIND,
    MarksLike,
    ReplyLike,
    ReplyMarks,
    SpaceLike,
    is_single,
    replies_of,
    variant_of,
)
from .inputs import BoxesLike, Size, Sizes, check_count, sizes_of, truths_of

# The score of a query that is its reward
RewardMetric = Literal["f1", "soft_f1", "iou", "adherence", "pointing"]

# Dense, and every superfluous box costs: a metric of rewards only
_SOFT_F1 = Metric("Soft F1", {"iou_sum": 2}, {"n_pred": 1, "n_gt": 1}, key="soft_f1")

# The keys of metrics, by the names of rewards
_KEYS: Mapping[str, str] = {
    **{name: name for name in ("f1", "soft_f1", "adherence", "pointing")},
    "iou": "miou",
}


def reward(
    replies: ReplyLike | Sequence[ReplyLike],
    truths: Truth | BoxesLike,
    format: str,
    *,
    sizes: Sizes,
    space: SpaceLike,
    frames: int = 1,
    multilabel: bool = False,
    by: RewardMetric = "f1",
    thought_marks: MarksLike | None = None,
    thought_opened: bool = False,
    answer_marks: MarksLike | None = None,
) -> Any:
    """Compute the rewards of replies, 0 to 1: the score of each query alone.

    Use batches: a single reply costs as much as twenty in a batch.

    >>> box = [[0, 0, 320, 240]]
    >>> options = {"sizes": (640, 480), "space": "grid1000"}
    >>> reward(["[0, 0, 500, 500]", "[0, 0, 500, 100]", "hm"], [box] * 3, "xyxy_text", **options)
    array([1., 0., 0.])
    >>> reward("[0, 0, 500, 300]", box, "xyxy_text", by="iou", **options)
    0.6000000238418579

    If there is nothing to find, an empty answer (``[]``) is 1, as is a reply with ignored objects
    alone; every other reply is 0, an empty reply too. A failed call (None) is
    NaN.

    Args:
        replies: a text, or (N,) texts; or completions of a chat, as trainers have them: each the
            list of its messages.
        truths: as for :func:`.score`: a truth, or (N,) truths.
        format: the end of a FindIt name.
        sizes: (width, height) in pixels of the original image: for all, or (N,) sizes.
        space: the coordinate space of the answers.
        frames: number of frames of every query.
        multilabel: whether every box has a label.
        by: ``"f1"``: 2 x hits / (boxes + objects), at an IoU of 0.5: 0 for a near miss;
            ``"soft_f1"``: 2 x the sum of matched IoUs / (boxes + objects): dense;
            ``"iou"``: the mean over objects of the IoU with their box, the benchmark's mIoU:
            superfluous boxes cost nothing, so it pays for spraying;
            ``"adherence"``: whether the reply is in its format: it pays for any box, and for none;
            for points ``"pointing"``: hits / the larger number of points and objects.
        thought_marks, thought_opened, answer_marks: as for :func:`.read`.

    Returns:
        A number for a single reply; (N,) 64-bit floats for several.

    Raises:
        ValueError: the number of truths or sizes is not N, a box is invalid or not in its image,
            or ``by`` is unknown.
        VariantError: the format does not exist.
        SpaceError: the space does not exist.
    """
    variant = variant_of(format, frames, multilabel)
    metric = metric_of(by, variant)
    known = stated_space(space)
    single = is_single(replies)
    many: Any = ([replies], [truths], [sizes]) if single else (replies, truths, sizes)
    values, true, shapes = many
    values = replies_of(values, ReplyMarks(thought_marks, thought_opened, answer_marks))
    edges = sizes_of(shapes, len(values))
    check_count(true, len(values), "truths")
    rewarded = rewards_of(values, truths_of(true, variant, edges), edges, known, variant, metric)
    return float(rewarded.values[0]) if single else rewarded.values


class Rewarded(NamedTuple):
    """The rewards of replies, and why replies are not in their format."""

    values: NDArray[np.float64]  # (N,), 0 to 1; NaN: a failed call
    reasons: Sequence[FormatFailure | None]  # (N,)


def rewards_of(
    replies: Sequence[Reply],
    truths: Sequence[Truth],
    sizes: Sequence[Size],
    space: Space,
    variant: FindItVariant,
    metric: Metric,
) -> Rewarded:
    """Return the reward of each reply, all in the same variant."""
    in_pixels = [to_pixels(space, *size) for size in sizes]
    parse = reader(variant.reply)
    parsed = [read_reply(reply, parse, FORMAT_FAILURES) for reply in replies]
    matched = match(parsed, truths, in_pixels, variant.match_rule)
    sums = list(map(METRICS_BY_RULE[variant.match_rule].sums, parsed, matched, truths))
    names = {**metric.part, **metric.whole}
    columns = {key: np.array([row.get(key, 0) for row in sums], dtype=float) for key in names}
    percent = metric.values(columns)
    if metric.key != _KEYS["adherence"]:
        empty = [at for at, truth in enumerate(truths) if not truth.boxes]
        rejected = _rejected([replies[at] for at in empty], [parsed[at] for at in empty], variant)
        percent[empty] = [100.0 * is_right for is_right in rejected]
        # Finding only ignored objects is not wrong.
        percent[[at for at in empty if matched[at].boxes and not matched[at].counted]] = 100.0
    percent[[reply.failed for reply in replies]] = np.nan
    return Rewarded(np.asarray(percent / 100), [reading.reason for reading in parsed])


def _rejected(
    replies: Sequence[Reply], readings: Sequence[ParsedReply], variant: FindItVariant
) -> list[bool]:
    """Return which replies say that there is nothing."""
    count = len(replies)
    lenient = lenient_matches(
        [reply.answer for reply in replies],
        [variant.reply] * count,
        readings,
        [NOTHING_TO_FIND] * count,
        [ToPixels()] * count,
    )
    pairs = enumerate(zip(replies, readings, strict=True))
    return [box_answer_kind(*pair, lenient.get(at)) is AnswerKind.NO_BOX for at, pair in pairs]


def metric_of(by: str, variant: FindItVariant) -> Metric:
    """Return the metric of a reward, or raise ValueError."""
    known = {metric.key: metric for metric in METRICS_BY_RULE[variant.match_rule].metrics}
    if variant.match_rule is MatchRule.BOX_OVERLAP:
        known[_SOFT_F1.key] = _SOFT_F1
    if by not in _KEYS:
        raise ValueError(f"by: unknown reward {by!r}{suggestion(by, _KEYS)}")
    if _KEYS[by] not in known:
        others = ", ".join(name for name, key in _KEYS.items() if key in known)
        raise ValueError(f"by: {variant.representation} has no {by} (it has {others})")
    return known[_KEYS[by]]
