"""What the client packages share: how they are set up, and what their errors become.

Attempts are the asker's: the clients make none of their own, follow no redirect, verify
certificates (VLMEvalKit switches that off for its own calls) and take no reply that could burst.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from ..completion import CallError, error_of
from ..endpoint import Endpoint

HEADERS = {"Accept-Encoding": "identity"}


def http_arguments() -> dict[str, Any]:
    """Arguments of the HTTP client that a package makes."""
    # Not at the top: the table of providers is there for whoever asks nothing, too.
    from ..transport import tls_context

    return {"follow_redirects": False, "verify": tls_context()}


def headers_of(endpoint: Endpoint) -> dict[str, str]:
    """The headers of every request beside the client's own."""
    return {**HEADERS, **endpoint.headers}


def key_of(endpoint: Endpoint) -> str:
    """The endpoint's key; the clients want one, servers of one's own often do not."""
    return endpoint.key or "none"


def refused(response: Any) -> CallError:
    """The error in a reply with another status than 200, of httpx or what is like it."""
    from ..transport import retry_after

    asked = retry_after(response.headers.get("Retry-After"), datetime.now(UTC))
    error = error_of(response.content, response.status_code, response.reason_phrase or "", asked)
    said = _error_in(response.content)
    if asked is None:
        error.retry_after = _retry_delay(said)
    if _is_hopeless(said):
        error.hopeless, error.transient = True, False
    return error


def no_reply(error: BaseException) -> CallError:
    """The error of a request that got no reply, or was refused by the client itself.

    Time-outs and broken connections may pass.  Packages bring httpx or httpx2, so they are known by
    their name.
    """
    chain: list[BaseException] = [error]
    while (cause := chain[-1].__cause__ or chain[-1].__context__) and cause not in chain:
        chain.append(cause)
    kinds = {kind.__name__ for one in chain for kind in type(one).__mro__}
    transient = bool(kinds & {"TransportError", "APIConnectionError", "OSError"})
    if not transient:
        return CallError(f"the call was not made ({type(error).__name__}: {error})")
    reason = chain[-1]
    worked_on = bool(kinds & {"ReadTimeout", "ReadError", "RemoteProtocolError"})
    why = f"no reply ({type(reason).__name__}: {reason})"
    return CallError(why, transient=True, worked_on=worked_on)


def _error_in(content: bytes) -> Mapping[str, Any]:
    try:
        reply = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    # Google's may be a list with one object.
    reply = reply[0] if isinstance(reply, list) and reply else reply
    error = reply.get("error") if isinstance(reply, dict) else None
    return error if isinstance(error, dict) else {}


_NO_CREDIT = re.compile(r"credit balance is too low", re.IGNORECASE)


def _is_hopeless(error: Mapping[str, Any]) -> bool:
    """Whether a provider says of key or credit with a status that says something else.

    OpenAI has no credit with 429, Google no such key with 400, Anthropic no credit with 400.
    """
    details = error.get("details")
    reasons = [
        one.get("reason")
        for one in (details if isinstance(details, list) else ())
        if isinstance(one, dict)
    ]
    return (
        error.get("code") == "insufficient_quota"
        or error.get("type") in ("insufficient_quota", "billing_error")
        or "API_KEY_INVALID" in reasons
        or _NO_CREDIT.search(str(error.get("message"))) is not None
    )


def _retry_delay(error: Mapping[str, Any]) -> float | None:
    """Seconds that Google asks for: not in a header, but among the error's details."""
    details = error.get("details")
    for one in details if isinstance(details, list) else ():
        delay = one.get("retryDelay") if isinstance(one, dict) else None
        if isinstance(delay, str) and re.fullmatch(r"\d{1,9}(\.\d{1,9})?s", delay):
            return float(delay[:-1])
    return None


def reply_in(response: Any) -> dict[str, Any]:
    """The JSON object of a reply with status 200.

    Raises:
        CallError: it is none.
    """
    return object_in(response.content)


def object_in(content: bytes | str) -> dict[str, Any]:
    """The JSON object that a reply is.

    Raises:
        CallError: it is none.
    """
    try:
        reply = json.loads(content)
    except (ValueError, RecursionError):
        start = content if isinstance(content, str) else content.decode("utf-8", "replace")
        raise CallError(f"the reply is not JSON: {start[:80]!r}") from None
    if not isinstance(reply, dict):
        raise CallError("the reply is not a JSON object")
    return reply
