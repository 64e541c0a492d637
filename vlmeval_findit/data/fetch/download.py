"""Files over HTTP: in parallel with a limit per host, again after trouble, on from where it broke.

Certificates are verified by requests itself, which VLMEvalKit's switch
(``ssl._create_default_https_context``) does not reach.  Proxies come from the environment.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote, urljoin, urlsplit

import requests
from urllib3.exceptions import InvalidHeader
from urllib3.util import Retry

from ... import __version__
from ...core.files import atomic_write

T = TypeVar("T")
CHUNK = 1 << 14
"""Bytes that are read at once; where a connection breaks, so many at most are asked for again."""


class DownloadError(ValueError):
    """A download that will not succeed by trying again; the message names address and reason."""


class NotThereError(DownloadError):
    """The server does not have the file; another address may."""


class PassingError(Exception):
    """Trouble that may pass.  ``wait`` is what the server asked for, in seconds."""

    def __init__(self, why: str, wait: float | None = None) -> None:
        super().__init__(why)
        self.wait = wait


@dataclass(frozen=True, slots=True)
class Policy:
    """How patient downloads are.

    ``attempts`` a file; waits double from ``first_wait`` seconds; a server that asks (Retry-After)
    for more than ``longest_wait`` is not waited for.  ``connect`` and ``read`` are time-outs in
    seconds, the latter between two pieces; ``per_host`` limits connections to one host;
    ``largest`` bytes is the most that one file may have.  After ``hopeless`` files in a row that
    did not come the host is not asked again: a thousand time-outs would take hours.
    """

    attempts: int = 6
    first_wait: float = 1.0
    longest_wait: float = 120.0
    connect: float = 15.0
    read: float = 60.0
    per_host: int = 4
    largest: int = 1 << 29
    hopeless: int = 8


class _Host:
    """The connections to one host, and until when it asked to be left alone."""

    def __init__(self, limit: int) -> None:
        self.slots = threading.BoundedSemaphore(limit)
        self.failures = 0
        self._until = 0.0

    def pause(self, seconds: float) -> None:
        self._until = max(self._until, time.monotonic() + seconds)

    @property
    def seconds_left(self) -> float:
        return max(0.0, self._until - time.monotonic())


class Client:
    """Requests with one policy; may be used by many threads.

    ``got`` is told of every piece that arrives, in bytes.
    """

    def __init__(
        self, policy: Policy | None = None, got: Callable[[int], None] = lambda count: None
    ) -> None:
        self.policy = policy or Policy()
        self.got = got
        self._hosts: dict[str, _Host] = {}
        self._lock = threading.Lock()
        self._local = threading.local()
        self._stopped = threading.Event()

    def stop(self) -> None:
        """Let every download end at its next piece; what has arrived stays for the next run."""
        self._stopped.set()

    def persist(self, url: str, once: Callable[[], T]) -> T:
        """Call ``once`` until it succeeds, with back-off, as often as the policy says.

        Raises:
            DownloadError: it failed for good, or too often.
        """
        host = self._host(url)
        if host.failures >= self.policy.hopeless:
            raise DownloadError(f"{url}: not tried, {host.failures} files in a row did not come")
        for attempt in range(1, self.policy.attempts + 1):
            self._sleep(host.seconds_left)
            try:
                with host.slots:
                    done = once()
                host.failures = 0
                return done
            except PassingError as trouble:
                why = f"{url}: {trouble}"
                if attempt == self.policy.attempts:
                    host.failures += 1
                    raise DownloadError(f"{why} ({attempt} attempts)") from None
                self._after(trouble, why, host, attempt)
        raise DownloadError(f"{url}: no attempt is allowed")

    def _after(self, trouble: PassingError, why: str, host: _Host, attempt: int) -> None:
        """Wait as long as the server asks, all threads of it, else ever longer, this one alone."""
        if trouble.wait is None:
            wait = self.policy.first_wait * 2 ** (attempt - 1)
            self._sleep(min(wait, self.policy.longest_wait))
        elif trouble.wait > self.policy.longest_wait:
            raise DownloadError(f"{why}; it asks to come back in {trouble.wait:.0f} s")
        else:
            host.pause(trouble.wait)

    @contextmanager
    def get_from(
        self, url: str, start: int, validator: str = "", last: str = ""
    ) -> Iterator[requests.Response]:
        """Get the bytes from ``start`` (to ``last``), by one request.

        The response has status 206, or 200 with all of the file, or 416.

        Raises:
            DownloadError, NotThereError: for good.
            PassingError: the request, or what the caller reads of its body, may succeed later.
        """
        headers = {"Accept-Encoding": "identity"}
        if start or last:
            headers["Range"] = f"bytes={start}-{last}"
            headers |= {"If-Range": validator} if validator else {}
        times = (self.policy.connect, self.policy.read)
        try:
            with self._session().get(
                url, headers=headers, timeout=times, stream=True, verify=True
            ) as response:
                _check(response)
                if response.status_code == 206 and range_start(response.headers) != start:
                    there = response.headers.get("Content-Range", "no Content-Range")
                    raise PassingError(f"not the range that was asked: {there}")
                yield response
        except requests.exceptions.SSLError as error:
            raise DownloadError(f"{url}: no trusted certificate ({_inner(error)})") from None
        except (
            requests.exceptions.InvalidURL,
            requests.exceptions.InvalidSchema,
            requests.exceptions.MissingSchema,
            requests.exceptions.TooManyRedirects,
        ) as error:
            raise DownloadError(f"{url}: {error}") from None
        except requests.exceptions.Timeout:
            raise PassingError("nothing came in time") from None
        except requests.exceptions.RequestException as error:
            raise PassingError(f"the connection broke ({_inner(error)})") from None

    def pieces(self, response: requests.Response) -> Iterator[bytes]:
        """The body of a response, piece by piece."""
        for piece in response.iter_content(CHUNK):
            if self._stopped.is_set():
                raise DownloadError("stopped")
            self.got(len(piece))
            yield piece

    def _session(self) -> requests.Session:
        # A session is not made for several threads at once.
        session: requests.Session | None = getattr(self._local, "session", None)
        if session is None:
            session = self._local.session = requests.Session()
            session.headers["User-Agent"] = f"vlmeval_findit/{__version__}"
        return session

    def _host(self, url: str) -> _Host:
        with self._lock:
            return self._hosts.setdefault(urlsplit(url).netloc, _Host(self.policy.per_host))

    def _sleep(self, seconds: float) -> None:
        if self._stopped.wait(seconds) if seconds > 0 else self._stopped.is_set():
            raise DownloadError("stopped")


PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Statuses after which trying again makes sense."""


def _check(response: requests.Response) -> None:
    status = response.status_code
    if any(r.url.startswith("https:") for r in response.history) and response.url.startswith(
        "http:"
    ):
        raise DownloadError(f"{response.url}: a redirect away from https")
    if status in (404, 410):
        raise NotThereError(f"{response.url}: the server does not have it ({status})")
    if status in PASSING:
        raise PassingError(f"status {status}", _retry_after(response))
    if status not in (200, 206, 416):
        raise DownloadError(f"{response.url}: status {status} {response.reason}")


def _retry_after(response: requests.Response) -> float | None:
    """Return the seconds that a server asks to wait, or None."""
    try:
        return Retry().get_retry_after(response.raw)
    except InvalidHeader:
        return None


def _inner(error: BaseException) -> str:
    """The innermost reason: requests wraps urllib3's errors, which wrap the system's."""
    reason = error
    while reason.args and isinstance(reason.args[-1], BaseException):
        reason = reason.args[-1]
    text = str(getattr(reason, "reason", reason)) or type(reason).__name__
    return text if len(text) <= 160 else f"{text[:160]}…"


def address(base: str, path: str) -> str:
    """The address of a path below a base that ends in a slash."""
    return urljoin(base, quote(path))


# --- one file -------------------------------------------------------------------------------------


def validator_of(headers: Mapping[str, str]) -> str:
    """What tells one version of a file from another: a strong ETag, else Last-Modified, else ""."""
    etag = headers.get("ETag", "")
    if etag and not etag.startswith("W/"):
        return etag
    return headers.get("Last-Modified", "")


def download(client: Client, url: str, part: Path, largest: int | None = None) -> bool:
    """Bring a file of ``largest`` bytes at most (None: as the policy says) into ``part``.

    It goes on from what an earlier call left there.

    Returns:
        Whether some of it was there before: if it turns out to be wrong, start over.

    Raises:
        DownloadError: the file did not come, or not as long as the server says.
    """
    most = largest or client.policy.largest
    return client.persist(url, lambda: _attempt(client, url, part, most))


def _attempt(client: Client, url: str, part: Path, largest: int) -> bool:
    validator = _begun(part, url)
    at = part.stat().st_size if validator else 0
    with client.get_from(url, at, validator) as response:
        if response.status_code == 416:
            discard(part)
            raise PassingError("what was there does not belong to it; starting over")
        if response.status_code == 200:
            at = 0
            _start_over(part, url, validator_of(response.headers))
        length = response.headers.get("Content-Length")
        total = at + int(length) if length else None
        if (total or 0) > largest:
            raise DownloadError(f"{url}: {total} bytes, more than {largest}")
        size = at
        with part.open("r+b") as f:
            f.seek(at)
            f.truncate()
            for piece in client.pieces(response):
                size += f.write(piece)
                if size > largest:
                    raise DownloadError(f"{url}: more than {largest} bytes")
    if total is not None and size != total and "Content-Encoding" not in response.headers:
        raise PassingError(f"{size} bytes came of {total}")
    return at > 0


def range_start(headers: Mapping[str, str]) -> int | None:
    """The first byte that a 206 response holds: ``bytes 5-9/10`` begins at 5."""
    first = headers.get("Content-Range", "").removeprefix("bytes ").partition("-")[0]
    return int(first) if first.isdigit() else None


def _sidecar(part: Path) -> Path:
    return part.with_name(f"{part.name}.json")


def _begun(part: Path, url: str) -> str:
    """Return the validator of what an earlier attempt at the same address left, or ""."""
    try:
        begun: dict[str, str] = json.loads(_sidecar(part).read_text(encoding="utf-8"))
        is_ours = begun["url"] == url and part.is_file() and not part.is_symlink()
        return begun["validator"] if is_ours else ""
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def _start_over(part: Path, url: str, validator: str) -> None:
    # In this order: old bytes must never stand beside a new validator.
    part.parent.mkdir(parents=True, exist_ok=True)
    # A file of our own: what lies there may be a link that somebody else put there.
    part.unlink(missing_ok=True)
    part.touch(exist_ok=False)
    with atomic_write(_sidecar(part)) as f:
        json.dump({"url": url, "validator": validator}, f)


def discard(part: Path) -> None:
    """Forget a partial file."""
    part.unlink(missing_ok=True)
    _sidecar(part).unlink(missing_ok=True)


def fetch_file(
    client: Client, urls: tuple[str, ...], part: Path, target: Path, check: Check
) -> None:
    """Bring one file to its place: from the first address that has it, and only if it is right.

    Args:
        client: how.
        urls: addresses to try, in order; the next one where a server does not have the file.
        part: where it lies until it is whole.
        target: where it belongs, on the same file system.
        check: why the file at a path cannot be used, or None.

    Raises:
        DownloadError: no address has it, or what came is not it.
    """
    for url in urls:
        try:
            resumed = download(client, url, part)
        except NotThereError:
            if url == urls[-1]:
                raise
            continue
        why = check(part)
        if why and resumed:
            discard(part)
            download(client, url, part)
            why = check(part)
        if why:
            discard(part)
            raise DownloadError(f"{url}: {why}")
        target.parent.mkdir(parents=True, exist_ok=True)
        part.replace(target)
        _sidecar(part).unlink(missing_ok=True)
        return


Check = Callable[[Path], str | None]
"""Why a file cannot be used, or None when it can."""
