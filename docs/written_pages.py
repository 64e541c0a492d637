"""Pages that are in no clone, but written when the site is built: they change with the code."""

from __future__ import annotations

from collections.abc import Callable

from doors import doors_page
from messages import messages_page

WRITTEN: dict[str, Callable[[], str]] = {
    "docs/design/doors.md": doors_page,
    "docs/reference/messages.md": messages_page,
}
"""Path in the clone -> what writes the page."""
