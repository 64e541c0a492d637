"""Which packages are installed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import metadata


def installed(packages: Sequence[str]) -> dict[str, str]:
    """The versions of those packages that are installed, found without importing any."""
    found = {package: _version(package) for package in packages}
    return {package: version for package, version in found.items() if version is not None}


@cache
def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
