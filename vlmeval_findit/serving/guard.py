"""Run a command for as long as the process that started it lives.

Run by path, with the standard library only: ``python guard.py COMMAND …``. The starting process
holds the other end of standard input. When that closes, for whatever reason, the command's process
group gets SIGTERM, and SIGKILL after :data:`GRACE` seconds. Processes that left the group are
killed too, on Linux.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress

GRACE = 20.0  # seconds between SIGTERM and SIGKILL

# PR_SET_PDEATHSIG and PR_SET_CHILD_SUBREAPER of prctl(2).
_DEATH_SIGNAL = 1
_SUBREAPER = 36


def main(command: list[str]) -> int:
    """Run the command until it or standard input ends; return its exit status."""
    _prctl(_SUBREAPER, 1)
    server = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        process_group=0,
        # If the guard is killed, so is the server.
        preexec_fn=lambda: _prctl(_DEATH_SIGNAL, signal.SIGKILL),
    )
    for name in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(name, lambda *_: _signal(server, signal.SIGTERM))
    threading.Thread(target=_end_with_holder, args=(server,), daemon=True).start()
    status = server.wait()
    _signal(server, signal.SIGKILL)
    # As the subreaper, we are the parent of the server's orphans.
    with suppress(OSError):  # no children left
        while True:
            with open(f"/proc/self/task/{os.getpid()}/children") as children:
                for child in children.read().split():
                    os.kill(int(child), signal.SIGKILL)
            os.waitpid(-1, 0)
    return status if status >= 0 else 128 - status


def _end_with_holder(server: subprocess.Popen[bytes]) -> None:
    while os.read(0, 1):
        pass
    _signal(server, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        server.wait(GRACE)
    _signal(server, signal.SIGKILL)


def _signal(server: subprocess.Popen[bytes], name: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(server.pid, name)


def _prctl(option: int, value: int) -> None:
    """Set an attribute of this process, where the system has prctl."""
    with suppress(AttributeError):
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
