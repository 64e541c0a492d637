"""Confidences of boxes from the probabilities of their tokens, by several definitions."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, fsum
from typing import NamedTuple

from ..protocol import TokenLogprobs
from .box_records import ParsedReply
from .representation import ReplyFormat
from .spans import BoxSpans, Span, stated_places

Logprobs = tuple[float, ...]


class Tokens(NamedTuple):
    """The log-probabilities of a box's tokens; empty where there are none."""

    numbers: Logprobs  # Overlap its numbers
    label: Logprobs | None  # Overlap its label (None: no labels)
    before: Logprobs  # Since the previous box: the reply goes on instead of stopping


@dataclass(frozen=True, slots=True)
class Definition:
    """One definition of a box's confidence."""

    name: str
    means: str
    confidence: Callable[[Tokens], float | None]  # 0 to 1; None where the box lacks these tokens


def _probability(logprobs: Logprobs | None) -> float | None:
    return exp(min(0.0, fsum(logprobs))) if logprobs else None


def _mean(logprobs: Logprobs) -> float | None:
    return exp(min(0.0, fsum(logprobs) / len(logprobs))) if logprobs else None


def _least(logprobs: Logprobs) -> float | None:
    return exp(min(0.0, *logprobs)) if logprobs else None


def _together(box: Tokens) -> float | None:
    label = 1.0 if box.label is None else _probability(box.label)
    before = _probability(box.before)
    numbers = _mean(box.numbers)
    if before is None or label is None or numbers is None:
        return None
    return before * label * numbers


CONFIDENCE_DEFINITIONS = {
    row.name: row
    for row in (
        Definition("mean", "geometric mean over the tokens of its numbers",
                   lambda box: _mean(box.numbers)),
        Definition("minimum", "the least probable token of its numbers",
                   lambda box: _least(box.numbers)),
        Definition("product", "the probability of all of its numbers",
                   lambda box: _probability(box.numbers)),
        Definition("label", "the probability of its label",
                   lambda box: _probability(box.label)),
        Definition("going-on", "the probability of the tokens between the previous box and it",
                   lambda box: _probability(box.before)),
        Definition("together", "going-on times label (if there are labels) times mean", _together),
    )
}  # fmt: skip

# Confidence of boxes that several samples were asked for (:mod:`..analysis.sample_scores`)
AGREEMENT = "agreement"

# The meanings of all confidences that boxes may have, by name
CONFIDENCE_MEANINGS = {name: row.means for name, row in CONFIDENCE_DEFINITIONS.items()} | {
    AGREEMENT: "the share of the other samples that have the box (its label, IoU 0.5 or more)"
}

DEFAULT_CONFIDENCE = "mean"  # The definition used where none is named

Confidences = Mapping[str, list[float | None]]  # By definition: 0 to 1 per box (None: has none)


def confidences(
    reply: str, fmt: ReplyFormat, reading: ParsedReply, logprobs: TokenLogprobs
) -> Confidences:
    """Return the confidences of a reply's boxes, omitting definitions without any value.

    >>> from .reading import read
    >>> how = ReplyFormat("text", "xyxy")
    >>> sure = TokenLogprobs((1, 2, 4, 5, 7, 8, 10, 11, 12), (0, 0, 0, 0, 0, -1.2, 0, 0, 0))
    >>> {name: values[0] for name, values in  # doctest: +NORMALIZE_WHITESPACE
    ...     confidences("[1, 2, 3, 4]", how, read("[1, 2, 3, 4]", how), sure).items()}
    {'mean': 0.7408182, 'minimum': 0.3011942, 'product': 0.3011942, 'going-on': 1.0,
     'together': 0.7408182}
    """
    is_labelled = bool(reading.labels)
    boxes = [_tokens(place, logprobs, is_labelled) for place in stated_places(reply, fmt, reading)]
    by_name: dict[str, list[float | None]] = {}
    for name, definition in CONFIDENCE_DEFINITIONS.items():
        values = [_rounded(definition.confidence(box)) for box in boxes]
        if any(value is not None for value in values):
            by_name[name] = values
    return by_name


def _rounded(value: float | None) -> float | None:
    """Round to seven digits, as logprobs are recorded with four decimals."""
    return None if value is None else float(f"{value:.7g}")


def _tokens(place: BoxSpans | None, logprobs: TokenLogprobs, is_labelled: bool) -> Tokens:
    if place is None:
        return Tokens((), (), ())
    label: Logprobs | None = None
    if is_labelled:
        label = _logprobs_of([] if place.label is None else [place.label], logprobs)
    before: Logprobs = ()
    if place.before is not None:
        start, end = place.before
        if start == end:
            # Nothing between: the box's first token is where the reply could have stopped.
            end += 1
        before = _logprobs_of([(start, end)], logprobs)
    return Tokens(_logprobs_of(place.numbers, logprobs), label, before)


def _logprobs_of(spans: Sequence[Span], tokens: TokenLogprobs) -> Logprobs:
    """Return the logprobs of all tokens that overlap spans; none if a span lies beyond them."""
    ends = tokens.ends
    by_token: dict[int, float] = {}
    for start, end in spans:
        if not ends or ends[-1] < end:
            return ()
        at = bisect_right(ends, start)
        while at < len(ends) and (at == 0 or ends[at - 1] < end):
            by_token[at] = tokens.logprobs[at]
            at += 1
    return tuple(by_token.values())
