"""Batches whose run is killed or stopped: the next run finds them, and pays nothing twice."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from batch_server import BatchServer
from engine_fakes import assert_answered_once, files, records
from test_batches import CALLS, NAMES, assert_paid_once, batched, command, record_of
from waits import until

from vlmeval_findit.cli import main

pytestmark = pytest.mark.slow

KILLED = """
import itertools, os, signal, sys
from vlmeval_findit.cli import main
from vlmeval_findit.engine.batch_backend import Ledger
from vlmeval_findit.engine.journal.writer import Journal

at, note, append, appends = sys.argv.pop(1), Ledger.note, Journal.append, itertools.count(1)

def die_if(now):
    if now:
        os.kill(os.getpid(), signal.SIGKILL)

def noted(ledger, batch, **step):
    die_if(at in step)
    made = note(ledger, batch, **step)
    die_if(at == "intended")
    return made

def appended(journal, made):
    append(journal, made)
    die_if(at == "collecting" and next(appends) == 5)

Ledger.note, Journal.append = noted, appended
sys.exit(main(sys.argv[1:]))
"""


def kill(at: str, given: list[str]) -> None:
    """Run a command that is killed at a step."""
    done = subprocess.run([sys.executable, "-c", KILLED, at, *given], check=False)
    assert done.returncode == -signal.SIGKILL


@pytest.mark.parametrize(
    ("at", "kind"),
    [
        *((at, kind) for at in ("intended", "id") for kind in NAMES),
        *((at, "openai") for at in ("uploaded", "collected")),
        ("collecting", "anthropic"),
    ],
)
def test_a_killed_run_ends_as_an_undisturbed_run_and_asks_nothing_twice(
    at: str, kind: str, tmp_path: Path
) -> None:
    quiet, killed = tmp_path / "quiet", tmp_path / "killed"
    with BatchServer(polls=1, outcomes={3: "expired"}) as server:
        assert main(batched(quiet, server, kind)) == 1
        server.forget()
        kill(at, batched(killed, server, kind))
        assert len(server.batches) == (at not in ("intended", "uploaded"))
        server.paths.clear()
        assert main(batched(killed, server, kind)) == 1
        if at in ("intended", "uploaded") and kind == "openai":
            assert server.paths[:2] == ["POST /v1/files", "POST /v1/batches"], "nothing to look for"
        assert len(server.asked) == CALLS
        assert_paid_once(server)
        assert files(killed / "out") == files(quiet / "out")
        assert_answered_once(killed / "calls.jsonl", CALLS - 1)

        # What failed is asked again by the next run, and it alone.
        server.settings.outcomes = {}
        assert main(batched(killed, server, kind)) == 0
        assert sum(server.asked.values()) == CALLS + 1
        assert files(killed / "out").keys() == files(quiet / "out").keys()


def test_results_tell_an_anthropic_batch_from_others(tmp_path: Path) -> None:
    with BatchServer(polls=0) as server:
        # Somebody else's, of as many requests, at the same time.
        other: dict[str, Any] = {f"o{n}": {"messages": [{"content": []}]} for n in range(CALLS)}
        server._create(other, {})
        given = batched(tmp_path, server, "anthropic")
        kill("id", given)
        server._create(dict(other), {})
        for batch in server.batches.values():
            batch.polls = 1  # they have ended
        assert main(given) == 0
        assert len(server.batches) == 3
    lines = records(tmp_path / "calls.jsonl")
    assert {record_of(line)["call"]["batch"] for line in lines} == {"batch_1"}


def test_nothing_is_submitted_while_a_batch_may_be_of_this_journal(tmp_path: Path) -> None:
    with BatchServer(polls=10**6) as server:
        given = batched(tmp_path, server, "anthropic")
        kill("id", given)
        done = subprocess.Popen([sys.executable, "-m", "vlmeval_findit", *given])
        until(lambda: "GET /v1/messages/batches?limit=100" in server.paths)
        time.sleep(0.5)
        assert done.poll() is None, "it waits"
        server.settings.polls = 0
        assert done.wait(60) == 0
        assert_paid_once(server)


def test_a_run_goes_on_after_a_stop_while_waiting(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with BatchServer(hangs="GET /v1/batches/") as server:
        given = batched(tmp_path, server, "openai")
        waiting = subprocess.Popen([sys.executable, "-m", "vlmeval_findit", *given])
        until(lambda: any(path.startswith(server.settings.hangs) for path in server.paths))
        # Neither a second sweep nor calls one by one while it waits.
        assert main(given) != 0
        assert "two sweeps cannot write" in capsys.readouterr().err
        waiting.send_signal(signal.SIGINT)
        assert waiting.wait(30) == 130
        assert main(command(tmp_path, "--base-url", server.url)) == 2
        assert "12 of these calls are on their way in the batch batch_0" in capsys.readouterr().err
        assert server.single == 0
        # Nor with log-probabilities, which they were not asked for.
        assert main([*given, "--logprobs"]) == 2
        assert "asked without --logprobs" in capsys.readouterr().err
        server.settings.hangs = "nothing"
        # A smaller run first: what it does not want stays to be collected.
        elsewhere = ["--work-dir", str(tmp_path / "few")]
        assert main([*given, "--limit", "2", *elsewhere]) == 0
        assert main(given) == 0
        assert set(server.asked.values()) == {1}
    assert_answered_once(tmp_path / "calls.jsonl", CALLS)
