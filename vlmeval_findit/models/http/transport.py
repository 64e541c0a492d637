"""One HTTP request with one deadline, that can be ended from outside.

Requests run in one event loop in a thread of its own.  VLMEvalKit switches off certificate checks
for the whole process: ours has a context of its own, for a key must not travel over a connection
that nobody checked, nor follow a redirect.
"""

from __future__ import annotations

import asyncio
import os
import ssl
import threading
from collections.abc import Mapping
from concurrent.futures import CancelledError, Future
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from io import BytesIO
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from ...core.redaction import remember
from .completion import CallError, error_of
from .endpoint import Endpoint

if TYPE_CHECKING:
    import aiohttp

LARGEST_REPLY = 64 * 2**20
"""Bytes; a reply beyond is no chat completion."""

LARGEST_FILE = 16 * 2**30
"""Bytes of a reply that is written to a file."""


class Sending(NamedTuple):
    """One request: where it goes, with which headers and body, and where its reply goes.

    With a ``form`` the body is its file, under the name that the form says as ``filename``; a reply
    with a place ``into`` which it goes is returned empty.
    """

    method: str
    url: str
    headers: Mapping[str, str]
    body: BinaryIO | None = None
    form: Mapping[str, str] | None = None
    into: BinaryIO | None = None


class Transport:
    """Sends requests; any number of threads may share it.

    Args:
        timeout: seconds for a request and its whole reply, whatever the server does meanwhile.
    """

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._lock = threading.Lock()
        self._on_their_way: set[Future[bytes]] = set()
        self._cancelled = False

    def post(self, endpoint: Endpoint, data: bytes) -> bytes:
        """The body of a reply with status 200 to a chat request.

        Raises:
            CallError: there is none.
        """
        return self.send(Sending("POST", endpoint.url, endpoint.request_headers(), BytesIO(data)))

    def send(self, request: Sending) -> bytes:
        """The body of a reply with status 200 or 201.

        Raises:
            CallError: there is none.
        """
        with self._lock:
            if self._cancelled:
                raise CallError("cancelled")
            sending = asyncio.run_coroutine_threadsafe(
                _sent(request, self._timeout), _loop(os.getpid())
            )
            self._on_their_way.add(sending)
        try:
            return sending.result()
        except CancelledError:
            raise CallError("cancelled") from None
        finally:
            # An interrupt ends the waiting, not the request.
            sending.cancel()
            with self._lock:
                self._on_their_way.discard(sending)

    def cancel(self) -> None:
        """End all requests, and let none begin."""
        with self._lock:
            self._cancelled = True
            sent = list(self._on_their_way)
        for one in sent:
            one.cancel()


_starting = threading.Lock()
_loops: dict[int, asyncio.AbstractEventLoop] = {}


def _loop(process: int) -> asyncio.AbstractEventLoop:
    """The running loop of this process: threads do not survive a fork."""
    with _starting:
        if process not in _loops:
            loop = asyncio.new_event_loop()
            threading.Thread(target=loop.run_forever, name="findit-http", daemon=True).start()
            _loops[process] = loop
        return _loops[process]


@cache
def tls_context() -> ssl.SSLContext:
    """Certificates are verified, whatever the process says."""
    return ssl.create_default_context()


async def _sent(request: Sending, timeout: float) -> bytes:
    import aiohttp

    headers, body = dict(request.headers), request.body
    if request.form is not None:
        del headers["Content-Type"]  # that of a form says where its parts end
        fields = dict(request.form)
        form = aiohttp.FormData()
        filename = fields.pop("filename")
        for name, value in fields.items():
            form.add_field(name, value)
        form.add_field("file", body, filename=filename)

    # A connection a request: none is kept that the server may have closed meanwhile.
    connector = aiohttp.TCPConnector(ssl=tls_context(), force_close=True)
    session = aiohttp.ClientSession(
        connector=connector,
        timeout=aiohttp.ClientTimeout(total=timeout),
        cookie_jar=aiohttp.DummyCookieJar(),
    )
    try:
        async with (
            session,
            session.request(
                request.method,
                request.url,
                data=body if request.form is None else form,
                headers=headers,
                allow_redirects=False,
                proxy=_proxy(request.url),
            ) as reply,
        ):
            answered = reply.status in (200, 201)
            said = await _body(reply, request.into if answered else None)
            if answered:
                return said
            after = retry_after(reply.headers.get("Retry-After"), datetime.now(UTC))
            raise error_of(said, reply.status, reply.reason or "", after)
    except TimeoutError:
        why = f"no reply within {timeout:g} s"
        raise CallError(why, transient=True, worked_on=True) from None
    except (aiohttp.ClientError, OSError, EOFError, ValueError) as error:
        # A refused or broken connection, an unknown host, a certificate, what is not HTTP.
        reason = getattr(error, "os_error", error)
        kind, broke = (
            type(reason).__name__,
            (aiohttp.ClientPayloadError, aiohttp.ServerConnectionError),
        )
        why = f"no reply ({kind}: {reason})"
        raise CallError(why, transient=True, worked_on=isinstance(error, broke)) from None


async def _body(reply: aiohttp.ClientResponse, into: BinaryIO | None) -> bytes:
    pieces, size = [], 0
    most = LARGEST_REPLY if into is None else LARGEST_FILE
    async for piece in reply.content.iter_any():
        if into is None:
            pieces.append(piece)
        else:
            into.write(piece)
        size += len(piece)
        if size > most:
            raise CallError(f"the reply is larger than {most} bytes", reply.status)
    return b"".join(pieces)


def _proxy(url: str) -> str | None:
    """The proxy that the environment names for a URL (``HTTPS_PROXY``, ``NO_PROXY`` …)."""
    parts = urlsplit(url)
    proxies: Mapping[str, Any] = getproxies()
    proxy = proxies.get(parts.scheme)
    if not proxy or proxy_bypass(parts.netloc):
        return None
    whole = proxy if "://" in proxy else f"http://{proxy}"
    remember(urlsplit(whole).password or "")
    return whole


def retry_after(value: str | None, now: datetime) -> float | None:
    """Seconds that a Retry-After header asks for: a number, or a date; None where it is neither."""
    try:
        seconds = float(value or "nan")
    except ValueError:
        seconds = _seconds_until(value or "", now)
    # Also not a number: every comparison with it is false.
    return seconds if seconds >= 0 else None


def _seconds_until(date: str, now: datetime) -> float:
    try:
        then = parsedate_to_datetime(date)
        then = then if then.tzinfo else then.replace(tzinfo=UTC)
        return max((then - now).total_seconds(), 0.0)
    except (ValueError, TypeError, OverflowError, IndexError):
        return float("nan")
