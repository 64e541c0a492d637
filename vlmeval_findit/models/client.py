"""Chat completions over HTTP: certificates verified, retries with back-off, the key in no message.

Only the standard library is used: VLMEvalKit switches off certificate checks for the whole process,
and a key must not travel over a connection that nobody checked, nor follow a redirect.
"""

from __future__ import annotations

import http.client
import json
import logging
import random
import ssl
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from .completion import CallError, Completion, error_message, read_completion

log = logging.getLogger(__name__)

_LONGEST_WAIT = 60.0
"""Seconds at most between two attempts where the server does not say how long."""

_LONGEST_ASKED_WAIT = 600.0
"""A server that asks for a longer wait is not waited for: the next run asks again."""

_LARGEST_REPLY = 64 * 2**20
"""Bytes; a reply beyond is no chat completion."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where to ask: the URL of an OpenAI-compatible API (it ends in ``/v1``) and its key.

    ``timeout`` is in seconds for a whole call, whatever the server does meanwhile.
    """

    base_url: str
    key: str = field(default="", repr=False)
    timeout: float = 600.0

    def __post_init__(self) -> None:
        if not self.base_url.startswith(("http://", "https://")):
            raise ValueError(
                f"the base URL {self.base_url!r} should begin with http:// or https://"
            )
        # An HTTP library would quote such a key in its error.
        if not (self.key.isascii() and self.key.isprintable()) or " " in self.key:
            raise ValueError("the API key holds characters that no key has (a space, a line end)")

    @property
    def url(self) -> str:
        """Where chat completions are."""
        return f"{self.base_url.rstrip('/')}/chat/completions"

    def scrubbed(self, text: str) -> str:
        """A text without the key: servers quote it in their messages."""
        return text.replace(self.key, "***") if self.key else text


class ChatClient:
    """Asks one endpoint; any number of threads may share it.

    Args:
        endpoint: where to ask.
        attempts: how often a call is tried at most.
        sleep: waits a number of seconds between attempts.
    """

    def __init__(
        self, endpoint: Endpoint, attempts: int = 6, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._endpoint = endpoint
        self._attempts = max(attempts, 1)
        self._sleep = sleep
        self._lock = threading.Lock()
        self._shown: set[str] = set()
        self._hopeless: tuple[str, int] | None = None
        self._opener = urllib.request.build_opener(
            urllib.request.HTTPSHandler(context=ssl.create_default_context()), _NoRedirect()
        )

    def __repr__(self) -> str:
        return f"ChatClient({self._endpoint!r})"

    def complete(self, body: Mapping[str, Any]) -> Completion:
        """The answer to a request.

        Raises:
            CallError: there is none; its message has been logged once, and holds no key.
        """
        if self._hopeless is not None:
            raise CallError(*self._hopeless)
        data = json.dumps(body).encode()
        lost = 0.0
        for attempt in range(1, self._attempts + 1):
            try:
                completion = read_completion(self._post(data))
                return (
                    replace(completion, cost=(completion.cost or 0.0) + lost)
                    if lost
                    else completion
                )
            except CallError as error:
                lost += error.cost
                wait = _wait(attempt, error.retry_after)
                last = attempt == self._attempts or wait > _LONGEST_ASKED_WAIT
                if last or not error.transient:
                    raise self._failed(error, attempt, lost) from None
                log.info("attempt %d of %d failed, next in %.1f s", attempt, self._attempts, wait)
            self._sleep(wait)
        raise AssertionError("the last attempt returns or raises")

    def _failed(self, error: CallError, attempts: int, cost: float) -> CallError:
        """The error for the caller: without the key, logged the first time it is seen."""
        tried = f" ({attempts} attempts)" if attempts > 1 else ""
        status = f"HTTP {error.status}: " if error.status else ""
        reason = self._endpoint.scrubbed(f"{status}{error}")
        message = f"{reason}{tried}"
        failed = CallError(message, error.status, cost=cost)
        with self._lock:
            if failed.hopeless and self._hopeless is None:
                self._hopeless = (message, error.status)
            new = reason not in self._shown
            self._shown.add(reason)
        if new:
            log.warning("%s: %s", self._endpoint.url, message)
        return failed

    def _post(self, data: bytes) -> bytes:
        """The body of a reply with status 200."""
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._endpoint.key:
            headers["Authorization"] = f"Bearer {self._endpoint.key}"
        deadline = time.monotonic() + self._endpoint.timeout
        asked = urllib.request.Request(self._endpoint.url, data, headers, method="POST")
        try:
            try:
                with self._opener.open(asked, timeout=self._endpoint.timeout) as reply:
                    return b"".join(_chunks(reply, deadline))
            except urllib.error.HTTPError as error:
                with error:
                    message = error_message(b"".join(_chunks(error, deadline))) or error.reason
                after = retry_after(error.headers.get("Retry-After"), datetime.now(UTC))
                raise CallError(message, error.code, after) from None
        except (OSError, http.client.HTTPException) as error:
            # A time-out, a refused or broken connection, an unknown host.
            reason = getattr(error, "reason", error)
            kind = type(reason).__name__
            raise CallError(f"no reply ({kind}: {reason})", transient=True) from None


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect would carry the key to another host: it is an error like any other status."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


def _chunks(reply: Any, deadline: float) -> Iterator[bytes]:
    """The body piece by piece: a server that keeps dripping is too late as well."""
    size = 0
    # read1 returns what is there; read would wait for a whole block.
    while chunk := reply.read1(65536):
        size += len(chunk)
        if size > _LARGEST_REPLY:
            raise CallError(f"the reply is larger than {_LARGEST_REPLY} bytes")
        if time.monotonic() > deadline:
            raise TimeoutError("the reply did not end in time")
        yield chunk


def retry_after(value: str | None, now: datetime) -> float | None:
    """Seconds that a Retry-After header asks for: a number, or a date."""
    if not value:
        return None
    try:
        return max(float(value), 0.0)
    except ValueError:
        pass
    try:
        then = parsedate_to_datetime(value)
    except ValueError:
        return None
    then = then if then.tzinfo else then.replace(tzinfo=UTC)
    return max((then - now).total_seconds(), 0.0)


def _wait(attempt: int, asked: float | None) -> float:
    """Seconds before the next attempt: at least what the server asks, else 1, 2, 4 … of them.

    The random part keeps threads that failed together from coming back together.
    """
    own = min(2.0 ** (attempt - 1), _LONGEST_WAIT) * random.uniform(0.5, 1.0)
    return own if asked is None else asked + random.uniform(0.0, 0.5)
