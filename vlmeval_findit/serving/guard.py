"""Run a command for as long as the process that started this one lives.

Started by its path, with the standard library only: ``python guard.py COMMAND …``.  The other end
of its standard input is held by who started it.  When that end closes (the holder closed it, ended,
or was killed), the command's process group gets SIGTERM, and SIGKILL after :data:`GRACE` seconds.
Processes that left the group are killed too, where Linux shows them.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress

GRACE = 20.0
"""Seconds that a server has to end after SIGTERM."""

_DEATH_SIGNAL, _SUBREAPER = 1, 36
"""PR_SET_PDEATHSIG and PR_SET_CHILD_SUBREAPER of prctl(2)."""


def main(command: list[str]) -> int:
    """Run the command until it ends or standard input does; return its exit status."""
    _prctl(_SUBREAPER, 1)
    server = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        process_group=0,
        # A guard that is killed itself takes the server with it.
        preexec_fn=lambda: _prctl(_DEATH_SIGNAL, signal.SIGKILL),
    )
    for name in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(name, lambda *_: _signal(server, signal.SIGTERM))
    threading.Thread(target=_end_with_holder, args=(server,), daemon=True).start()
    status = server.wait()
    _signal(server, signal.SIGKILL)
    # Our server's orphans are our children now, as we are their reaper.
    with suppress(OSError):  # there are none any more
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
    """Set an attribute of this process; nothing where the system has no prctl."""
    with suppress(AttributeError):
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
