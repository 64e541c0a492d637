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
from vlmeval_findit.leaderboard import MARK_SHAPES, find_best_marks
from vlmeval_findit.marks import COLOURS, Shape


@pytest.fixture
def marks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv("FINDIT_TABLES", str(tmp_path))
    lmu = tmp_path / "lmu"
    lmu.mkdir()
    monkeypatch.setenv("LMUData", str(lmu))
    return World(tmp_path)


Asked = Sequence[tuple[str, str, str]]  # Shape, colour and the right letter of every question


def table(marks: World, asked: Asked, name: str = "VPBench_Mine") -> None:
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
            cluster=f"{index}.jpg",
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
        "box": {"accuracy": 0.0, "questions": 3},
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
    assert re.search(r"^Seer +oval-blue +0.0 +100.0 +–", output, re.MULTILINE)
    [run] = json.loads(before)["models"]["Seer"]["runs"]
    assert run["file"] == path.name
    assert "good for all: oval; blue" in output
    assert json.loads(before)["at_least"] == 20
