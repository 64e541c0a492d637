"""Which VLMEvalKit this is, and where its runner lies; nothing of it is imported here.

On PyPI it is ``ms-vlmeval``, whose runner is the module ``vlmeval.run``; upstream is a clone whose
runner is ``run.py`` beside the package, and ``pip install`` of it installs no runner.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from ..core.commits import commit_of
from ..core.extras import install


class RunnerError(ValueError):
    """There is no runner; the message says what to type instead."""


@dataclass(frozen=True, slots=True)
class HostRunner:
    """The program that runs datasets; ``what`` names it for people."""

    path: Path
    what: str

    def run(self, arguments: Sequence[str]) -> None:
        """Hand a command line over to it, in this process."""
        sys.argv = [str(self.path), *arguments]
        module: Any = _module(self.path)
        module.load_env()
        module.main()


def package_folder() -> Path | None:
    """The folder of the package ``vlmeval`` that an import would take; None where there is none."""
    spec = importlib.util.find_spec("vlmeval")
    places = list(spec.submodule_search_locations or ()) if spec is not None else []
    return Path(places[0]) if places else None


@cache
def host_version() -> Mapping[str, str]:
    """The name of this VLMEvalKit with its version, or the commit of its clone."""
    folder = package_folder()
    if folder is None:
        return {}
    for name in ("ms-vlmeval", "vlmeval"):
        try:
            found = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue
        if Path(str(found.locate_file("vlmeval"))).resolve() == folder.resolve():
            return {name: found.version}
    return {"VLMEvalKit": commit_of(folder.parent) or "unknown"}


def find_runner(arguments: Sequence[str]) -> HostRunner:
    """The runner of this VLMEvalKit.

    Args:
        arguments: the command line, for the message where there is no runner.

    Raises:
        RunnerError: there is none.
    """
    folder = package_folder()
    if folder is None:
        raise RunnerError(
            f"VLMEvalKit is not installed: {install('run')}, or install a "
            "clone of it into this environment"
        )
    version = " ".join(f"{name} {number}" for name, number in host_version().items())
    for path in (folder / "run.py", folder.parent / "run.py"):
        if path.is_file():
            return HostRunner(path, f"{version}, {path}")
    raise RunnerError(
        f"the VLMEvalKit in {folder} has no runner ({version}): pip installs none of upstream's. "
        "In a clone of it, type:\n  python run.py " + " ".join(map(_quoted, arguments))
    )


def _quoted(word: str) -> str:
    import shlex

    return shlex.quote(word)


def _module(path: Path) -> Any:
    if path.parent.name == "vlmeval":
        return importlib.import_module("vlmeval.run")
    spec = importlib.util.spec_from_file_location("run", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["run"] = module
    spec.loader.exec_module(module)
    return module
