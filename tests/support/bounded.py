"""Call something in a process of its own, whose time and memory are bounded."""

from __future__ import annotations

import os
import resource
import tempfile
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path


def told_within(call: Callable[[], object], *, seconds: int, mebibytes: int) -> str:
    """Return ``answer: …`` of a call, or ``error: …`` where it raises ValueError or OSError.

    Another exception, more time of the processor or more memory fail.
    """
    with tempfile.TemporaryDirectory() as folder:
        told = Path(folder) / "told"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads
            child = os.fork()
        if child == 0:
            _tell(call, told, seconds, mebibytes)
        _, status = os.waitpid(child, 0)
        assert status == 0, f"it ended with {status}"
        return told.read_text()


def _tell(call: Callable[[], object], told: Path, seconds: int, mebibytes: int) -> None:
    """Write what a call says, and end this process."""
    status = 99
    try:
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        try:
            said = f"answer: {call()}"
        except (ValueError, OSError) as error:
            said = f"error: {error}"
        more = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        assert more < mebibytes << 10, f"{more >> 10} MiB"
        told.write_text(said)
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)
