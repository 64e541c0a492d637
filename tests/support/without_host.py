"""Command lines one after the other, and whether any of them imports VLMEvalKit.

``python without_host.py HERE|NOWHERE COMMANDS`` runs a JSON list of command lines. NOWHERE: no
VLMEvalKit is found, as if it were not installed. The last line that is printed is a JSON list: of
each command its exit status, and whether VLMEvalKit is imported after it.

Ray is started once for all commands that use it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any


class Hidden:
    """A finder of modules that finds no VLMEvalKit."""

    def __init__(self, finder: Any) -> None:
        self._finder = finder

    def find_spec(self, name: str, path: Any = None, target: ModuleType | None = None) -> Any:
        find: Callable[..., Any] = getattr(self._finder, "find_spec", lambda *_: None)
        return None if name.partition(".")[0] == "vlmeval" else find(name, path, target)


@contextmanager
def one_ray() -> Iterator[None]:
    """Start Ray on this machine."""
    import ray

    with TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as folder:
        quiet = {"include_dashboard": False, "log_to_driver": False, "logging_level": "ERROR"}
        ray.init(address="local", _temp_dir=folder, **quiet)
        yield
        ray.shutdown()


def main(where: str, commands: list[list[str]]) -> None:
    if where == "NOWHERE":
        sys.meta_path[:] = [Hidden(finder) for finder in sys.meta_path]
    from vlmeval_findit.cli import main

    ends = []
    with ExitStack() as stack:
        if any("ray" in words for words in commands):
            stack.enter_context(one_ray())
        for words in commands:
            try:
                status: Any = main(words)
            except SystemExit as error:
                status = error.code
            ends.append([status, "vlmeval" in sys.modules])
    print(json.dumps(ends))


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))
