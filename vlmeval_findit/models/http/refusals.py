"""What a server refuses whoever asks: told by its first calls, which it refuses in the same words.

A server that is busy or starts says other things in between, or at last an answer.  One that takes
no such request says the same to every call, and llama.cpp says even that with status 500.
"""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...core.question import Question
from .completion import MODERATED, CallError

ALIKE = 5
"""Calls that are refused in the same words, none answered, after which no other is made."""

SEVERAL = 3
"""Calls after which one that is refused so is not tried again; and times at which it was said:
what is refused together is refused once, perhaps for a moment only."""

_ABOUT_THE_REQUEST = frozenset({400, 422, 500, 501})

_OWN_TO_A_CALL = re.compile(
    r"0x[0-9a-f]+|\b[0-9a-f]{8}[0-9a-f-]*\b|\breq(?:uest)?[-_]\w+|\d{4}-\d\d-\d\d[t ][\d:.]+z?"
)
"""Addresses, ids and times, in lower case.  Other numbers are of pictures and prompts: they tell
refusals apart."""


@dataclass(slots=True)
class Refusals:
    """Those of a server's calls, as long as they are all alike and none was answered.

    ``apart`` are seconds: what a server that may be starting (500) says twice within them is said
    once.
    """

    apart: float = 0.0
    words: str = ""
    calls: set[Hashable] = field(default_factory=set)
    times: int = 0
    at: float = -math.inf
    answered: bool = False

    def answer(self) -> None:
        """Something was answered: what is refused from now on is about one call."""
        self.answered = True
        self.calls.clear()

    def add(self, error: CallError, call: Hashable, began: float, now: float) -> None:
        """Count a failure of a call; the error says then of how many calls it is, where they are
        several, and that it is hopeless where no other need be asked.
        """
        if self.answered:
            return
        words = _OWN_TO_A_CALL.sub("#", str(error).lower())
        about = error.status in _ABOUT_THE_REQUEST and not MODERATED.search(words)
        if not about or words != self.words:
            self.words, self.times, self.at = words, 0, -math.inf
            self.calls.clear()
        if not about:
            return
        self.calls.add(call)
        if began >= self.at:
            self.times += 1
            self.at = now + (self.apart if error.transient else 0.0)
        if min(len(self.calls), self.times) < SEVERAL:
            return
        error.alike = len(self.calls)
        signs = min(error.alike, self.times) if error.transient else error.alike
        error.hopeless = error.hopeless or signs >= ALIKE


_UNKNOWN = re.compile(
    r"unsupported|not supported|unrecognized|unknown|not permitted|unexpected|instead",
    re.IGNORECASE,
)


def is_unknown(field: str, error: CallError) -> bool:
    """Whether a server says that it has no such field."""
    message = str(error)
    named = re.search(rf"\b{field}\b", message) is not None
    return error.status == 400 and named and _UNKNOWN.search(message) is not None


_SCHEMA = re.compile(r"response_format|schema|grammar|structured|guided", re.IGNORECASE)
_ALWAYS = frozenset(
    {"model", "messages", "max_tokens", "temperature", "usage", "provider", "reasoning"}
)
"""Fields that every service takes, or nobody could take back."""


def explained(
    error: CallError, body: Mapping[str, Any], question: Question, *, confidences: bool
) -> str:
    """Why a run stops at a refusal: what a server seems not to take, and what to type instead.

    Args:
        error: what its message names is the cause, else it may be any of the fields.
        body: the request.
        question: what was asked.
        confidences: whether log-probabilities were asked for.
    """
    message = str(error)
    found: dict[str, tuple[bool, str]] = {}
    if "response_format" in body:
        found["response_format"] = (_SCHEMA.search(message) is not None, without_schema(question))
    if confidences:
        found["logprobs"] = ("logprob" in message.lower(), "run without --confidences")
    for name in sorted(body.keys() - _ALWAYS - found.keys()):
        named = re.search(rf"\b{re.escape(name)}\b", message) is not None
        found[name] = (named, f"with --extra-body '{{\"{name}\": null}}' it is not sent")
    told = {name: what for name, (named, what) in found.items() if named}
    likely = told or {name: what for name, (_, what) in found.items()}
    seen = f"; {error.alike} calls were refused in these words, and none was answered"
    verb = ": it does not take " if told else ": it may not take "
    fields = ", or ".join(f"{name} ({what})" for name, what in likely.items())
    return f"{seen}{verb}{fields}" if fields else seen


def without_schema(question: Question) -> str:
    """What to type where a server does not hold replies to a format."""
    free = question.name.removesuffix("_constrained")
    return f"ask {free} without _constrained; in a sweep's file, decodings: [none]"
