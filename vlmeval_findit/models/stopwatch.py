"""How long a model takes, and what it uses of this machine."""

from __future__ import annotations

import sys
import time

from ..protocol import CallTime


class Stopwatch:
    """Measures messages that are answered together, from now on.

    Where torch holds memory of GPUs in this process, all of them are at work. Where it holds none
    and the machine has a GPU, another process may use it (vLLM's workers): what the model uses is
    not known.

    Args:
        runs_here: the model runs in this process.
    """

    def __init__(self, *, runs_here: bool) -> None:
        self._runs_here = runs_here
        self._began = time.perf_counter()
        self._processor = time.process_time()

    def call_time(self, count: int) -> CallTime:
        """Return what each of ``count`` messages took until now: equal shares."""
        seconds = round((time.perf_counter() - self._began) / count, 6)
        processor = round((time.process_time() - self._processor) / count, 6)
        gpus = gpus_in_use() if self._runs_here else None
        if gpus is None:
            return CallTime(seconds)
        if gpus:
            return CallTime(seconds, gpu_seconds=gpus * seconds)
        return CallTime(seconds, cpu_seconds=processor)


def gpus_in_use() -> int | None:
    """Return on how many GPUs torch holds memory in this process; None: another process may."""
    torch = sys.modules.get("torch")
    if torch is None:
        return 0
    if torch.cuda.is_available():
        devices = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()
        return sum(torch.cuda.memory_allocated(each) > 0 for each in devices) or None
    if torch.backends.mps.is_available():
        return 1 if torch.mps.current_allocated_memory() else None
    return 0
