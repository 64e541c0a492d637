"""The page and the notebook of the Python API: all of their code is run."""

from __future__ import annotations

import doctest
import json
import re
from typing import Any

import pytest
from paths import ROOT
from scored_runs import failing, scored_outputs

PAGE = ROOT / "docs" / "how-to" / "python.md"
README = ROOT / "README.md"
NOTEBOOK = ROOT / "docs" / "notebook.ipynb"


def test_the_examples_of_the_page_are_right(tmp_path, monkeypatch) -> None:
    pytest.importorskip("pandas")
    scored_outputs(tmp_path, monkeypatch)
    text = re.sub(r"^```.*$", "", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    test = doctest.DocTestParser().get_doctest(text, {}, PAGE.name, None, 0)
    assert len(test.examples) > 15
    failures: list[str] = []
    runner = doctest.DocTestRunner()
    runner.run(test, out=failures.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(failures)


def test_the_python_of_the_readme_is_right() -> None:
    (block,) = re.findall(r"^```python\n(.*?)^```$", README.read_text("utf-8"), re.M | re.DOTALL)
    values: dict[str, Any] = {}
    exec(block, values)
    shown = re.findall(r"^(scored\S+)  # (.*)$", block, re.MULTILINE)
    assert shown
    assert [repr(eval(expression, values)) for expression, _ in shown] == [x for _, x in shown]


def test_the_notebook_runs(tmp_path, monkeypatch) -> None:
    pytest.importorskip("pandas")
    scored_outputs(tmp_path, monkeypatch, Fails=failing)
    text = NOTEBOOK.read_text(encoding="utf-8")
    assert not re.search(r"/(home|work|tmp|Users)/", text)
    cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
    values: dict[str, Any] = {}
    for number, cell in enumerate(cells):
        assert not cell["outputs"]
        exec(compile("".join(cell["source"]), f"notebook.ipynb, cell {number}", "exec"), values)
    # The worst answers are misses on their images, and two runs are compared.
    assert len(values["worst"]) == 10
    assert values["worst"].score.max() < values["queries"].score.max()
    assert not values["worst"].failed.any()
    assert len(values["figure"].axes) == 1
    assert " minus " in values["difference"].columns.name
