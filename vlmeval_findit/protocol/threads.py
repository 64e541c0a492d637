"""Runs a function in a thread that a loop waits for.

Here alone the protocol needs asyncio, which takes a board 3 MiB that it never uses.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from typing import Any, TypeVar

T = TypeVar("T")


async def in_thread(function: Callable[..., T], *arguments: Any) -> T:
    """Run a function in a daemon thread: if it hangs, the process can still end."""
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
