"""``report --watch``: the page of a sweep before, during and after it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from engine_fakes import FakeDeployment, FakeModel, demo_sweep, go
from paths import ROOT
from report_browser import NEEDS_CHROMIUM, start_browser
from waits import until

from vlmeval_findit.cli import main
from vlmeval_findit.core import duration
from vlmeval_findit.report import (
    FollowedSweep,
    SweepFiles,
    SweepSnapshot,
    SweepState,
    make_live_page,
)

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SWEEP = """
models: FullImage
datasets: [Demo_multilabel]
representations: [xyxy, cxcywh]
"""
"""Four cells of six rows: 24 calls."""


def files_of(folder: Path) -> SweepFiles:
    return SweepFiles(folder / "out", folder / "calls.jsonl")


def run(folder: Path, on_call: Callable[[int, str], None] | None = None, **fields: Any) -> None:
    go(demo_sweep(folder, SWEEP, **fields), FakeDeployment(FakeModel(on_call)))


def run_and_read(
    folder: Path,
    followed: FollowedSweep,
    at: Sequence[int],
    fail: Sequence[int] = (),
    **fields: Any,
) -> list[SweepSnapshot]:
    """Run the sweep, some of whose calls fail; return what is read ``at`` calls, and afterwards."""
    snapshots = []

    def on_call(number: int, text: str) -> None:
        if number in at:
            snapshots.append(followed.read(float(number)))
        if number in fail:
            raise TimeoutError("too slow")

    run(folder, on_call, **fields)
    return [*snapshots, followed.read(99.0)]


# --- before, during, after ------------------------------------------------------------------------


def test_before_while_and_after_a_sweep(tmp_path: Path) -> None:
    followed = FollowedSweep(files_of(tmp_path))
    before = followed.read(0.0)
    assert (before.state, before.cells) == (SweepState.WAITING, ())
    first, second, after = run_and_read(tmp_path, followed, (9, 15))
    assert first.state is SweepState.RUNNING
    assert 0 < first.answered < second.answered
    assert second.speed == pytest.approx((second.answered - first.answered) / 6)
    assert second.speed is not None
    assert second.seconds_left == pytest.approx(second.left / second.speed)
    assert after.state is SweepState.ENDED
    assert (after.answered, after.failed, after.left) == (24, 0, 0)
    assert [cell.finished for cell in after.cells] == [True] * 4
    # Exported copies of runs are no cells.
    words = ["export", str(tmp_path / "out"), "--to", "hub", "--out", str(tmp_path / "out/hub")]
    assert main(words) == 0
    assert followed.read(200.0).cells == after.cells


def test_failed_calls_are_counted_and_asked_again(tmp_path: Path) -> None:
    followed = FollowedSweep(files_of(tmp_path))
    between, ended = run_and_read(tmp_path, followed, [12], fail=(3, 7))
    assert between.failed == 2
    assert (ended.answered, ended.failed, ended.left) == (22, 2, 0)
    run(tmp_path)
    again = followed.read(199.0)
    assert (again.answered, again.failed) == (24, 0)


def test_of_several_samples_the_first_is_shown(tmp_path: Path) -> None:
    followed = FollowedSweep(files_of(tmp_path))
    between, ended = run_and_read(tmp_path, followed, [9], fail=[1], samples=2)
    assert (between.answered, between.failed) == (3, 1), "of eight calls"
    assert (len(ended.cells), ended.answered, ended.failed, ended.left) == (4, 23, 1, 0)


def test_a_killed_sweep_has_ended_with_calls_left(tmp_path: Path) -> None:
    followed = FollowedSweep(files_of(tmp_path))

    def die(number: int, text: str) -> None:
        if number == 8:
            followed.read(8.0)
        if number == 12:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, die)
    dead = followed.read(100.0)
    assert dead.state is SweepState.ENDED
    assert dead.left > 0
    assert "not finished: run it again to go on" in make_live_page(dead, NOW, None)
    # A page that starts now waits for the sweep to go on.
    assert FollowedSweep(files_of(tmp_path)).read(0.0).state is SweepState.WAITING


def test_a_replaced_journal_is_read_again(tmp_path: Path) -> None:
    journal = tmp_path / "calls.jsonl"
    followed = FollowedSweep(files_of(tmp_path))
    run(tmp_path)
    for path in (tmp_path / "out").rglob("*_provenance.json"):
        path.unlink()
    assert followed.read(0.0).answered == 24
    lines = journal.read_bytes().splitlines(keepends=True)
    fresh = journal.with_name("fresh")
    fresh.write_bytes(b"".join(lines[:10]))
    fresh.replace(journal)
    assert followed.read(1.0).answered == 10
    with journal.open("ab") as f:
        f.write(b"".join(lines[10:12]))
    assert followed.read(2.0).answered == 12


def test_the_page_has_all_facts(tmp_path: Path) -> None:
    followed = FollowedSweep(files_of(tmp_path))
    _, running, over = run_and_read(tmp_path, followed, (8, 16), fail=[5])
    page = make_live_page(replace(running, speed=2.0), NOW, 4.2)
    for text in (
        '<button type="button" id="pause" aria-pressed="false" data-seconds="5">Pause</button>',
        "Running.",
        "As of 2026-01-02 03:04:05 UTC",
        "2.0 calls per second",
        duration(running.left / 2),
        "Demo_<wbr>multilabel",
        "xyxy_json",
    ):
        assert text in page, text
    # Only a script that can be paused loads it again.
    assert 'http-equiv="refresh"' not in page
    assert page.count("<script") == 1
    ended = make_live_page(over, NOW, None)
    assert "<script" not in ended
    assert 'id="pause"' not in ended
    assert "1 call failed: run it again to ask them." in ended
    assert "No longer watched" in make_live_page(running, NOW, None)


# --- in a browser ---------------------------------------------------------------------------------


@pytest.mark.slow
@NEEDS_CHROMIUM
def test_the_page_loads_itself_again_and_keeps_the_place(tmp_path: Path) -> None:
    run(tmp_path)
    ended = FollowedSweep(files_of(tmp_path)).read(0.0)
    models = [replace(ended.cells[0], model=f"model-{number}") for number in range(30)]
    running = replace(ended, state=SweepState.RUNNING, cells=tuple(models))
    out = tmp_path / "page.html"
    out.write_text(make_live_page(running, NOW, 1.0))
    phone = {"deviceMetrics": {"width": 390, "height": 844, "pixelRatio": 1}}
    driver = start_browser(mobileEmulation=phone)
    try:
        driver.get(out.as_uri())
        assert driver.title.startswith("Running: ")
        ask = driver.execute_script
        assert ask("return document.documentElement.scrollWidth") <= 390
        pressed = "return document.getElementById('pause').ariaPressed"
        ask("document.getElementById('pause').click(); scrollTo(0, 700); window.before = true")
        assert ask(pressed) == "true"
        time.sleep(1.5)
        assert ask("return window.before") is True, "it was not loaded again"
        ask("document.getElementById('pause').click()")
        again = "return window.before === undefined && document.readyState === 'complete'"
        until(lambda: ask(again))
        assert ask("return scrollY") == 700
        out.write_text(make_live_page(ended, NOW, None))
        until(lambda: driver.title == "Ended: 24 of 24 calls")
        assert driver.get_log("browser") == []
    finally:
        driver.quit()


# --- the command ----------------------------------------------------------------------------------


def watched(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "vlmeval_findit", "report", "--watch", *arguments]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "VLMEVAL_FINDIT": "0"}
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env
    )


def test_started_before_the_sweep_it_waits_and_ends_with_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "sweep.yaml"
    config.write_text(f"{SWEEP}work_dir: {tmp_path}/out\njournal: {tmp_path}/calls.jsonl\n")
    out = tmp_path / "page.html"
    process = watched(str(config), "--out", str(out), "--every", "0.1")
    until(out.is_file)
    page = out.read_text()
    assert "Waiting" in page
    assert page.count("not begun") == 4

    def slowly(number: int, text: str) -> None:
        if number == 12:
            until(lambda: "Running" in out.read_text())

    run(tmp_path, slowly)
    output, errors = process.communicate(timeout=120)
    assert (process.returncode, errors) == (0, "")
    assert "ended; 4 of 4 cells finished, 24 calls answered, 0 failed, 0 left" in output
    assert "Every call was answered." in out.read_text()
    # After it: the same page at once.
    for name in (config, tmp_path / "out"):
        assert main(["report", "--watch", str(name), "--out", str(out)]) == 0
        assert "24 calls answered, 0 failed" in capsys.readouterr().out


def test_ctrl_c_leaves_a_page_that_is_no_longer_updated(tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    process = watched(str(tmp_path / "not-yet"), "--out", str(out), "--every", "0.02")
    assert process.stdout is not None
    assert "open it in a browser" in process.stdout.readline()
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=120)
    assert (process.returncode, errors) == (130, "")
    assert "no longer watched" in output
    assert "No longer watched" in out.read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--every", "3"], "--every needs --watch"),
        (["--watch", "outputs"], "--watch follows one sweep"),
        (["--watch", "--cards", "3"], "--watch excludes"),
        (["--watch", "--every", "nan"], "nan"),
    ],
)
def test_wrong_arguments_are_refused(
    tmp_path: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "page.html"
    assert main(["report", str(tmp_path), "--out", str(out), *arguments]) == 2
    assert message in capsys.readouterr().err
    assert not out.exists()
