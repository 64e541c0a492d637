"""Leases of other processes, and leases that last for half a second."""

from __future__ import annotations

from pathlib import Path

import pytest

from vlmeval_findit.core import lock as locks


def write_lease(path: Path, host: str, pid: int, seconds: float) -> None:
    """Write the lock of another process, which agrees on how long a lease lasts, and is silent."""
    path.write_text(
        f"filelock/2\npid={pid}\nhost={host}\nmode=lease\ntoken={'0' * 32}\nduration={seconds!r}\n"
    )


def quicken_leases(monkeypatch: pytest.MonkeyPatch) -> float:
    """Let leases last for half a second, and return it."""
    monkeypatch.setattr(locks, "LEASE_SECONDS", 0.5)
    monkeypatch.setattr(locks, "HEARTBEAT_SECONDS", 0.1)
    monkeypatch.setattr(locks, "_POLL_SECONDS", 0.02)
    return 0.5
