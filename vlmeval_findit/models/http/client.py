"""The HTTP client of all services: one session per run, open connections, one deadline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from typing import IO, NamedTuple

import aiohttp
from aiohttp.abc import AbstractStreamWriter

from .call_errors import CallError
from .completion import ANSWERED_STATUSES
from .lost_replies import TLS_ADVICE, is_cut_off, lost_reply
from .proxies import Proxy, ProxyError, proxy_for
from .reply_bodies import MOST_LISTED_BYTES, ROOM, read_body, read_error, save_body
from .sent_whole import Sending
from .service_errors import error_of
from .stated_costs import read_headers
from .wrong_address import redirect_error

# Seconds to keep an idle connection; servers close theirs after 5 (uvicorn) or more.
KEEP_ALIVE = 4.0

_PART = 1 << 16

_LONGEST_HEADER = 512 << 10  # bytes


class HttpRequest(NamedTuple):
    """One request."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: Sequence[bytes] | None = None  # JSON in pieces, which are never joined
    form: aiohttp.FormData | None = None  # in place of a body
    most: int = MOST_LISTED_BYTES  # of the reply's body
    file: IO[bytes] | None = None  # to which the reply's body is written


class HttpReply(NamedTuple):
    """A whole reply."""

    body: bytes  # empty where the request names a file for it
    cost_headers: Mapping[str, str]  # as of :func:`.stated_costs.read_headers`


class HttpClient:
    """Sends requests over connections that stay open: ``async with HttpClient(60.0) as client``."""

    def __init__(self, timeout: float) -> None:
        # Seconds from name lookup to last byte.
        self.timeout = timeout
        self._proxy_for = cache(proxy_for)
        # Of http:// only: whoever answered there speaks it
        self._answered: set[str] = set()

    async def __aenter__(self) -> HttpClient:
        self._session = aiohttp.ClientSession(
            # The scheduler limits calls per server.
            connector=aiohttp.TCPConnector(
                limit=0, keepalive_timeout=KEEP_ALIVE, ttl_dns_cache=300
            ),
            timeout=aiohttp.ClientTimeout(total=self.timeout),
            cookie_jar=aiohttp.DummyCookieJar(),
            # Gateways add policies, cookies and traces.
            max_line_size=_LONGEST_HEADER,
            max_field_size=_LONGEST_HEADER,
            # A few kilobytes can become gigabytes: they are unpacked here, up to a limit.
            auto_decompress=False,
        )
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._session.close()

    async def send(self, request: HttpRequest) -> bytes:
        """Return the body of a reply with status 200, 201 or 204, or raise CallError."""
        return (await self.ask(request)).body

    async def ask(self, request: HttpRequest) -> HttpReply:
        """Return a reply with status 200, 201 or 204, or raise CallError."""
        try:
            proxy = self._proxy_for(request.url)
        except ProxyError as error:  # a server that came during the run
            raise CallError(str(error), hopeless=True) from None
        way = f" (through the proxy {proxy.shown})" if proxy else ""
        sending = Sending()
        try:
            return await self._sent(request, proxy, sending)
        except CallError as error:
            raise error.with_note(way) from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            lost = lost_reply(error, sending, self.timeout)
            if is_cut_off(error, sending) and self._may_want_tls(request.url):
                lost = lost.with_note(TLS_ADVICE)
            raise lost.with_note(way) from None

    def _may_want_tls(self, url: str) -> bool:
        """Return whether an address is of http, and nothing there has answered in it yet."""
        return url.startswith("http://") and _origin(url) not in self._answered

    async def _sent(self, request: HttpRequest, proxy: Proxy | None, sending: Sending) -> HttpReply:
        headers = dict(request.headers)
        data = request.form
        if data is not None:
            headers.pop("Content-Type", None)  # a form's has the boundary
        asked = self._session.request(
            request.method,
            request.url,
            data=data if request.body is None else BodyPieces(request.body, sending),
            headers=headers,
            allow_redirects=False,  # a key must not follow a redirect
            proxy=proxy.address if proxy else None,
        )
        with ROOM.share() as share:
            async with asked as reply:
                sending.status = reply.status
                self._answered.add(_origin(request.url))
                sending.cost_headers = read_headers(reply.headers)
                if reply.status in ANSWERED_STATUSES and request.file is not None:
                    await save_body(reply, request.most, request.file)
                    return HttpReply(b"", sending.cost_headers)
                if reply.status in ANSWERED_STATUSES:
                    content = await read_body(reply, request.most, share)
                    return HttpReply(content, sending.cost_headers)
                content = await read_error(reply, share)
            if 300 <= reply.status < 400:
                raise redirect_error(reply.status, request.url, reply.headers.get("Location"))
            after = retry_after(reply.headers.get("Retry-After"), server_time(reply.headers))
            phrase = reply.reason or ""
            raise error_of(content, reply.status, phrase, after, sending.cost_headers)


def _origin(url: str) -> str:
    """Return an address up to its path."""
    return "/".join(url.split("/", 3)[:3])


class BodyPieces(aiohttp.payload.Payload):
    """A JSON body in pieces; an image's is shared between requests, never copied."""

    def __init__(self, pieces: Sequence[bytes], sending: Sending) -> None:
        super().__init__(pieces, content_type="application/json")
        self._size = sum(map(len, pieces))
        self._sending = sending

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        return b"".join(self._value).decode(encoding, errors)

    async def write(self, writer: AbstractStreamWriter) -> None:
        *before, last = self._value
        for piece in before:
            await writer.write(piece)
        if len(last) > _PART:  # it may leave in part
            await writer.write(last[:-1])
            last = last[-1:]
        # Before it is written: the end of the connection may come first.
        self._sending.is_whole = True
        await writer.write(last)


def retry_after(value: str | None, now: datetime) -> float | None:
    """Parse a Retry-After header, a number or a date, to seconds; None if it is neither."""
    try:
        seconds = float(value or "nan")
    except ValueError:
        then = _date(value)
        return None if then is None else max((then - now).total_seconds(), 0.0)
    # False for NaN too.
    return seconds if seconds >= 0 else None


def server_time(headers: Mapping[str, str]) -> datetime:
    """Return what a server's clock says; what this machine's does, if the reply has no date.

    A date to wait for is of the server's clock: ours may be hours off.
    """
    return _date(headers.get("Date")) or datetime.now(UTC)


def _date(value: str | None) -> datetime | None:
    try:
        date = parsedate_to_datetime(value or "")
    except ValueError:
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)
