"""Clocks that are wrong, or are set during a run: nothing hangs, is lost, or is taken over."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, tzinfo
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler
from itertools import count
from pathlib import Path

import pytest
from batch_server import BatchServer
from chat_server import Answer, Asked, ChatServer, completion, error
from engine_fakes import assert_answered_once
from every_pair import every_pair
from lease_files import quicken_leases, write_lease

from vlmeval_findit.cli import main
from vlmeval_findit.core import Lock, LockedError, is_held
from vlmeval_findit.core import lock as locks

HOUR = 3600.0
YEARS = 20 * 365 * 24 * HOUR
CALLS = 12

DAY = 24 * HOUR
END_OF_32_BITS = 2.0**31

Clock = Callable[[float, float, int], float]
"""What a clock shows, in Unix seconds.

Its arguments: the right time, since when it has been wrong, and how often it was looked at.
"""


def off(seconds: float) -> Clock:
    return lambda now, begin, look: now + seconds


def set_by(seconds: float) -> Clock:
    """Return a clock that is set in a run."""
    return lambda now, begin, look: now + seconds * (look > 30)


def at_speed(speed: float, ahead: float = 0.0) -> Clock:
    """Return a clock that is so many seconds ahead, and goes on at a speed."""
    return lambda now, begin, look: begin + ahead + speed * (now - begin)


def since(shown: float) -> Clock:
    """Return a clock that begins at a moment."""
    return lambda now, begin, look: shown + now - begin


CLOCKS: dict[str, Clock] = {
    "two minutes ahead": off(120),
    "two minutes behind": off(-120),
    "hours ahead": off(5 * HOUR),
    "hours behind": off(-5 * HOUR),
    "years ahead": off(YEARS),
    "years behind": off(-YEARS),
    "set forward by hours": set_by(5 * HOUR),
    "set back by hours": set_by(-5 * HOUR),
    "set forward by years": set_by(YEARS),
    "set back by years": set_by(-YEARS),
    "to and fro": lambda now, begin, look: now + (-YEARS, HOUR, 0, -HOUR, YEARS)[look % 5],
    "of 1970": since(0.0),
    "before 1970": since(-DAY),
    "of 1980, without a battery": since(10 * 365 * DAY),
    "past the end of 32 bits": lambda now, begin, look: now - begin + END_OF_32_BITS - 2 + look % 4,
    "of the year 2200": since(7.26e9),
    "stands still at hours ahead": at_speed(0.0, 5 * HOUR),
    "stands still at hours behind": at_speed(0.0, -5 * HOUR),
    "a hundred times as fast": at_speed(100.0),
    "five times as slow": at_speed(0.2),
    "backwards": at_speed(-1.0),
    "a day on at each look": lambda now, begin, look: now + DAY * look,
    "a day back at each look": lambda now, begin, look: now - DAY * look,
    "whole hours": lambda now, begin, look: now // HOUR * HOUR,
}

SWEEP = """
models: [{name: Mine, space: grid1000, served: org/mine}]
datasets: [Demo]
representations: [xyxy, cxcywh]
outputs: json
limit: 6
inference: {poll: 0.01}
"""


def set_clock(clock: Clock, patch: pytest.MonkeyPatch) -> None:
    """Let each look at the time of day see a clock that is wrong; a server states what it wants."""
    patch.setattr(
        BaseHTTPRequestHandler, "send_response", BaseHTTPRequestHandler.send_response_only
    )
    right, looks = time.time, count()
    begin = right()

    def wrong() -> float:
        return clock(right(), begin, next(looks))

    class Wrong(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Wrong:
            return cls.fromtimestamp(wrong(), tz)

    patch.setattr(time, "time", wrong)
    patch.setattr(time, "time_ns", lambda: int(wrong() * 1e9))
    for name, module in list(sys.modules.items()):
        if name.startswith("vlmeval_findit.") and vars(module).get("datetime") is datetime:
            patch.setattr(module, "datetime", Wrong)


def sweep(folder: Path, url: str, *more: str) -> list[str]:
    (folder / "sweep.yaml").write_text(SWEEP)
    places = ["--work-dir", str(folder / "out"), "--journal", str(folder / "calls.jsonl")]
    return ["sweep", str(folder / "sweep.yaml"), *places, "--base-url", url, *more]


def refusing(then: Callable[[], float], *, with_date: bool) -> Callable[[Asked, int], Answer]:
    """Refuse every third request until a moment, which is said as a date."""

    def script(asked: Asked, number: int) -> Answer:
        if number % 3:
            return completion('[{"bbox": [10, 20, 300, 400]}]')
        now = then()
        said = format_datetime(datetime.fromtimestamp(now + 1, UTC), usegmt=True)
        dates = {"Date": format_datetime(datetime.fromtimestamp(now, UTC), usegmt=True)}
        return error(429, "slow down", Retry_After=said, **(dates if with_date else {}))

    return script


# Without a date, two minutes are waited for.
FAR_OFF = [clock for clock in CLOCKS if "minutes" not in clock]


@every_pair("clock, with_date", FAR_OFF, [True, False], fast=2)
def test_dates_to_wait_for_end_no_run(
    clock: str, with_date: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ChatServer(refusing(time.time, with_date=with_date)) as server:
        set_clock(CLOCKS[clock], monkeypatch)
        given = sweep(tmp_path, server.url)
        # Without its date, a server may seem to ask for years: the next run asks again.
        statuses = [main(given)]
        while statuses[-1] == 1 and not with_date and len(statuses) < 20:
            statuses.append(main(given))
        assert statuses[-1] == 0
    assert_answered_once(tmp_path / "calls.jsonl", CALLS)
    assert main(["leaderboard", str(tmp_path / "out"), "--out", str(tmp_path / "board")]) == 0


@every_pair("clock, kind", CLOCKS, ["openai", "anthropic"], fast=4)
def test_batches_are_paid_once(
    clock: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with BatchServer(polls=2, loses_reply=1) as server:
        set_clock(CLOCKS[clock], monkeypatch)
        given = sweep(tmp_path, server.url, "--batch", kind)
        assert main(given) == 0
        assert sum(server.asked.values()) == CALLS
    assert_answered_once(tmp_path / "calls.jsonl", CALLS)


@pytest.fixture
def quick_leases(monkeypatch: pytest.MonkeyPatch) -> float:
    return quicken_leases(monkeypatch)


@pytest.mark.parametrize("clock", CLOCKS)
def test_living_locks_are_seen_and_silent_ones_are_not(
    clock: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "lock"
    write_lease(path, "elsewhere", 1, locks.LEASE_SECONDS)
    silent = time.time() - 2 * locks.LEASE_SECONDS
    set_clock(CLOCKS[clock], monkeypatch)
    for _ in range(40):
        assert is_held(path)
    os.utime(path, (silent, silent))
    for _ in range(40):
        assert not is_held(path)


@pytest.mark.parametrize("clock", CLOCKS)
def test_a_living_lock_is_not_taken_over(
    clock: str, quick_leases: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "lock"
    write_lease(path, "elsewhere", 1, quick_leases)
    sleep = time.sleep
    monkeypatch.setattr("time.sleep", lambda pause: (sleep(pause), os.utime(path)))
    set_clock(CLOCKS[clock], monkeypatch)
    with pytest.raises(LockedError, match="held by process 1 on elsewhere"):
        Lock(path, "one at a time")


@pytest.mark.parametrize("clock", CLOCKS)
def test_one_process_takes_a_dead_lock_over(
    clock: str, quick_leases: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another begins to take it over at the same moment: its claim is young."""
    path = tmp_path / "lock"
    write_lease(path, "elsewhere", 1, quick_leases)
    # As on file systems that cannot exchange two names: filelock takes no lock over.
    monkeypatch.setattr(Lock, "_got", lambda *_: False)
    dead = Path.read_bytes(path)
    claim = path.with_name(f"lock.{locks.sha256(dead).hexdigest()[:16]}")
    replaced = Lock._replaced

    def claimed(lock: Lock, lease: bytes | None) -> bool:
        claim.touch()
        return replaced(lock, lease)

    monkeypatch.setattr(Lock, "_replaced", claimed)
    set_clock(CLOCKS[clock], monkeypatch)
    with pytest.raises(LockedError):
        Lock(path, "one at a time")
    assert claim.exists(), "the other's"
    assert path.read_bytes() == dead
