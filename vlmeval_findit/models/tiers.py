"""Tiers, speeds and regions: what a service asks more or less for, as multiples of the price.

The reply decides: a project may have another tier than the request.  Sources, November 2026:

* OpenAI: openai.com/api-priority-processing and developers.openai.com/api/docs/pricing
* Anthropic: platform.claude.com/docs/en/build-with-claude/fast-mode and …/about-claude/pricing
* Google: ai.google.dev/gemini-api/docs/priority-inference and …/optimization
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from ..core import quoted_json, quoted_line
from .prices import TokenPrices

_PRIORITY = "priority"  # columns of a model's prices
_FAST = "fast"

# By field and word: a multiple, or the column of the model's prices that has it
_MULTIPLES: Mapping[str, Mapping[str, float | str]] = {
    "service_tier": {
        "default": 1.0,
        "standard": 1.0,
        "on_demand": 1.0,  # Groq
        "scale": 1.0,  # OpenAI and Anthropic: capacity that was paid beforehand
        "flex": 0.5,
        "batch": 0.5,
        "priority": _PRIORITY,
        "fast": _PRIORITY,  # OpenRouter's and OpenAI's other word
        "auto": _PRIORITY,  # as the project says, perhaps priority
    },
    "speed": {"standard": 1.0, "fast": _FAST},  # Anthropic
    "inference_geo": {"global": 1.0, "not_available": 1.0, "us": 1.1},  # Anthropic
}

# Of a word that is not known: the most that is asked for any (6: OpenAI's ultrafast, and the speed
# fast of Claude Opus 4.6)
_AT_MOST = {"service_tier": 6.0, "speed": 6.0, "inference_geo": 1.1}

FIELDS = tuple(_MULTIPLES)

_NAMES = ("name", "type", "value")  # where an object has its word
_LONGEST = 60  # characters of a word


class StatedTier(NamedTuple):
    """A tier, speed or region that a reply or a request names."""

    field: str
    word: str

    @property
    def usual(self) -> str:
        """The word for what the price is of."""
        return next(iter(_MULTIPLES[self.field]))

    @property
    def at_most(self) -> float:
        """The multiple that is counted if its price is not known."""
        return _AT_MOST[self.field]

    def __str__(self) -> str:
        return f"{self.field} {self.word}"


class Surcharge(NamedTuple):
    """What tiers make of a price."""

    multiple: float = 1.0
    named: str = ""  # the tiers that change it, as "service_tier priority x 2"
    unknown: tuple[StatedTier, ...] = ()  # tiers of which the price is not known

    def of(self, share: float) -> float:
        """Return the share of the standard price that is charged, of a batch at ``share``.

        A batch's discount is its tier's, which results may name too.
        """
        return self.multiple if share == 1.0 else max(self.multiple, 1.0) * share


def tiers_in(*places: Mapping[str, object]) -> tuple[StatedTier, ...]:
    """Return the tiers that are named in places of a reply or a request.

    >>> tiers_in({"service_tier": "priority", "id": "x"}, {"speed": "FAST", "service_tier": None})
    (StatedTier(field='service_tier', word='priority'), StatedTier(field='speed', word='fast'))
    """
    found = []
    for place in places:
        for field in FIELDS:
            for word in _words_in(place.get(field)):
                # Google writes some as SERVICE_TIER_PRIORITY.
                name = word.strip().lower().removeprefix(f"{field}_")
                found.append(StatedTier(field, quoted_line(name, _LONGEST)))
    return tuple(dict.fromkeys(found))


def _words_in(value: object) -> Iterator[str]:
    """Yield the words of a field: text, those of a list, that of an object; else its JSON.

    >>> [list(_words_in(value)) for value in ("flex", ["flex"], {"name": "flex"}, 5, None, " ")]
    [['flex'], ['flex'], ['flex'], ['5'], [], []]
    """
    if isinstance(value, str):
        if value.strip():
            yield value
    elif isinstance(value, list):
        for each in value:
            yield from _words_in(each)
    elif isinstance(value, dict):
        words = [value[name] for name in _NAMES if value.get(name)]
        if words:
            yield from _words_in(words)
        elif value:
            yield quoted_json(value)
    elif value is not None and value is not False:
        yield quoted_json(value)


def surcharge(tiers: Iterable[StatedTier], prices: TokenPrices) -> Surcharge:
    """Return what tiers make of a model's prices; of several words of a field the dearest counts.

    Nothing is taken off prices that a user gave: they are those of the user's tier.

    >>> from vlmeval_findit.models.prices import GPT_5_4
    >>> surcharge(tiers_in({"service_tier": "priority"}), GPT_5_4)
    Surcharge(multiple=2.0, named='service_tier priority x 2', unknown=())
    """
    dearest: dict[str, float] = {}
    words = []
    unknown = []
    for tier in tiers:
        known = _MULTIPLES[tier.field].get(tier.word)
        multiple = getattr(prices, known) if isinstance(known, str) else known
        if multiple is None:
            unknown.append(tier)
            multiple = tier.at_most
        if prices.are_given:
            multiple = max(multiple, 1.0)
        dearest[tier.field] = max(dearest.get(tier.field, 0.0), multiple)
        if multiple != 1.0:
            words.append(f"{tier} x {multiple:g}")
    return Surcharge(math.prod(dearest.values()), ", ".join(words), tuple(unknown))
