"""Which marks models see best, from scored runs over stage 1."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from scored_runs import World, failing, saying

from vlmeval_findit import cli
from vlmeval_findit.benchmarks.vpbench import VPQuery, mark_choices, write_table
from vlmeval_findit.leaderboard import MARK_SHAPES, find_best_marks, run_slices_table
from vlmeval_findit.marks import COLOURS, Shape


@pytest.fixture
def marks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv("FINDIT_TABLES", str(tmp_path))
    lmu = tmp_path / "lmu"
    lmu.mkdir()
    monkeypatch.setenv("LMUData", str(lmu))
    return World(tmp_path)


Asked = Sequence[tuple[str, str, str]]  # Shape, colour and the right letter of every question


def table(marks: World, asked: Asked, name: str = "VPBench_Mine", clusters: bool = False) -> None:
    """Write questions; two about each photograph, where they are ``clusters``."""
    queries = [
        VPQuery(
            index=index,
            label=f"q{index}",
            images=(f"{index}.png",),
            question="What is in it?",
            options=(("A", "a car"), ("B", "a bus")),
            answer=answer,
            shapes=tuple(shape.split()),
            properties=tuple(colour.split("+")),
            cluster=f"{index // 2 if clusters else index}.jpg",
        )
        for index, (shape, colour, answer) in enumerate(asked)
    ]
    write_table(marks.folder, name, queries, {"source": "a test"})


def best(marks: World, at_least: int = 1, answer: str = "A") -> Mapping[str, Any]:
    """The best marks of a model that always answers the same letter."""
    run = marks.run("Seer", "VPBench_Mine", saying(answer))
    result: Mapping[str, Any] = find_best_marks([run], at_least).values()
    return result


OVALS: Asked = [("oval", "blue", "A")] * 3 + [("box", "red", "B")] * 3


def test_the_most_accurate_shape_and_colour_are_the_best(marks: World) -> None:
    table(marks, OVALS)
    result = best(marks)
    assert result["models"]["Seer"]["best"] == "oval-blue"
    assert result["models"]["Seer"]["shapes"] == {
        "box": {"accuracy": 0.0, "questions": 3, "told apart from the best": False},
        "oval": {"accuracy": 100.0, "questions": 3},
    }
    assert result["good"] == {"shapes": ["oval"], "colours": ["blue"]}
    assert best(marks, answer="B")["models"]["Seer"]["best"] == "box-red"


@pytest.mark.parametrize(
    ("asked", "named", "why"),
    [
        ([("oval", "red", "A"), ("box", "blue", "A")], "box-red", "the order of marks"),
        ([("oval", "red", "A")] * 2 + [("box", "blue", "A")], "oval-red", "more questions"),
        ([("oval", "red", "A"), ("box oval", "red", "B")], "oval-red", "two shapes are neither"),
        ([("oval", "red", "A"), ("oval", "red+blue", "B")], "oval-red", "two colours are neither"),
        ([("oval", "colour: Red+4 px", "A")], "oval-red", "a colour among other properties"),
        ([("oval", "red", "B"), ("circle", "contrast", "A")], "oval-red", "unknown ones"),
        ([("oval", "red", "B"), ("oval", "tired", "A")], "oval-red", "a word that ends in red"),
        ([("oval", "red", "A"), ("box", "red", "")], "oval-red", "no answer is known"),
    ],
)
def test_what_counts_and_who_wins_a_tie(asked: Asked, named: str, why: str, marks: World) -> None:
    table(marks, asked)
    assert best(marks)["models"]["Seer"]["best"] == named, why


def test_too_few_questions_are_no_reason(marks: World) -> None:
    table(marks, [("oval", "blue", "A"), *[("box", "red", "A"), ("box", "red", "B")] * 2])
    assert best(marks, at_least=1)["models"]["Seer"]["best"] == "oval-blue"
    result = best(marks, at_least=2)["models"]["Seer"]
    assert (result["best"], list(result["shapes"])) == ("box-red", ["box"])
    with pytest.raises(ValueError, match=r"no shape with enough .*at least 9"):
        best(marks, at_least=9)


def test_failed_calls_count_as_wrong(marks: World) -> None:
    table(marks, OVALS)

    def fails_on_ovals(each: VPQuery, generator: Any) -> str:
        return failing(each, generator) if "oval" in each.shapes else "B"  # type: ignore[arg-type]

    result = find_best_marks([marks.run("Seer", "VPBench_Mine", fails_on_ovals)], 1).models[0]
    assert result.accuracies["oval"].questions == 3
    assert result.best.shape is Shape.BOX


Rights = Mapping[str, int]  # Right answers of 20 by mark


@pytest.mark.parametrize(
    ("shapes", "alike"),
    [
        ({"oval": 20, "box": 2}, []),
        ({"oval": 20, "box": 18, "tag": 1}, ["box"]),
        ({"oval": 10, "box": 10, "tag": 9}, ["oval", "tag"]),
    ],
)
def test_the_others_have_intervals_and_tests(
    shapes: Rights, alike: Sequence[str], marks: World
) -> None:
    asked = []
    for shape, right in shapes.items():
        asked += [(shape, "red", "A" if at < right else "B") for at in range(20)]
    table(marks, asked)
    run = marks.run("Seer", "VPBench_Mine", saying("A"))
    (found,) = find_best_marks([run]).models
    assert found.rivals(MARK_SHAPES) == alike
    # The same questions are a slice of the run.
    slices = run_slices_table(run).records()
    metric = "Accuracy"
    for name, right in shapes.items():
        mark = found.accuracies[name]
        (row,) = (each for each in slices if (each["slice"], each["value"]) == ("shape", name))
        assert mark.accuracy == row[metric] == 5 * right
        assert mark.interval is not None
        low, high = (float(row[f"{metric} {end}"]) for end in ("low", "high"))
        assert (mark.interval.low, mark.interval.high) == pytest.approx((low, high), abs=1e-3)
        if mark.to_best is not None:
            best = found.accuracies[found.best.shape.value]
            assert mark.to_best.value == pytest.approx(mark.accuracy - best.accuracy)


def test_marks_of_one_photograph_are_compared_on_it(marks: World) -> None:
    """What both shapes are right about on each photograph says nothing of the shapes."""
    asked: Asked = [("box", "red", "A"), ("oval", "red", "A")] * 10
    asked = [*asked, *([("box", "red", "B"), ("oval", "red", "B")] * 10)]
    spread = {}
    for shared in (True, False):
        table(marks, asked, clusters=shared)
        run = marks.run("Seer", "VPBench_Mine", saying("A"), folder=str(shared))
        test = find_best_marks([run]).models[0].accuracies["oval"].to_best
        assert test is not None
        assert test.interval is not None
        spread[shared] = test.interval.high - test.interval.low
    assert spread[True] < spread[False] / 2


def test_good_marks_are_good_for_all_models(marks: World) -> None:
    """Box 100 and 100, oval 100 and 0, tag 0 and 0: the mean over shapes is 50."""
    table(marks, [("box", "red", "A"), ("oval", "blue", "A"), ("tag", "blue", "B")])

    def only_boxes(each: VPQuery, generator: Any) -> str:
        return "A" if "box" in each.shapes or "tag" in each.shapes else "B"

    runs = [marks.run("Seer", "VPBench_Mine", saying("A")),
            marks.run("Other", "VPBench_Mine", only_boxes)]  # fmt: skip
    result = find_best_marks(runs, 1)
    assert [each.model for each in result.models] == ["Other", "Seer"]
    assert (result.good(MARK_SHAPES), result.good(COLOURS)) == (["box", "oval"], ["red"])
    assert mark_choices.write_marks(result.values()) == mark_choices.marks_path()
    models, good = mark_choices.read_marks() or ({}, None)
    assert models["Seer"].name == "box-red"
    assert good is not None
    assert good.name == "box oval, red"


def test_runs_that_cannot_be_compared_are_set_apart(marks: World) -> None:
    table(marks, OVALS)
    table(marks, OVALS, "VPBench_Stage1")
    older = marks.run("Seer", "VPBench_Mine", saying("A"), folder="0")
    newer = marks.run("Seer", "VPBench_Mine", saying("B"), folder="1")
    original = marks.run("Seer", "VPBench_Stage1_original", saying("A"))
    plain = marks.run("Seer", "VPBench_Stage1_plain", saying("A"))
    result = find_best_marks([older, newer, original, plain], 1)
    assert [len(each.runs) for each in result.models] == [1]
    assert len(result.excluded) == 1
    for other in (original, plain):
        with pytest.raises(ValueError, match="none of the runs is of stage 1"):
            find_best_marks([other], 1)


def test_the_command_prints_what_it_wrote_and_repeats_itself(
    marks: World, capsys: pytest.CaptureFixture[str]
) -> None:
    table(marks, [each for each in OVALS for _ in range(7)])
    path = marks.predict("Seer", "VPBench_Mine", saying("A"))
    for _ in range(2):
        assert cli.main(["leaderboard", "--best-marks", str(marks.runs)]) == 0
        output = capsys.readouterr().out
        before = mark_choices.marks_path().read_bytes()
    assert mark_choices.marks_path().read_bytes() == before
    assert re.search(r"^Seer +box +21 +0\.0 \(0\.0–\d.*\) +-100\.0 ", output, re.MULTILINE)
    assert re.search(r"^Seer +oval +21 +100\.0 \(\d.*–100\.0\) +– +–$", output, re.MULTILINE)
    assert "best of Seer: oval-blue\n" in output
    [run] = json.loads(before)["models"]["Seer"]["runs"]
    assert run["file"] == path.name
    assert "good for all: oval; blue" in output
    assert json.loads(before)["at_least"] == 20
