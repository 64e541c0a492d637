"""The proxies of the environment: which one a request takes, and which cannot be spoken to."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Iterable
from typing import NamedTuple
from urllib.parse import urlsplit
from urllib.request import getproxies

from ...core import remember_secrets
from .endpoint import Endpoint

_SPOKEN = ("http", "https")  # kinds of proxies that aiohttp speaks to
_VARIABLES = ("https_proxy", "http_proxy", "all_proxy")


class ProxyError(ValueError):
    """A proxy of the environment that cannot be used; the message has no password."""


class Proxy(NamedTuple):
    """A proxy of the environment (``HTTPS_PROXY``, ``ALL_PROXY`` …)."""

    address: str  # With its name and password
    shown: str  # Without, for messages and records
    variable: str = ""  # That names it


def proxy_for(url: str) -> Proxy | None:
    """Return the proxy for a URL; None: the request goes straight to its host.

    ``NO_PROXY`` names hosts, domains and networks, as for curl and requests.  Loopback addresses
    need no proxy.

    Raises:
        ProxyError: it is no HTTP proxy, or its address cannot be read.
    """
    host = urlsplit(url).hostname or ""
    if not getproxies() or is_loopback(host):
        return None
    # Imported only then: it takes a tenth of a second.
    from requests.utils import get_environ_proxies, select_proxy

    address = select_proxy(url, get_environ_proxies(url))
    if not address:
        return None
    whole = address if "://" in address else f"http://{address}"
    try:
        parts = urlsplit(whole)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        raise _unreadable(address) from None
    remember_secrets(parts.password or "")
    if not parts.hostname:
        raise _unreadable(address)
    named = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    shown = f"{parts.scheme}://{named}{port}"
    if parts.scheme not in _SPOKEN:
        raise ProxyError(
            f"{_variable_of(address)}={shown}: proxies of the kind {parts.scheme} are not "
            f"supported, only http and https. Type NO_PROXY={host} if {host} is reached without "
            f"one; else forward a port: ssh -L 8000:{host}:PORT, then --base-url "
            "http://localhost:8000/v1"
        )
    return Proxy(whole, shown, _variable_of(address))


def _unreadable(address: str) -> ProxyError:
    variable = _variable_of(address)
    return ProxyError(
        f"{variable}: the proxy's address cannot be read. Type {variable}=http://HOST:PORT"
    )


def _variable_of(address: str) -> str:
    """Return the variable that names a proxy, as it is written in the environment."""
    names = [name for name in os.environ if name.lower() in _VARIABLES]
    same = [name for name in names if os.environ[name] == address]
    return (same or ["the system's proxy"])[0]


def proxies_to(endpoints: Iterable[Endpoint]) -> dict[Proxy, list[str]]:
    """Return the proxies through which servers are asked, and the names of those servers.

    Raises ProxyError where a server is behind a proxy that cannot be spoken to.
    """
    names: dict[Proxy, list[str]] = {}
    for endpoint in endpoints:
        proxy = proxy_for(endpoint.at(""))
        if proxy is not None:
            names.setdefault(proxy, []).append(endpoint.name)
    return names


def recorded_proxies(endpoints: Iterable[Endpoint]) -> str | None:
    """Return the proxies of servers as a run records them, without passwords; None: there is none.

    Raises ProxyError as :func:`proxies_to`.
    """
    return ", ".join(sorted({proxy.shown for proxy in proxies_to(endpoints)})) or None


def notes_on_proxies(endpoints: Iterable[Endpoint]) -> list[str]:
    """Say through which proxies servers are asked; raises ProxyError as :func:`proxies_to`."""
    return [
        f"{', '.join(dict.fromkeys(names))}: asked through the proxy {proxy.shown} "
        f"({proxy.variable}); NO_PROXY names hosts that need none"
        for proxy, names in proxies_to(endpoints).items()
    ]


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine by its name or address.

    >>> [is_loopback(host) for host in ("localhost", "127.8.0.1", "::1", "10.0.0.1", "gpu.local")]
    [True, True, True, False, False]
    """
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
