"""The addresses of a model, with keys and headers: servers, or a provider."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from ...core import read_text
from .endpoint import Endpoint
from .providers.provider_table import Provider, find_provider
from .stated_headers import Headers, header_lines, server_headers

log = logging.getLogger(__name__)


class AddressFile:
    """The servers of a file that may change during a run: a base URL per line, ``#`` comments.

    The file may be created later; ValueError if its folder is missing or a line is no base URL.
    """

    def __init__(self, path: Path, endpoint: Callable[[str], Endpoint]) -> None:
        if not path.absolute().parent.is_dir():
            raise ValueError(f"--base-url @{path}: its folder does not exist")
        self._path = path
        self._endpoint = endpoint
        self._text = ""
        self._servers: list[Endpoint] = []
        self._read()

    def __call__(self) -> list[Endpoint]:
        """Return the current servers, or the previous ones if the file cannot be read."""
        try:
            self._read()
        except (OSError, ValueError) as error:
            log.warning("%s: the previous servers are asked", error)
        return self._servers

    def _read(self) -> None:
        text = read_text(self._path) if self._path.exists() else ""
        if text == self._text:
            return
        self._text = text  # a bad line is reported once
        by_url: dict[str, Endpoint] = {}
        for number, line in enumerate(text.splitlines(), start=1):
            url = line.partition("#")[0].strip()
            if not url:
                continue
            try:
                by_url.setdefault(url, self._endpoint(url))
            except ValueError as error:
                raise ValueError(f"{self._path}, line {number}: {error}") from None
        self._servers = list(by_url.values())


Endpoints = Sequence[Endpoint] | AddressFile  # fixed, or those of a file


def identifying_servers(servers: Endpoints) -> Sequence[Endpoint]:
    """Return the servers that identify a run: not those of a followed file."""
    return () if isinstance(servers, AddressFile) else servers


def make_endpoints(
    urls: str | Sequence[str], key: str | None = None, headers: Headers = ()
) -> Endpoints:
    """Return the servers of one model.

    Args:
        urls: several, or a text with commas; ``@FILE`` has a URL per line, and is followed.
        key: of all of them (None: FINDIT_SERVER_KEY).
        headers: besides those of FINDIT_SERVER_HEADERS.

    Raises:
        ValueError: a URL, the key or a header is invalid.
    """
    urls = _split(urls)
    secret = os.environ.get("FINDIT_SERVER_KEY", "").strip() if key is None else key
    endpoint = partial(Endpoint, key=secret, headers=server_headers(headers))
    if len(urls) == 1 and urls[0].startswith("@"):
        return AddressFile(Path(urls[0][1:]).expanduser(), endpoint)
    return [endpoint(url) for url in urls]


def provider_endpoints(
    name: str,
    urls: str | Sequence[str] | None = None,
    key: str | None = None,
    headers: Headers = (),
    *,
    needs_key: bool = True,
) -> list[Endpoint]:
    """Return the endpoints of a provider.

    Args:
        urls: other addresses with its protocol; a text may have commas.
        key: its key (None: the environment's).
        headers: of every request; FINDIT_SERVER_HEADERS is not used.
        needs_key: whether something is sent there.

    Raises:
        ValueError: the provider is unknown, or has no key; an address or a header is invalid.
    """
    provider = find_provider(name)
    by_name = header_lines(headers)
    if key is None and needs_key:
        values = (os.environ.get(variable, "").strip() for variable in provider.keys)
        key = next(filter(None, values), "")
        # Other addresses may need none.
        if not key and provider.keys and not urls:
            raise ValueError(
                f"{' or '.join(provider.keys)} is not set: the provider {name} needs the "
                "key in this environment variable (--dry-run needs none)"
            )
    usual = os.environ.get(provider.address_variable or "-") or provider.address
    addresses = [_address(provider, url) for url in _split(urls or usual)]
    return [Endpoint(address, key or "", by_name, name) for address in addresses]


def _split(urls: str | Sequence[str]) -> Sequence[str]:
    return [url.strip() for url in urls.split(",")] if isinstance(urls, str) else urls


def _address(provider: Provider, url: str) -> str:
    """Append the API's version to an address, if it is missing."""
    Endpoint(url)  # refuses invalid URLs without showing secrets
    if urlsplit(url).query:
        raise ValueError(
            f"an address of the provider {provider.name} should have no query: its key comes from "
            f"{' or '.join(provider.keys) or '--key'}"
        )
    whole = url.rstrip("/")
    has_version = re.fullmatch(r"v\d\w*", whole.rpartition("/")[2])
    return whole if has_version or not provider.version else f"{whole}/{provider.version}"
