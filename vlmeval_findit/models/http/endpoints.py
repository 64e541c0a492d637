"""Where a model is asked, and with which key and headers: servers of one's own, or a provider."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from ...serving.addresses import AddressFile
from .endpoint import Endpoint
from .providers.table import Provider, find_provider

HEADERS_VARIABLE = "FINDIT_SERVER_HEADERS"

Headers = Sequence[str] | Mapping[str, str]  # ``NAME: VALUE`` each, or by name
Endpoints = Sequence[Endpoint] | AddressFile[Endpoint]  # that stay, or a file's that are followed


def lasting(servers: Endpoints) -> Sequence[Endpoint]:
    """The servers that a run can say it was made by: none of those that come and go."""
    return () if isinstance(servers, AddressFile) else servers


def header_lines(given: Headers) -> dict[str, str]:
    """Headers by name.

    Raises:
        ValueError: one cannot be read; its value is not in the message.
    """
    if isinstance(given, Mapping):
        return dict(given)
    headers = {}
    for line in given:
        name, colon, value = line.partition(":")
        if not colon or not name.strip():
            raise ValueError("--header takes 'NAME: VALUE', and was given something else")
        headers[name.strip()] = value.strip()
    return headers


def server_headers(given: Headers = ()) -> dict[str, str]:
    """The headers of an OpenAI-compatible server: the environment's, then those that are given.

    Raises:
        ValueError: one cannot be read; its value is not in the message.
    """
    try:
        headers = json.loads(os.environ.get(HEADERS_VARIABLE) or "{}")
    except ValueError:
        headers = None
    if not isinstance(headers, dict):
        raise ValueError(f'{HEADERS_VARIABLE} should be a JSON object, as {{"api-key": "…"}}')
    return {**headers, **header_lines(given)}


def endpoints(
    urls: str | Sequence[str],
    key: str | None = None,
    headers: Headers = (),
    limit_field: str | None = None,
) -> Endpoints:
    """The servers of one model.

    Args:
        urls: one or several, with commas in a text; ``@FILE`` has one a line, and is followed.
        key: of all of them (None: FINDIT_SERVER_KEY).
        headers: beside those of FINDIT_SERVER_HEADERS.

    Raises:
        ValueError: a URL, the key or a header cannot be used.
    """
    urls = _split(urls)
    secret = os.environ.get("FINDIT_SERVER_KEY", "").strip() if key is None else key
    whole = server_headers(headers)

    def made(url: str) -> Endpoint:
        return Endpoint(url, secret, whole, limit_field)

    if len(urls) == 1 and urls[0].startswith("@"):
        return AddressFile(Path(urls[0][1:]).expanduser(), made)
    return [made(url) for url in urls]


def provider_endpoints(
    name: str,
    urls: str | Sequence[str] | None = None,
    key: str | None = None,
    headers: Headers = (),
    limit_field: str | None = None,
    *,
    needs_key: bool = True,
) -> list[Endpoint]:
    """The endpoints of a provider.

    Args:
        urls: other addresses that speak its protocol, with commas between them where it is a text.
        key: its key (None: the environment's).
        headers: of every request; FINDIT_SERVER_HEADERS are for servers.
        limit_field: which of LIMIT_FIELDS it takes (None: the provider's).
        needs_key: whether something is sent there.

    Raises:
        ValueError: no such provider, no key; an address or a header cannot be used.
    """
    provider = find_provider(name)
    own = [_address(provider, url) for url in _split(urls or ())]
    if key is None and needs_key:
        key = _key(provider, is_needed=not own)
    usual = os.environ.get(provider.address_variable or "-") or provider.address
    given, field = header_lines(headers), limit_field or provider.limit_field
    return [
        Endpoint(address, key or "", given, field, provider.name)
        for address in own or [_address(provider, usual)]
    ]


def _split(urls: str | Sequence[str]) -> Sequence[str]:
    return [url.strip() for url in urls.split(",")] if isinstance(urls, str) else urls


def _key(provider: Provider, *, is_needed: bool) -> str:
    """The key of a provider; an address of one's own may want none."""
    found = (os.environ.get(name, "").strip() for name in provider.keys)
    key = next(filter(None, found), "")
    if not key and provider.keys and is_needed:
        raise ValueError(
            f"{' or '.join(provider.keys)} is not set: the provider {provider.name} is asked with "
            "the key in this environment variable (--dry-run needs none)"
        )
    return key


def _address(provider: Provider, url: str) -> str:
    """An address with the version of the provider's API at its end."""
    Endpoint(url)  # what is no URL is refused without its secrets
    parts = urlsplit(url)
    if parts.username is not None or parts.query:
        raise ValueError(
            f"an address of the provider {provider.name} has neither a name with a password nor a "
            f"query: its key comes from {' or '.join(provider.keys) or '--key'}"
        )
    whole = url.rstrip("/")
    said = re.fullmatch(r"v\d\w*", whole.rpartition("/")[2])
    return whole if said or not provider.version else f"{whole}/{provider.version}"
