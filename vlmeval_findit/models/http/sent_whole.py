"""Whether an attempt may be billed: was its request sent whole?

Whoever has a whole request may answer it and bill it, whatever becomes of the reply.  So an attempt
is free only if its request did not leave whole, or was refused before any work.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field

# Of a request that is refused itself, or not now: nothing is worked on.  501: it is not supported.
_REFUSED = frozenset({*range(300, 500), 501, 503, 529})

# Of a gateway that had waited for the answer: time ran out (408), the server behind it failed
# (424), its caller left (460, 499)
_WAITED = frozenset({408, 424, 460, 499})

# HTTP statuses of requests that nobody worked on, so that they cost nothing
FREE_STATUSES = _REFUSED - _WAITED

# Errors of connections that could not be made, in whatever program
_NO_CONNECTION = (ConnectionRefusedError, socket.gaierror, ssl.SSLCertVerificationError)


@dataclass(slots=True)
class Sending:
    """How far an attempt came."""

    is_whole: bool = False  # the last piece of the request was handed to the connection
    status: int = 0  # of the reply's head; 0: none came
    cost_headers: Mapping[str, str] = field(default_factory=dict)  # as of ``read_headers``


def may_be_billed(*, is_whole: bool = True, status: int = 0, is_refused: bool = False) -> bool:
    """Return whether an attempt may be billed, if its reply states neither cost nor tokens.

    Args:
        is_whole: whether the request was sent whole.
        status: that the service answered with (0: none).
        is_refused: whether its words refuse the request itself: key, credit, model.

    >>> [may_be_billed(status=status) for status in (0, 200, 400, 408, 429, 500, 503, 504)]
    [True, True, False, True, False, True, False, True]
    >>> may_be_billed(is_whole=False)
    False
    """
    return is_whole and not is_refused and status not in FREE_STATUSES


def was_sent_whole(error: BaseException) -> bool:
    """Return whether code that is not ours may have sent its request before this error."""
    causes = (error, error.__cause__, error.__context__, getattr(error, "reason", None))
    return not any(isinstance(cause, _NO_CONNECTION) for cause in causes)
