"""Download files over HTTP: retried with back-off, resumed where the connection broke.

Certificates are verified by requests itself, which VLMEvalKit's switch
(``ssl._create_default_https_context``) does not reach.  Proxies come from the environment.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urljoin, urlsplit

import requests
from urllib3.exceptions import InvalidHeader, NewConnectionError, ProxyError
from urllib3.util import Retry

from ... import __version__
from ...core import atomic_write, is_disk_full, read_json, untrusted

# Bytes that are read at once; where a connection breaks, at most so many are lost
DOWNLOAD_CHUNK = 1 << 14

# Statuses after which another attempt makes sense
RETRYABLE = frozenset({408, 425, 429, 500, 502, 503, 504})

# Why a file cannot be used, or None when it can
Check = Callable[[Path], str | None]


class DownloadError(ValueError):
    """A download that another attempt will not help; the message names address and reason."""


class NotThereError(DownloadError):
    """The server does not have the file; another address may."""


class RetryableError(Exception):
    """An attempt failed that may succeed later; ``wait`` is Retry-After in seconds."""

    def __init__(self, why: str, wait: float | None = None) -> None:
        super().__init__(why)
        self.wait = wait


class UnreachableError(RetryableError):
    """No connection could be made to the host."""


@dataclass(frozen=True, slots=True)
class Policy:
    """Limits of downloads."""

    attempts: int = 6  # Of every file
    connections: int = 3  # Attempts to reach a host
    first_wait: float = 1.0  # Seconds before the second attempt; doubled before every further one
    longest_wait: float = 120.0  # Seconds; a server that asks for more is not waited for
    connect: float = 15.0  # Time-out in seconds
    read: float = 60.0  # Time-out in seconds between two pieces
    parallel: int = 4  # Files at once
    largest: int = 1 << 29  # Bytes of one file
    hopeless: int = 8  # Files that may fail in a row: a thousand time-outs would take hours


class Client:
    """Download files by one policy; may be used by several threads.

    ``received`` is called with the number of bytes of every piece.
    """

    def __init__(
        self, policy: Policy | None = None, received: Callable[[int], None] = lambda count: None
    ) -> None:
        self.policy = policy or Policy()
        self.received = received
        self._failures = 0  # Files in a row
        self._unreachable: dict[str, str] = {}  # Host -> reason
        self._stopped = threading.Event()
        self._session = requests.Session()
        self._session.headers["User-Agent"] = f"vlmeval_findit/{__version__}"

    def stop(self) -> None:
        """End every download at its next piece; what has arrived stays for the next run."""
        self._stopped.set()

    def download(
        self,
        url: str,
        part: Path,
        largest: int | None = None,
        expect: Callable[[int], None] = lambda remaining: None,
    ) -> bool:
        """Download a file, resuming where an earlier call left off.

        Args:
            url: its address.
            part: where it is written.
            largest: the most bytes that it may have (None: as the policy says).
            expect: told how many bytes are still to come, once the server says it.

        Returns:
            Whether it was resumed: if it turns out to be wrong, start over.

        Raises:
            DownloadError: the file did not come, or not as long as the server says.
        """
        host = urlsplit(url).netloc
        if self._failures >= self.policy.hopeless:
            raise DownloadError(f"{url}: not tried: {self._failures} files in a row failed")
        if host in self._unreachable:
            raise DownloadError(self._unreachable[host])
        wait = 0.0
        trouble = ""
        for attempt in range(1, self.policy.attempts + 1):
            if self._stopped.wait(wait):
                raise DownloadError("stopped")
            try:
                resumed = self._attempt(url, part, largest or self.policy.largest, expect)
            except RetryableError as error:
                trouble = f"{url}: {error}"
                wait = error.wait or self.policy.first_wait * 2 ** (attempt - 1)
                if isinstance(error, UnreachableError) and attempt >= self.policy.connections:
                    self._unreachable[host] = f"{host} cannot be reached: {error}"
                    raise DownloadError(self._unreachable[host]) from None
                if wait > self.policy.longest_wait:
                    raise DownloadError(f"{trouble}; it asks to wait {wait:.0f} s") from None
            else:
                self._failures = 0
                return resumed
        self._failures += 1
        raise DownloadError(f"{trouble} ({self.policy.attempts} attempts)")

    def _attempt(self, url: str, part: Path, largest: int, expect: Callable[[int], None]) -> bool:
        validator = _resumable(part, url)
        size = part.stat().st_size if validator else 0
        headers = {"Accept-Encoding": "identity"}
        if size:
            headers |= {"Range": f"bytes={size}-", "If-Range": validator}
        with self._get(url, headers) as response:
            if response.status_code == 416:
                discard(part)
                raise RetryableError("the partial file is of another version; starting over")
            if response.status_code == 200:
                size = 0
                _start_over(part, url, _validator_of(response.headers))
            elif _range_start(response.headers) != size:
                raise RetryableError("the server sent another range than was requested")
            resumed = size > 0
            length = response.headers.get("Content-Length")
            if length and not (length.isascii() and length.isdigit()):
                raise DownloadError(f"{url}: its Content-Length {length[:40]!r} is no number")
            total = size + int(length) if length else None
            if (total or 0) > largest:
                raise DownloadError(f"{url}: {total} bytes, more than {largest}")
            expect((total or size) - size)
            with _room_in(part.parent, total), part.open("ab") as f:
                for piece in response.iter_content(DOWNLOAD_CHUNK):
                    if self._stopped.is_set():
                        raise DownloadError("stopped")
                    self.received(len(piece))
                    size += f.write(piece)
                    if size > largest:
                        raise DownloadError(f"{url}: more than {largest} bytes")
        if total is not None and size != total and "Content-Encoding" not in response.headers:
            raise RetryableError(f"{size} bytes of {total} arrived")
        return resumed

    @contextmanager
    def _get(self, url: str, headers: Mapping[str, str]) -> Iterator[requests.Response]:
        """Send one request; the response has status 200, 206 or 416."""
        options: Any = {"timeout": (self.policy.connect, self.policy.read), "stream": True}
        try:
            with self._session.get(url, headers=headers, **options) as response:
                _check(response)
                yield response
        except requests.exceptions.SSLError as error:
            raise DownloadError(f"{url}: {_why_unsafe(error)}") from None
        except requests.exceptions.TooManyRedirects as error:
            raise DownloadError(f"{url}: {error}") from None
        except requests.exceptions.Timeout:
            raise RetryableError("timed out") from None
        except (DownloadError, RetryableError):
            raise
        except ValueError as error:  # of an address in a redirect, too
            raise DownloadError(f"{url}: {error}") from None
        except requests.exceptions.RequestException as error:
            reason = getattr(error.args[0] if error.args else None, "reason", None)
            if isinstance(reason, NewConnectionError | ProxyError):
                raise UnreachableError(str(reason).rpartition("] ")[2].rstrip("')\"")) from None
            raise RetryableError(f"the connection broke ({_inner(error)})") from None


@contextmanager
def _room_in(folder: Path, needed: int | None) -> Iterator[None]:
    """Name the folder whose disk is full, and what a file needs there."""
    try:
        yield
    except OSError as error:
        if not is_disk_full(error):
            raise
        bytes_of = f" (the file has {needed:,} bytes)" if needed else ""
        raise OSError(error.errno, f"{error.strerror}{bytes_of}", str(folder)) from None


def _check(response: requests.Response) -> None:
    status = response.status_code
    url = response.url
    if any(r.url.startswith("https:") for r in response.history) and url.startswith("http:"):
        raise DownloadError(f"{url}: it redirects away from https")
    if status in (404, 410):
        raise NotThereError(f"{url}: the server does not have it ({status})")
    if status in RETRYABLE:
        try:
            wait = Retry().get_retry_after(response.raw)
        except InvalidHeader:
            wait = None
        raise RetryableError(f"status {status}", wait)
    if status not in (200, 206, 416):
        raise DownloadError(f"{url}: status {status} {response.reason}")


def _why_unsafe(error: BaseException) -> str:
    """Return why https failed, and what to do."""
    import ssl

    reason = _innermost(error)
    if isinstance(reason, ssl.SSLCertVerificationError):
        return untrusted(reason, "sources in configs/datasets.yaml", "REQUESTS_CA_BUNDLE")
    words = getattr(reason, "reason", "") or str(reason)
    return f"https fails ({words}): should its address begin with http://?"


def _inner(error: BaseException) -> str:
    """Return the words of the innermost reason, cut."""
    reason = _innermost(error)
    text = str(reason) or type(reason).__name__
    return text if len(text) <= 160 else f"{text[:160]}…"


def _innermost(error: BaseException) -> BaseException:
    """Return the reason of an error: requests wraps urllib3's, which wrap the system's."""
    reason = error
    while True:
        inner = getattr(reason, "reason", None)
        if not isinstance(inner, BaseException):
            inner = reason.args[-1] if reason.args else None
        if not isinstance(inner, BaseException):
            return reason
        reason = inner


def address_below(base: str, path: str) -> str:
    """Return the address of a path below a base that ends in a slash."""
    return urljoin(base, quote(path))


def fetch_file(
    client: Client, urls: tuple[str, ...], part: Path, target: Path, check: Check
) -> None:
    """Download a file from the first address that has the right one, and move it to its place.

    Args:
        client: what downloads.
        urls: addresses in the order to try them.
        part: where the file lies until it is whole, on the file system of ``target``.
        target: where it belongs.
        check: why the file at a path cannot be used, or None.

    Raises:
        DownloadError: no address has it, or the file cannot be used.
    """
    for url in urls:
        try:
            resumed = client.download(url, part)
        except NotThereError:
            if url == urls[-1]:
                raise
            continue
        why = check(part)
        if why and resumed:
            discard(part)
            client.download(url, part)
            why = check(part)
        if why is None:
            target.parent.mkdir(parents=True, exist_ok=True)
            part.replace(target)
        discard(part)
        if why is None:
            return
        # Another address may have the right file.
        if url == urls[-1]:
            raise DownloadError(f"{url}: {why}")


# --- partial files --------------------------------------------------------------------------------


def _validator_of(headers: Mapping[str, str]) -> str:
    """Return what tells versions of a file apart: a strong ETag, else Last-Modified, else ""."""
    etag = headers.get("ETag", "W/")
    return headers.get("Last-Modified", "") if etag.startswith("W/") else etag


def _range_start(headers: Mapping[str, str]) -> int | None:
    """Return the first byte that a 206 response holds: ``bytes 5-9/10`` begins at 5."""
    first = headers.get("Content-Range", "").removeprefix("bytes ").partition("-")[0]
    return int(first) if first.isdigit() else None


def _sidecar(part: Path) -> Path:
    return part.with_name(f"{part.name}.json")


def _resumable(part: Path, url: str) -> str:
    """Return the validator of what an earlier attempt at the same address left, or ""."""
    try:
        begun: dict[str, str] = read_json(_sidecar(part))
    except (OSError, ValueError):
        return ""
    is_same = begun["url"] == url and part.is_file() and not part.is_symlink()
    return begun["validator"] if is_same else ""


def _start_over(part: Path, url: str, validator: str) -> None:
    # In this order: old bytes must never lie next to a new validator.
    part.parent.mkdir(parents=True, exist_ok=True)
    # A new file: somebody else may have put a link there.
    part.unlink(missing_ok=True)
    part.touch(exist_ok=False)
    with atomic_write(_sidecar(part)) as f:
        json.dump({"url": url, "validator": validator}, f)


def discard(part: Path) -> None:
    """Delete a partial file and what is known of it."""
    part.unlink(missing_ok=True)
    _sidecar(part).unlink(missing_ok=True)
