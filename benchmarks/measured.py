"""What a benchmark measures of this process."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path


def seconds(work: Callable[[], object], repeat: int = 5) -> float:
    """Of the processor, as few as in so many tries."""
    best = float("inf")
    for _ in range(repeat):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def peak_mib() -> float:
    """Return the most memory that this process had; 0 where nobody says it."""
    try:
        said = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())
    except OSError:
        return 0.0
    return int(said[1]) / 1024 if said else 0.0
