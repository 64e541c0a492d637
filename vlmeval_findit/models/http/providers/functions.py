"""Providers of plug-ins that are asked by a function."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from ....core.threads import in_thread
from ....core.work import said
from ..completion import CallError
from ..endpoint import Endpoint
from .table import Chat


async def ask_function(
    chat: Chat, body: Mapping[str, Any], endpoint: Endpoint, timeout: float
) -> Mapping[str, Any]:
    """Call a provider's function with one deadline.

    Raises:
        CallError: there is no reply.
    """

    def ask() -> Mapping[str, Any]:
        try:
            return {"provider": endpoint.provider, **chat(body, endpoint, timeout)}
        except CallError:
            raise
        except BaseException as error:  # whatever somebody's function makes of a reply
            why = f"the provider {endpoint.provider} failed: {said(error)}"
            raise CallError(why) from None

    try:
        return await asyncio.wait_for(in_thread(ask), timeout)
    except TimeoutError:
        why = f"no reply within {timeout:g} s"
        raise CallError(why, transient=True, worked_on=True) from None
