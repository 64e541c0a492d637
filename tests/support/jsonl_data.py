"""Queries of every kind as JSON lines, and their images."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from vlmeval_findit.cli import main

WIDTH, HEIGHT = 96, 64
FRAMES = 4
CAT, DOG = [10, 5, 40.5, 25], [50, 30, 90, 60]
RAIN = {"rain": True}

Line = Mapping[str, Any]


def frames(clip: str) -> list[str]:
    return [f"{clip}/{at:03}.png" for at in range(FRAMES)]


def labelled(box: list[float], label: str) -> Line:
    return {"box": box, "label": label}


LINES: Mapping[str, list[Line]] = {
    "objdet": [
        {"image": "0.png", "label": "cat", "boxes": [CAT, DOG], "tags": {"time": "night"}},
        {"image": "1.png", "label": "dog", "boxes": [], "tags": {"time": "day", "seen": False}},
        {
            "image": "2.png",
            "labels": ["dog", "cat", "bird"],
            "boxes": [labelled(CAT, "cat"), labelled(DOG, "dog")],
            "tags": {"time": "day"},
        },
    ],
    "refexp": [
        {
            "image": "0.png",
            "expression": "the grey pet, left",
            "boxes": [CAT],
            "tags": {"rain": True},
        },
        {"image": "1.png", "expression": "a dog", "boxes": [DOG], "tags": {"rain": False}},
    ],
    "refexp_all": [
        {"image": "0.png", "expression": "pets", "boxes": [CAT, DOG], "caption": "two pets"},
        {"image": "1.png", "expression": "a cow", "boxes": [], "caption": "an empty room"},
    ],
    "insdet": [
        {"image": "0.png", "references": ["r0.png", "r1.png"], "boxes": [CAT]},
        {"image": "1.png", "references": ["r2.png"], "boxes": []},
        {"image": "2.png", "references": ["r0.png"], "boxes": [DOG]},
    ],
    "objdet_video": [
        {"images": frames("a"), "label": "cat", "boxes": [[CAT], [], [CAT, DOG], []]},
        {"images": frames("b"), "label": "cat", "boxes": [[], [], [], []]},
        {
            "images": frames("b"),
            "labels": ["cat", "dog"],
            "boxes": [[labelled(DOG, "dog")], [labelled(CAT, "cat"), labelled(DOG, "dog")], [], []],
        },
    ],
    "insdet_video": [
        {"images": frames("a"), "references": ["r0.png"], "boxes": [[CAT], [DOG], [], []]},
        {"images": frames("b"), "references": ["r1.png"], "boxes": [[], [], [], [CAT]]},
    ],
}
"""By the family that they make."""


def make_images(folder: Path) -> Path:
    random = np.random.default_rng(0)
    names = [f"{at}.png" for at in range(3)] + [f"r{at}.png" for at in range(3)]
    for name in [*names, *frames("a"), *frames("b")]:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pixels = random.integers(0, 255, (HEIGHT, WIDTH, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(path)
    Image.new("RGB", (32, 32)).save(folder / "small.png")
    return folder


def write_lines(path: Path, lines: Iterable[Line | str]) -> Path:
    texts = (line if isinstance(line, str) else json.dumps(line) for line in lines)
    path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return path


def import_lines(folder: Path, lines: Iterable[Line | str], *flags: str, name: str = "Mine") -> int:
    """Import lines whose images lie in ``folder/images``."""
    path = write_lines(folder / "mine.jsonl", lines)
    images = folder / "images"
    if not images.exists():
        make_images(images)
    command = ["data", "import", str(path), "--image-root", str(images), "--name", name]
    return main([*command, *flags])
