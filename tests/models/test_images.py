"""Images on their way to a local model: decoded once, while they fit."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from PIL import Image

from vlmeval_findit.models.local import images
from vlmeval_findit.models.local.images import RecentPixels


@pytest.fixture
def decoded(watch_decoding: Callable[[ModuleType], list[str]]) -> list[str]:
    """Return the names of the files that were decoded, in order."""
    return watch_decoding(images)


def scene(folder: Path, name: str, colour: str = "red") -> str:
    path = folder / f"{name}.png"
    Image.new("RGB", (10, 10), colour).save(path)
    return str(path)


def test_the_least_recently_used_goes_first(tmp_path: Path, decoded: list[str]) -> None:
    a, b, c = (scene(tmp_path, name) for name in "abc")
    recent = RecentPixels(most=2 * 300)
    for path in (a, b, a, c, a, b):
        recent.get(path)
    assert decoded == ["a.png", "b.png", "c.png", "b.png"]


def test_an_image_that_does_not_fit_is_not_kept(tmp_path: Path, decoded: list[str]) -> None:
    path, recent = scene(tmp_path, "a"), RecentPixels(most=299)
    assert recent.get(path).size == recent.get(path).size == (10, 10)
    assert decoded == ["a.png", "a.png"]


def test_a_changed_file_is_decoded_again(tmp_path: Path) -> None:
    recent = RecentPixels(most=1000)
    assert recent.get(scene(tmp_path, "a")).getpixel((0, 0)) == (255, 0, 0)
    path = scene(tmp_path, "a", "blue")
    os.utime(path, ns=(1, 1))
    assert recent.get(path).getpixel((0, 0)) == (0, 0, 255)


def test_a_missing_file_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"none\.png"):
        RecentPixels(most=1000).get(str(tmp_path / "none.png"))
