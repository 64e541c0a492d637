"""``run_findit.py --version``: what is installed; nothing of it is imported."""

from __future__ import annotations

import platform
from pathlib import Path

from .. import __version__
from ..core.command import install, installed
from ..core.identity import ENGINES
from ..core.vlmevalkit import host_version, package_folder


def print_versions() -> None:
    """Print the versions of this package, VLMEvalKit, Python and the engines."""
    print(f"vlmeval-findit {__version__}, {Path(__file__).resolve().parents[1]}")
    folder = package_folder()
    for name, number in host_version().items():
        print(f"{name} {number}, {folder}")
    if folder is None:
        print(f"VLMEvalKit is not installed: {install('run')}")
    print(f"Python {platform.python_version()}")
    for name, number in installed(ENGINES).items():
        print(f"{name} {number}")
