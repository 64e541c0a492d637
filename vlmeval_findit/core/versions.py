"""Which packages are installed."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import metadata


def installed(packages: Sequence[str]) -> dict[str, str]:
    """The versions of those packages that are installed, found without importing any."""
    found = {}
    for package in packages:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found
