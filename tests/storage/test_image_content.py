"""What an image is to a run: its file's hash, and whether it is transparent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from vlmeval_findit.core import file_sha256
from vlmeval_findit.storage import (
    TRANSPARENT,
    ImageFileError,
    changed_images,
    content_of,
    image_bytes,
    is_other_file,
    shown_contents,
    shown_in,
)

A, B = "a" * 64, "b" * 64


@pytest.mark.parametrize("suffix", ["jpg", "png", "bmp"])
def test_an_opaque_images_content_is_its_files_hash(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a.{suffix}"
    Image.new("RGB", (4, 4)).save(path)
    assert content_of(path) == file_sha256(path) == image_bytes(path).sha256


def test_a_file_that_is_no_image_has_a_content_too(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    path.write_text("no image")
    assert content_of(path) == file_sha256(path)


def test_missing_files_and_folders_are_explained(tmp_path: Path) -> None:
    for name, why in (("gone.png", "is missing"), ("", "is a folder, not an image")):
        with pytest.raises(ImageFileError, match=why):
            image_bytes(tmp_path / name)


def test_what_a_row_showed_is_written_and_read_back() -> None:
    shown = shown_contents(["a.png", "b.png", "c.png"], [A, B + TRANSPARENT, "not read: gone"])
    assert shown == {"a.png": "a" * 16, "b.png": "b" * 16 + TRANSPARENT}
    assert shown_in(json.dumps(shown)) == shown_in(shown) == shown
    assert shown_contents(["c.png"], ["not read: gone"]) == shown_contents([], []) == {}


@pytest.mark.parametrize("value", [None, "", "[1]", "{", 3, float("nan"), {"a": 1}, ["a"]])
def test_columns_of_that_name_from_elsewhere_say_nothing(value: Any) -> None:
    assert shown_in(value) == {}


def test_only_known_contents_contradict() -> None:
    before = {"a": "1", "b": "2", "c": "3" + TRANSPARENT}
    assert changed_images(before, {"a": "1", "b": "9", "c": "3", "d": "4"}) == ["b", "c"]
    assert changed_images(before, {}) == changed_images({}, before) == []
    assert is_other_file(A, B)
    assert not any(is_other_file(A + TRANSPARENT, each) for each in (A, A[:16]))
    assert not is_other_file("a name", B), "no hash: nothing is known"
