"""Let a sweep ask two servers that misbehave, kill and continue it, and check what is left.

``python soak.py FOLDER`` runs ``findit sweep`` with ``--max-usd`` at two servers of this machine.
They answer, break off, reset, stall, refuse, send bombs, and name other models, by a seeded
draw; the command is killed (``kill -9``) after a number of requests that is drawn, too, and
continued.  At the end they behave.  Then: each answer is stored once, no command made the servers
charge more than its limit, no answer was paid twice but for those in flight at a kill, the memory
of the commands is that of a quiet run, and so are all files.

With ``--seconds`` this is done again, with other draws, until a quiet run just fits into what is
left of that time.  It ends after a number of requests, whatever happens, and prints figures as
JSON.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

SUPPORT = Path(__file__).resolve().parent.parent / "tests" / "support"
sys.path.insert(0, str(SUPPORT))

# Nothing of the package is imported before the end: what a command is counted to take is never
# less than what its parent had.
from broken_server import LOST, ODD, REFUSED, RawServer, Write  # noqa: E402

SWEEP = """
models: [{name: Stub, space: grid1000, served: stub}]
datasets: [Demo]
representations: REPRESENTATIONS
outputs: [text, json]
"""

AT_ONCE = 4
TIMEOUT = 2  # seconds
CENTS = 1  # of a reply
KILLED = -signal.SIGKILL

# What is drawn, with its weight.  A refused key, model or address ends the command.
PASSING = ("status 429", "status 503", "status 529")
ENDING = ("status 401", "status 402", "status 403", "status 404", "status 307")
STALLS = ("never answers", "stalls within the head", "stalls within the body")


def packed(begin: bytes, repeated: bytes, end: bytes, mebibytes: int = 60) -> bytes:
    """Return much of one thing in a few kilobytes, and the head that says so."""
    packer = zlib.compressobj(9)
    whole = repeated * ((1 << 20) // len(repeated))
    parts = [packer.compress(begin)]
    parts += [packer.compress(whole) for _ in range(mebibytes)]
    body = b"".join([*parts, packer.compress(end), packer.flush()])
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: deflate\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


BOMBS = (
    packed(b"", bytes(1), b""),
    packed(b'{"a":[', b"{},", b"{}]}"),
    packed(b'{"choices":[{"finish_reason":"stop","message":{"content":"', b"x", b'"}}]}'),
    packed(b'{"a":[', b"{},", b"{}]}", mebibytes=1),
)


def reply_to(request: bytes) -> bytes:
    """Return the reply to a request: the same text and model to the same request."""
    drawn = random.Random(hashlib.sha256(request).digest())
    left, top = drawn.randrange(500), drawn.randrange(500)
    text = json.dumps([{"bbox_2d": [left, top, left + 400, top + 300], "label": "thing"}])
    kind = drawn.randrange(12)
    reason = "stop"
    if kind == 0:
        text = "There is no such thing in the picture."
    elif kind == 1:
        text, reason = text[:20], "length"
    elif kind == 2:
        text, reason = "", "content_filter"
    reply = {
        "id": "gen-1",
        "model": drawn.choice(["stub", "stub", "stub-2", "another/model"]),
        "choices": [{"finish_reason": reason, "message": {"role": "assistant", "content": text}}],
        "usage": {"prompt_tokens": 900, "completion_tokens": 20, "cost": CENTS / 100},
    }
    return json.dumps(reply).encode()


@dataclass
class Books:
    """What two servers did, by their own account."""

    requests: int = 0
    answered: int = 0
    lost: int = 0  # charged, without an answer
    refused: int = 0  # not charged
    drawn: Counter[str] = field(default_factory=Counter)
    changed: threading.Condition = field(default_factory=threading.Condition)

    @property
    def cents(self) -> int:
        return (self.answered + self.lost) * CENTS

    def note(self, kind: str, mode: str) -> None:
        with self.changed:
            self.requests += 1
            setattr(self, kind, getattr(self, kind) + 1)
            self.drawn[mode] += 1
            self.changed.notify_all()


class Misbehaving(RawServer):
    """Draws what becomes of a reply, unless it is calm."""

    def __init__(self, seed: str) -> None:
        super().__init__()
        self.calm = True
        self.books = Books()
        self._random = random.Random(seed)
        self._lock = threading.Lock()

    def answer(self, connection: socket.socket, request: bytes) -> None:
        with self._lock:
            mode, write, kind = self._draw()
            delay = 0 if self.calm else self._random.choice([0, 0, 0.02, 0.2])
        self.books.note(kind, mode)
        time.sleep(delay)
        write(connection, reply_to(request))

    def _draw(self) -> tuple[str, Write, str]:
        number = 1.0 if self.calm else self._random.random()
        choose = self._random.choice
        if number < 0.004:
            mode = choose(ENDING)
            return mode, REFUSED[mode], "refused"
        if number < 0.04:
            mode = choose([name for name in REFUSED if name not in ENDING + PASSING])
            return mode, REFUSED[mode], "refused"
        if number < 0.08:
            mode = choose(PASSING)
            return mode, REFUSED[mode], "refused"
        if number < 0.09:
            mode = choose(STALLS)
            return mode, LOST[mode], "lost"
        if number < 0.16:
            mode = choose([name for name in LOST if name not in STALLS])
            return mode, LOST[mode], "lost"
        if number < 0.19:
            bomb = choose(BOMBS)
            return "bomb", lambda connection, body: connection.sendall(bomb), "lost"
        mode = "whole" if self.calm else choose(list(ODD))
        return mode, ODD[mode], "answered"


@dataclass(frozen=True)
class Ended:
    """How a command ended: killed (-9) or with a status."""

    status: int
    mebibytes: float
    cents: int  # what the servers charged meanwhile
    output: str


@dataclass(frozen=True)
class Round:
    """A sweep that was killed, continued and has ended."""

    folder: Path
    books: Books
    ends: list[Ended]

    @property
    def kills(self) -> int:
        return sum(end.status == KILLED for end in self.ends)

    @property
    def dearest(self) -> int:
        return max(end.cents for end in self.ends)

    @property
    def mebibytes(self) -> float:
        return max(end.mebibytes for end in self.ends)


class Soak:
    """The sweep in a folder, at two servers."""

    def __init__(
        self, folder: Path, servers: Sequence[Misbehaving], arguments: argparse.Namespace
    ) -> None:
        self._folder = folder
        self._servers = servers
        self._given = arguments
        folder.mkdir(parents=True)
        self.books = Books()
        for server in servers:
            server.books = self.books
        (folder / "sweep.yaml").write_text(
            SWEEP.replace("REPRESENTATIONS", arguments.representations)
        )

    def run(self, usd: float, kill_after: int | None = None, until: float = math.inf) -> Ended:
        """Run the command; kill it after so many requests, or at a moment of the clock."""
        before, first = self.books.cents, self.books.requests
        output = self._folder / "output.txt"
        with output.open("wb") as f:
            process = subprocess.Popen(
                self._command(usd),
                stdout=f,
                stderr=subprocess.STDOUT,
                cwd=self._folder,
                env={**os.environ, "LMUData": str(self._folder.parent / "lmu")},
            )
        usage: list[tuple[int, float]] = []

        def wait() -> None:
            _, status, used = os.wait4(process.pid, 0)
            with self.books.changed:
                usage.append((os.waitstatus_to_exitcode(status), used.ru_maxrss / 1024))
                self.books.changed.notify_all()

        waiting = threading.Thread(target=wait)
        waiting.start()
        if kill_after is not None:
            self._until(lambda: bool(usage) or self.books.requests - first >= kill_after, until)
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)
        waiting.join()
        ((status, mebibytes),) = usage
        return Ended(status, mebibytes, self.books.cents - before, output.read_text())

    def run_killed(self, calls: int, seed: str, until: float) -> list[Ended]:
        """Kill the command and continue it, until it was killed often enough or has ended.

        The last is killed at the moment ``until`` of the clock.
        """
        given, drawn = self._given, random.Random(seed)
        ends: list[Ended] = []
        kills = 0
        while kills < given.kills and time.monotonic() < until:
            assert self.books.requests < given.most * calls, f"{self.books} after {kills} kills"
            kill_after = drawn.randrange(1, 2 * calls // given.kills + 2)
            ends.append(self.run(given.usd, kill_after, until))
            if ends[-1].status == 0:
                break
            kills += ends[-1].status == KILLED
        return ends

    def _until(self, happened: Callable[[], bool], moment: float) -> None:
        left = None if moment == math.inf else max(0.0, moment - time.monotonic())
        with self.books.changed:
            self.books.changed.wait_for(happened, left)

    def _command(self, usd: float) -> list[str]:
        start = "import sys; from vlmeval_findit.cli import main; sys.exit(main(sys.argv[1:]))"
        urls = ",".join(server.url for server in self._servers)
        return [
            *(sys.executable, "-c", start, "sweep", "sweep.yaml", "--work-dir", "out"),
            *("--base-url", urls, "--api-nproc", str(AT_ONCE), "--timeout", str(TIMEOUT)),
            *("--max-usd", str(usd), "--limit", str(self._given.rows)),
            *("--samples", str(self._given.samples), "--temperature", "0.7"),
        ]


def soak(folder: Path, given: argparse.Namespace) -> dict[str, object]:
    """Run all; return figures."""
    start = time.monotonic()
    one, other = Misbehaving(f"{given.seed}/0"), Misbehaving(f"{given.seed}/1")
    rounds: list[Round] = []
    with one, other:
        quiet = Soak(folder / "quiet", [one, other], given)
        end = quiet.run(usd=1e6)
        assert end.status == 0, end.output
        calls = quiet.books.answered
        assert quiet.books.requests == calls
        until = math.inf
        if given.seconds is not None:
            until = start + given.seconds - (time.monotonic() - start)
        while not rounds or (given.seconds is not None and time.monotonic() < until):
            name = f"noisy-{len(rounds)}"
            noisy = Soak(folder / name, [one, other], given)
            one.calm = other.calm = False
            ends = noisy.run_killed(calls, f"{given.seed}/{name}", until)
            one.calm = other.calm = True
            while ends[-1].status != 0:
                assert noisy.books.requests < given.most * calls, noisy.books
                ends.append(noisy.run(given.usd))
                assert ends[-1].status in (0, 3), ends[-1].output
            rounds.append(Round(folder / name, noisy.books, ends))
            check(folder / "quiet", given, calls, end, rounds[-1])
    return figures_of(given, calls, end, rounds)


def results(folder: Path) -> dict[str, str]:
    """Return the content of all files of results, without what it took to get each answer."""
    from engine_fakes import files

    contents = files(folder / "out")
    del contents["calls.jsonl"]  # in the order of replies
    taken = re.compile(r', \\"call\\": \{[^}]*\}')
    return {name: taken.sub("", text) for name, text in contents.items()}


def check(
    quiet_folder: Path, given: argparse.Namespace, calls: int, quiet: Ended, done: Round
) -> None:
    """Check what a round left."""
    from engine_fakes import assert_answered_once

    assert_answered_once(done.folder / "out" / "calls.jsonl", calls)
    in_flight = 2 * AT_ONCE * CENTS
    limit = round(given.usd * 100)
    assert done.dearest <= limit + in_flight, f"{done.dearest} cents"
    again = done.books.answered - calls
    assert 0 <= again <= done.kills * 2 * AT_ONCE, f"{again} answers were paid twice"
    assert not any("Traceback" in end.output for end in done.ends)
    most = done.mebibytes
    assert most <= quiet.mebibytes + 64, f"{most:.0f} MiB, {quiet.mebibytes:.0f} when quiet"
    left, expected = results(done.folder), results(quiet_folder)
    differing = sorted(
        name for name in left.keys() | expected.keys() if left.get(name) != expected.get(name)
    )
    assert not differing, differing


def figures_of(
    given: argparse.Namespace, calls: int, quiet: Ended, rounds: list[Round]
) -> dict[str, object]:
    """Return figures of all rounds."""
    drawn: Counter[str] = Counter()
    statuses: Counter[int] = Counter()
    for done in rounds:
        drawn += done.books.drawn
        statuses.update(end.status for end in done.ends)
    return {
        "rounds": len(rounds),
        "kills": statuses[KILLED],
        "commands": statuses.total(),
        "calls of a round": calls,
        "calls": calls * len(rounds),
        "requests": sum(done.books.requests for done in rounds),
        "answered": sum(done.books.answered for done in rounds),
        "lost": sum(done.books.lost for done in rounds),
        "refused": sum(done.books.refused for done in rounds),
        "charged, cents": sum(done.books.cents for done in rounds),
        "dearest command, cents": max(done.dearest for done in rounds),
        "limit, cents": round(given.usd * 100),
        "statuses": dict(statuses),
        "most MiB": [round(done.mebibytes) for done in rounds],
        "quiet MiB": round(quiet.mebibytes),
        "modes": len(drawn),
    }


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--samples", type=int, default=1)
    parser.add_argument("--representations", default="all")
    parser.add_argument("--usd", type=float, default=1.0, help="of each command")
    parser.add_argument("--most", type=int, default=5, help="requests, in calls")
    parser.add_argument("--seconds", type=float, help="of all; without it, one round")
    parser.add_argument("--seed", default="1")
    given = parser.parse_args(arguments)
    start = time.monotonic()
    figures = soak(given.folder, given)
    figures["seconds"] = round(time.monotonic() - start)
    print(json.dumps(figures))


if __name__ == "__main__":
    main(sys.argv[1:])
