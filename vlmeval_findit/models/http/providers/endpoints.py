"""Where a provider is asked, and with which key."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from enum import Enum
from urllib.parse import urlsplit

from ..endpoint import Endpoint
from ..services import header_lines
from .table import Provider, find_provider


class Ready(Enum):
    """What an endpoint is wanted for."""

    TO_ASK = "to ask"
    """The key has to be there."""
    TO_DESCRIBE = "to describe"
    """Nothing is sent."""


def provider_endpoints(
    name: str,
    urls: str | Sequence[str] | None = None,
    ready: Ready = Ready.TO_ASK,
    key: str | None = None,
    headers: Sequence[str] | Mapping[str, str] = (),
    limit_field: str | None = None,
) -> list[Endpoint]:
    """The endpoints of a provider.

    Args:
        name: its row.
        urls: other addresses that speak its protocol, with commas between them where it is a text.
        ready: what they are wanted for.
        key: its key (None: the environment's).
        headers: ``NAME: VALUE`` each, or by name; FINDIT_SERVER_HEADERS are for servers.
        limit_field: as of :class:`..endpoint.Endpoint` (None: the provider's).

    Raises:
        ValueError: no such provider, no key; an address or a header cannot be used.
    """
    provider = find_provider(name)
    if isinstance(urls, str):
        urls = [url.strip() for url in urls.split(",")]
    own = list(urls or ())
    if ready is Ready.TO_ASK:
        key = _key(provider, needed=not own) if key is None else key
    given = header_lines(headers)
    return [
        Endpoint(address, key or "", given, limit_field or provider.limit_field, provider.name)
        for address in (_address(provider, url) for url in own or [_default(provider)])
    ]


def _default(provider: Provider) -> str:
    said = os.environ.get(provider.address_variable) if provider.address_variable else None
    return said or provider.address


def _key(provider: Provider, needed: bool) -> str:
    """The key of a provider; an address of one's own may want none.

    Raises:
        ValueError: the environment has none.
    """
    found = (os.environ.get(name, "").strip() for name in provider.keys)
    key = next(filter(None, found), "")
    if not key and provider.keys and needed:
        raise ValueError(
            f"{' or '.join(provider.keys)} is not set: the provider {provider.name} is asked with "
            "the key in this environment variable (--dry-run needs none)"
        )
    return key


def _address(provider: Provider, url: str) -> str:
    """An address with the version of the provider's API at its end.

    Raises:
        ValueError: it holds what a client package would not heed.
    """
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
