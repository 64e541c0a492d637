"""Errors in the words of services: with another status than 200, or inside a reply."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from html import unescape
from types import MappingProxyType
from typing import Any

from ...core import object_or_empty, quoted_json, quoted_line
from .call_errors import HOPELESS_STATUSES, LONGEST_MESSAGE, CallError
from .reply_json import parse_reply
from .sent_whole import may_be_billed
from .spending import usage_of
from .stated_costs import RESPONSE_HEADERS

# Keys of an error's message, the most telling first
MESSAGE_KEYS = (
    "message",
    "detail",
    "msg",
    "status_msg",
    "error_msg",
    "error_message",
    "errorMessage",
    "error",
    "errors",
    "description",
    "title",
)
PASSWORD_WANTED = 407  # of a proxy
PROXY_ADVICE = (
    " (the proxy asks for a password: set HTTPS_PROXY, or HTTP_PROXY, to "
    "http://USER:PASSWORD@HOST:PORT, or name the server's host in NO_PROXY)"
)

_LONGEST_PAGE = 120
# Statuses of a web server that takes no chats; others are of a proxy, in trouble that may pass
_NO_SUCH_METHOD = (404, 405, 410, 501)
_NO_API = " (a web page: this is no OpenAI-compatible server; is the address, --base-url, right?)"

CODE_KEYS = ("code", "type", "status", "status_code", "error_code", "reason")

# Beyond the status: no credit at OpenAI (429) and Anthropic (400), an unknown key at Google (400)
_NO_KEY_OR_CREDIT = re.compile(
    r"\b(?:insufficient_quota|billing_error|API_KEY_INVALID)\b|credit balance is too low",
    re.IGNORECASE,
)

# Inside a reply of status 200, where no status says it
_HOPELESS_INSIDE = re.compile(
    r"invalid_api_key|authentication_error|insufficient[_ ](?:balance|credit)", re.IGNORECASE
)

# Codes that refuse the request itself
_REFUSES = re.compile(
    r"invalid[_ -]?(?:request|parameter|argument)|bad[_ -]?request|validation[_ -]?error",
    re.IGNORECASE,
)

# A model without eyes: llama.cpp and Ollama say so with status 500, as if it would pass.
_NO_IMAGES = re.compile(
    r"image input is not supported|missing data required for image input"
    r"|does not support (?:image|vision|multimodal)|not a (?:vision|multimodal) model",
    re.IGNORECASE,
)

# Words of errors inside a reply that may pass when the call is repeated
_TOO_MUCH = re.compile(
    r"rate.?limit|too.?many.?requests|throttl|overload|resource.?exhausted|server.?busy"
    r"|server is (?:too )?busy",
    re.IGNORECASE,
)
_PASSES = re.compile(
    r"server.?error|internal.?error|\bINTERNAL\b|unavailable|time.?out|timed out|deadline"
    r"|try again|temporar|abort|cancell?ed|network.?error|connection|engine.{0,20}dead",
    re.IGNORECASE,
)

# Seconds that Google asks to wait: in the error's details, not in a header
_RETRY_DELAY = re.compile(r'"retryDelay"\s*:\s*"(\d{1,9}(?:\.\d{1,9})?)s"')

# This input was refused, by some with status 403.
MODERATED = re.compile(
    r"content[ _-]?(?:policy|filter|management|safety)|moderat|flagged|usage polic|safety system"
    r'|"reasons"',
    re.IGNORECASE,
)


def error_of(
    body: bytes,
    status: int,
    reason: str,
    retry_after: float | None,
    headers: Mapping[str, str] = MappingProxyType({}),
) -> CallError:
    """Return the error in a reply with another status than 200.

    ``headers`` are those that say what it cost: :func:`.stated_costs.read_headers`.
    """
    text = body.decode("utf-8", "replace").strip()
    try:
        reply = parse_reply(body)
    except (ValueError, RecursionError):
        reply = text
    # Google's may be a list of a single object.
    error = reply[0] if isinstance(reply, list) and reply else reply
    said = quoted_line(words_of(error), LONGEST_MESSAGE)
    if text.startswith("<"):
        said = quoted_line(words_of_page(text), _LONGEST_PAGE)
    message = f"HTTP {status}: {said or reason}"
    if text.startswith("<") and status in _NO_SUCH_METHOD:
        message += _NO_API
    delay = _RETRY_DELAY.search(text)
    if retry_after is None and delay:
        retry_after = float(delay[1])
    if status == PASSWORD_WANTED:
        message += PROXY_ADVICE
    hopeless = _is_hopeless(status, text)
    usage = usage_of({**object_or_empty(reply), RESPONSE_HEADERS: headers})
    call_error = CallError(
        message,
        status,
        retry_after=retry_after,
        hopeless=hopeless,
        usage=usage,
    )
    if _NO_KEY_OR_CREDIT.search(text) or _NO_IMAGES.search(message):
        call_error.hopeless = True
        call_error.transient = False
    call_error.worked_on = may_be_billed(status=status, is_refused=call_error.hopeless)
    return call_error


def _is_hopeless(status: int, text: str) -> bool:
    return status in HOPELESS_STATUSES and not (status == 403 and MODERATED.search(text))


def words_of_page(page: str) -> str:
    """Return what a web page says, without its tags.

    >>> words_of_page("<html><head><title>404 Not Found</title></head><body>…</body></html>")
    '404 Not Found'
    >>> words_of_page("<h1>Bad &amp; wrong</h1><hr>nginx")
    'Bad & wrong nginx'
    """
    title = re.search("<title[^>]*>(.*?)</title>", page, re.IGNORECASE | re.DOTALL)
    shown = title[1] if title else re.sub("<[^>]*>", " ", page)
    return " ".join(unescape(shown).split())


def words_of(error: object) -> str:
    """Return what an error says: its message, wherever that is, else its JSON."""
    # The place of a wrong field is as telling as the message.
    if isinstance(error, dict) and "loc" not in error:
        inside = next((error[key] for key in MESSAGE_KEYS if error.get(key)), None)
        if inside is not None:
            return words_of(inside)
    if isinstance(error, list) and len(error) == 1 and "loc" not in object_or_empty(error[0]):
        return words_of(error[0])
    return error if isinstance(error, str) else quoted_json(error)


def inside_reply(error: object, reply: Mapping[str, Any], *, begun: bool = False) -> CallError:
    """Return an error inside a reply of status 200; ``begun``: after the model had begun."""
    whole = object_or_empty(error)
    codes = [str(whole[key]) for key in CODE_KEYS if isinstance(whole.get(key), str | int)]
    numbers = (int(code) for code in codes if re.fullmatch("[45][0-9]{2}", code))
    status = next(numbers, 0)
    words = quoted_line(words_of(error), LONGEST_MESSAGE)
    said = "the service reports: "
    if status:  # a code in it that is not the status of the reply
        said = f"an error in a reply with status 200: code {status}, "
    told = " ".join([*codes, words])
    hopeless = _is_hopeless(status, json.dumps(error))
    if _NO_KEY_OR_CREDIT.search(told) or (not status and _HOPELESS_INSIDE.search(told)):
        hopeless = True
    if not status and not hopeless and _TOO_MUCH.search(told):
        status = 429  # which the service would have answered with
    delay = _RETRY_DELAY.search(json.dumps(error))
    call_error = failed_reply(
        f"{said}{words}",
        reply,
        status,
        retry_after=float(delay[1]) if delay else None,
        transient=not status and (begun or _PASSES.search(told) is not None),
        hopeless=hopeless,
    )
    if hopeless:
        call_error.transient = False
    is_refused = hopeless or _REFUSES.search(told) is not None
    call_error.worked_on = begun or may_be_billed(status=status, is_refused=is_refused)
    return call_error


def failed_reply(
    message: str, reply: Mapping[str, Any], status: int = 0, **options: Any
) -> CallError:
    """Return the error of a call whose reply came, with what it says of its cost.

    ``options`` are those of :class:`CallError`.
    """
    return CallError(
        message, status, worked_on=True, arrived=True, usage=usage_of(reply), **options
    )
