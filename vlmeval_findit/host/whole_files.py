"""VLMEvalKit's files are there whole, or as they were, when a run is killed while it writes.

Its ``dump`` empties a file and then writes it: a checkpoint is written anew with every answer, and
a kill between the two would lose all of them.
"""

from __future__ import annotations

import functools
import secrets
from pathlib import Path
from types import ModuleType
from typing import Any

from .runner_reports import replace_everywhere


def write_whole(smp: ModuleType) -> None:
    """Let ``vlmeval.smp.dump`` replace files at once, for all who call it."""
    dump = smp.dump
    if hasattr(dump, "writes_whole"):
        return

    @functools.wraps(dump)
    def dump_whole(data: Any, f: Any, *arguments: Any, **named: Any) -> Any:
        path = Path(str(f))
        temporary = path.with_name(f".{path.stem}.{secrets.token_hex(4)}{path.suffix}")
        # It writes this one where a sheet or a text cannot hold the data
        instead = temporary.with_suffix(".pkl")
        try:
            result = dump(data, str(temporary), *arguments, **named)
            written = instead if instead.exists() else temporary
            written.replace(path.with_suffix(written.suffix))
        finally:
            temporary.unlink(missing_ok=True)
            instead.unlink(missing_ok=True)
        return result

    dump_whole.writes_whole = True  # type: ignore[attr-defined]
    replace_everywhere(dump, dump_whole)
