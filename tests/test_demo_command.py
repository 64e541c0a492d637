"""The demonstration, as a new user runs it: from a wheel, in an environment of its own."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
import yaml
from fresh_venvs import FreshVenv, build, copy_of_the_clone, installed
from host_runs import require_host

from vlmeval_findit.benchmarks.findit.names import parse
from vlmeval_findit.cli.demo import FORMAT, MODELS, OTHERS, asked_as
from vlmeval_findit.models.table import NANO, NANO_PX

pytestmark = pytest.mark.host

BEST = {NANO: "xyxy", NANO_PX: "xywh"}
"""The representation that the search has to find: what each was taught most.

Text or JSON and its key are within a point of each other, which fifty scenes do not tell apart.
"""
MARKS, LEAST_OF_MARKS = "VPBench_Scenes_mini", 60.0
"""Percent of 48 letters, where chance has 28; 68 is the aim on 400."""
LEAST_BETWEEN = 10.0
"""Points of F1@0.5 between the best format of a model and its worst."""


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
    done = fresh.findit("demo")
    assert done.returncode == 0, done.stdout + done.stderr
    out, work = done.stdout, fresh.here / "outputs" / "demo"
    scored = {tuple(line.split()[:2]) for line in out.splitlines()}
    assert {(name, model) for name in asked_as(FORMAT) for model in MODELS} <= scored
    assert {(name, model) for name in OTHERS for model in (NANO, OTHERS[name])} <= scored
    marks = next(row for row in map(str.split, out.splitlines()) if row[:2] == [MARKS, NANO])
    assert float(marks[2]) >= LEAST_OF_MARKS
    formats = yaml.safe_load((work / "best_formats.yaml").read_text())
    liked = {}
    for model, best in BEST.items():
        ranked = formats["models"][model]["FindIt"]["averages"]
        found = ranked[0]["format"]
        liked[model] = asked_as(found)
        assert found.startswith(f"{best}_")
        assert f"{model}: best format on FindIt {found}" in out
        assert {(name, model) for name in liked[model]} <= scored
        assert ranked[0]["F1@0.5"] > ranked[-1]["F1@0.5"] + LEAST_BETWEEN
    (each,) = (line for line in out.splitlines() if line.startswith("Each in one format: "))
    assert all(f"{model} {best}_" in each for model, best in BEST.items())
    _, last = out.split("\n6. ")
    assert "F1 0." in last
    assert "pixels of the picture, xywh" in " ".join(last.split())
    assert "the run's convention is wrong" in " ".join(last.split())
    report = (work / "report.html").read_text()
    assert all(model in report for model in MODELS)
    assert (work / "leaderboard" / "leaderboard.xlsx").is_file()
    _the_doctor_finds_what_is_wrong_and_nothing_else(fresh, work, liked)


UNTAUGHT = {NANO: {"yxyx", "yxhw"}, NANO_PX: {"xyxy", "yxyx", "yxhw"}}
"""Orders of four numbers in which a model may say those of another order."""


def _the_doctor_finds_what_is_wrong_and_nothing_else(
    fresh: FreshVenv, work: Path, liked: Mapping[str, Sequence[str]]
) -> None:
    """On the demonstration's own runs: they take minutes to make, so one test makes them."""
    runs = work / "runs"
    best = [str(runs / model / f"{model}_{name}.json") for model in liked for name in liked[model]]
    right = fresh.findit("coords", *best)
    assert right.returncode == 0, right.stdout + right.stderr
    assert right.stdout.count("it fits") >= 2 * len(BEST)
    assert "convention is wrong" not in " ".join(right.stdout.split())
    everything = fresh.findit("coords", str(work))
    assert everything.returncode == 1, everything.stdout + everything.stderr
    found = set()
    for said in re.split(r"\n(?=\S+ on \S+\n)", everything.stdout):
        model, _, dataset = said.split()[:3]
        if "convention is wrong" in " ".join(said.split()):
            question = parse(dataset)
            assert question.representation in UNTAUGHT[model], said
            found.add((model, question.representation))
    assert (NANO_PX, "xyxy") in found
    for model, space, means in (
        (NANO, "pixels", "thousandths of width and height, xyxy"),
        (NANO, "unit", "thousandths of width and height, xyxy"),
        (NANO_PX, "grid1000", "pixels of the picture, xywh"),
        (NANO_PX, "unit", "pixels of the picture, xywh"),
    ):
        scenes = runs / model / f"{model}_{liked[model][0]}.json"
        wrong = fresh.findit("coords", str(scenes), "--space", space)
        assert wrong.returncode == 1, wrong.stdout + wrong.stderr
        flat = " ".join(wrong.stdout.split())
        assert f"; {means}: F1 " in flat
        assert "the run's convention is wrong" in flat
