"""The HTTP client of all services: one session per run, open connections, one deadline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import NamedTuple
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
from aiohttp.abc import AbstractStreamWriter

from ...core.redaction import remember
from .completion import CallError, error_of

# Seconds to keep an idle connection; servers close theirs after 5 (uvicorn) or more.
KEEP_ALIVE = 4.0


class HttpRequest(NamedTuple):
    """One request."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: Sequence[bytes] | None = None  # JSON in pieces, which are never joined
    form: aiohttp.FormData | None = None  # in place of a body


class HttpClient:
    """Sends requests over connections that stay open: ``async with HttpClient(60.0) as client``."""

    def __init__(self, timeout: float) -> None:
        # Seconds from name lookup to last byte.
        self.timeout = timeout

    async def __aenter__(self) -> HttpClient:
        self._session = aiohttp.ClientSession(
            # The scheduler limits calls per server.
            connector=aiohttp.TCPConnector(
                limit=0, keepalive_timeout=KEEP_ALIVE, ttl_dns_cache=300
            ),
            timeout=aiohttp.ClientTimeout(total=self.timeout),
            cookie_jar=aiohttp.DummyCookieJar(),
        )
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._session.close()

    async def send(self, request: HttpRequest) -> bytes:
        """Return the body of a reply with status 200 or 201, or raise CallError."""
        try:
            return await self._sent(request)
        except TimeoutError:
            why = f"no reply within {self.timeout:g} s"
            raise CallError(why, transient=True, worked_on=True) from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            # Refused or broken connection, unknown host, bad certificate, no HTTP.
            reason = getattr(error, "os_error", error)
            broke = isinstance(error, aiohttp.ClientPayloadError | aiohttp.ServerConnectionError)
            why = f"no reply ({type(reason).__name__}: {reason})"
            raise CallError(why, transient=True, worked_on=broke) from None

    async def _sent(self, request: HttpRequest) -> bytes:
        headers, data = dict(request.headers), request.form
        if data is not None:
            headers.pop("Content-Type", None)  # a form's has the boundary
        async with self._session.request(
            request.method,
            request.url,
            data=data if request.body is None else BodyPieces(request.body),
            headers=headers,
            allow_redirects=False,  # a key must not follow a redirect
            proxy=proxy_for(request.url),
        ) as reply:
            content = await reply.read()
            if reply.status in (200, 201):
                return content
            after = retry_after(reply.headers.get("Retry-After"), datetime.now(UTC))
            raise error_of(content, reply.status, reply.reason or "", after)


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
        except ValueError:
            return None
        then = then if then.tzinfo else then.replace(tzinfo=UTC)
        return max((then - now).total_seconds(), 0.0)
    # False for NaN too.
    return seconds if seconds >= 0 else None
