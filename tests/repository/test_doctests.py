"""The examples in docstrings are run: all of them, in every module of the package."""

from __future__ import annotations

from pathlib import Path

import pytest
from doctests import WITHOUT_HOST, run_examples
from scored_runs import scored_outputs


@pytest.mark.parametrize("name", WITHOUT_HOST)
def test_examples_say_what_happens(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name.endswith(".dataframes"):
        scored_outputs(tmp_path, monkeypatch)
    run_examples(name)
