"""The examples in docstrings of the room that touches VLMEvalKit are run, too."""

from __future__ import annotations

import pytest
from doctests import OF_THE_HOST, run_examples

pytestmark = [pytest.mark.host, pytest.mark.usefixtures("host")]


@pytest.mark.parametrize("name", OF_THE_HOST)
def test_examples_say_what_happens(name: str) -> None:
    run_examples(name)
