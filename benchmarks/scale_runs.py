"""What sweeps of many calls share: their table, their grid, and the memory of a process."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from jsonl_data import write_lines
from PIL import Image

from vlmeval_findit.cli import main

GRID = """
models: FullImage
datasets: [Scale]
representations: all
outputs: all
keys: all
"""


def import_table(
    folder: Path,
    rows: int,
    patch: pytest.MonkeyPatch,
    pictures: int,
    size: tuple[int, int] = (160, 120),
    suffix: str = ".png",
) -> None:
    """Import a custom table of ``rows`` rows over at most ``pictures`` pictures of a size."""
    (folder / "lmu").mkdir()
    patch.setenv("LMUData", str(folder / "lmu"))
    images = folder / "pictures"
    images.mkdir(parents=True)
    random = np.random.default_rng(0)
    for at in range(min(pictures, rows)):
        pixels = random.integers(0, 255, (*size[::-1], 3), dtype=np.uint8)
        Image.fromarray(pixels).save(images / f"{at}{suffix}", compress_level=0)  # noise
    box = [5, 6, size[0] * 5 // 16, size[1] // 2]
    lines = [
        {"image": f"{at % pictures}{suffix}", "expression": f"thing {at}", "boxes": [box]}
        for at in range(rows)
    ]
    path = write_lines(folder / "scale.jsonl", lines)
    assert main(["data", "import", str(path), "--image-root", str(images), "--name", "Scale"]) == 0


def peak_mib() -> float:
    """Return the most memory that this process had; 0 if the system does not say."""
    try:
        peak = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())
    except OSError:
        return 0.0
    return int(peak[1]) / 1024 if peak else 0.0
