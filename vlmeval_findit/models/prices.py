"""What proprietary models cost: for estimates, and if services do not state costs.

US dollars per million tokens, for prompts of fewer than 200,000 tokens, as on the providers' pages
in autumn 2026:

* OpenAI: developers.openai.com/api/docs/pricing and …/models/gpt-6-astra
* Anthropic: platform.claude.com/docs/en/about-claude/pricing, caches of five minutes
* Google: ai.google.dev/gemini-api/docs/pricing and …/caching
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from ..core.validation import Checked

AS_OF = "November 2026"


@dataclass(frozen=True, slots=True)
class TokenPrices:
    """US dollars per million tokens."""

    sent: float  # prompt
    answered: float  # reply
    cached: float  # read from the provider's cache
    written: float  # written to that cache
    least: int  # tokens; shorter beginnings are not cached
    source: str = f"prices of {AS_OF}"  # as in records

    def first(self, sent: int, beginning: int) -> float:
        """Return US dollars for the prompt of the first call with a cacheable beginning.

        >>> SONNET_4_5.first(sent=3_000, beginning=2_000)
        0.0105
        """
        return self._sum(sent, beginning, self.written)

    def another(self, sent: int, beginning: int) -> float:
        """Return the same for a later call, while the beginning is cached.

        >>> SONNET_4_5.another(sent=3_000, beginning=2_000)
        0.0036
        >>> SONNET_4_5.another(sent=3_000, beginning=1_000)  # too short for a cache
        0.009
        """
        return self._sum(sent, beginning, self.cached)

    def cost_of(self, tokens: Mapping[str, int]) -> float | None:
        """Return US dollars for a reply's token counts; None without them.

        Args:
            tokens: ``prompt``, of it ``cached`` and ``cache_write``, and ``completion``.

        >>> SONNET_4_5.cost_of({"prompt": 3_000, "cached": 2_000, "completion": 100})
        0.0051
        """
        if "prompt" not in tokens or "completion" not in tokens:
            return None
        cached = tokens.get("cached", 0)
        written = tokens.get("cache_write", 0)
        plain = max(tokens["prompt"] - cached - written, 0)
        prompt = plain * self.sent + cached * self.cached + written * self.written
        return (prompt + self.answered * tokens["completion"]) / 1e6

    def _sum(self, sent: int, beginning: int, price: float) -> float:
        if beginning < self.least:
            beginning = 0
        return (beginning * price + self.sent * (sent - beginning)) / 1e6


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
    source = f"given prices {sent:g}/{answered:g}"
    return TokenPrices(sent, answered, cached=sent, written=sent, least=0, source=source)


PricesField = Annotated[TokenPrices, Checked(prices_from, before=True)]  # as a file has them

GPT_5_4 = TokenPrices(2.5, 15.0, cached=0.25, written=2.5, least=1024)
GPT_6_ASTRA = TokenPrices(10.0, 50.0, cached=1.0, written=12.5, least=1024)
SONNET_4_5 = TokenPrices(3.0, 15.0, cached=0.3, written=3.75, least=1024)
OPUS_5_5 = TokenPrices(4.0, 20.0, cached=0.2, written=5.0, least=1024)
GEMINI_2_5_FLASH = TokenPrices(0.3, 2.5, cached=0.03, written=0.3, least=2048)
