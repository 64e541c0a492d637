"""``report --watch``: the page of a sweep before, during and after it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from engine_fakes import FakeBackends, FakeModel, demo_sweep, go
from paths import ROOT
from report_browser import NEEDS_CHROMIUM, start_browser
from waits import until

from vlmeval_findit.cli import main, report
from vlmeval_findit.core.formatting import duration
from vlmeval_findit.report.followed import Followed, Snapshot, SweepFiles, SweepState
from vlmeval_findit.report.live_page import make_live_page

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SWEEP = """
models: FullImage
datasets: [Demo_multilabel]
representations: [xyxy, cxcywh]
"""
"""Four cells of six rows: 24 calls."""


def place_of(folder: Path) -> SweepFiles:
    return SweepFiles(folder / "out", (folder / "calls.jsonl",))


class Observed:
    """A model whose sweep is read at some calls: ``snapshots`` by number of the call."""

    def __init__(self, followed: Followed, at: set[int], fail: set[int] = frozenset()) -> None:  # type: ignore[assignment]
        self.snapshots: dict[int, Snapshot] = {}
        self._followed, self._at, self._fail = followed, at, fail

    def __call__(self, number: int, text: str) -> None:
        if number in self._at:
            self.snapshots[number] = self._followed.read(float(number))
        if number in self._fail:
            raise TimeoutError("too slow")


def run(folder: Path, observed: Callable[[int, str], None] | None = None, **fields: Any) -> None:
    go(demo_sweep(folder, SWEEP, **fields), FakeBackends(FakeModel(observed)))


# --- before, during, after ------------------------------------------------------------------------


def test_before_while_and_after_a_sweep(tmp_path: Path) -> None:
    followed = Followed([place_of(tmp_path)])
    before = followed.read(0.0)
    assert (before.state, before.cells) == (SweepState.WAITING, ())
    observed = Observed(followed, {9, 15, 21})
    run(tmp_path, observed)
    first, second = observed.snapshots[9], observed.snapshots[15]
    assert first.state is SweepState.RUNNING
    assert first.answered > 0
    assert second.answered > first.answered
    assert second.speed == pytest.approx((second.answered - before.answered) / 15, rel=0.4)
    assert second.speed is not None
    assert second.seconds_left == pytest.approx(second.left / second.speed)
    after = followed.read(200.0)
    assert after.state is SweepState.ENDED
    assert (after.answered, after.failed, after.left) == (24, 0, 0)
    assert all(cell.finished for cell in after.cells)
    assert len(after.cells) == 4


def test_failed_calls_are_counted_and_asked_again(tmp_path: Path) -> None:
    followed = Followed([place_of(tmp_path)])
    observed = Observed(followed, {12}, fail={3, 7})
    run(tmp_path, observed)
    assert observed.snapshots[12].failed == 2
    ended = followed.read(99.0)
    assert (ended.answered, ended.failed, ended.left) == (22, 2, 0)
    run(tmp_path)
    again = followed.read(199.0)
    assert (again.answered, again.failed) == (24, 0)


def test_of_several_samples_the_first_is_shown(tmp_path: Path) -> None:
    followed = Followed([place_of(tmp_path)])
    observed = Observed(followed, {9}, fail={1})
    run(tmp_path, observed, samples=2)
    between, ended = observed.snapshots[9], followed.read(99.0)
    assert (between.answered, between.failed) == (3, 1), "of eight calls"
    assert (len(ended.cells), ended.answered, ended.failed, ended.left) == (4, 23, 1, 0)


def test_a_killed_sweep_has_ended_with_calls_left(tmp_path: Path) -> None:
    followed = Followed([place_of(tmp_path)])
    observed = Observed(followed, {8})

    def die(number: int, text: str) -> None:
        observed(number, text)
        if number == 12:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, die)
    dead = followed.read(100.0)
    assert dead.state is SweepState.ENDED
    assert dead.left > 0
    assert "not finished: run it again to go on" in make_live_page(dead, NOW, None)
    # A page that starts now waits for the sweep to go on.
    assert Followed([place_of(tmp_path)]).read(0.0).state is SweepState.WAITING


def test_two_sweeps_at_once_and_one_page(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    for folder in (first, second):
        folder.mkdir()
    both = Followed([SweepFiles(tmp_path)])
    snapshots: list[Snapshot] = []

    def inner(number: int, text: str) -> None:
        if number == 10:
            snapshots.append(both.read(1.0))

    def outer(number: int, text: str) -> None:
        if number == 8:
            run(second, inner)
            snapshots.append(both.read(2.0))

    run(first, outer)
    while_both, one_left = snapshots
    assert while_both.state is one_left.state is SweepState.RUNNING
    assert sum(cell.finished for cell in one_left.cells) == 4
    ended = both.read(3.0)
    assert (ended.state, ended.answered, len(ended.cells)) == (SweepState.ENDED, 48, 8)


def test_calls_of_another_server_do_not_count(tmp_path: Path) -> None:
    journal = tmp_path / "calls.jsonl"
    run(tmp_path)
    for path in (tmp_path / "out").rglob("*_provenance.json"):
        path.unlink()
    records = [json.loads(line) for line in journal.read_bytes().splitlines()]
    for record in records[:10]:
        record["made_by"] = {"endpoint": "http://elsewhere/v1"}
    journal.write_text("".join(json.dumps(record) + "\n" for record in records))
    assert Followed([place_of(tmp_path)]).read(0.0).answered == 14


def test_a_replaced_journal_is_read_again(tmp_path: Path) -> None:
    journal = tmp_path / "calls.jsonl"
    followed = Followed([place_of(tmp_path)])
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


def test_unreadable_files_are_reported_and_the_rest_is_shown(tmp_path: Path) -> None:
    run(tmp_path)
    (bad, *_) = sorted((tmp_path / "out").rglob("*_identity.json"))
    bad.write_text("{")
    notes = tmp_path / "out" / "my_calls.jsonl"
    notes.write_text("not a journal\n")
    snapshot = Followed([place_of(tmp_path)]).read(0.0)
    assert len(snapshot.cells) == 3
    assert len(snapshot.problems) == 2
    assert "my_calls.jsonl" in make_live_page(snapshot, NOW, 5.0)


# --- the page -------------------------------------------------------------------------------------


def test_the_page_has_all_facts(tmp_path: Path) -> None:
    followed = Followed([place_of(tmp_path)])
    observed = Observed(followed, {8, 16}, fail={5})
    run(tmp_path, observed)
    page = make_live_page(replace(observed.snapshots[16], speed=2.0), NOW, 4.2)
    left = observed.snapshots[16].left
    for text in (
        '<button type="button" id="pause" aria-pressed="false" data-seconds="5">Pause</button>',
        "Running.",
        "As of 2026-01-02 03:04:05 UTC",
        "2.0 calls per second",
        duration(left / 2),
        "Demo_multilabel",
        "xyxy_json",
    ):
        assert text in page, text
    # Only a script that can be paused loads it again.
    assert 'http-equiv="refresh"' not in page
    assert page.count("<script") == 1
    ended = make_live_page(followed.read(99.0), NOW, None)
    assert "<script" not in ended
    assert 'id="pause"' not in ended
    assert "1 call failed: run it again to ask them." in ended
    stopped = make_live_page(observed.snapshots[16], NOW, None)
    assert "No longer watched" in stopped


# --- in a browser ---------------------------------------------------------------------------------


@pytest.mark.slow
@NEEDS_CHROMIUM
def test_the_page_loads_itself_again_and_keeps_the_place(tmp_path: Path) -> None:
    run(tmp_path)
    ended = Followed([place_of(tmp_path)]).read(0.0)
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
        ask("document.getElementById('pause').click()")
        assert ask(pressed) == "true"
        driver.refresh()
        assert ask(pressed) == "true"
        ask("document.querySelector('#model-3 summary').click()")
        ask("document.getElementById('cells-5').focus(); scrollTo(0, 700); window.before = true")
        ask("document.getElementById('pause').click()")
        until(
            lambda: ask("return window.before === undefined && document.readyState") == "complete"
        )
        assert ask(pressed) == "false"
        assert ask("return [document.getElementById('model-3').open, scrollY]") == [False, 700]
        assert ask("return document.activeElement.id") == "cells-5"
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
    # After it, and twice: the same page at once; a sweep that is named twice counts once.
    for names in ([config], [config, tmp_path / "out"], [tmp_path / "out"]):
        assert main(["report", "--watch", *map(str, names), "--out", str(out)]) == 0
        assert "24 calls answered, 0 failed" in capsys.readouterr().out


def test_ctrl_c_leaves_a_whole_page_with_two_writers(tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    arguments = (str(tmp_path / "not-yet"), "--out", str(out), "--every", "0.02")
    processes = [watched(*arguments) for _ in range(2)]
    for process in processes:
        assert process.stdout is not None
        assert "open it in a browser" in process.stdout.readline()
    for _ in range(50):
        assert out.read_text().rstrip().endswith("</html>")
        time.sleep(0.005)
    for process in processes:
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=120)
        assert "Traceback" not in errors
    assert process.returncode == 130
    assert "no longer watched" in output
    page = out.read_text()
    assert "No longer watched" in page
    assert 'id="pause"' not in page
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


def test_an_interrupt_that_python_drops_ends_watching(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python drops an interrupt while it finalizes an object."""
    written: list[Path] = []

    def write(out: Path, *_: Any) -> None:
        written.append(out)
        assert len(written) < 4
        with suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(report, "_write_live_page", write)
    command = ["report", "--watch", str(tmp_path / "not-yet"), "--every", "0.01"]
    assert main([*command, "--out", str(tmp_path / "page.html")]) == 130


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--every", "3"], "--every needs --watch"),
        (["--watch", "--cards", "3"], "--watch does not go with"),
        (["--watch", "--every", "0"], "0"),
        (["--watch", "--every", "nan"], "nan"),
        (["--watch", "swep.yaml"], "swep.yaml: no such file"),
    ],
)
def test_wrong_arguments_are_refused(
    tmp_path: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "page.html"
    assert main(["report", str(tmp_path), "--out", str(out), *arguments]) == 2
    assert message in capsys.readouterr().err
    assert not out.exists()
