"""What proprietary models cost: for estimates, and if services do not state costs.

US dollars per million tokens, as on the providers' pages in autumn 2026, for the standard tier
(others: :mod:`.tiers`) and for prompts of up to 200,000 tokens. Of longer ones the most is counted
that is asked for them, twice the price of the prompt and 1.5 times that of the reply.

* OpenAI: developers.openai.com/api/docs/pricing and …/models/gpt-6-astra
* Anthropic: platform.claude.com/docs/en/about-claude/pricing, caches of five minutes
* Google: ai.google.dev/gemini-api/docs/pricing and …/caching

A row of :mod:`.model_table` names its prices, :mod:`.http.spending` charges calls by them, and
:mod:`..protocol.costs` sums what calls cost.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from ..core import Checked

PRICES_AS_OF = "November 2026"  # Month of the prices below

_LONGEST = 200_000  # tokens of a prompt
_LONG_SENT = 2.0
_LONG_ANSWERED = 1.5

_WRITTEN = 1.25  # of the price of the prompt, where a service asks more for what it caches
_FOR_AN_HOUR = 2.0  # of the price of the prompt, to keep it in Anthropic's cache


@dataclass(frozen=True, slots=True)
class TokenPrices:
    """US dollars per million tokens."""

    sent: float  # prompt
    answered: float  # reply
    cached: float  # read from the provider's cache
    written: float  # written to that cache
    least: int  # tokens; shorter beginnings are not cached
    source: str = f"prices of {PRICES_AS_OF}"  # as in records
    priority: float = 2.5  # multiple of the tier; by default the most that OpenAI asks
    fast: float = 6.0  # multiple of Anthropic's speed; by default the most that it asked
    are_given: bool = False  # by the user: for any prompt

    def first(self, sent: int, beginning: int) -> float:
        """Return US dollars for the prompt of the first call with a cacheable beginning.

        >>> SONNET_4_5.first(sent=3_000, beginning=2_000)
        0.0105
        """
        return self._sum(sent, beginning, self.written) / 1e6

    def another(self, sent: int, beginning: int) -> float:
        """Return the same for a later call, while the beginning is cached.

        >>> SONNET_4_5.another(sent=3_000, beginning=2_000)
        0.0036
        >>> SONNET_4_5.another(sent=3_000, beginning=1_000)  # too short for a cache
        0.009
        """
        return self._sum(sent, beginning, self.cached) / 1e6

    def cost_of(self, tokens: Mapping[str, int]) -> float | None:
        """Return US dollars for a reply's token counts; None without them.

        Args:
            tokens: ``prompt``, of it ``cached`` and ``cache_write``, of that ``cache_write_1h``
                (kept for an hour), and ``completion``.

        >>> SONNET_4_5.cost_of({"prompt": 3_000, "cached": 2_000, "completion": 100})
        0.0051
        """
        if "prompt" not in tokens or "completion" not in tokens:
            return None
        cached = tokens.get("cached", 0)
        for_an_hour = tokens.get("cache_write_1h", 0)
        written = max(tokens.get("cache_write", 0) - for_an_hour, 0)
        plain = max(tokens["prompt"] - cached - written - for_an_hour, 0)
        prompt = plain * self.sent + cached * self.cached
        prompt += written * self.written + for_an_hour * _FOR_AN_HOUR * self.sent
        return self._of_a_call(prompt, tokens["completion"], tokens["prompt"])

    def most(self, sent: int, beginning: int, answered: int) -> float:
        """Return US dollars for a call with so many tokens, its beginning written to the cache."""
        return self._of_a_call(self._sum(sent, beginning, self.written), answered, sent)

    def ends_before(self, sent: int) -> bool:
        """Return whether a prompt is longer than those that these prices are of."""
        return not self.are_given and sent > _LONGEST

    def _of_a_call(self, prompt: float, answered: int, sent: int) -> float:
        """Return US dollars, given millionths of one for the prompt."""
        answer = answered * self.answered
        if self.ends_before(sent):
            prompt *= _LONG_SENT
            answer *= _LONG_ANSWERED
        return (prompt + answer) / 1e6

    def _sum(self, sent: int, beginning: int, price: float) -> float:
        if beginning < self.least:
            beginning = 0
        return beginning * price + self.sent * (sent - beginning)


def prices_from(prices: Any) -> TokenPrices:
    """Parse a user's prices, as a list or text: US dollars per million tokens sent and answered.

    >>> prices_from("0.5,2").cost_of({"prompt": 1_000_000, "completion": 1_000_000})
    2.5
    """
    if isinstance(prices, TokenPrices):
        return prices
    try:
        parts = prices.split(",") if isinstance(prices, str) else prices
        sent, answered = (float(str(part)) for part in parts)
    except (TypeError, ValueError):
        sent = answered = math.nan
    if not (0 <= sent < math.inf and 0 <= answered < math.inf):
        raise ValueError(
            f"prices {prices!r}: should be IN,OUT in US dollars per million tokens, as 0.5,2 (0 if "
            "free)"
        )
    return TokenPrices(
        sent,
        answered,
        cached=sent,
        written=sent * _WRITTEN,
        least=0,
        source=f"given prices {sent:g}/{answered:g}",
        are_given=True,
    )


PricesField = Annotated[TokenPrices, Checked(prices_from, before=True)]  # as a file has them

# List prices of OpenAI
GPT_5_4 = TokenPrices(2.5, 15.0, cached=0.25, written=2.5, least=1024, priority=2.0)
# List prices of OpenAI
GPT_6_ASTRA = TokenPrices(10.0, 50.0, cached=1.0, written=12.5, least=1024, priority=2.0)
# List prices of Anthropic
SONNET_4_5 = TokenPrices(3.0, 15.0, cached=0.3, written=3.75, least=1024)
# List prices of Anthropic
OPUS_5_5 = TokenPrices(4.0, 20.0, cached=0.2, written=5.0, least=1024, fast=2.0)
# List prices of Google
GEMINI_2_5_FLASH = TokenPrices(0.3, 2.5, cached=0.03, written=0.3, least=2048, priority=2.0)
