"""Errors of attempts whose reply is lost on its way: the connection, the head or the body broke.

Messages are in our words: the client's quote the server's bytes, and its status 400 is of no reply.
"""

from __future__ import annotations

import os
import re

import aiohttp

from ...core import too_many_files, untrusted
from .call_errors import CallError
from .sent_whole import Sending, may_be_billed, was_sent_whole
from .service_errors import PASSWORD_WANTED, PROXY_ADVICE
from .spending import usage_of
from .stated_costs import RESPONSE_HEADERS

# What the client says of a malformed reply, up to where it quotes it
_UNTIL_QUOTED = re.compile(r"[^:\n]*?(?=:|\n| b?['\"]|$)")

_NOT_REACHED = ": is the server running, and is its address (--base-url) right?"


TLS_ADVICE = ". Should its address (--base-url) begin with https://?"


class BodyError(aiohttp.ClientError):
    """A body that cannot be read; the message goes on after "the reply"."""


class LastingBodyError(BodyError):
    """A body that cannot be read, as the server would probably send it again."""


def lost_reply(error: Exception, sending: Sending, timeout: float) -> CallError:
    """Return the error of an attempt whose reply did not come whole.

    Args:
        error: of the client.
        sending: how far the attempt came.
        timeout: seconds that it might take.
    """
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return _untrusted(error)
    if isinstance(error, aiohttp.ClientHttpProxyError) and error.status == PASSWORD_WANTED:
        return CallError(f"{_words(error, sending, timeout)}{PROXY_ADVICE}", hopeless=True)
    # The status of an error says itself whether it may pass.
    is_lasting = isinstance(error, LastingBodyError) and sending.status < 300
    return CallError(
        _words(error, sending, timeout),
        sending.status,
        transient=not is_lasting,
        lasting=is_lasting,
        unread=is_lasting,
        unreached=_is_unreached(error),
        worked_on=may_be_billed(is_whole=sending.is_whole, status=sending.status),
        usage=usage_of({RESPONSE_HEADERS: sending.cost_headers}),
    )


def is_cut_off(error: Exception, sending: Sending) -> bool:
    """Return whether a connection ended before a reply began, as at a server that wants TLS."""
    if sending.status:
        return False
    # Before the request was sent whole, the operating system's error comes in one of the client's.
    reason = getattr(error, "os_error", None) or error.__cause__ or error
    ends = (aiohttp.ServerDisconnectedError, ConnectionResetError, BrokenPipeError)
    is_alert = isinstance(error, aiohttp.ClientResponseError)  # of TLS: no HTTP
    return is_alert or isinstance(error, ends) or isinstance(reason, ends)


def _words(error: Exception, sending: Sending, timeout: float) -> str:
    if why := too_many_files(error):
        return why
    came = "the reply" if sending.status < 300 else f"the reply (HTTP {sending.status})"
    if isinstance(error, TimeoutError):
        if sending.status:
            return f"{came} did not end within {timeout:g} s"
        return f"no reply within {timeout:g} s"
    if isinstance(error, BodyError):
        return f"{came} {error}"
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return f"no reply: the proxy answered HTTP {error.status}"
    if isinstance(error, aiohttp.ClientResponseError):
        return f"the reply is not HTTP ({_said(error)})"
    if sending.status:
        return f"{came} broke off ({_kind(error)})"
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "no reply: the server ended the connection (ServerDisconnectedError)"
    if isinstance(error, aiohttp.ClientConnectorSSLError):
        # Its number is OpenSSL's, and no error of the system.
        said = getattr(error.os_error, "reason", "") or "SSLError"
        return (
            f"no reply: https fails at {error.host}:{error.port} ({said}): should its address "
            "(--base-url) begin with http://?"
        )
    hint = _NOT_REACHED if _is_unreached(error) else ""
    return f"no reply ({_kind(error)}){hint}"


def _is_unreached(error: Exception) -> bool:
    """Tell whether no connection could be made."""
    return not was_sent_whole(getattr(error, "os_error", error))


def _said(error: aiohttp.ClientResponseError) -> str:
    """Return what is malformed, without the server's bytes."""
    lines = error.message.strip().splitlines()
    found = _UNTIL_QUOTED.match(lines[0] if lines else "")
    return (found[0] if found else "") or type(error).__name__


def _kind(error: Exception) -> str:
    """Return the kind of an error, with its words if it is of the operating system."""
    reason = getattr(error, "os_error", None) or error.__cause__ or error
    kind = type(reason).__name__
    if not isinstance(reason, OSError) or reason.errno is None:
        return kind
    # A positive number is the system's; others are of names that are looked up.
    words = os.strerror(reason.errno) if reason.errno > 0 else str(reason.strerror)
    at = f" at {error.host}:{error.port}" if isinstance(error, aiohttp.ClientConnectorError) else ""
    return f"{kind}: {words}{at}"


def _untrusted(error: aiohttp.ClientConnectorCertificateError) -> CallError:
    """Return the error of a certificate that will be refused every time."""
    return CallError(
        untrusted(error.certificate_error, "--base-url", "SSL_CERT_FILE"), hopeless=True
    )
