"""Providers of plug-ins that are asked by a function."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from ....core.work import said
from ..completion import CallError
from ..endpoint import Endpoint
from .table import Chat


async def in_thread(
    chat: Chat, body: Mapping[str, Any], endpoint: Endpoint, timeout: float
) -> Mapping[str, Any]:
    """Call a provider's function with one deadline.

    A function that waits for a reply cannot be ended: its thread is left behind where nobody wants
    its answer any more, and keeps no program alive.

    Raises:
        CallError: there is no reply.
    """
    loop = asyncio.get_running_loop()
    reply: asyncio.Future[Mapping[str, Any]] = loop.create_future()

    def answer() -> None:
        outcome: CallError | Mapping[str, Any]
        try:
            outcome = {"provider": endpoint.provider, **chat(body, endpoint, timeout)}
        except CallError as error:
            outcome = error
        except BaseException as error:  # whatever somebody's function makes of a reply
            outcome = CallError(f"the provider {endpoint.provider} failed: {said(error)}")
        with suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(came, outcome)

    def came(outcome: CallError | Mapping[str, Any]) -> None:
        if reply.done():
            return  # nobody waits for it any more
        if isinstance(outcome, CallError):
            reply.set_exception(outcome)
        else:
            reply.set_result(outcome)

    name = f"findit-{endpoint.provider}"
    threading.Thread(target=answer, name=name, daemon=True).start()
    try:
        return await asyncio.wait_for(reply, timeout)
    except TimeoutError:
        why = f"no reply within {timeout:g} s"
        raise CallError(why, transient=True, worked_on=True) from None
