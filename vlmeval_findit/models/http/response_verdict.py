"""Judge a response of a service: an answer, whole, cut off or refused, or a failed call."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from enum import Enum
from typing import Any, NamedTuple

from ...core import (
    error_line,
    number_of,
    object_or_empty,
    objects_of,
    quoted_json,
    quoted_line,
    replace_surrogates,
)
from ...protocol import (
    TEXTS_UNDER,
    USUAL_THOUGHTS,
    NotAReplyError,
    ReplyRecord,
    ThoughtRule,
    answer_in,
    split_thought,
    texts_elsewhere,
    tool_calls_in,
)
from .call_errors import CallError
from .completion import ANSWERED_STATUSES, Completion
from .reply_json import parse_reply
from .reply_logprobs import reply_logprobs
from .service_errors import (
    CODE_KEYS,
    MESSAGE_KEYS,
    error_of,
    failed_reply,
    inside_reply,
    words_of,
)
from .spending import usage_of

WEB_PAGE = "the reply is a web page, and not JSON"

_NAME = 200  # characters stored of a name or id
_MOST_NAMED = 5
_LONG_CALLS = 1 << 16  # characters of calls of tools


class CallVerdict(Enum):
    """What a response is."""

    ANSWER = "an answer"
    CUT = "an answer that a limit of tokens cut off"
    REFUSED = "a refusal of the model, or of a filter around it: an answer, too"
    PASSING = "a failed call that may be answered when it is repeated"
    FINAL = "a failed call that would fail again"


class Judgement(NamedTuple):
    """What a response is, and what comes of it."""

    verdict: CallVerdict
    reason: str  # in the service's words: its finish reason, its refusal, or its error
    outcome: Completion | CallError


def judge_response(
    status: int,
    body: bytes | Mapping[str, Any],
    *,
    retry_after: float | None = None,
    phrase: str = "",
    logprobs: bool = False,
    rule: ThoughtRule = USUAL_THOUGHTS,
) -> Judgement:
    """Judge a response; nothing is raised, whatever it holds.

    Args:
        status: of HTTP.
        body: a chat reply, or its JSON.
        retry_after: seconds that the service asks to wait.
        phrase: the words after the status, for a body without any.
        logprobs: whether log-probabilities were asked for.
        rule: how the model's thoughts are marked.
    """
    if status not in ANSWERED_STATUSES:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return _failed(error_of(content, status, phrase, retry_after))
    try:
        reply = object_in(body) if isinstance(body, bytes) else body
    except CallError as error:
        return _failed(error)
    try:
        return _judged(reply, logprobs, rule)
    except Exception as error:
        # The reply may have to be paid, whatever is wrong with it.
        start = quoted_line(quoted_json(reply), 80)
        why = f"the reply cannot be read ({error_line(error)}): {start}"
        return _failed(failed_reply(why, reply, unread=True))


def read_completion(
    reply: Mapping[str, Any], *, logprobs: bool = False, rule: ThoughtRule = USUAL_THOUGHTS
) -> Completion:
    """Return the answer in a chat reply of status 200, or raise its CallError.

    It is that of :func:`judge_response`.
    """
    outcome = judge_response(200, reply, logprobs=logprobs, rule=rule).outcome
    if isinstance(outcome, CallError):
        raise outcome
    return outcome


def object_in(body: bytes) -> dict[str, Any]:
    """Parse the body of a reply as a JSON object, or raise CallError."""
    if not body.strip():
        why = "the reply has an empty body"
        raise CallError(why, transient=True, worked_on=True, arrived=True)
    try:
        reply = parse_reply(body)
    except (ValueError, RecursionError):
        start = quoted_line(body[:400].decode("utf-8", "replace"), 80)
        what = "the reply is not JSON"
        if start.startswith(("data:", "event:")):
            what = "the reply is a stream of events, though none was asked for, and not JSON"
        elif start.startswith("<"):
            what = WEB_PAGE
        raise CallError(f"{what}: {start!r}", worked_on=True, arrived=True, unread=True) from None
    if not isinstance(reply, dict):
        raise CallError("the reply is not a JSON object", worked_on=True, arrived=True, unread=True)
    return reply


def _failed(error: CallError) -> Judgement:
    verdict = CallVerdict.PASSING if error.transient else CallVerdict.FINAL
    return Judgement(verdict, str(error), error)


def _judged(reply: Mapping[str, Any], logprobs: bool, rule: ThoughtRule) -> Judgement:
    error = _reported_error(reply)
    if error is not None:
        return _failed(error)
    choices = reply.get("choices")
    choice = object_or_empty(choices[0]) if isinstance(choices, list) and choices else {}
    message = choice.get("message")
    for place in (choice, object_or_empty(message)):
        if _is_error(place.get("error")):
            return _failed(inside_reply(place["error"], reply, begun=True))
    finish = _finish_reason(choice)
    stopped = _stopped_by_service(finish, choice, reply)
    if stopped is not None:
        return _failed(stopped)
    if not isinstance(message, dict):
        missing = "message in its choice" if choice else "choices"
        return _failed(failed_reply(f"the reply has no {missing}", reply, unread=True))
    try:
        text, thought = answer_in(message)
    except NotAReplyError as problem:
        why = f"the reply has an unknown shape: {problem}"
        return _failed(failed_reply(why, reply, unread=True))
    more = _besides_text(message, finish, text)
    if not (text.strip() or thought or more or finish.kind):
        why = "the reply is empty, and no finish_reason says that it is whole"
        if finish.stated:
            why += f" ({finish.stated!r})"
        return _failed(failed_reply(why, reply, transient=True))
    if not (text.strip() or thought):
        more |= _texts_under(message)
    completion = _completion(reply, choice, finish, text, thought, logprobs, rule)
    return _answered(replace(completion, more=more), message, finish)


def _completion(
    reply: Mapping[str, Any],
    choice: Mapping[str, Any],
    finish: _Finish,
    text: str,
    stated_thought: str,
    logprobs: bool,
    rule: ThoughtRule,
) -> Completion:
    # Servers without a reasoning parser leave the thought in the text.
    content = replace_surrogates(text)
    split = split_thought(content, rule)
    thought = replace_surrogates(stated_thought) or split.thought
    is_cut = bool(thought) and not split.answer and finish.kind == LENGTH
    token_logprobs = None
    no_logprobs = ""
    if logprobs:
        try:
            token_logprobs = reply_logprobs(choice, content, finish.kind, rule)
        except ValueError as error:
            no_logprobs = str(error)
    usage = object_or_empty(reply.get("usage"))
    counted = usage_of(reply)
    record = ReplyRecord(
        thought=thought,
        ends_in_thought=split.ends_inside or is_cut,
        finish_reason=finish.kind or finish.stated,
        tokens=counted.tokens or {},
        model=_answered_by(reply),
        token_logprobs=token_logprobs,
    )
    return Completion(
        split.answer.strip(),
        record,
        id=_name(reply.get("id")),
        usage=counted,
        cache_discount=number_of(usage.get("cache_discount", reply.get("cache_discount"))),
        no_logprobs=no_logprobs,
        odd_finish="" if finish.kind else finish.stated,
    )


def _answered(completion: Completion, message: Mapping[str, Any], finish: _Finish) -> Judgement:
    refusal = message.get("refusal")
    if isinstance(refusal, str) and refusal.strip():
        return Judgement(CallVerdict.REFUSED, quoted_line(refusal, _NAME), completion)
    if finish.kind == FILTERED:
        return Judgement(CallVerdict.REFUSED, finish.stated, completion)
    verdict = CallVerdict.CUT if finish.kind == LENGTH else CallVerdict.ANSWER
    return Judgement(verdict, finish.stated, completion)


def _besides_text(message: Mapping[str, Any], finish: _Finish, text: str) -> dict[str, Any]:
    """Return what a message has besides its text, for the record of the call."""
    more: dict[str, Any] = {}
    calls = tool_calls_in(message)
    if calls:
        more["tool_calls"] = _in_little_memory(calls)
    refusal = message.get("refusal")
    if isinstance(refusal, str) and refusal and refusal != text:
        more["refusal"] = replace_surrogates(refusal)
    if finish.kind == FILTERED and finish.stated != finish.kind:
        more["finish_reason"] = finish.stated
    return more


def _in_little_memory(calls: list[Any]) -> list[Any]:
    """Return calls of tools; the beginning of their text where they would take megabytes."""
    words = json.dumps(calls)
    if len(words) <= _LONG_CALLS:
        return calls
    return [f"{words[:_LONG_CALLS]}… ({len(words):,} characters)"]


def _texts_under(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return where an empty message has words that are not read, for the record of the call."""
    keys = texts_elsewhere(message)[:_MOST_NAMED]
    return {TEXTS_UNDER: [quoted_line(key, _NAME) for key in keys]} if keys else {}


def _answered_by(reply: Mapping[str, Any]) -> dict[str, str]:
    who = {"identifier": _name(reply.get("model")), "provider": _name(reply.get("provider"))}
    return {name: value for name, value in who.items() if value}


def _name(value: object) -> str:
    return quoted_line(value, _NAME) if isinstance(value, str) else ""


# --- errors inside a reply ------------------------------------------------------------------------


def _reported_error(reply: Mapping[str, Any]) -> CallError | None:
    """Return the error that a reply of status 200 reports as a whole; None if it reports none."""
    error = _error_in(reply)
    return None if error is None else inside_reply(error, reply)


def _error_in(reply: Mapping[str, Any]) -> object | None:
    error = reply.get("error")
    if _is_error(error):
        # With "error": true or a number the words are in other fields.
        return reply if isinstance(error, int | float) else error
    if "error" in (reply.get("object"), reply.get("type")):
        return reply
    base = object_or_empty(reply.get("base_resp"))  # MiniMax
    if base.get("status_code") not in (None, 0, "0"):
        return base
    if objects_of(reply.get("choices")) or not any(reply.get(key) for key in MESSAGE_KEYS):
        return None
    return {key: reply[key] for key in (*MESSAGE_KEYS, *CODE_KEYS) if key in reply}


def _is_error(value: object) -> bool:
    """Return whether a field for an error states one: some are always there, and empty."""
    if isinstance(value, dict):
        is_success = "code" in value and value["code"] in (0, "0", 200, "200")
        return not is_success and any(map(_is_error, value.values()))
    return bool(value) and value != "0"


# --- finish reasons -------------------------------------------------------------------------------

# What records and scores distinguish
STOP = "stop"
LENGTH = "length"
TOOLS = "tool_calls"
FILTERED = "content_filter"


class _Finish(NamedTuple):
    """How a reply ended."""

    stated: str = ""  # as the service says it
    kind: str = ""  # one of the four; empty: not known, or not stated

    @property
    def word(self) -> str:
        """Return it in lower case, words joined by _."""
        snake = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", self.stated)
        return re.sub(r"[^a-z0-9]+", "_", snake.lower()).removeprefix("finish_reason_")


_STOPPED = """
    stop end_turn eos eos_token eos_found stop_sequence stop_sequence_found complete completed
    finished finish normal done endoftext end_of_text
"""
_TOO_LONG = """
    length max_tokens max_output_tokens max_new_tokens max_length max_predicted_tokens_reached
    token_limit model_length context_length model_context_window_exceeded context_window_exceeded
    error_limit context_length_exceeded context_length_reached
"""
_CALLED_TOOLS = "tool_calls tool_use tool_call function_call"
_WAS_FILTERED = """
    content_filter content_filtered refusal safety recitation spii blocklist prohibited_content
    model_armor image_safety sensitive image_prohibited_content image_recitation
    guardrail_intervened language error_toxic moderation
"""

# The finish reasons of vLLM, SGLang, TGI, OpenAI, Azure, Anthropic, Google, Mistral, Cohere,
# Bedrock, z.ai, LM Studio
_KINDS: Mapping[str, str] = {
    **dict.fromkeys(_STOPPED.split(), STOP),
    **dict.fromkeys(_TOO_LONG.split(), LENGTH),
    **dict.fromkeys(_CALLED_TOOLS.split(), TOOLS),
    **dict.fromkeys(_WAS_FILTERED.split(), FILTERED),
}

# Words that say that the service ended a reply, and not the model
_SERVICE = re.compile(
    "error|abort|cancel|fail|time_?d?_?out|time_limit|malformed|overload|unavailable|interrupt"
    "|shut|preempt|exhaust|kill|unspecified|insufficient|incomplete|not_finished|in_progress"
    "|unexpected|too_many|missing|load|disconnect|network|crash|evict|restart|user_stopped|pause"
    "|^(?:null|none|other|image_other|no_image|lost|stopped_by_server)$",
)


def _finish_reason(choice: Mapping[str, Any]) -> _Finish:
    stated = choice.get("finish_reason")
    if isinstance(stated, dict):  # TGI's and SGLang's object
        stated = next((stated[key] for key in ("type", "reason", "name") if stated.get(key)), "")
    finish = _Finish(_name(stated))
    return finish._replace(kind=_KINDS.get(finish.word, ""))


def _stopped_by_service(
    finish: _Finish, choice: Mapping[str, Any], reply: Mapping[str, Any]
) -> CallError | None:
    """Return the error of a reply that the service ended; None if it did not."""
    if finish.kind or not _SERVICE.search(finish.word):
        return None
    details = choice.get("finish_reason")
    message = object_or_empty(details).get("message") or choice.get("finish_message")
    why = f"the service ended the reply: finish_reason {finish.stated}"
    if message:
        why += f": {words_of(message)}"
    return failed_reply(why, reply, transient=True)
