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

_FEWEST = 10  # Replies of a group
_LOW = 0.8  # Of the published value
_APART = 4.0  # Standard errors between two groups; some 30 groups are compared


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
        below: groups with less than this share of the published value are low; together they
            must be below the others by four standard errors.
    """
    rows: dict[str, list[float]] = {}
    answered = [scored for scored in evidence.scored if not scored.reply.failed]
    share_of = dict(zip(map(id, evidence.scored), evidence.shares, strict=True))
    for scored in answered:
        rows.setdefault(name_of(scored), []).append(share_of[id(scored)])
    rows.pop("", None)
    if len(rows) < 2:
        return None
    least = below * evidence.judgement.published / 100
    low = tuple(name for name, shares in rows.items() if np.mean(shares) < least)
    if not low or len(low) == len(rows):
        return None
    left = [share for name in low for share in rows[name]]
    others = [share for name, shares in rows.items() if name not in low for share in shares]
    value = evidence.without(lambda scored: name_of(scored) in low)
    is_enough = len(left) >= _FEWEST and len(others) >= _FEWEST
    if not is_enough or value is None or not _is_below(left, others):
        return None
    if not evidence.closes(evidence.gain(value)):
        return None
    share = 100 * float(np.mean(left))
    return GroupLoss(low, len(left), share, 100 * float(np.mean(others)), value)


def _is_below(left: Sequence[float], right: Sequence[float]) -> bool:
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
