"""Causes that replies state, call by call: who answered, and whether it was shown its picture.

They are free and certain, so they are looked at first, each with the value over the other replies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import sqrt
from typing import NamedTuple

import numpy as np

from ..benchmarks.findit import ScoredReply
from ..core import printable
from ..scoring import prompt_tokens, unseen_prompts
from .cause_evidence import Evidence
from .reproduction_records import Cause, CauseLook

# --- groups of replies ----------------------------------------------------------------------------

_FEWEST = 5  # Pictures of a group
_LOW = 0.8  # Of the published value
_APART = 4.0  # Standard errors between a group and the others; some 30 groups are compared


class GroupLoss(NamedTuple):
    """A group of replies that is far lower than the others, which agree with the figure."""

    names: tuple[str, ...]
    rows: int
    share: float  # The metric in percent
    others: float
    value: float  # The figure's metric over the others

    def words(self, of: str) -> str:
        named = ", ".join(printable(name) for name in self.names[:3])
        more = f" and {len(self.names) - 3} more" if len(self.names) > 3 else ""
        return (
            f"The {self.rows:,} replies {of} {named}{more} have "
            f"{self.share:.1f}, the others {self.others:.1f}"
        )


def find_group_loss(
    evidence: Evidence, name_of: Callable[[ScoredReply], str], below: float = _LOW
) -> GroupLoss | None:
    """Find groups of replies without which the figure would agree; None without such groups.

    Args:
        evidence: the attempt.
        name_of: names the group of a reply; "" is of none.
        below: groups with less than this share of the published value are low; each must be
            below the others by four standard errors over its pictures. Low ones that are small
            prove nothing, however many there are: they were chosen for being low.
    """
    groups: dict[str, _Group] = {}
    for scored, share in zip(evidence.scored, evidence.shares, strict=True):
        name = name_of(scored)
        if name and not scored.reply.failed:
            groups.setdefault(name, _Group()).add(scored.query.cluster, share)
    least = below * evidence.judgement.published / 100
    as_published = _joined([each for each in groups.values() if each.mean >= least])
    low = tuple(
        name
        for name, group in groups.items()
        if group.mean < least and _is_below(group.of_pictures, as_published.of_pictures)
    )
    if not low:
        return None
    value = evidence.without(lambda scored: name_of(scored) in low)
    if value is None or not evidence.agrees(evidence.gain(value)):
        return None
    left = _joined([groups[name] for name in low])
    others = _joined([group for name, group in groups.items() if name not in low])
    return GroupLoss(low, left.rows, 100 * left.mean, 100 * others.mean, value)


class _Group:
    """The metric of the replies of a group, by picture."""

    def __init__(self) -> None:
        self.shares: dict[str, list[float]] = {}

    def add(self, picture: str, *shares: float) -> None:
        self.shares.setdefault(picture, []).extend(shares)

    @property
    def rows(self) -> int:
        return sum(map(len, self.shares.values()))

    @property
    def mean(self) -> float:
        """The mean over all replies."""
        return sum(map(sum, self.shares.values())) / self.rows

    @property
    def of_pictures(self) -> Sequence[float]:
        """The mean of each picture."""
        return [float(np.mean(shares)) for shares in self.shares.values()]


def _joined(groups: Sequence[_Group]) -> _Group:
    joined = _Group()
    for group in groups:
        for picture, shares in group.shares.items():
            joined.add(picture, *shares)
    return joined


def _is_below(left: Sequence[float], right: Sequence[float]) -> bool:
    """Return whether the mean of some pictures is surely below that of others."""
    if min(len(left), len(right)) < _FEWEST:
        return False
    spread = sqrt(max(float(np.var([*left, *right])), 1e-6))
    error = spread * sqrt(1 / len(left) + 1 / len(right))
    return float(np.mean(right) - np.mean(left)) >= _APART * error


# --- who answered ---------------------------------------------------------------------------------

# What a reply may state of who wrote it: words before the name, and where it is recorded
_STATED: tuple[tuple[str, Callable[[ScoredReply], str]], ...] = (
    ("of", lambda scored: scored.reply.recorded.model.get("identifier", "")),
    ("of the provider", lambda scored: scored.reply.recorded.model.get("provider", "")),
    ("of the server", lambda scored: str(scored.reply.recorded.call.get("server") or "")),
    (
        "of the system",
        lambda scored: str(scored.reply.recorded.call.get("system_fingerprint") or ""),
    ),
)


def loss_by_answerer(evidence: Evidence) -> tuple[str, float] | None:
    """Say which of several that answered lose what is missing, and the value over the others."""
    for words, name_of in _STATED:
        loss = find_group_loss(evidence, name_of)
        if loss is not None:
            return loss.words(words), loss.value
    return None


# --- prompts without their picture ----------------------------------------------------------------

UNSEEN = "unseen pictures"


def check_unseen(evidence: Evidence) -> CauseLook:
    """Look call by call whether prompts have the tokens of a picture."""
    unseen: set[tuple[int, int]] = set()
    counted_ = 0
    for at, replies in enumerate(evidence.replies):
        prompts = list(prompt_tokens(replies.predictions))
        counted_ += len(prompts)
        unseen |= {(at, each.index) for each, _ in unseen_prompts(prompts)}
    if not counted_:
        return CauseLook(UNSEEN, "tokens of prompts are not recorded, or cached")
    if not unseen:
        return CauseLook(UNSEEN, f"none of {counted_:,} prompts lacks the tokens of its picture")
    left_out = {
        id(scored)
        for at, replies in enumerate(evidence.replies)
        for scored in replies.scored
        if (at, scored.query.index) in unseen
    }
    value = evidence.without(lambda scored: id(scored) in left_out)
    number = evidence.count_of_all(len(unseen))
    if value is not None and not evidence.matters(value):
        return CauseLook(UNSEEN, f"{number} prompts lack tokens; they lose little")
    cause: Cause = evidence.cause(
        UNSEEN,
        f"{number} prompts have no picture: they count fewer tokens than others with pictures of "
        "the same size, or than their words",
        value,
        "Ask without a gateway between, and see whether the chat template has a place for the "
        "picture; then with another --work-dir",
        stated=True,
    )
    return CauseLook(UNSEEN, f"{number} prompts", cause)
