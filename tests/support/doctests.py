"""The examples in docstrings of the package's modules, and a run of those of one module."""

from __future__ import annotations

import doctest
import importlib
import re

from paths import ROOT

# How many examples every module has, as its source is written
WITH_EXAMPLES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts): count
    for path in sorted((ROOT / "vlmeval_findit").rglob("*.py"))
    if (count := len(re.findall(r"^\s*>>> ", path.read_text(encoding="utf-8"), re.MULTILINE)))
}
# They import VLMEvalKit, which takes seconds: their tests lie beside the others that need it.
OF_THE_HOST = [name for name in WITH_EXAMPLES if name.startswith("vlmeval_findit.host.")]
WITHOUT_HOST = [name for name in WITH_EXAMPLES if name not in OF_THE_HOST]


def run_examples(name: str) -> None:
    """Run the examples of a module, all that its source has."""
    tests = doctest.DocTestFinder().find(importlib.import_module(name))
    # An example that is written where doctest does not look would never be run.
    assert sum(len(test.examples) for test in tests) == WITH_EXAMPLES[name]
    reported: list[str] = []
    runner = doctest.DocTestRunner()
    for test in tests:
        runner.run(test, out=reported.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(reported)
