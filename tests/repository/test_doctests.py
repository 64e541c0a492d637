"""The examples in docstrings are run: all of them, in every module of the package."""

from __future__ import annotations

import doctest
import importlib
import re
from pathlib import Path

import pytest
from host_runs import require_host
from paths import ROOT
from scored_runs import scored_outputs

# How many examples every module has, as its source is written
WITH_EXAMPLES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts): count
    for path in sorted((ROOT / "vlmeval_findit").rglob("*.py"))
    if (count := len(re.findall(r"^\s*>>> ", path.read_text(encoding="utf-8"), re.MULTILINE)))
}


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_examples_say_what_happens(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name.endswith("host.plain_values"):
        require_host()  # It imports VLMEvalKit
    module = importlib.import_module(name)
    if name.endswith(".dataframes"):
        scored_outputs(tmp_path, monkeypatch)
    tests = doctest.DocTestFinder().find(module)
    # An example that is written where doctest does not look would never be run.
    assert sum(len(test.examples) for test in tests) == WITH_EXAMPLES[name]
    reported: list[str] = []
    runner = doctest.DocTestRunner()
    for test in tests:
        runner.run(test, out=reported.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(reported)
