"""What stands once in the code: the words of a kind of message."""

from __future__ import annotations

import pytest
from paths import ROOT

PACKAGE = ROOT / "vlmeval_findit"

# Words that errors have, and the one place that says them
SAID_BY = {"has no effect: ": "core/formatting.py", "have no effect": ""}


@pytest.mark.parametrize("words", SAID_BY)
def test_words_of_a_refusal_stand_once(words: str) -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")}
    found = [str(path.relative_to(PACKAGE)) for path, text in texts.items() if words in text]
    assert found == ([SAID_BY[words]] if SAID_BY[words] else [])
