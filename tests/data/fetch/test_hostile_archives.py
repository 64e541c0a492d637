"""Archives that try to take the machine, or to write elsewhere."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path
from unittest.mock import Mock

import pytest
from bounded import told_within
from few_fast import every_nth_fast
from hostile_archives import GOOD, TARS, ZIPS
from stand_ins import QUICK, SIZE, files_of

from vlmeval_findit.data import BASE_ADDRESSES, SOURCES, FetchJob, ImageStore, fetch_images

NAME = "é1.jpg"


def fetched(archive: Path, folder: Path) -> str:
    """Fetch an image of an archive; return why it could not be had."""
    client = Mock(policy=QUICK)
    client.download = lambda url, part, *_: shutil.copyfile(archive, part)
    addresses = dict.fromkeys(BASE_ADDRESSES, "http://127.0.0.1/")
    store = ImageStore(folder, {NAME: SIZE})
    store.parts.mkdir(parents=True)
    job = FetchJob(client, addresses, store, Mock())
    return fetch_images(job, SOURCES["Flickr30k"], [NAME], None).get(NAME, "")


@pytest.mark.parametrize(
    "kind",
    every_nth_fast([*(f"tar, {name}" for name in TARS), *(f"zip, {name}" for name in ZIPS)], 8),
)
def test_an_archive_gives_the_image_or_nothing(kind: str, tmp_path: Path) -> None:
    pack, _, name = kind.partition(", ")
    archive = tmp_path / "archive"
    archive.write_bytes({"tar": TARS, "zip": ZIPS}[pack][name]())
    folder = tmp_path / "images"
    told = told_within(partial(fetched, archive, folder), seconds=20, mebibytes=150)
    assert told.startswith("answer"), told
    left = files_of(folder)
    print(kind, told[:250])
    assert left in ({}, {NAME: GOOD})
    assert bool(left) is (told == "answer: ")
    assert {path.name for path in tmp_path.iterdir()} == {"archive", "images"}
