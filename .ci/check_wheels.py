#!/usr/bin/env python3
"""``check_wheels.py dist``: both wheels of a release have what they should, and no more.

The package is built of its source archive (``python -m build``), so it has no weights and asks for
them; they are a wheel of their own.
"""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

MOST_BYTES = 3_000_000  # of the package without weights: 2.2 MB on 2026-11-30
MODELS = 3
PACKAGE, WEIGHTS = "vlmeval_findit", "vlmeval_findit_nano"


def problems(folder: Path) -> list[str]:
    """What is wrong with the wheels in a folder, one sentence each; empty where nothing is."""
    wheels = {path.name.partition("-")[0]: path for path in sorted(folder.glob("*.whl"))}
    if wheels.keys() != {PACKAGE, WEIGHTS}:
        return [f"expected a wheel of {PACKAGE} and one of {WEIGHTS}, found {', '.join(wheels)}"]
    package, weights = wheels[PACKAGE], wheels[WEIGHTS]
    wrong = []
    if checkpoints(package):
        wrong.append(f"{package.name} has weights: build it of the source archive")
    if package.stat().st_size > MOST_BYTES:
        wrong.append(f"{package.name} has {package.stat().st_size} bytes, over {MOST_BYTES}")
    version = weights.name.split("-")[1]
    asked = f"vlmeval-findit-nano=={version}"
    if f'Requires-Dist: {asked}; extra == "weights"' not in metadata(package):
        wrong.append(f"{package.name} does not ask for the weights of {version}")
    if checkpoints(weights) != MODELS:
        wrong.append(f"{weights.name} has {checkpoints(weights)} checkpoints, not {MODELS}")
    return wrong


def checkpoints(wheel: Path) -> int:
    """Return how many checkpoints a wheel has."""
    with zipfile.ZipFile(wheel) as z:
        return sum(name.endswith(".safetensors") for name in z.namelist())


def metadata(wheel: Path) -> list[str]:
    """Return the lines of a wheel's metadata."""
    with zipfile.ZipFile(wheel) as z:
        name = next(name for name in z.namelist() if name.endswith(".dist-info/METADATA"))
        return z.read(name).decode().splitlines()


def main(argv: list[str]) -> int:
    """Print what is wrong; returns 0 where nothing is, 1, or 2 without a folder."""
    if len(argv) != 1:
        print("usage: check_wheels.py FOLDER", file=sys.stderr)
        return 2
    wrong = problems(Path(argv[0]))
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
