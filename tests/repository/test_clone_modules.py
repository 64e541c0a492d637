"""``python -m`` with a folder of the clone runs the clone's, whatever packages are installed.

Many packages install a top-level ``tests``; label-studio-converter, which our tests need, is one.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from pages import PAGES
from paths import ROOT

# Prints the folder or file of a module, in which -m looks for it
FIND = """
import importlib.util, site, sys
name, behind = sys.argv[1:]
site.addsitedir(behind)
spec = importlib.util.find_spec(name)
print(*(spec.submodule_search_locations or [spec.origin]))
"""


def modules() -> list[str]:
    """Return what pages run with ``python -m`` of folders of the clone."""
    texts = [path.read_text(encoding="utf-8") for path in PAGES.values()]
    named = {name for text in texts for name in re.findall(r"python3? -m ([\w.]+)", text)}
    return sorted(name for name in named if "." in name and (ROOT / folder_of(name)).is_dir())


def folder_of(module: str) -> str:
    return module.partition(".")[0]


@pytest.fixture
def fakes(tmp_path: Path) -> Path:
    """Return a folder of packages that are called like folders of the clone."""
    for name in map(folder_of, modules()):
        (tmp_path / name).mkdir(exist_ok=True)
        (tmp_path / name / "__init__.py").touch()
    return tmp_path


def run(*arguments: str, path: str = "") -> str:
    """Run Python in the clone, with more folders before those of packages."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([path, os.environ.get("PYTHONPATH", "")])}
    env.pop("PYTHONSAFEPATH", None)
    done = subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_pages_run_modules_of_the_clone() -> None:
    assert {"tests.support.conformance", "training.shipped_tables"} <= set(modules())


@pytest.mark.parametrize("name", modules())
@pytest.mark.parametrize("place", ["before", "behind"])
def test_no_installed_package_hides_a_module_of_the_clone(
    name: str, place: str, fakes: Path
) -> None:
    """Before: in PYTHONPATH; behind: where pip installs packages."""
    found = run("-c", FIND, name, str(fakes), path=str(fakes) if place == "before" else "")
    where = ROOT.joinpath(*name.split("."))
    assert Path(found) in (where, where.with_suffix(".py"))


def test_the_command_of_the_pages_begins(fakes: Path) -> None:
    help_text = run("-m", "tests.support.conformance", "-h", path=str(fakes))
    assert help_text.startswith("usage: python -m tests.support.conformance")
