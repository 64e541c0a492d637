"""A run in which no call was answered measures nothing: no reader gives it a value or a rank."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from few_fast import few_fast
from run_readers import READERS, Reader, all_said, called
from scored_runs import World, small_world, speaking

from vlmeval_findit.protocol import FAILED_ANSWER
from vlmeval_findit.scoring import UNANSWERED

DATA = "FindIt_Pascal_xyxy_json_bbox_2d"
SAID = UNANSWERED.partition(";")[0]

OF_ONE_RUN: Mapping[str, Reader] = {
    "coords": called("coords", "outputs"),
    "calibration": called("calibration", "outputs"),
    "errors of a folder": called("errors", "outputs"),
    "score": called("score", "outputs"),
}
NAMES: dict[str, Reader] = {
    name: read for reads in READERS.values() for name, read in reads.items()
}
NAMES |= OF_ONE_RUN
del NAMES["reproduce --against"]  # What answered nothing is no reproduction
for _name in [name for name in NAMES if name.startswith("export")]:
    if _name != "export coco":  # All ask in one place
        del NAMES[_name]


def dead(query: Any, generator: Any) -> str:
    return f"{FAILED_ANSWER} via API."


def alive_once(query: Any, generator: Any) -> str:
    return speaking(DATA, 0.9)(query, generator) if query.index == 3 else dead(query, generator)


ANSWERS = {"no call answered": dead, "one call answered": alive_once}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, World]:
    """Score a good checkpoint, and a second whose calls failed."""
    worlds = {}
    for at, (name, answer) in enumerate(ANSWERS.items()):
        with pytest.MonkeyPatch.context() as patch:
            world = small_world(tmp_path_factory.mktemp(f"world{at}"), patch)
            for step, its in ((1, speaking(DATA, 0.9)), (2, answer)):
                world.predict(f"M-step-{step}", DATA, its, folder=f"M-step-{step}")
            worlds[name] = world
    return worlds


Outputs = Callable[[str], tuple[Path, Path]]


@pytest.fixture
def outputs(made: Mapping[str, World], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Outputs:
    """Return a function that copies runs to ``outputs``, and returns their prediction files."""

    def copy(answers: str) -> tuple[Path, Path]:
        made[answers].at_hand(monkeypatch)
        monkeypatch.chdir(tmp_path)
        shutil.copytree(made[answers].runs, "outputs")
        first, second = (Path("outputs", f"M-step-{n}", f"M-step-{n}_{DATA}.json") for n in (1, 2))
        return first, second

    return copy


@pytest.mark.parametrize("reader", few_fast(NAMES, 6))
@pytest.mark.parametrize("answers", ANSWERS)
def test_no_reader_measures_a_run_without_answers(
    reader: str, answers: str, outputs: Outputs, capsys: pytest.CaptureFixture[str]
) -> None:
    said = all_said(NAMES[reader], outputs(answers), capsys)
    assert (SAID in said) is (answers == "no call answered"), said
    if SAID in said:
        assert "significant" not in said
        of_second = [line for line in said.split("\n") if "M-step-2" in line]
        assert not [line for line in of_second if re.search(r"\b0\.0\b", line)]
