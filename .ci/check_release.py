#!/usr/bin/env python3
"""``check_release.py v1.2.3``: the tag is the package's version, and the changelog has it.

Reads the files as text: nothing of the package need be installed.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def problems(tag: str, package: str, changelog: str, weights: str) -> list[str]:
    """What is wrong with a release, one sentence each; empty where nothing is.

    Args:
        tag: of git.
        package: the text of ``vlmeval_findit/__init__.py``.
        changelog: the text of ``CHANGELOG.md``.
        weights: the text of ``weights/pyproject.toml``.
    """
    found = re.search(r'^__version__ = "([^"]+)"$', package, re.MULTILINE)
    if found is None:
        return ["vlmeval_findit/__init__.py has no __version__"]
    version = found[1]
    wrong = []
    if tag != f"v{version}":
        wrong.append(f"the tag is {tag}, the package's version {version}")
    if f'\nversion = "{version}"\n' not in weights:
        wrong.append(f"weights/pyproject.toml has not the version {version}")
    headings = re.findall(r"^## (.+)$", changelog, re.MULTILINE)
    heading = next((one for one in headings if one.split()[0] == version), None)
    if heading is None:
        wrong.append(f"CHANGELOG.md has no heading {version}")
    elif "unreleased" in heading:
        wrong.append(f"CHANGELOG.md says: {heading}")
    elif heading != headings[0]:
        wrong.append(f"CHANGELOG.md begins with {headings[0]}, not with {heading}")
    return wrong


def main(argv: list[str]) -> int:
    """Print what is wrong; returns 0 where nothing is, 1, or 2 without a tag."""
    if len(argv) != 1:
        print("usage: check_release.py TAG", file=sys.stderr)
        return 2
    names = ("vlmeval_findit/__init__.py", "CHANGELOG.md", "weights/pyproject.toml")
    wrong = problems(argv[0], *((ROOT / name).read_text(encoding="utf-8") for name in names))
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
