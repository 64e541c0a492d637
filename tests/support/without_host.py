"""Command lines one after the other, and whether any of them imports VLMEvalKit.

``python without_host.py HERE|NOWHERE COMMANDS`` runs a JSON list of command lines. NOWHERE: no
VLMEvalKit is found, as if it were not installed. The last line that is printed is a JSON list: of
each command its exit status, and whether VLMEvalKit is imported after it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any


class Hidden:
    """A finder of modules that finds no VLMEvalKit."""

    def __init__(self, finder: Any) -> None:
        self._finder = finder

    def find_spec(self, name: str, path: Any = None, target: ModuleType | None = None) -> Any:
        find: Callable[..., Any] = getattr(self._finder, "find_spec", lambda *_: None)
        return None if name.partition(".")[0] == "vlmeval" else find(name, path, target)


def main(where: str, commands: list[list[str]]) -> None:
    if where == "NOWHERE":
        sys.meta_path[:] = [Hidden(finder) for finder in sys.meta_path]
    from vlmeval_findit.cli import main

    ends = []
    for words in commands:
        try:
            status: Any = main(words)
        except SystemExit as error:
            status = error.code
        ends.append([status, "vlmeval" in sys.modules])
    print(json.dumps(ends))


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))
