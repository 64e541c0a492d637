"""A fact has one page: what another page says in the same words is a copy."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping

from pages import PAGES

LONGEST = 9
"""Words in a row that two pages may share: names, and figures of speech."""

INTRODUCTIONS = {"README.md", "docs/index.md", "docs/start.md"}
"""Read before any other page, so they say again what a newcomer must know."""
HISTORIES = {"CHANGELOG.md", "docs/reference/errata.md"}
"""They say what was, in the words of their time."""

_BLOCK = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_TARGET = re.compile(r"\]\([^)]*\)")
_BREAK = re.compile(r"\n\s*\n|\n(?=[|*#-])")


def _runs_of_words(text: str, length: int) -> Iterator[str]:
    """Yield every run of so many words that no paragraph, row or point of a list ends in."""
    plain = _TARGET.sub("]", _BLOCK.sub("\n\n", text))
    for part in _BREAK.split(plain):
        words = re.findall(r"[\w@./%+-]*\w", part.lower())
        for start in range(len(words) - length + 1):
            yield " ".join(words[start : start + length])


def copies(pages: Mapping[str, str], longest: int = LONGEST) -> dict[str, set[str]]:
    """Return runs of more words than may be shared that stand on several pages -> those pages."""
    found = defaultdict(set)
    for name, text in pages.items():
        for run in _runs_of_words(text, longest + 1):
            found[run].add(name)
    return {run: names for run, names in found.items() if len(names) > 1}


def test_no_page_says_what_another_says() -> None:
    """Keep it where it is looked up, and lead there from the other page."""
    apart = INTRODUCTIONS | HISTORIES
    texts = {name: path.read_text("utf-8") for name, path in PAGES.items() if name not in apart}
    assert copies(texts) == {}


def test_copies_are_seen_through_links_and_line_breaks() -> None:
    one = "A call starts only\nif what is spent [and open](a.md) stays below the limit."
    other = "* A call starts only if what is spent and open stays [below](b.md) the limit"
    assert len(copies({"a": one, "b": other}, 11)) == 3
    assert copies({"a": one, "b": f"```\n{other}\n```"}, 11) == {}
    assert copies({"a": one, "b": other.replace("spent", "paid")}, 11) == {}
