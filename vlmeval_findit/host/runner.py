"""VLMEvalKit's runner, started in this process."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..core.vlmevalkit import Runner


def run_host(runner: Runner, arguments: Sequence[str]) -> None:
    """Run a command line."""
    sys.argv = [str(runner.path), *arguments]
    module = _module(runner.path)
    module.load_env()
    if not (runner.path.parent / ".git").exists() and hasattr(module, "githash"):
        # An installed VLMEvalKit has no git revision, and git would complain about it.
        module.githash = lambda *_, **__: "unknown"
    module.main()


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
