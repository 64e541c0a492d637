"""The dataset Demo: its annotations, and its photographs."""

from __future__ import annotations

import dataclasses
import importlib.util
import json

import numpy as np
import pytest
from PIL import Image

from vlmeval_findit.benchmarks.findit import read_table
from vlmeval_findit.data import (
    PHOTO_PARTS,
    Photo,
    demo_image,
    demo_tables,
    photos,
    prepare_demo,
    read_photo,
)
from vlmeval_findit.storage import shipped_table

PHOTOS = photos()

MISSING = sorted({p.pip for p in PHOTOS.values() if importlib.util.find_spec(p.package) is None})
needs_photos = pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")


# --- the annotations, without any photograph ------------------------------------------------------


@pytest.mark.parametrize("table", demo_tables())
def test_boxes_lie_inside_images_of_the_stated_size(table: str) -> None:
    sizes = {
        name: tuple(size) for name, (_, _, size) in json.loads(PHOTO_PARTS.read_text()).items()
    }
    sizes |= {f"photos/{name}.png": (photo.width, photo.height) for name, photo in PHOTOS.items()}
    for query in read_table(shipped_table(table)):
        assert {sizes[name] for name in query.images} == {(query.width, query.height)}
        for x1, y1, x2, y2 in query.truth.boxes:
            assert 0 <= x1 < x2 <= query.width
            assert 0 <= y1 < y2 <= query.height
        assert all(min(sizes[name]) >= 12 for name in query.support)


# --- photographs ----------------------------------------------------------------------------------


@needs_photos
def test_a_photograph_that_is_not_there_names_the_pip_command() -> None:
    photo = dataclasses.replace(PHOTOS["coins"], package="no_such_package_here", pip="no-such")
    with pytest.raises(FileNotFoundError, match=r"is not installed: pip install .*\[data\]"):
        read_photo(photo)
    photo = dataclasses.replace(PHOTOS["coins"], sha256="0" * 64)
    with pytest.raises(ValueError, match=r"data/coins\.png of the package 'skimage'.*pip install"):
        read_photo(photo)


@needs_photos
@pytest.mark.parametrize("photo", PHOTOS.values(), ids=PHOTOS)
def test_photographs_have_the_stated_size_and_checksum(photo: Photo) -> None:
    assert read_photo(photo).shape == (photo.height, photo.width, 3)


@needs_photos
def test_tables_and_their_images_are_written(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("LMUData", str(tmp_path))
    for table in prepare_demo():
        assert table.path.read_bytes() == shipped_table(table.path.stem).read_bytes()
        for query in read_table(table.path):
            for name in (*query.images, *query.support):
                with Image.open(tmp_path / "images" / "Demo" / name) as written:
                    assert np.array_equal(np.asarray(written), np.asarray(demo_image(name)))
