"""Fresh virtual environments with our wheel and exactly the packages that the wheel asks for.

Installing them again would take minutes and gigabytes.  The packages are links to those of the
environment that runs the tests: those that the wheel's metadata names, and their requirements.  An
import that ``pyproject.toml`` forgot fails here.  Nothing of the clone can be imported.
"""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from email.parser import HeaderParser
from pathlib import Path
from typing import NoReturn

import pytest
from paths import ROOT

WEIGHTS = "vlmeval-findit-nano"
SITE = f"lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"


CLONE = "a clone"
"""With a space, as people's folders have."""


def copy_of_the_clone(folder: Path, compiled: bool = False) -> Path:
    """Return a copy of what git has, so that building leaves nothing behind in the clone.

    ``compiled``: with what Python compiled, for who only runs it.
    """
    copy = folder / CLONE
    made = [".git", ".venv*", "build", "dist", "outputs", "*.egg-info", ".*_cache", ".hypothesis"]
    # What Python is just compiling has another name a moment later.
    made.append("*.pyc.*" if compiled else "__pycache__")
    ignored = shutil.ignore_patterns(*made)
    shutil.copytree(ROOT, copy, ignore=ignored)
    return copy


def build(source: Path, kind: str, out: Path) -> Path:
    """Build a wheel or an sdist through the packaging hooks, as pip does, without a network."""
    pytest.importorskip("setuptools", minversion="77")
    code = (
        "import setuptools.build_meta as backend, sys;"
        f"print(backend.{kind}(sys.argv[1]), file=sys.stderr)"
    )
    out.mkdir(exist_ok=True)
    subprocess.run(
        [sys.executable, "-c", code, str(out)], cwd=source, check=True, capture_output=True
    )
    return next(path for path in out.iterdir() if path.suffix in (".whl", ".gz"))


def source_archive(clone: Path, folder: Path) -> Path:
    """Build the source archive of a clone and return the folder that it unpacks to."""
    with tarfile.open(build(clone, "build_sdist", folder / "sdist")) as tar:
        tar.extractall(folder, filter="data")
    (unpacked,) = folder.glob("vlmeval_findit-*/")
    return unpacked


def bare_venv(folder: Path) -> Path:
    """Return an environment with nothing in it, not even pip."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    return folder


def pip(venv: Path, *arguments: str) -> None:
    """Our pip on another environment."""
    subprocess.run(
        [sys.executable, "-m", "pip", "--python", str(venv / "bin" / "python"), *arguments],
        check=True,
        capture_output=True,
    )


def needs_of(wheel: Path) -> list[str]:
    """Return the requirements in a wheel's metadata."""
    with zipfile.ZipFile(wheel) as z:
        name = next(n for n in z.namelist() if n.endswith(".dist-info/METADATA"))
        return HeaderParser().parsestr(z.read(name).decode()).get_all("Requires-Dist") or []


@dataclass(frozen=True)
class FreshVenv:
    """An environment with the wheel, a home and a working folder."""

    venv: Path
    home: Path

    def run(self, *command: str, **env: str) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment, from another folder, without the user's settings."""
        program, *arguments = command
        return self._run([str(self.venv / "bin" / program), *arguments], env)

    def shell(self, lines: str) -> subprocess.CompletedProcess[str]:
        """Run lines as a step of a workflow: in bash, until one fails; programs are its own."""
        path = os.pathsep.join([str(self.venv / "bin"), os.environ["PATH"]])
        return self._run(["bash", "-e", "-c", lines], {"PATH": path})

    def _run(self, command: list[str], env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        here = self.home / "a folder"
        here.mkdir(parents=True, exist_ok=True)
        (self.home / "LMUData").mkdir(exist_ok=True)
        inherited = {k: os.environ[k] for k in ("PATH", "LANG", "LC_ALL") if k in os.environ}
        home = {"HOME": str(self.home), "LMUData": str(self.home / "LMUData")}
        # No proxy and no index: a request to anywhere would fail.
        nowhere = {"HTTPS_PROXY": "http://127.0.0.1:9", "HTTP_PROXY": "http://127.0.0.1:9"}
        return subprocess.run(
            command,
            cwd=here,
            env={**inherited, **home, **nowhere, "OMP_NUM_THREADS": "1", **env},
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )

    def findit(self, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
        """Return the command, as its script in the environment runs it."""
        return self.run("findit", *arguments, **env)

    @property
    def here(self) -> Path:
        """The folder in which it is run."""
        return self.home / "a folder"


def installed(
    wheel: Path, extras: Sequence[str], folder: Path, weights: Path | None = None
) -> FreshVenv:
    """Install a wheel, as ``pip install WHEEL[extras]`` would on a machine that has the packages.

    ``weights`` is the wheel that it finds when ours asks for the weights' package.  Skips if the
    environment of the tests lacks a package; fails if FINDIT_REQUIRE_HOST=1.
    """
    venv = bare_venv(folder / "a venv")
    wheels = [wheel, weights] if weights is not None else [wheel]
    pip(venv, "install", "--no-deps", "--no-index", *map(str, wheels))
    packages = folder / "packages"
    packages.mkdir()
    for distribution in _asked_for(needs_of(wheel), extras):
        _link(distribution, packages)
    (venv / SITE / "packages.pth").write_text(f"{packages}\n")
    return FreshVenv(venv, folder / "home")


def _asked_for(
    needs: Sequence[str], extras: Sequence[str]
) -> list[importlib.metadata.Distribution]:
    requirements = pytest.importorskip("packaging.requirements")
    utils = pytest.importorskip("packaging.utils")
    needed: dict[str, importlib.metadata.Distribution] = {}
    done: set[tuple[str, str]] = set()
    waiting = [(need, extra) for need in needs for extra in extras or [""]]
    while waiting:
        need, extra = waiting.pop()
        if (need, extra) in done:
            continue
        done.add((need, extra))
        asked = requirements.Requirement(need)
        if asked.marker is not None and not asked.marker.evaluate({"extra": extra}):
            continue
        if asked.name == "vlmeval-findit":
            waiting += [(own, name) for own in needs for name in asked.extras]
            continue
        if asked.name == WEIGHTS:
            continue
        try:
            distribution = importlib.metadata.distribution(asked.name)
        except importlib.metadata.PackageNotFoundError:
            _not_here(f"{asked.name} is not installed, and the wheel asks for {need}")
        if not asked.specifier.contains(distribution.version, prereleases=True):
            _not_here(f"{asked.name} {distribution.version} is not what is asked for: {need}")
        needed[utils.canonicalize_name(asked.name)] = distribution
        requires = distribution.requires or []
        waiting += [(name, extra) for name in requires for extra in asked.extras or {""}]
    return list(needed.values())


def _not_here(reason: str) -> NoReturn:
    if os.environ.get("FINDIT_REQUIRE_HOST") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


def _link(distribution: importlib.metadata.Distribution, packages: Path) -> None:
    """Link the modules of a distribution into a folder; not its scripts, nor its start-up hooks."""
    for name in {file.parts[0] for file in distribution.files or ()}:
        link = packages / name
        if name in ("..", "__pycache__") or name.endswith(".pth") or link.is_symlink():
            continue
        link.symlink_to(str(distribution.locate_file(name)))
