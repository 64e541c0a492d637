"""What leaves this machine, without what is only its own: secrets, and the paths of its folders.

Secrets are those of :mod:`..core.redaction`.  Of a path only the last name stays, ``…/photo.jpg``.
In records of ours every absolute path is one; in a reply, which may speak of any path, only what
lies below a folder that a run, its pictures or this process use.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from ..core.redaction import scrub
from ..core.replies import FAILED

_END = r"[^\s\"'`\\<>|*?:,;()\[\]{}]*"
_ANY_PATH = re.compile(rf"(?<![\w:/.…~-])(?:file:/+|[A-Za-z]:[\\/]+|/)(?:[\w.@+~ -]+[\\/])+{_END}")
_USER = re.compile(r"(?<=://)[^/@\s]+@")

Change = Callable[[str], str]


class Private:
    """Texts and values without what is this machine's own.

    Args:
        folders: folders of this machine that runs use.
    """

    def __init__(self, folders: Iterable[Path] = ()) -> None:
        here = (Path.cwd(), Path.home(), Path(tempfile.gettempdir()), *folders)
        roots = {str(form) for path in here for form in (path.absolute(), path.resolve())}
        # "/" alone would be every path there is.
        known = sorted((root for root in roots if len(root) > 1), key=len, reverse=True)
        self._known = re.compile(rf"(?:{'|'.join(map(re.escape, known))})(?![\w.-]){_END}")

    def said(self, text: str) -> str:
        """A text that somebody else may have said: no secret, no path that is known."""
        if text.startswith(FAILED):
            return self.ours(text)
        return self._known.sub(_last, scrub(text))

    def ours(self, text: str) -> str:
        """A text of our own records: no path at all, no user name in an address."""
        return _ANY_PATH.sub(_last, self._known.sub(_last, _USER.sub("***@", scrub(text))))

    def json_text(self, text: str, change: Change) -> str:
        """A JSON text with every string changed; the very same text where nothing changes."""
        value = json.loads(text)
        made = changed(value, change)
        return text if made == value else json.dumps(made, indent=1, ensure_ascii=False)

    def json_line(self, line: str, change: Change) -> str:
        """A line of JSON; see :meth:`json_text`."""
        value = json.loads(line)
        made = changed(value, change)
        return line if made == value else json.dumps(made, ensure_ascii=False) + "\n"


def changed(value: Any, change: Change) -> Any:
    """A nested JSON value with every string changed, keys of objects included."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {change(key): changed(one, change) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [changed(one, change) for one in value]
    return value


def _last(path: re.Match[str]) -> str:
    """``…/name`` of a path."""
    *_, name = re.split(r"[\\/]+", path[0].rstrip("/\\"))
    return f"…/{name}"
