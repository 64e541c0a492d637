"""The page and the notebook of the Python API: all of their code is run."""

from __future__ import annotations

import doctest
import json
import re
from pathlib import Path
from typing import Any

import pytest
from paths import ROOT
from scored_runs import World, failing, speaking, world

import vlmeval_findit as findit

__all__ = ["world"]

PAGE = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
NOTEBOOK = ROOT / "docs" / "notebook.ipynb"
JSON = "FindIt_Pascal_xyxy_json_bbox_2d"
SEVERAL = "FindIt_Pascal_multilabel_xyxy_text"


def test_the_examples_of_the_page_say_what_happens() -> None:
    text = re.sub(r"^```.*$", "", PAGE, flags=re.MULTILINE)
    test = doctest.DocTestParser().get_doctest(text, {"findit": findit}, "api.md", None, 0)
    assert len(test.examples) > 15
    said: list[str] = []
    runner = doctest.DocTestRunner()
    runner.run(test, out=said.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(said)


def test_the_notebook_runs(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pandas")
    for model, chance in (("Good", 0.9), ("Poor", 0.2)):
        world.run(model, JSON, speaking(JSON, chance))
        world.run(model, SEVERAL, speaking(SEVERAL, chance))
    world.run("Fails", JSON, failing)
    world.runs.rename(world.folder / "outputs")
    monkeypatch.chdir(world.folder)
    values: dict[str, Any] = {}
    for number, source in enumerate(code_of(NOTEBOOK)):
        exec(compile(source, f"notebook.ipynb, cell {number}", "exec"), values)
    # It got somewhere: the worst answers are misses on their images, and two runs are compared.
    assert len(values["worst"]) == 10
    assert values["worst"].score.max() < values["queries"].score.max()
    assert not values["worst"].failed.any()
    assert len(values["figure"].axes) == 1
    assert " minus " in values["difference"].columns.name
    assert len(json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]) == 10


def code_of(notebook: Path) -> list[str]:
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


def test_the_notebook_holds_no_output_and_no_path_of_a_machine() -> None:
    text = NOTEBOOK.read_text(encoding="utf-8")
    for cell in json.loads(text)["cells"]:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None
    assert not re.search(r"/(home|work|tmp|Users)/", text)
