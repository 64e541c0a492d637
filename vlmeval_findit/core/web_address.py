"""Addresses of servers, as users type them, and certificates that are not trusted there."""

from __future__ import annotations

import re
from ipaddress import IPv4Address
from urllib.parse import SplitResult, urlsplit

_LONGEST_PART = 63  # of the name of a host

# What helps against a certificate, by OpenSSL's code of what is wrong with it
_CLOCK = "its owner must renew it, unless the clock of this machine is wrong"
_RENEWED = frozenset((9, 10))
_NAMED = frozenset((62, 64))


def split_address(url: str) -> SplitResult:
    """Split an address of http or https; the message of a ValueError goes on after the address."""
    if not url.startswith(("http://", "https://")):
        raise ValueError("should begin with http:// or https://")
    if not url.isprintable() or " " in url:
        raise ValueError("contains a space or a control character")
    try:
        parts = urlsplit(url)
        host = parts.hostname
        _ = parts.port  # raises for a port that is no number
        if re.search(r"\][^:]", parts.netloc):
            raise ValueError("text behind the brackets")
    except ValueError:
        raise ValueError(
            "cannot be read: an IPv6 address has brackets (http://[::1]:8000/v1), a port is a "
            "number up to 65535"
        ) from None
    if not host:
        raise ValueError("has no host")
    if not _is_possible(host):
        raise ValueError(
            "has a host that cannot exist: an address has four numbers up to 255 (127.0.0.1), "
            f"each part of a name 1 to {_LONGEST_PART} characters"
        )
    return parts


def _is_possible(host: str) -> bool:
    """Return whether a host can be looked up; the client sends nothing to others, and tells it
    with every call."""
    if host.replace(".", "").isdecimal():
        try:
            IPv4Address(host)
        except ValueError:
            return False
        return True
    parts = host.removesuffix(".").split(".")
    return ":" in host or all(0 < len(part) <= _LONGEST_PART for part in parts)


def untrusted(error: Exception, address: str, bundle: str) -> str:
    """Return what is wrong with a certificate, and what to do.

    Args:
        error: ssl's, of a connection.
        address: where its address was typed.
        bundle: the variable that names the file of trusted authorities.
    """
    told = getattr(error, "verify_message", "") or str(error)
    code = getattr(error, "verify_code", 0)
    advice = f"if the authority is yours, name its file in {bundle}"
    if code in _RENEWED:
        advice = _CLOCK
    elif code in _NAMED:
        advice = f"type an address ({address}) with a name that the certificate has"
    return f"no trusted certificate ({told}): {advice}"
