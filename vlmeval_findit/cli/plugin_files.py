"""``--plugin FILE.py``, of any command: a file of one's own, for this run and its workers."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

FLAG = "--plugin"


def without_plugins(arguments: Sequence[str]) -> list[str]:
    """A command line without its ``--plugin FILE.py``, whose files are known from now on.

    The environment hands them on to workers and to VLMEvalKit's runner.

    Raises:
        PluginError: a file is not there, or something of it cannot be used.
    """
    if not any(word == FLAG or word.startswith(f"{FLAG}=") for word in arguments):
        return list(arguments)
    from ..core.plugins import FILES_VARIABLE, PluginError, named_files

    rest: list[str] = []
    named: list[str] = []
    coming = iter(arguments)
    for word in coming:
        flag, given, value = word.partition("=")
        if flag != FLAG:
            rest.append(word)
            continue
        path = value if given else next(coming, "")
        if not path:
            raise PluginError(f"{FLAG} FILE.py: which file?")
        if not Path(path).is_file():
            raise PluginError(f"{FLAG} {path}: no such file")
        if os.pathsep in str(Path(path).resolve()):
            raise PluginError(f"{FLAG} {path}: no {os.pathsep!r} may be in its path")
        named.append(str(Path(path).resolve()))
    os.environ[FILES_VARIABLE] = os.pathsep.join(dict.fromkeys([*named_files(), *named]))
    _refuse_broken(named)
    return rest


def _refuse_broken(paths: Iterable[str]) -> None:
    """Somebody named them: what of them cannot be used is an error, and not only said.

    Raises:
        PluginError: it cannot.
    """
    from ..core.plugins import PluginError, reported, unreported
    from ..runs.plugins import tables

    with unreported():
        for table in tables().values():
            table.added()
    broken = [str(one) for one in reported() if one.plugin.origin in paths]
    if broken:
        raise PluginError("\n".join(broken))
