"""Marks of thoughts that are not in our table: said by ``score``, and named by its user."""

from __future__ import annotations

import json
from typing import Any

import pytest
from scored_runs import World, speaking

from vlmeval_findit.cli import main
from vlmeval_findit.protocol import THINK, Settings, ThoughtMarks, unnamed_marks
from vlmeval_findit.scoring import open_predictions
from vlmeval_findit.storage import RunFiles

NAME = "FindIt_Pascal_xyxy_text"
MARKS = ThoughtMarks("<plan>", "</plan>")
PLAN = "<plan>Is it [0, 0, 9, 9]? No.</plan>"


def test_score_says_and_takes_the_marks_of_a_model(
    world: World, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    right = speaking(NAME, 1.0)
    run = world.run("M", NAME, lambda item, generator: PLAN + right(item, generator))
    capsys.readouterr()

    def provenance() -> dict[str, Any]:
        values: dict[str, Any] = json.loads(RunFiles(run.path).provenance.read_text())
        return values

    def scored(*flags: str) -> tuple[float, str]:
        assert main(["score", str(run.path), *flags]) == 0
        return provenance()["metrics"]["precision"], capsys.readouterr().out

    precision, said = scored()
    assert precision < 100
    assert "thought_marks" not in provenance()
    assert f"{len(run.rows)} replies begin with a part in <plan>…</plan>" in said
    assert "--thought-marks '<plan> </plan>'" in " ".join(said.split())
    precision, said = scored("--thought-marks", "<plan> </plan>")
    assert precision == 100
    assert "<plan>" not in said
    assert provenance()["thought_marks"] == ["<plan>", "</plan>"]
    assert open_predictions(run.path, Settings()).settings.thought_marks == MARKS
    other = Settings(thought_marks=THINK)
    assert open_predictions(run.path, other).settings.thought_marks == THINK
    monkeypatch.setenv("FINDIT_THOUGHT_MARKS", "<plan> </plan>")
    assert scored()[0] == 100


@pytest.mark.parametrize(
    ("answer", "marks"),
    [
        (f"{PLAN}[1, 2, 3, 4]", "<plan> </plan>"),
        ("\n<Plan>a</Plan>\n[]", "<Plan> </Plan>"),
        ("[MUSE]a[/MUSE][]", "[MUSE] [/MUSE]"),
        ("<|begin_of_muse|>a<|end_of_muse|>[]", "<|begin_of_muse|> <|end_of_muse|>"),
        ("<plan>a[]", ""),
        ("<plan>a</plan>", ""),
        ("[] <plan>a</plan>[]", ""),
        ("<ref>dog</ref><box>(1, 2), (3, 4)</box>", ""),
        ("<|begin_of_box|>[]<|end_of_box|> done", ""),
        ("<answer>[]</answer>\n", ""),
        ("[1, 2, 3, 4]", ""),
        ("", ""),
    ],
)
def test_what_may_be_marks_of_a_thought(answer: str, marks: str) -> None:
    assert unnamed_marks(answer) == marks
