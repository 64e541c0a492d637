"""The page and the notebook of the Python API: all of their code is run."""

from __future__ import annotations

import doctest
import json
import re
from pathlib import Path

import pytest

import vlmeval_findit as findit

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
NOTEBOOK = ROOT / "docs" / "api.ipynb"


def test_the_examples_of_the_page_say_what_happens() -> None:
    text = re.sub(r"^```.*$", "", PAGE, flags=re.MULTILINE)
    test = doctest.DocTestParser().get_doctest(text, {"findit": findit}, "api.md", None, 0)
    assert len(test.examples) > 15
    said: list[str] = []
    runner = doctest.DocTestRunner()
    runner.run(test, out=said.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(said)


def test_the_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FINDIT_TABLES", str(tmp_path / "tables"))
    values: dict[str, object] = {}
    for number, source in enumerate(code_of(NOTEBOOK)):
        exec(compile(source, f"api.ipynb, cell {number}", "exec"), values)
    # It got somewhere: two runs of twenty queries, and the score of what was asked live.
    runs, scored = values["loaded"], values["scored"]
    assert isinstance(runs, findit.Runs)
    assert isinstance(scored, findit.Score)
    assert [run.model for run in runs] == ["Middle", "Whole"]
    assert scored.figures["mIoU"] == runs[1].figures["mIoU"]
    assert values["status"] == 0


def code_of(notebook: Path) -> list[str]:
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


def test_the_notebook_holds_no_output_and_no_path_of_a_machine() -> None:
    text = NOTEBOOK.read_text(encoding="utf-8")
    for cell in json.loads(text)["cells"]:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None
    assert not re.search(r"/(home|work|tmp|Users)/", text)
