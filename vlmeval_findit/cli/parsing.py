"""The parser of every command's arguments."""

from __future__ import annotations

import argparse
from typing import Any, NoReturn

from ..core.command import as_called


class Parser(argparse.ArgumentParser):
    """Its help names our command as it is called here: ``findit`` where the package is installed.

    >>> Parser(prog="run_findit.py score").prog in ("run_findit.py score", "findit score")
    True
    """

    def __init__(self, **settings: Any) -> None:
        said = {"prog", "description", "epilog"} & {k for k, v in settings.items() if v}
        super().__init__(**{**settings, **{name: as_called(settings[name]) for name in said}})


class HostParser(argparse.ArgumentParser):
    """Parses flags of VLMEvalKit's runner; what it cannot parse is an error of ours."""

    def error(self, message: str) -> NoReturn:
        raise ValueError(message)
