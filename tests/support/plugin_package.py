"""The package of ``docs/plugin-template``, installed with pip for the tests."""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from paths import ROOT

from vlmeval_findit.core import plugin_rows

TEMPLATE = ROOT / "docs" / "plugin-template"


def install(folder: Path, version: str = "0.1.0") -> Path:
    """Install a copy of the template as of a version; the folder that it is in afterwards."""
    source = folder / f"source-{version}"
    site = folder / f"site-{version}"
    shutil.copytree(TEMPLATE, source, ignore=shutil.ignore_patterns("__pycache__", "build"))
    settings = source / "pyproject.toml"
    settings.write_text(settings.read_text().replace('version = "0.1.0"', f'version = "{version}"'))
    words = "install -q --no-deps --no-build-isolation --no-index --disable-pip-version-check"
    command = [sys.executable, "-m", "pip", *words.split(), "--target", str(site), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return site


def path_with(site: Path) -> str:
    """PYTHONPATH with the package, for other processes."""
    return os.pathsep.join([str(ROOT), str(site)])


@contextmanager
def known_here(*sites: Path, files: tuple[Path, ...] = ()) -> Iterator[None]:
    """This process has the packages of folders, and files; afterwards it never had them."""
    with pytest.MonkeyPatch.context() as patch:
        for site in sites:
            patch.syspath_prepend(str(site))
        if files:
            patch.setenv(plugin_rows.FILES_VARIABLE, os.pathsep.join(map(str, files)))
        _forget()
        yield
    _forget()


def _forget() -> None:
    importlib.invalidate_caches()
    for name in [name for name in sys.modules if name.partition(".")[0] == "findit_plates"]:
        del sys.modules[name]
    plugin_rows.forget()


MINE = r"""
from vlmeval_findit.boxes.representation import Representation
from vlmeval_findit.boxes.spaces import SpaceKind, Space
from vlmeval_findit.models.model_row import ModelRow

SPACES = SpaceKind("grid512", "grid512", "512 steps a side", lambda size, space: (512, 512))

MODELS = ModelRow("Cornered", r"Cornered(-\d+B)?", space=lambda question: Space("grid512"))

REPRESENTATIONS = Representation(
    name="xxyy",
    width=4,
    fields=("x_min", "x_max", "y_min", "y_max"),
    keys=(),
    to_corners=lambda n: (n[0], n[2], n[1], n[3]),
    from_corners=lambda box: (box[0], box[2], box[1], box[3]),
)
"""


def written(path: Path, text: str) -> Path:
    """Write a plug-in."""
    path.write_text(text, encoding="utf-8")
    return path
