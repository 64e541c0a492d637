"""Replies, and what a run records with each."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import isfinite
from typing import Annotated, Any, NamedTuple, TypeVar

from ..core import Finite, JsonObject, Text, Whole, YesNo, keys_of
from .costs import NOT_TIMED, CallTime
from .thoughts import USUAL_THOUGHTS, SplitReply, ThoughtRule, split_thought

# --- logprobs, as ``--logprobs`` records them --------------------------------------------------

_DECIMALS = 4
LOG_OF_ZERO = -9999.0  # Stands for the log of 0, which JSON cannot hold (as in vLLM)


@dataclass(frozen=True, slots=True)
class TokenLogprobs:
    """The tokens of a reply as stored: stripped, without its thought.

    Token i ends before character ``ends[i]``; a token that ends within a character, or was
    stripped, shares its end with the token before. ``logprobs[i]`` is a natural logarithm under the
    model's distribution (temperature 1, before grammar mask or penalty), rounded to 4 decimals.

    Raises:
        ValueError: lengths that differ, ends that go back, a logprob that is not finite.

    >>> TokenLogprobs.rounded([2, 5], [-0.00001, float("-inf")])
    TokenLogprobs(ends=(2, 5), logprobs=(0.0, -9999.0))
    """

    ends: tuple[Whole, ...]
    logprobs: tuple[Finite, ...]

    def __post_init__(self) -> None:
        if len(self.ends) != len(self.logprobs):
            raise ValueError(f"{len(self.ends)} ends of tokens, {len(self.logprobs)} logarithms")
        if any(a > b for a, b in pairwise((0, *self.ends))):
            raise ValueError("ends of tokens that go back")
        if not all(map(isfinite, self.logprobs)):
            raise ValueError("a logarithm that is not finite")

    @classmethod
    def rounded(cls, ends: Iterable[int], logprobs: Iterable[float]) -> TokenLogprobs:
        """Round logprobs, with :data:`LOG_OF_ZERO` for a probability of 0."""
        # Adding 0.0 turns -0.0 into 0.0.
        rounded = (round(max(each, LOG_OF_ZERO), _DECIMALS) + 0.0 for each in logprobs)
        return cls(tuple(ends), tuple(rounded))

    def tokens_after(self, begin: int) -> TokenLogprobs:
        """Return the tokens after the first ``begin`` characters.

        >>> TokenLogprobs((2, 5), (-1.0, -2.0)).tokens_after(3)
        TokenLogprobs(ends=(2,), logprobs=(-2.0,))
        """
        if not begin:
            return self
        # Ends never go back.
        first = bisect_right(self.ends, begin)
        ends = tuple(end - begin for end in self.ends[first:])
        return TokenLogprobs(ends, self.logprobs[first:])

    def as_json(self) -> dict[str, Any]:
        """Return plain values for a record; :func:`..storage.parse_record` reads them back."""
        return {"ends": list(self.ends), "logprobs": list(self.logprobs)}


# --- replies and their records --------------------------------------------------------------------

FAILED_ANSWER = "Failed to obtain answer"  # VLMEvalKit stores it in place of an answer


def text_of_failure(why: str) -> str:
    """Return the text in place of an answer, in VLMEvalKit's words: its runner asks again.

    >>> text_of_failure("HTTP 503")
    'Failed to obtain answer via API. HTTP 503'
    """
    return f"{FAILED_ANSWER} via API. {why}"


# In what an empty reply records of its call: keys of its message with words that are not read
TEXTS_UNDER = "texts_under"

PROCESSOR_KEY = "processor_revision"  # In what a reply records of a model on this machine


@dataclass(frozen=True, slots=True)
class _KnownOfCall:
    """The keys of a call's record that are read back."""

    cost: Finite | None = None
    error: Text | None = None


@dataclass(frozen=True, slots=True)
class ReplyRecord:
    """What a model's run recorded with one reply.

    It is what backends, runners and scores hand on; :mod:`..storage.reply_records` writes it as
    text, and checks these types when it reads one.

    ``images`` have each image's (w, h) in pixels: ``original``, as ``sent`` (the run's limits) and
    as ``processed`` (by the model's processor), and the ``bounds`` in force.
    """

    space: JsonObject | None = None  # Settings of :func:`..boxes.spaces.space_from`
    finish_reason: Text = ""  # ``stop`` or ``length``
    images: tuple[JsonObject, ...] = ()
    thought: Text = ""  # Never read for boxes
    ends_in_thought: YesNo = False  # And so has no answer
    tokens: Mapping[str, Whole] = field(default_factory=dict)  # Of the prompt and the reply
    model: Mapping[str, Text] = field(default_factory=dict)  # Identifier, revisions, provider, row
    # Of HTTP: id, ``cost`` in USD, error, status
    call: Annotated[JsonObject, keys_of(_KnownOfCall)] = field(default_factory=dict)
    token_logprobs: TokenLogprobs | None = None  # None: not asked for, or not available
    masks: Whole = 0  # Boxes of the reply that were made around masks of another program's file

    def with_error(self, why: str) -> ReplyRecord:
        """Return the record of a failed call, with its error unless it has one."""
        return replace(self, call={**self.call, "error": self.call.get("error") or why})


NOTHING_RECORDED = ReplyRecord()  # Shared by replies of other models
NO_REPLY = NOTHING_RECORDED.with_error("no reply")  # Of a call that somebody says brought none


def call_failed(text: str, record: ReplyRecord) -> bool:
    """Return whether a call failed, by its record or else by VLMEvalKit's message."""
    if record.call.get("error"):
        return True
    if record.finish_reason or record.tokens:
        return False
    return _MESSAGE.fullmatch(text.strip()) is not None


# VLMEvalKit's message, alone or followed by the error
_MESSAGE = re.compile(
    rf"{FAILED_ANSWER}(?: via API)?[.:]?"
    r"(?:\s*(?:<class '[\w.]+'>|\w+(?:Error|Exception|Timeout)\b|HTTP \d{3}\b|never asked$).*)?",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Reply:
    """One row of a prediction file."""

    index: int
    text: str  # With thoughts that other programs leave in it
    recorded: ReplyRecord = field(default_factory=ReplyRecord)
    stated: Mapping[str, Any] = field(default_factory=dict)  # Columns that repeat the table's
    thoughts: ThoughtRule = USUAL_THOUGHTS  # How its model marks thoughts
    shown: Mapping[str, str] = field(default_factory=dict)  # Contents of its images, by name
    time: CallTime = NOT_TIMED
    is_cut_by_sheet: bool = False  # A cell holds only its beginning, and no journal has it whole

    @property
    def failed(self) -> bool:
        return call_failed(self.text, self.recorded)

    @property
    def split(self) -> SplitReply:
        return split_thought(self.text, self.thoughts)

    @property
    def answer(self) -> str:
        """Return the text without its thought: what a benchmark reads."""
        return self.split.answer

    @property
    def ends_in_thought(self) -> bool:
        """Return whether its thought was never closed; what is before it is still its answer."""
        return self.recorded.ends_in_thought or self.split.ends_inside

    @property
    def cut(self) -> bool:
        """Return whether the reply was cut at its token limit, if the run recorded that."""
        return self.recorded.finish_reason == "length"


Replies = Sequence[Reply]  # Of a run, in the order of its file


class ParseFailure(NamedTuple):
    """Why a reply is no answer."""

    reason: str


FAILED_CALL = "failed call"
EMPTY = "empty"
# Reason of a reply that was cut at the limit of tokens and is no whole answer
TRUNCATED = "truncated"
TRUNCATED_THINKING = "truncated while thinking"

# Reasons of :func:`read_reply`, besides a benchmark's and the failed call
UNREAD = (EMPTY, TRUNCATED, TRUNCATED_THINKING)

ParsedT = TypeVar("ParsedT")


class FailureReasons:
    """What :func:`read_reply` returns for a reply that is no answer: a :class:`ParseFailure`.

    A benchmark with readings that hold their reason overrides both methods.
    """

    def unread(self, reason: str) -> Any:
        """Return the result for a reply that has nothing to read."""
        return ParseFailure(reason)

    def incomplete(self, parsed: Any, text: str, reason: str) -> Any:
        """Return the result for a reply that ended early; what was read all the same stays."""
        return ParseFailure(reason) if isinstance(parsed, ParseFailure) else parsed


PARSE_FAILURES = FailureReasons()


def read_reply(
    reply: Reply, read: Callable[[str], ParsedT], reasons: FailureReasons = PARSE_FAILURES
) -> ParsedT:
    """Return a reply's answer or failure; ``read`` gets its text without thought, never empty."""
    text = reply.answer
    if reply.failed or not text.strip():
        unread: ParsedT = reasons.unread(_why_unread(reply))
        return unread
    parsed = read(text)
    if reply.cut:
        parsed = reasons.incomplete(parsed, text, TRUNCATED)
    if reply.ends_in_thought:
        parsed = reasons.incomplete(parsed, text, TRUNCATED_THINKING)
    return parsed


def _why_unread(reply: Reply) -> str:
    if reply.failed:
        return FAILED_CALL
    return TRUNCATED_THINKING if reply.ends_in_thought else EMPTY
