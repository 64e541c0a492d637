"""The cheap coordinate check of every score: is the declared convention plausible?

Some answers are tried in every space; the full diagnosis is made only if another space leads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, TypeVar

import numpy as np

from ..benchmarks.findit import FindItVariant
from ..boxes import BoxAnswer, Corners, MatchRule, finite_corners, space_from
from ..protocol import ScoredRow
from .conventions import ORDERS, SPACES, Convention, space_row_of
from .diagnosis import FEWEST_BOXES, CoordinateVerdict, Diagnosis, diagnose
from .likelihood import screen_conventions, to_numbers
from .point_check import X_FIRST, PointDiagnosis, diagnose_points
from .run_arrays import AnsweredQuery, run_arrays

MOST_QUERIES = 256  # Of a run
_MOST_QUERIES_OF_BATCH = 64
_MOST_BOXES_OF_QUERY = 50
_FAR = 1e9  # Pixels
_SCREENED = 80  # Boxes that are tried in every space
_SUSPICIOUS = 8.0  # Nats
_PART = 0.1  # Share of the queries

Item = TypeVar("Item")


def sample(dataset: Any, rows: Sequence[ScoredRow]) -> tuple[AnsweredQuery, ...]:
    """Sample answers in pixels with their truth; empty for videos and tasks without places."""
    variant = dataset.variant
    if not isinstance(variant, FindItVariant) or variant.frames > 1:
        return ()
    return tuple(
        _query(dataset.queries[row.index], row) for row in _spread(rows, _MOST_QUERIES_OF_BATCH)
    )


def _query(query: Any, row: ScoredRow) -> AnsweredQuery:
    # A reply may have a million boxes.
    answer = BoxAnswer.of(row)
    usable: list[int] = []
    boxes: list[Corners] = []
    for place, box in enumerate(answer.boxes[:_MOST_BOXES_OF_QUERY]):
        corners = finite_corners(box)
        if corners is not None and max(map(abs, corners)) < _FAR:
            usable.append(place)
            boxes.append(corners)
    labelled = bool(answer.labels) and bool(query.truth.labels)
    return AnsweredQuery(
        query.width,
        query.height,
        query.images[0],
        query.truth.boxes,
        boxes,
        query.truth.labels if labelled else (),
        [answer.labels[place] for place in usable] if labelled else (),
    )


def join_samples(samples: Sequence[tuple[AnsweredQuery, ...]]) -> tuple[AnsweredQuery, ...]:
    """Join the samples of a run's parts to at most :data:`MOST_QUERIES`, spread evenly."""
    return tuple(_spread(tuple(chain.from_iterable(samples)), MOST_QUERIES))


def _spread(items: Sequence[Item], most: int) -> Sequence[Item]:
    """Choose at most so many items, evenly over all."""
    if len(items) <= most:
        return items
    return [items[place * len(items) // most] for place in range(most)]


def warning(
    dataset: Any, queries: Sequence[AnsweredQuery], spaces: Sequence[Mapping[str, Any]]
) -> str | None:
    """Return a line if another convention than the declared fits, else None.

    ``spaces`` are the run's coordinate spaces, as settings with a ``source``.
    """
    if len(spaces) != 1 or sum(len(query.numbers) for query in queries) < FEWEST_BOXES:
        return None
    settings = {key: value for key, value in spaces[0].items() if key != "source"}
    if dataset.variant.match_rule is MatchRule.POINT_IN_OBJECT:
        declared = Convention(space_row_of(space_from(settings)), X_FIRST)
        points = run_arrays(_as_replied(queries, declared))
        return point_warning_line(diagnose_points(points, declared))
    order = ORDERS.get(dataset.variant.representation, ORDERS["xyxy"])
    declared = Convention(space_row_of(space_from(settings)), order)
    return warning_of_boxes(queries, declared)


def warning_of_boxes(queries: Sequence[AnsweredQuery], declared: Convention) -> str | None:
    """Return the line of :func:`warning` for boxes in pixels, read in the declared convention."""
    if not is_suspicious(_as_replied(_spread(queries, _SCREENED), declared), declared):
        return None
    return warning_line(diagnose(run_arrays(_as_replied(queries, declared)), declared))


def _as_replied(queries: Sequence[AnsweredQuery], declared: Convention) -> list[AnsweredQuery]:
    """Replace boxes in pixels by the numbers that they were read from."""
    sizes = np.array([(query.width, query.height) for query in queries], float).T
    owner = np.repeat(np.arange(len(queries)), [len(query.numbers) for query in queries])
    boxes = np.array([box for query in queries for box in query.numbers], float).reshape(-1, 4).T
    shares = boxes / np.tile(sizes[:, owner], (2, 1))
    numbers = to_numbers(shares, declared.space.map_of(sizes).of(owner), declared.order.numbers)
    each = iter(np.round(numbers, 6).T.tolist())
    return [query._replace(numbers=[next(each) for _ in query.numbers]) for query in queries]


def is_suspicious(queries: Sequence[AnsweredQuery], declared: Convention) -> bool:
    """Return whether another space or another order explains all or part of the answers better."""
    arrays = run_arrays(queries).some(_SCREENED)
    rivals = [Convention(row, declared.order) for row in SPACES.values()]
    rivals += [Convention(declared.space, order) for order in ORDERS.values()]
    known = [declared, *(item for item in rivals if item.name != declared.name)]
    screened = screen_conventions(arrays, known)[0]
    gains = np.stack([arrays.by_query(row) for row in screened - screened[0]]).clip(-60, 60)
    costs = np.array([item.cost - declared.cost for item in known])
    in_all = gains.sum(1) - costs
    in_a_part = np.log(1 - _PART + _PART * np.exp(gains)).sum(1) - costs
    return bool(max(in_all.max(), in_a_part.max()) >= _SUSPICIOUS)


def point_warning_line(diagnosis: PointDiagnosis) -> str | None:
    """Describe an alarm of points in a line; None without an alarm."""
    fit = diagnosis.fit
    if fit is None or not diagnosis.verdict.alarms:
        return None
    agree = f"{fit.agree} of {diagnosis.answered} agree"
    instead = f"the answers follow {fit.best.description} ({agree})"
    return f"declared {diagnosis.declared.description}, but {instead}"


def warning_line(diagnosis: Diagnosis) -> str | None:
    """Describe an alarm in a line; None without an alarm."""
    fit = diagnosis.fit
    verdict = diagnosis.verdict
    if fit is None or not verdict.alarms:
        return None
    instead = "the answers are scaled or moved by something that no convention explains"
    if verdict is CoordinateVerdict.OTHER:
        agree = f"{fit.agree} of {diagnosis.answered} agree"
        instead = f"the answers follow {fit.best.description} ({agree})"
    elif diagnosis.resize is not None:
        instead = f"the answers follow {diagnosis.resize.words}"
    elif verdict is CoordinateVerdict.MIXED:
        share = f"{100 * fit.second.share:.0f} %"
        instead = f"{share} of the answers follow {fit.second.convention.description}"
    return f"declared {diagnosis.declared.description}, but {instead}"
