"""The demonstration, as a new user runs it: from a wheel, in an environment of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from fresh_venvs import FreshVenv, build, copy_of_the_clone, installed
from host_runs import require_host

from vlmeval_findit.cli.demo import MODELS, PHOTOGRAPHS, SCENES

pytestmark = pytest.mark.host


@pytest.fixture
def fresh(tmp_path: Path) -> FreshVenv:
    """The wheel alone, with what its extra ``demo`` asks for: nothing of the clone is reached."""
    require_host()
    wheel = build(copy_of_the_clone(tmp_path), "build_wheel", tmp_path / "wheel")
    return installed(wheel, ["demo"], tmp_path)


def test_it_shows_scores_the_best_format_and_a_report(fresh: FreshVenv) -> None:
    """``findit``, from a folder that is not the clone, without a network."""
    assert not fresh.run(
        "python", "-c", "import sys, vlmeval_findit as v; assert sys.prefix in v.__file__"
    ).returncode
    done = fresh.findit()
    assert done.returncode == 0, done.stdout + done.stderr
    out, work = done.stdout, fresh.here / "outputs" / "demo"
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
    _the_doctor_finds_what_is_wrong_and_nothing_else(fresh, work)


def _the_doctor_finds_what_is_wrong_and_nothing_else(fresh: FreshVenv, work: Path) -> None:
    """On the demonstration's own runs: they take minutes to make, so one test makes them."""
    right = fresh.findit("doctor", str(work))
    assert right.returncode == 0, right.stdout + right.stderr
    assert right.stdout.count("it fits") >= len(MODELS)
    assert "convention is wrong" not in right.stdout
    (scenes,) = (work / "runs").rglob(f"FindIt-Nano_{SCENES[0]}.json")
    for space in ("pixels", "unit"):
        wrong = fresh.findit("doctor", str(scenes), "--space", space)
        assert wrong.returncode == 1, wrong.stdout + wrong.stderr
        assert "the run's convention is wrong" in " ".join(wrong.stdout.split())
