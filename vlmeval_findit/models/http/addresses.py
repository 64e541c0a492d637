"""The addresses of a model, with keys and headers: servers, or a provider."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from ...core import read_text, without_credentials
from ...protocol import Setting, choose_value, say_once
from .endpoint import Endpoint
from .providers.provider_table import Provider, find_provider
from .stated_headers import HEADERS_VARIABLE, Headers, header_lines, server_headers

KEY_VARIABLE = "FINDIT_SERVER_KEY"
"""The key of servers that are asked in no provider's protocol."""

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

    def __str__(self) -> str:
        return f"{self._path}{'' if self._path.exists() else ', which does not exist'}"

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
    secret = os.environ.get(KEY_VARIABLE, "").strip() if key is None else key
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
    """Return the endpoints of a provider; what a variable decides, or does not, is said once.

    Args:
        urls: other addresses with its protocol; a text may have commas.
        key: its key (None: the environment's).
        headers: of every request; those of FINDIT_SERVER_HEADERS are of servers.
        needs_key: whether something is sent there.

    Raises:
        ValueError: the provider is unknown, or has no key; an address or a header is invalid.
    """
    provider = find_provider(name)
    by_name = header_lines(headers)
    is_stated = key is not None
    if key is None and needs_key:
        values = (os.environ.get(variable, "").strip() for variable in provider.keys)
        key = next(filter(None, values), "")
        # Other addresses may need none.
        if not key and provider.keys and not urls:
            raise ValueError(
                f"{' or '.join(provider.keys)} is not set: the provider {name} needs the "
                "key in this environment variable (--dry-run needs none)"
            )
    variable = os.environ.get(provider.address_variable or "-", "").strip()
    addresses = [_address(provider, url) for url in _split(urls or variable or provider.address)]
    _say_who_decides(provider, urls, variable)
    if urls or variable:
        _say_unused(provider, addresses, key_is_stated=is_stated)
    return [Endpoint(address, key or "", by_name, name) for address in addresses]


def _say_who_decides(provider: Provider, urls: str | Sequence[str] | None, variable: str) -> None:
    """Say that a variable decides where a provider's requests go, or that it is not used."""
    setting = Setting("address of requests and key", provider.address_variable, "--base-url '{}'")
    choice = choose_value(
        setting,
        provider.name,
        stated=_shown(_split(urls)) if urls else None,
        variable=_shown([variable]) if variable not in ("", provider.address) else None,
    )
    say_once(choice.remark)


def _say_unused(provider: Provider, addresses: Sequence[str], *, key_is_stated: bool) -> None:
    """Say which variables of servers are not used at other addresses of a provider."""
    keys = " or ".join(("--key", *provider.keys))
    instead = {KEY_VARIABLE: f"the key with {keys}", HEADERS_VARIABLE: "headers with --header"}
    if key_is_stated:
        del instead[KEY_VARIABLE]
    for name, typed in instead.items():
        if os.environ.get(name, "").strip() not in ("", "{}"):
            say_once(
                f"{name} is not used at {_shown(addresses)}, asked in {provider.name}'s protocol: "
                f"it is of servers that no provider is named for. State {typed}"
            )


def _shown(urls: Sequence[str]) -> str:
    return ",".join(map(without_credentials, urls))


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
