"""Functions that wait, called from an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from typing import Any, TypeVar

T = TypeVar("T")


async def in_thread(function: Callable[..., T], *arguments: Any) -> T:
    """What a function returns that a thread works out.

    The thread does not keep the process from ending: one that hangs is left to itself.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(how: Callable[[Any], None], what: Any) -> None:
        if not future.done():
            how(what)

    def run() -> None:
        settled: tuple[Callable[[Any], None], Any]
        try:
            settled = future.set_result, function(*arguments)
        except BaseException as error:
            settled = future.set_exception, error
        with suppress(RuntimeError):  # the loop is gone: nobody waits for it any more
            loop.call_soon_threadsafe(settle, *settled)

    Thread(target=run, daemon=True).start()
    return await future
