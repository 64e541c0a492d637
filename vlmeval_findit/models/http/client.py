"""The HTTP client of all services: one session per run, open connections, one deadline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, BinaryIO, NamedTuple
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
from aiohttp.abc import AbstractStreamWriter

from ...core.redaction import remember
from .completion import CallError, error_of

LARGEST_REPLY = 64 * 2**20  # bytes; no chat completion is larger
LARGEST_FILE = 16 * 2**30  # bytes of a reply written to a file
# Seconds to keep an idle connection; servers close theirs after 5 (uvicorn) or more.
KEEP_ALIVE = 4.0
_is_new = ContextVar("_is_new", default=False)  # this task's request has a new connection


class HttpRequest(NamedTuple):
    """One request, and where its reply goes."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: Sequence[bytes] | BinaryIO | None = None  # pieces are never joined
    form: Mapping[str, str] | None = None  # form fields; the body is its file, named ``filename``
    into: BinaryIO | None = None  # receives the reply; the result is then empty


class HttpClient:
    """Sends requests over connections that stay open: ``async with HttpClient(60.0) as client``."""

    def __init__(self, timeout: float) -> None:
        # Seconds from name lookup to last byte.
        self.timeout = timeout
        self._proxies: dict[str, str | None] = {}

    async def __aenter__(self) -> HttpClient:
        self._session = aiohttp.ClientSession(
            # The scheduler limits calls per server.
            connector=_Connector(limit=0, keepalive_timeout=KEEP_ALIVE, ttl_dns_cache=300),
            timeout=aiohttp.ClientTimeout(total=self.timeout),
            cookie_jar=aiohttp.DummyCookieJar(),
        )
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._session.close()

    async def send(self, request: HttpRequest) -> bytes:
        """Return the body of a reply with status 200 or 201, or raise CallError."""
        try:
            _is_new.set(False)
            try:
                return await self._sent(request)
            except (aiohttp.ServerDisconnectedError, ConnectionResetError):
                # The server closed an open connection before it saw the request.
                if _is_new.get() or not isinstance(request.body, Sequence | None):
                    raise  # a file was read
                return await self._sent(request)
        except TimeoutError:
            why = f"no reply within {self.timeout:g} s"
            raise CallError(why, transient=True, worked_on=True) from None
        except (aiohttp.ClientError, OSError, EOFError, ValueError) as error:
            # Refused or broken connection, unknown host, bad certificate, no HTTP.
            reason = getattr(error, "os_error", error)
            broke = isinstance(error, aiohttp.ClientPayloadError | aiohttp.ServerConnectionError)
            why = f"no reply ({type(reason).__name__}: {reason})"
            raise CallError(why, transient=True, worked_on=broke) from None

    async def _sent(self, request: HttpRequest) -> bytes:
        headers, body = dict(request.headers), request.body
        data: Any = BodyPieces(body) if isinstance(body, Sequence) else body
        if request.form is not None:
            del headers["Content-Type"]  # a form's has the boundary
            data = aiohttp.FormData()
            for name, value in request.form.items():
                if name != "filename":
                    data.add_field(name, value)
            data.add_field("file", body, filename=request.form["filename"])
        async with self._session.request(
            request.method,
            request.url,
            data=data,
            headers=headers,
            allow_redirects=False,  # a key must not follow a redirect
            proxy=self._proxy(request.url),
        ) as reply:
            answered = reply.status in (200, 201)
            content = await _body(reply, request.into if answered else None)
            if answered:
                return content
            after = retry_after(reply.headers.get("Retry-After"), datetime.now(UTC))
            raise error_of(content, reply.status, reply.reason or "", after)

    def _proxy(self, url: str) -> str | None:
        origin = url[: url.find("/", 8)]
        if origin not in self._proxies:
            self._proxies[origin] = proxy_for(url)
        return self._proxies[origin]


class _Connector(aiohttp.TCPConnector):
    """Notes who gets a new connection; aiohttp's tracing would cost 4 % of a call."""

    async def _create_connection(self, *args: Any) -> Any:
        _is_new.set(True)
        return await super()._create_connection(*args)


class BodyPieces(aiohttp.payload.Payload):
    """A JSON body in pieces; an image's is shared between requests, never copied."""

    def __init__(self, pieces: Sequence[bytes]) -> None:
        super().__init__(pieces, content_type="application/json")
        self._size = sum(map(len, pieces))

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        return b"".join(self._value).decode(encoding, errors)

    async def write(self, writer: AbstractStreamWriter) -> None:
        for piece in self._value:
            await writer.write(piece)


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


def proxy_for(url: str) -> str | None:
    """Return the environment's proxy for a URL (``HTTPS_PROXY``, ``NO_PROXY`` …)."""
    parts = urlsplit(url)
    proxy = getproxies().get(parts.scheme)
    if not proxy or proxy_bypass(parts.netloc):
        return None
    whole = proxy if "://" in proxy else f"http://{proxy}"
    remember(urlsplit(whole).password or "")
    return whole


def retry_after(value: str | None, now: datetime) -> float | None:
    """Parse a Retry-After header, a number or a date, to seconds; None if it is neither."""
    try:
        seconds = float(value or "nan")
    except ValueError:
        try:
            then = parsedate_to_datetime(value or "")
            then = then if then.tzinfo else then.replace(tzinfo=UTC)
            return max((then - now).total_seconds(), 0.0)
        except (ValueError, TypeError, OverflowError, IndexError):
            return None
    # False for NaN too.
    return seconds if seconds >= 0 else None
