"""Replies without a box in any reading, sorted by what they are: the replies themselves say it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..benchmarks.findit import FindItVariant, ScoredReply
from ..coords import OtherFormat, find_other_format
from ..core import printable
from .cause_evidence import Evidence
from .figure_metric import read_predictions
from .picture_size_causes import FEWEST_TOKENS, counted_tokens, word_tokens
from .reproduction_records import Cause

# Of what is missing, so that answers left out are a possible cause
_EXPLAINS_MUCH = 0.5
_SHOWN = 70  # Characters of an example

# A list of numbers that begins and does not end
_ENDS_EARLY = re.compile(r"[\[({][^\])}]*\d[^\])}]*$")


class _Kind(NamedTuple):
    """What a reply without a box is."""

    words: str  # After their number
    is_of: Callable[[str], bool]
    advice: str
    has_example: bool = True
    is_stated: bool = True  # Such replies say outright what is wrong


_KINDS = (
    _Kind(
        "are empty",
        lambda text: not text,
        "Something ends replies at once: a stop word, a filter, or another chat template than the "
        "published one. See the server's log",
        has_example=False,
    ),
    _Kind(
        "state an empty list",
        lambda text: "[]" in "".join(text.split()),
        "",
        is_stated=False,
    ),
    _Kind(
        "end before their box does",
        lambda text: _ENDS_EARLY.search(text) is not None,
        "A limit of tokens or a stop word at the server ends replies: start it without, or type "
        "--max-tokens with more",
    ),
    _Kind(
        "have words and no number",
        lambda text: not any(letter.isdigit() for letter in text),
        "The model refuses or does not see what it is asked: ask with the published system prompt, "
        "without a gateway between",
    ),
    _Kind(
        "are in a form that nobody reads",
        lambda text: True,
        "",
        is_stated=False,
    ),
)


def check_boxless(evidence: Evidence, silent: Sequence[ScoredReply]) -> Cause | None:
    """Return a cause where so many replies have no box that the others explain a lot.

    Args:
        evidence: the attempt.
        silent: its replies about an object that have no box, in any reading.
    """
    if not silent:
        return None
    left_out = {id(scored) for scored in silent}
    value = evidence.without(lambda scored: id(scored) in left_out)
    if not (value is None or evidence.matters(value, _EXPLAINS_MUCH)):
        return None
    other = _other_format(evidence, silent)
    sorted_ = _sorted(silent)
    commonest = max(sorted_, key=lambda kind: len(sorted_[kind]))
    advice = commonest.advice or look_at_replies(evidence)
    finding = f"{evidence.count_of_all(len(silent))} replies have no box: {_words(sorted_)}"
    if other is not None:
        finding = (
            f"{evidence.count_of_all(other.count)} replies are in the format "
            f"{other.variant.format}, for example {example_of(silent[0])}"
        )
        advice = f"Type the same command with --format {other.variant.format}"
        value = _value_in_format(evidence, other, left_out)
        return evidence.cause("format", finding, value, advice)
    if not commonest.is_stated and not pictures_are_counted(evidence):
        advice += " Perhaps no picture is shown: python run_findit.py coords --model NAME tells"
    is_guess = not commonest.is_stated
    return evidence.cause("format", finding, value, advice, may_be=is_guess, of_rest=True)


def _sorted(silent: Sequence[ScoredReply]) -> dict[_Kind, list[ScoredReply]]:
    kinds: dict[_Kind, list[ScoredReply]] = {}
    for scored in silent:
        text = scored.reply.answer.strip()
        kind = next(kind for kind in _KINDS if kind.is_of(text))
        kinds.setdefault(kind, []).append(scored)
    return kinds


def _words(kinds: dict[_Kind, list[ScoredReply]]) -> str:
    parts = []
    for kind, replies in sorted(kinds.items(), key=lambda item: -len(item[1])):
        example = f", as {example_of(replies[0])}" if kind.has_example else ""
        parts.append(f"{len(replies):,} {kind.words}{example}")
    return "; ".join(parts)


def example_of(scored: ScoredReply) -> str:
    """Return the answer of a reply in quotes, on one line and not too long."""
    text = " ".join(printable(scored.reply.answer).split())
    return f'"{text[:_SHOWN]}{"…" if len(text) > _SHOWN else ""}"'


def look_at_replies(evidence: Evidence) -> str:
    """Say where the replies are, and what to look at."""
    path = evidence.attempt.predictions[0].path
    where = f" in {path}" if path is not None else ""
    return f"Look at these replies{where}: is it the published checkpoint, with its chat template?"


def pictures_are_counted(evidence: Evidence) -> bool:
    """Return whether prompts have more tokens than their words, so that pictures were shown."""
    replies = [each for each in evidence.scored if each.reply.recorded.tokens.get("prompt")]
    if not replies:
        return False
    more = counted_tokens(replies) - word_tokens(evidence, replies)
    return bool(np.median(more) >= FEWEST_TOKENS)


# --- another format of ours -----------------------------------------------------------------------


def _other_format(evidence: Evidence, silent: Sequence[ScoredReply]) -> OtherFormat | None:
    """Return the format of ours that most of the replies have; None without one."""
    setup = evidence.attempt.setup
    variant = setup.variants[0]
    if not isinstance(variant, FindItVariant):
        return None
    other = find_other_format(variant, [scored.reply for scored in silent])
    return other if other is not None and other.count >= len(silent) / 2 else None


def _value_in_format(evidence: Evidence, other: OtherFormat, rows: set[int]) -> float | None:
    """Return the figure's metric with these replies read in another format."""
    read = []
    for ours in evidence.replies:
        predictions = ours.predictions
        dataset: Any = predictions.dataset
        variant = replace(
            dataset.variant,
            representation=other.variant.representation,
            output=other.variant.output,
            key=other.variant.key,
            structure=other.variant.structure,
            decoding=None,
        )
        theirs = read_predictions(replace(predictions, dataset=replace(dataset, variant=variant)))
        scored = [
            new if id(old) in rows else old
            for old, new in zip(ours.scored, theirs.scored, strict=True)
        ]
        read.append(replace(ours, scored=scored))
    return evidence.value_of(read)
