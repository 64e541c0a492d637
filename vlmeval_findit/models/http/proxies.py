"""Find the proxy of a request: the environment's, but for loopback and what NO_PROXY names."""

from __future__ import annotations

import ipaddress
from typing import NamedTuple
from urllib.parse import urlsplit
from urllib.request import getproxies

from ...core.redaction import remember


class Proxy(NamedTuple):
    """A proxy of the environment (``HTTPS_PROXY``, ``ALL_PROXY`` …)."""

    address: str  # With its name and password
    shown: str  # Without, for messages


def proxy_for(url: str) -> Proxy | None:
    """Return the proxy for a URL; None: the request goes straight to its host.

    ``NO_PROXY`` names hosts, domains and networks, as for curl and requests.  Loopback addresses
    need no proxy.
    """
    host = urlsplit(url).hostname or ""
    # Looked up on every call: cheap, and nearly nobody has a proxy.
    if not getproxies() or is_loopback(host):
        return None
    # Imported only then: it takes a tenth of a second.
    from requests.utils import get_environ_proxies, select_proxy

    address = select_proxy(url, get_environ_proxies(url))
    if not address:
        return None
    whole = address if "://" in address else f"http://{address}"
    parts = urlsplit(whole)
    remember(parts.password or "")
    port = f":{parts.port}" if parts.port else ""
    return Proxy(whole, f"{parts.scheme}://{parts.hostname}{port}")


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
