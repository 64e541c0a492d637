"""``python run_findit.py``: the first command of the README, as a new user runs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from host_runs import RUN_FINDIT, environment, require_host

from vlmeval_findit.cli.demo import MODELS, PHOTOGRAPHS, SCENES

pytestmark = pytest.mark.host


def test_it_shows_scores_the_best_format_and_a_report(tmp_path: Path) -> None:
    require_host()
    # No proxy and no index: a request to anywhere would fail.
    nowhere = {"HTTPS_PROXY": "http://127.0.0.1:9", "HTTP_PROXY": "http://127.0.0.1:9"}
    done = subprocess.run(
        [sys.executable, *RUN_FINDIT],
        cwd=tmp_path,
        env=environment(tmp_path / "lmu", **nowhere),
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    out, work = done.stdout, tmp_path / "outputs" / "demo"
    for name in (*SCENES, *PHOTOGRAPHS):
        for model in MODELS:
            assert any(line.split()[:2] == [name, model] for line in out.splitlines())
    assert "FindIt-Nano: best format xyxy json bbox_2d" in out
    formats = yaml.safe_load((work / "best_formats.yaml").read_text())
    ranked = formats["models"]["FindIt-Nano"]["averages"]
    assert ranked[0]["format"] == "xyxy json bbox_2d"
    assert ranked[0]["F1@0.5"] > ranked[-1]["F1@0.5"] + 30
    report = (work / "report.html").read_text()
    assert all(model in report for model in MODELS)
    assert (work / "leaderboard" / "leaderboard.xlsx").is_file()
    _the_doctor_finds_what_is_wrong_and_nothing_else(work, tmp_path / "lmu")


def _the_doctor_finds_what_is_wrong_and_nothing_else(work: Path, lmu: Path) -> None:
    """On the demonstration's own runs: they take minutes to make, so one test makes them."""
    right = _doctor(lmu, [str(work)])
    assert right.returncode == 0, right.stdout + right.stderr
    assert right.stdout.count("it fits") >= len(MODELS)
    assert "convention is wrong" not in right.stdout
    (scenes,) = (work / "runs").rglob(f"FindIt-Nano_{SCENES[0]}.json")
    for space in ("pixels", "unit"):
        wrong = _doctor(lmu, [str(scenes), "--space", space])
        assert wrong.returncode == 1, wrong.stdout + wrong.stderr
        assert "the run's convention is wrong" in " ".join(wrong.stdout.split())


def _doctor(lmu: Path, arguments: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *RUN_FINDIT, "doctor", *arguments],
        cwd=lmu.parent,
        env=environment(lmu),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
