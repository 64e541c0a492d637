"""Answers that belong to another request: of a cache, of the request before, or always the same.

Replies are compared with the objects of other rows, and with each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..benchmarks.findit import ScoredReply
from ..boxes import iou
from .cause_evidence import Evidence
from .reproduction_records import Cause, CauseLook

Floats = NDArray[np.float64]

OTHERS = "other requests"

_FEWEST = 10  # Replies that are such
_OFTEN = 0.1  # Share of the replies that are one box
_EQUAL = 0.5  # Share of pairs about different objects of a picture that are equal
_MOST_AWAY = 8  # Rows by which answers may be late, or early
_SHIFTED = 1.3  # Times as many answers fit as of any other row, their own included
_FITS_WELL = 0.75  # IoU with an object that is hardly chance
_MOSTLY = 0.5  # Share of misses that fit the row so many before, where it is of another picture
_SAME = 0.5  # IoU of boxes about one object
_NEARLY_ALL = 0.85  # Share of misses about neighbours that mean the row before
_EXCESS = 6.0  # Standard errors over what is expected by chance


def check_other_requests(evidence: Evidence) -> CauseLook:
    """Look whether answers are of other requests, of a cache, or one box for all."""
    if evidence.are_points:
        return CauseLook(OTHERS, "not looked for in points")
    rows = _Rows.of(list(evidence.scored))
    if len(rows.scored) < _FEWEST:
        return CauseLook(OTHERS, "too few boxes to tell")
    for look in _LOOKS:
        cause = look(evidence, rows)
        if cause is not None:
            return CauseLook(OTHERS, "replies belong to others", cause)
    return CauseLook(OTHERS, "replies fit no other request")


@dataclass(frozen=True)
class _Rows:
    """Replies with one object, and their first box, in the order in which they were asked."""

    scored: Sequence[ScoredReply]
    boxes: Floats  # (n, 4) corners in shares of the picture
    truths: Floats  # (n, 4) likewise
    pictures: NDArray[np.intp]  # (n,)

    @classmethod
    def of(cls, scored: Sequence[ScoredReply]) -> _Rows:
        asked = [one for one in scored if len(one.query.truth.boxes) == 1 and one.match.boxes]
        asked.sort(key=lambda one: one.query.index)
        sizes = np.array([2 * (one.query.width, one.query.height) for one in asked], float)
        sizes = sizes.reshape(-1, 4)
        boxes = np.array([one.match.boxes[0] for one in asked], float).reshape(-1, 4)
        truths = np.array([one.query.truth.boxes[0] for one in asked], float).reshape(-1, 4)
        names = np.array([one.query.cluster for one in asked])
        pictures = np.unique(names, return_inverse=True)[1] if len(asked) else np.zeros(0, int)
        return cls(asked, boxes / sizes, truths / sizes, pictures.ravel())

    def fits(self, shift: int) -> Floats:
        """Return (n - |shift|,) IoUs of answers with the object of the row so many before."""
        if shift > 0:
            return np.asarray(iou(self.boxes[shift:], self.truths[:-shift]))
        if shift < 0:
            return np.asarray(iou(self.boxes[:shift], self.truths[-shift:]))
        return np.asarray(iou(self.boxes, self.truths))

    def fits_anywhere(self, at: NDArray[np.intp]) -> Floats:
        """Return (m, n) IoUs of some of the answers with the objects of all rows."""
        number = len(self.scored)
        return np.stack(
            [iou(np.repeat(self.boxes[[one]], number, axis=0), self.truths) for one in at]
        )

    def are_elsewhere(self, at: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Return (m, n) whether all rows are of other pictures than some of the answers."""
        return np.asarray(self.pictures[at][:, None] != self.pictures)


# --- one box for all ------------------------------------------------------------------------------


def _one_box(evidence: Evidence, rows: _Rows) -> Cause | None:
    """Look for one text that answers many questions about different places."""
    texts = Counter(one.reply.answer.strip() for one in rows.scored)
    text, count = texts.most_common(1)[0]
    same = {id(one) for one in rows.scored if one.reply.answer.strip() == text}
    places = {
        tuple(np.round(rows.truths[at], 1).tolist())
        for at, one in enumerate(rows.scored)
        if id(one) in same
    }
    if count < _FEWEST or len(places) < _FEWEST or count < _OFTEN * len(rows.scored):
        return None
    value = evidence.without(lambda one: id(one) in same)
    if value is not None and not evidence.matters(value):
        return None
    return evidence.cause(
        OTHERS,
        f'{evidence.count_of_all(count)} replies are one box for different objects: "{text[:70]}"',
        value,
        "Something answers in place of the model, or it is not shown the picture: ask without a "
        "gateway and without caches, with another --work-dir",
        stated=True,
    )


# --- one answer for a picture ---------------------------------------------------------------------


def _equal_in_picture(evidence: Evidence, rows: _Rows) -> Cause | None:
    """Look for equal replies about different objects of one picture."""
    texts = [one.reply.answer.strip() for one in rows.scored]
    pairs = 0
    equal = 0
    pictures = set()
    for picture in np.unique(rows.pictures).tolist():
        here = np.flatnonzero(rows.pictures == picture)
        left, right = np.triu_indices(len(here), 1)
        apart = iou(rows.truths[here[left]], rows.truths[here[right]]) < _SAME
        for i, j in zip(here[left[apart]].tolist(), here[right[apart]].tolist(), strict=True):
            pairs += 1
            if texts[i] == texts[j]:
                equal += 1
                pictures.add(picture)
    if len(pictures) < _FEWEST or equal < _EQUAL * pairs:
        return None
    first: dict[str, int] = {}
    for one in rows.scored:
        first.setdefault(one.query.cluster, id(one))
    firsts = set(first.values())
    value = evidence.without(lambda one: id(one) not in firsts)
    return evidence.cause(
        OTHERS,
        f"The replies about different objects of a picture are equal, letter by letter, in "
        f"{len(pictures):,} pictures: {equal:,} of {pairs:,} pairs",
        value,
        "A cache has the picture as its key, or the words do not reach the model: ask without "
        "caches and gateways, with another --work-dir",
        stated=value is None or evidence.matters(value),
    )


# --- the answer to another row --------------------------------------------------------------------


def _of_row_before(evidence: Evidence, rows: _Rows) -> Cause | None:
    """Look whether answers fit the object of the row so many before."""
    hits = {}
    for shift in range(-_MOST_AWAY, _MOST_AWAY + 1):
        if shift and abs(shift) < len(rows.scored):
            hits[shift] = float((rows.fits(shift) >= 0.5).mean())
    shift = max(hits, key=lambda each: hits[each])
    own = float((rows.fits(0) >= 0.5).mean())
    # Several expressions of an object follow each other: they share a part of the hits.
    others = max([own, *(share for each, share in hits.items() if each != shift)])
    count = round(hits[shift] * (len(rows.scored) - abs(shift)))
    if count < _FEWEST or hits[shift] < _SHIFTED * max(others, 0.1):
        return None
    return _late_cause(evidence, count, shift, 100 * hits[shift])


def _late_cause(
    evidence: Evidence, count: int, shift: int, value: float | None, is_stated: bool = True
) -> Cause:
    which = "before" if shift > 0 else "after"
    away = "" if abs(shift) == 1 else f" by {abs(shift)}"
    return evidence.cause(
        OTHERS,
        f"{evidence.count_of_all(count)} replies fit the object of the row {which} theirs{away}: "
        "they answer another request",
        value,
        "The server or a gateway mixes up answers: ask one call at a time (--concurrency 1), "
        "without a gateway, with another --work-dir",
        stated=is_stated,
        may_be=not is_stated,
    )


def _some_of_row_before(evidence: Evidence, rows: _Rows) -> Cause | None:
    """Look whether many misses fit the object of the row so many before.

    Rows of another picture decide: within a picture a model may mean a neighbour by itself.
    """
    missed = np.flatnonzero(rows.fits(0) < 0.5)
    if len(missed) < _FEWEST:
        return None
    fits = rows.fits_anywhere(missed)
    elsewhere = rows.are_elsewhere(missed)
    if not elsewhere.any():
        return None
    by_chance = float((fits[elsewhere] >= _FITS_WELL).mean())
    found = {}
    for shift in range(-_MOST_AWAY, _MOST_AWAY + 1):
        there = elsewhere & (missed[:, None] - np.arange(len(rows.scored)) == shift)
        well = int((fits[there] >= _FITS_WELL).sum())
        expected = by_chance * int(there.sum())
        is_excess = well > expected + _EXCESS * np.sqrt(max(expected, 1.0))
        if well >= _FEWEST and is_excess and well >= _MOSTLY * there.sum():
            found[shift] = well
    if not found:
        return None
    # Expressions of an object follow each other, so that several shifts may fit as well.
    shift = max(found, key=lambda each: (found[each], -abs(each)))
    source = (missed - shift).clip(0, len(rows.scored) - 1)
    late = missed[fits[np.arange(len(missed)), source] >= 0.5]
    left_out = {id(rows.scored[at]) for at in late}
    value = evidence.without(lambda one: id(one) in left_out)
    if not evidence.matters(value):
        return None
    return _late_cause(evidence, len(late), shift, value)


def _of_another_picture(evidence: Evidence, rows: _Rows) -> Cause | None:
    """Look whether misses fit objects of other pictures far more often than by chance."""
    missed = np.flatnonzero(rows.fits(0) < 0.5)
    if len(missed) < _FEWEST:
        return None
    fits = rows.fits_anywhere(missed)
    elsewhere = rows.are_elsewhere(missed)
    well = (fits >= _FITS_WELL) & elsewhere
    # By chance: boxes of hits, which mean their own object
    right = np.flatnonzero(rows.fits(0) >= 0.5)
    if len(right) < _FEWEST:
        return None
    of_right = rows.fits_anywhere(right)
    by_chance = float(((of_right >= _FITS_WELL) & rows.are_elsewhere(right)).any(1).mean())
    such = well.any(1)
    expected = by_chance * len(missed)
    spread = np.sqrt(max(expected * (1 - by_chance), 1.0))
    if such.sum() < _FEWEST or such.sum() < expected + _EXCESS * spread:
        return None
    left_out = {id(rows.scored[at]) for at in missed[such]}
    value = evidence.without(lambda one: id(one) in left_out)
    if not evidence.matters(value):
        return None
    is_near = _fit_near_rows(fits >= _FITS_WELL, elsewhere, missed)
    near = ", mostly of a row asked shortly before or after" if is_near else ""
    return evidence.cause(
        OTHERS,
        f"{evidence.count_of_all(int(such.sum()))} replies fit an object of another picture{near}, "
        f"where {expected:.0f} are expected by chance: they answer another request",
        value,
        "A cache, the server or a gateway mixes up answers: ask one call at a time "
        "(--concurrency 1), without caches and gateways, with another --work-dir",
        stated=is_near,
        of_rest=True,
    )


def _fit_near_rows(
    fits: NDArray[np.bool_], elsewhere: NDArray[np.bool_], missed: NDArray[np.intp]
) -> bool:
    """Return whether misses fit objects of rows nearby far more often than of rows far away.

    Calls that are answered together are of rows nearby. Nothing else than an exchange of answers
    prefers these, so it is sure.

    Args:
        fits: (m, n) whether each miss fits the object of each row.
        elsewhere: (m, n) whether the row is of another picture.
        missed: (m,) places of the misses.
    """
    away = np.abs(missed[:, None] - np.arange(fits.shape[1]))
    near = elsewhere & (away <= _MOST_AWAY)
    far = elsewhere & ~near
    if not far.any():
        return False
    found = int((fits & near).sum())
    expected = float(fits[far].mean()) * int(near.sum())
    return found >= _FEWEST and found > expected + _EXCESS * np.sqrt(max(expected, 1.0))


def _of_row_before_in_picture(evidence: Evidence, rows: _Rows) -> Cause | None:
    """Look whether misses fit the row so many before, of all other objects of their picture.

    A model that means a neighbour means any of them. Where it prefers one, as the largest, that
    may be the row before by the order of the table: so it is no proof.
    """
    others = {at: _other_objects(rows, at) for at in np.flatnonzero(rows.fits(0) < 0.5).tolist()}
    late = {
        shift: _mean_row_before(rows, others, shift)
        for shift in range(-_MOST_AWAY, _MOST_AWAY + 1)
        if shift
    }
    shift = max(late, key=lambda each: (len(late[each]), -abs(each)))
    if not late[shift]:
        return None
    left_out = {id(rows.scored[at]) for at in late[shift]}
    value = evidence.without(lambda one: id(one) in left_out)
    if not evidence.matters(value):
        return None
    return _late_cause(evidence, len(left_out), shift, value, is_stated=False)


def _mean_row_before(rows: _Rows, missed: Mapping[int, Floats], shift: int) -> Sequence[int]:
    """Return the misses that mean the row so many before in their picture; [] if by chance.

    Only misses count that mean one of at least two other objects. ``missed`` has those of each.
    """
    late = []
    chances = []
    for at, others in missed.items():
        before = at - shift
        if not 0 <= before < len(rows.scored) or rows.pictures[before] != rows.pictures[at]:
            continue
        fits = iou(np.repeat(rows.boxes[[at]], len(others), axis=0), others)
        is_before = iou(np.repeat(rows.truths[[before]], len(others), axis=0), others) >= _SAME
        if len(others) < 2 or not is_before.any() or fits.max() < _SAME:
            continue
        chances.append(1 / len(others))
        if is_before[fits.argmax()]:
            late.append(at)
    by_chance = np.array(chances)
    spread = np.sqrt(max(float((by_chance * (1 - by_chance)).sum()), 1.0))
    is_excess = len(late) > by_chance.sum() + _EXCESS * spread
    return late if is_excess and len(late) >= _NEARLY_ALL * len(chances) else []


def _other_objects(rows: _Rows, at: int) -> Floats:
    """Return (n, 4) the other objects of the picture of a row, each once."""
    found = [rows.truths[at]]
    for truth in rows.truths[rows.pictures == rows.pictures[at]]:
        overlaps = iou(np.repeat(truth[None], len(found), axis=0), np.stack(found))
        if overlaps.max() < _SAME:
            found.append(truth)
    return np.array(found[1:]).reshape(-1, 4)


_LOOKS = (
    _one_box,
    _equal_in_picture,
    _of_row_before,
    _some_of_row_before,
    _of_another_picture,
    _of_row_before_in_picture,
)
