"""A server on 127.0.0.1 that says bytes, for what no HTTP library would let a server say."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Talk = Callable[[socket.socket, threading.Event], None]
"""What it does with a connection whose request was read; the event says that the test is over."""


@contextmanager
def raw_server(talk: Talk) -> Iterator[str]:
    """The URL of a server that talks so on every connection."""
    listener = socket.create_server(("127.0.0.1", 0))
    done = threading.Event()

    def serve(connection: socket.socket) -> None:
        with connection:
            try:
                connection.recv(65536)
                talk(connection, done)
            except OSError:
                pass  # the caller hung up

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
    finally:
        done.set()
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def dripping(first: bytes, drop: bytes) -> Talk:
    """Says something, and then a little again and again."""

    def talk(connection: socket.socket, done: threading.Event) -> None:
        connection.sendall(first)
        while not done.wait(0.02):
            connection.sendall(drop)

    return talk


def saying(whole: bytes) -> Talk:
    """Says something and hangs up."""
    return lambda connection, done: connection.sendall(whole)
