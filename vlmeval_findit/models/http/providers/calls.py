"""Calls of providers' functions, with one deadline and an end from outside.

A function that waits for a reply cannot be ended: it runs in a thread of its own, which is left
behind where nobody wants its answer any more, and keeps no program alive.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from concurrent.futures import CancelledError, Future, InvalidStateError
from typing import Any

from ....core.work import said
from ..completion import CallError
from ..endpoint import Endpoint
from .table import Provider, find_provider


class ProviderCalls:
    """Asks providers; any number of threads may share it.

    Args:
        timeout: seconds for one call, whatever the provider does meanwhile.
    """

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._lock = threading.Lock()
        self._on_their_way: set[Future[bytes]] = set()
        self._cancelled = False

    def post(self, endpoint: Endpoint, body: Mapping[str, Any]) -> bytes:
        """The chat reply to a chat body, as JSON.

        Raises:
            CallError: there is none.
        """
        provider = find_provider(endpoint.provider)
        if body.get("logprobs") and not provider.gives_logprobs:
            raise CallError(f"{provider.name} has no logprobs", 501)
        reply: Future[bytes] = Future()
        with self._lock:
            if self._cancelled:
                raise CallError("cancelled")
            self._on_their_way.add(reply)
        asking = (reply, provider, body, endpoint, self._timeout)
        name = f"findit-{provider.name}"
        threading.Thread(target=_answer, args=asking, name=name, daemon=True).start()
        try:
            return reply.result(self._timeout)
        except CancelledError:
            raise CallError("cancelled") from None
        except TimeoutError:
            why = f"no reply within {self._timeout:g} s"
            raise CallError(why, transient=True, worked_on=True) from None
        finally:
            reply.cancel()
            with self._lock:
                self._on_their_way.discard(reply)

    def cancel(self) -> None:
        """Wait for none any more, and let none begin."""
        with self._lock:
            self._cancelled = True
            asked = list(self._on_their_way)
        for one in asked:
            one.cancel()


def _answer(
    reply: Future[bytes],
    provider: Provider,
    body: Mapping[str, Any],
    endpoint: Endpoint,
    timeout: float,
) -> None:
    try:
        outcome: bytes | CallError = _asked(provider, body, endpoint, timeout)
    except CallError as error:
        outcome = error
    try:
        if isinstance(outcome, CallError):
            reply.set_exception(outcome)
        else:
            reply.set_result(outcome)
    except InvalidStateError:
        pass  # nobody waits for it any more


def _asked(
    provider: Provider, body: Mapping[str, Any], endpoint: Endpoint, timeout: float
) -> bytes:
    try:
        found = provider.chat(body, endpoint, timeout)
        return json.dumps({"provider": provider.name, **found}).encode()
    except CallError:
        raise
    except BaseException as error:  # whatever somebody's function makes of a reply
        raise CallError(f"the provider {provider.name} failed: {said(error)}") from None
