"""Where images are looked for, and which rows a run leaves out when they are not there."""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import product
from math import inf
from pathlib import Path

import pytest
from PIL import Image

from vlmeval_findit.benchmarks.findit import FindItQuery
from vlmeval_findit.boxes import Truth
from vlmeval_findit.core import SETTLED_NS, file_state
from vlmeval_findit.storage import (
    Folder,
    FolderError,
    ImageError,
    ImageFileError,
    ImageHeader,
    image_files,
    image_folder,
    known_header,
    rows_to_leave_out,
    unusable_rows,
)


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "lmu").mkdir()
    monkeypatch.setenv("LMUData", str(tmp_path / "lmu"))
    monkeypatch.setenv("FINDIT_CONFIG", str(tmp_path / "datasets.yaml"))
    return tmp_path / "datasets.yaml"


@pytest.mark.sees("FINDIT_CONFIG", "FINDIT_IMAGES")
@pytest.mark.parametrize(
    ("text", "named", "folder", "source"),
    [
        ("", "", "lmu/images/Pascal", "LMUData"),
        ("root: all", "", "all/Pascal", "datasets.yaml"),
        ("{root: all, images: {Pascal: voc}}", "", "voc", "datasets.yaml"),
        ("images: {Pascal: voc}", "D3={0}/d3,Pascal={0}/mine", "mine", "FINDIT_IMAGES"),
        ("{images: , sources: , root: }", "", "lmu/images/Pascal", "LMUData"),
    ],
)
def test_where_images_are_searched(
    config: Path,
    monkeypatch: pytest.MonkeyPatch,
    text: str,
    named: str,
    folder: str,
    source: str,
) -> None:
    config.write_text(text)
    monkeypatch.setenv("FINDIT_IMAGES", named.format(config.parent))
    result = image_folder("Pascal")
    assert result.path == config.parent / folder
    assert result.source.endswith(source)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        *((text, "") for text in ("- a", "images: 7", "images: [a", "sources: x")),
        ("images: {Pascal: 2014}", "images, Pascal: 2014 should be text: write it in quotes"),
        ("images: [[Pascal, voc]]", "images: .* is not a mapping of names"),
        ("image: {Pascal: voc}", "unknown section 'image': did you mean images"),
    ],
)
def test_a_configuration_names_places_in_text(config: Path, text: str, why: str) -> None:
    config.write_text(text)
    with pytest.raises(FolderError, match=rf"datasets\.yaml[:,] {why}"):
        image_folder("Pascal")


def queries(tmp_path: Path, there: tuple[bool, ...]) -> list[FindItQuery]:
    for index, is_there in enumerate(there):
        if is_there:
            Image.new("RGB", (4, 3)).save(tmp_path / f"{index}.png")
    return [FindItQuery(i, "x", 4, 3, (f"{i}.png",), Truth((), ())) for i in range(len(there))]


@pytest.mark.parametrize(
    ("there", "skip", "left_out"),
    [
        ((True, True), False, set()),
        ((True, True), True, set()),
        ((True, False, True), True, {1}),
        ((True, False, True), False, None),
        ((False, False), True, None),
    ],
)
def test_rows_are_left_out_when_told_and_others_are_left(
    tmp_path: Path, there: tuple[bool, ...], skip: bool, left_out: set[int] | None
) -> None:
    asked = queries(tmp_path, there)
    folder = Folder("Pascal", tmp_path, "a test")
    if left_out is not None:
        assert rows_to_leave_out(asked, folder, skip) == left_out
        return
    with pytest.raises(ImageError) as error:
        rows_to_leave_out(asked, folder, skip)
    first = there.index(False)
    assert str(error.value).startswith(
        f"{there.count(False)} of {len(there)} rows have no usable image; the first is row "
        f"{first}: {tmp_path / f'{first}.png'} is missing.\n"
    )


@pytest.mark.parametrize("limit", [None, 1, 2, 3, 9])
def test_no_image_behind_the_asked_rows_matters(tmp_path: Path, limit: int | None) -> None:
    """Compare every pattern of missing images with the rows counted one by one."""
    for number, there in enumerate(product((True, False), repeat=5)):
        folder = Folder("Pascal", tmp_path / str(number), "a test")
        folder.path.mkdir()
        asked = queries(folder.path, there)
        first = [index for index, is_there in enumerate(there[:limit]) if not is_there]
        if first:
            rows = len(there[:limit])
            with pytest.raises(ImageError, match=f"^{len(first)} of {rows} rows .* row {first[0]}"):
                rows_to_leave_out(asked, folder, False, limit)
        else:
            assert rows_to_leave_out(asked, folder, False, limit) == frozenset()
        usable = [index for index, is_there in enumerate(there) if is_there][:limit]
        if not usable:
            with pytest.raises(ImageError, match=r"^5 of 5 rows"):
                rows_to_leave_out(asked, folder, True, limit)
            continue
        last = usable[-1] if len(usable) == limit else len(there)
        passed = {index for index in range(last) if not there[index]}
        assert rows_to_leave_out(asked, folder, True, limit) == passed


def test_each_row_of_a_shared_image_is_checked(tmp_path: Path) -> None:
    (right,) = queries(tmp_path, (True,))
    wrong = replace(right, index=1, width=5)
    shot = replace(right, index=2, images=(), support=right.images)
    for rows in ([right, wrong, shot], [shot, wrong, right], [wrong, shot, right]):
        (bad,) = unusable_rows(rows, tmp_path)
        assert (bad.index, bad.why) == (1, "is 4x3, but its annotations are for 5x3")


@pytest.mark.parametrize("waited", [0.0, inf], ids=["a slow disk", "a quick one"])
@pytest.mark.parametrize("count", [0, 1, 15, 16, 17, 32, 33, 70])
def test_every_image_is_checked_on_any_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, waited: float, count: int
) -> None:
    monkeypatch.setattr(image_files, "_WAITED", waited)
    there = tuple(index % 5 > 0 for index in range(count))
    bad = {
        row.index: (row.path, row.why) for row in unusable_rows(queries(tmp_path, there), tmp_path)
    }
    missing = range(0, count, 5)
    assert bad == {index: (tmp_path / f"{index}.png", "is missing") for index in missing}


def test_a_header_is_read_once_unless_its_file_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = []
    read_image_header = image_files.read_image_header

    def counted_header(path: Path) -> ImageHeader:
        read.append(path)
        return read_image_header(path)

    monkeypatch.setattr(image_files, "read_image_header", counted_header)
    path = tmp_path / "a.png"
    Image.new("RGB", (4, 3)).save(path)
    changed = file_state(path).changed

    def width_at(now: int) -> int:
        monkeypatch.setattr(time, "time_ns", lambda: now)
        return known_header(path).size[0]

    later = changed + SETTLED_NS + 1
    assert [width_at(changed) for _ in range(2)] == [4, 4]
    assert len(read) == 2, "a change so soon may not show"
    assert [width_at(later) for _ in range(3)] == [4, 4, 4]
    assert len(read) == 3
    Image.new("RGB", (50, 30)).save(path)
    assert width_at(later + 1000 * SETTLED_NS) == 50
    path.unlink()
    with pytest.raises(ImageFileError, match="is missing"):
        known_header(path)
