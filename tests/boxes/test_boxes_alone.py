"""`boxes` is a library of its own: importing it loads of `core` what it uses, and nothing heavy."""

from __future__ import annotations

import os
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

from vlmeval_findit import boxes

TABLES = {"files", "plugins", "redaction"}
"""What a table needs that plug-ins add rows to."""
MORE = {
    "confidences": {"replies"},
    "lenient": {"lenient_json"},
    **{name: {"formatting"} for name in ("error_types", "matching", "spaces")},
}
NO_TABLE = {"assignment"}


def loaded(module: str) -> set[str]:
    code = f"import sys, {module}; print(*sys.modules)"
    # Without the start-up hook of an installed package, which is a module of ours too.
    environment = {**os.environ, "VLMEVAL_FINDIT": "0"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


@pytest.mark.parametrize("name", [one.name for one in pkgutil.iter_modules(boxes.__path__)])
def test_a_module_loads_what_it_uses(name: str) -> None:
    found = loaded(f"vlmeval_findit.boxes.{name}")
    ours = {module.split(".", 1)[1] for module in found if module.startswith("vlmeval_findit.")}
    of_core = {Path(module).suffix[1:] for module in ours if module.startswith("core.")}
    assert of_core == (set() if name in NO_TABLE else TABLES | MORE.get(name, set()))
    assert {module.split(".")[0] for module in ours} <= {"core", "boxes"}
    assert not {"scipy", "pandas", "torch", "vlmeval", "cv2"} & found


def test_the_package_alone_loads_nothing() -> None:
    found = loaded("vlmeval_findit.boxes")
    assert not [module for module in found if module.startswith("vlmeval_findit.core")]
