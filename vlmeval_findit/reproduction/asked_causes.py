"""Causes that cost calls: the first pictures are asked again with one condition as published.

Both values are of the same rows, so that what is hard about a picture cancels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from .. import benchmarks
from ..benchmarks.findit import FAMILY_PROMPTS
from ..core import counted
from ..data import NOT_STATED, PublishedDecoding, told_values
from ..models import ORIGINAL_TILES, TOKEN_LIMITS, Bounds, bounds_in_request
from ..statistics import Difference, paired_difference
from .cause_evidence import Evidence, capitalised
from .figure_metric import ReadReplies, estimate_figure, figure_metric, read_predictions
from .reproduction_records import Attempt, CauseLook, Setup

# Asks another setup about the first pictures of its sample, so many of each dataset
Ask = Callable[[Setup, int], Attempt]

PICTURES_A_DATASET = 50  # Pictures of each dataset that another setup is asked about

# What gains so much on few pictures may be a cause, even if chance may gain as much.
_GAINS_MUCH = 0.5


@dataclass(frozen=True, slots=True)
class Asked:
    """A setup with one condition as published."""

    setup: Setup
    words: str  # What is as published
    advice: str


def check_prompt(evidence: Evidence, ask: Ask) -> CauseLook:
    """Ask in the published words and format, where the user states others."""
    conditions = evidence.figure.conditions
    differs = evidence.differs("prompt") or evidence.differs("format")
    told = [name for name in (conditions.prompt, conditions.format) if name != NOT_STATED]
    if not told:
        return CauseLook("prompt", "the figure's is not told")
    if not differs:
        return CauseLook("prompt", "as published")
    return _compare(evidence, ask, "prompt", _with_published_prompt(evidence))


def _with_published_prompt(evidence: Evidence) -> Asked:
    setup = evidence.attempt.setup
    conditions = setup.figure.conditions
    entry = setup.entry
    prompts = setup.prompts
    form = conditions.format
    words = f"the published format ({form})"
    if conditions.prompt != NOT_STATED:
        prompts = conditions.prompt
        entry = replace(entry, system=None, prompt_template=None)
        form = FAMILY_PROMPTS[prompts].format
        words = f"the published prompt ({prompts})"
    variants = tuple(benchmarks.benchmark_of(each).in_format(each, form) for each in setup.variants)
    return Asked(
        replace(setup, prompts=prompts, entry=entry, variants=variants),
        words,
        f"Type the same command without {evidence.typed_words}",
    )


def check_bounds(evidence: Evidence, ask: Ask) -> CauseLook:
    """Ask with the published bounds or tiles, where the user states others."""
    if not told_values(evidence.figure.conditions.bounds):
        return CauseLook("bounds", "the figure's are not told")
    if not evidence.differs("bounds"):
        return _nothing_to_ask(evidence, "bounds")
    return _compare(evidence, ask, "bounds", _with_published_bounds(evidence))


def _with_published_bounds(evidence: Evidence) -> Asked:
    setup = evidence.attempt.setup
    told = told_values(evidence.figure.conditions.bounds)
    local = evidence.row.local if evidence.row is not None else None
    bounds = Bounds(told.get("min_pixels"), told.get("max_pixels"), told.get("patches"))
    stated = setup.entry.settings.get("mm_processor_kwargs") or {}
    in_request = bounds_in_request(
        bounds, local.pixels_counted if local else 1, original=ORIGINAL_TILES in stated
    )
    is_elsewhere = any(name in setup.entry.settings for name in in_request)
    settings = _without(setup.entry.settings, [*told, *in_request])
    settings |= in_request if is_elsewhere else told
    words = ", ".join(f"{name} {value}" for name, value in told.items())
    return Asked(
        replace(setup, entry=replace(setup.entry, settings=settings)),
        f"the published bounds ({words})",
        "Type the same command without your bounds (--extra-body)",
    )


def _nothing_to_ask(evidence: Evidence, name: str) -> CauseLook:
    """Say why a condition that the user does not state is not asked as published."""
    condition = evidence.condition(name)
    here = condition.agreement.value if condition is not None else "not known"
    return CauseLook(name, f"{here}; nothing else can be asked")


def check_decoding(evidence: Evidence, ask: Ask) -> CauseLook:
    """Ask with the published decoding, where the user states another one."""
    if evidence.figure.conditions.decoding == NOT_STATED:
        return CauseLook("decoding", "the figure's is not told")
    if not evidence.differs("decoding"):
        return _nothing_to_ask(evidence, "decoding")
    return _compare(evidence, ask, "decoding", _with_published_decoding(evidence))


def _with_published_decoding(evidence: Evidence) -> Asked:
    setup = evidence.attempt.setup
    decoding = evidence.figure.conditions.decoding
    assert isinstance(decoding, PublishedDecoding)
    names = [each.name for each in fields(PublishedDecoding) if each.name != "thinking"]
    told = {name: getattr(decoding, name) for name in names}
    limit = told.pop("max_tokens")
    settings = _without(setup.entry.settings, [*names, *TOKEN_LIMITS])
    settings |= {name: value for name, value in told.items() if value}
    if limit is not None:
        settings["max_new_tokens"] = limit
    return Asked(
        replace(setup, entry=replace(setup.entry, settings=settings)),
        "the published decoding",
        "Type the same command without --temperature, --max-tokens and --extra-body",
    )


def _without(settings: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if name not in names}


# --- paired comparison ----------------------------------------------------------------------------


def _compare(evidence: Evidence, ask: Ask, name: str, asked: Asked) -> CauseLook:
    """Ask a setup about the first pictures and compare it with the attempt on the same rows."""
    other = ask(asked.setup, PICTURES_A_DATASET)
    change = paired_change(evidence, other)
    pictures = counted(other.pictures, "picture")
    if change is None:
        return CauseLook(name, f"{asked.words}: too few answers about {pictures}")
    result = f"{asked.words} gives {change.value:+.1f} points on {pictures}"
    value = min(100.0, evidence.judgement.measured + change.value)
    by_chance = not change.significant
    is_cause = evidence.matters(value)
    if by_chance:
        is_cause = evidence.matters(value, _GAINS_MUCH)
        result += ", which may be chance"
    if not is_cause:
        return CauseLook(name, result)
    cause = evidence.cause(
        name, capitalised(result), value, asked.advice, stated=not by_chance, may_be=by_chance
    )
    return CauseLook(name, "another one than published", cause)


def paired_change(evidence: Evidence, other: Attempt) -> Difference | None:
    """Return by how many points another attempt differs on the rows that both asked.

    None if they share no row of a dataset.
    """
    ours = []
    theirs = []
    for mine, predictions in zip(evidence.replies, other.predictions, strict=True):
        read = read_predictions(predictions)
        shared = _rows(mine) & _rows(read)
        if not shared:
            return None
        ours.append(_only_rows(mine, shared))
        theirs.append(_only_rows(read, shared))
    left = estimate_figure(evidence.figure, theirs)
    right = estimate_figure(evidence.figure, ours)
    return paired_difference(left, right, figure_metric(evidence.figure).metric.name)


def _rows(replies: ReadReplies) -> set[int]:
    return {scored.query.index for scored in replies.scored}


def _only_rows(replies: ReadReplies, rows: set[int]) -> ReadReplies:
    return replace(replies, scored=[each for each in replies.scored if each.query.index in rows])
