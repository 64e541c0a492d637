"""Pages that are in no clone, but written when the site is built: they change with the code."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from command_pages import command_pages
from doors import doors_page
from messages import messages_page

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks" / "README.md"


def benchmarks_page() -> str:
    """Copy the page of the benchmarks, which lies beside them in the clone."""
    return BENCHMARKS.read_text(encoding="utf-8").replace("](../docs/", "](../")


WRITTEN: dict[str, Callable[[], str]] = {
    "docs/design/benchmarks.md": benchmarks_page,
    "docs/design/doors.md": doors_page,
    "docs/reference/messages.md": messages_page,
    **command_pages(),
}
"""Path in the clone -> what writes the page."""
