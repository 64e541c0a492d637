"""Whether reading takes linear time, measured against itself: no machine is too slow."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

LONG = 100_000
LENIENT = 40_000  # Short of where lenient reading stops

TIMES = 8  # As long as the short text
MOST = 3 * TIMES  # Times the short text's time; a reader that looks back at every letter: 64 times
NOTICED = 0.1  # Seconds; below, a clock's steps and what else the machine does weigh too much


def repeated(pieces: Iterable[str]) -> dict[str, Callable[[int], str]]:
    """Return, for each piece, what repeats it up to a length."""
    return {piece: _Repeated(piece) for piece in pieces}


class _Repeated:
    def __init__(self, piece: str) -> None:
        self.piece = piece

    def __call__(self, length: int) -> str:
        return (self.piece * (length // len(self.piece) + 1))[:length]


def check_linear(
    text_of: Callable[[int], str], read: Callable[[str], object], length: int = LONG
) -> None:
    """Fail if reading a text eight times as long takes more than 24 times as long."""
    short, long = text_of(length // TIMES), text_of(length)
    slow = _seconds(read, long)
    if slow <= NOTICED:
        return
    fast = _seconds(read, short)
    for _ in range(2):
        if slow <= MOST * fast:
            return
        # The least of several: other programs slow one down.
        fast = max(fast, _seconds(read, short))
        slow = min(slow, _seconds(read, long))
    assert slow <= max(MOST * fast, NOTICED), f"{slow:.2f} s, and {fast:.3f} s for an eighth"


def _seconds(read: Callable[[str], object], text: str) -> float:
    start = time.process_time()
    read(text)
    return time.process_time() - start
