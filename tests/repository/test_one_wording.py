"""What stands once in the code: the words of a kind of message."""

from __future__ import annotations

import re

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


# Words chosen by a number, as `"is" if len(names) == 1 else "are"`
_CHOSEN = re.compile(r'"(?:is|was|has|does|[a-z]+s)" if [^"]* == 1 else "[a-z]+"')


def test_words_agree_with_numbers_in_one_place() -> None:
    """``core.agreeing`` chooses the verb or the noun; ``core.counted`` writes the number, too."""
    found = []
    for path in PACKAGE.rglob("*.py"):
        for match in _CHOSEN.finditer(path.read_text(encoding="utf-8")):
            found.append(f"{path.relative_to(PACKAGE)}: {match[0]}")
    assert found == []
