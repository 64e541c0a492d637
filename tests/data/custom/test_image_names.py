"""Images that annotations name otherwise than their files are called."""

from __future__ import annotations

from pathlib import Path

import pytest

from vlmeval_findit.data import AnnotationError, Fate, ImageNames, Ledger

FILES = ("a b.png", "cam1/f0.JPG", "c.jpg", "two.jpg", "two.png", "100%.png", "n.v2.webp")
# Names of a Mac are decomposed
FILES += ("Tu\u0308r.png",)


@pytest.fixture
def folder(tmp_path) -> Path:
    for name in FILES:
        path = tmp_path / "images" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")
    return tmp_path / "images"


@pytest.mark.parametrize(
    ("stated", "name", "how"),
    [
        ("c.jpg", "c.jpg", ""),
        ("100%.png", "100%.png", ""),
        ("a%20b.png", "a b.png", "whose names are encoded"),
        ("cam1\\f0.JPG", "cam1/f0.JPG", "whose names are encoded"),
        ("/data/upload/1/a%20b.png", "a b.png", "that lie in another folder"),
        ("C:\\work\\c.jpg", "c.jpg", "that lie in another folder"),
        ("../old/c.jpg", "c.jpg", "that lie in another folder"),
        ("c", "c.jpg", "with another suffix"),
        ("c.png", "c.jpg", "with another suffix"),
        ("cam1/f0", "cam1/f0.JPG", "with another suffix"),
        ("cam1/f0.png", "cam1/f0.JPG", "with another suffix"),
        ("n.v2", "n.v2.webp", "with another suffix"),
        ("two.png", "two.png", ""),
        ("/home/me/set/cam1/f0.JPG", "cam1/f0.JPG", "that lie in another folder"),
        ("D:\\set\\cam1\\f0.JPG", "cam1/f0.JPG", "that lie in another folder"),
        ("images/v1/cam1/f0.JPG", "cam1/f0.JPG", "that lie in another folder"),
        ("https://host.example/cam1/f0.JPG?sig=1", "cam1/f0.JPG", "are encoded"),
        ("C.JPG", "c.jpg", "differ in Unicode or letter case"),
        ("CAM1/F0.jpg", "cam1/f0.JPG", "differ in Unicode or letter case"),
        ("T\u00fcr.png", "Tu\u0308r.png", "differ in Unicode or letter case"),
        ("old/TU\u0308R.png", "Tu\u0308r.png", "differ in Unicode or letter case"),
        ("0f6142fb-c.jpg", "c.jpg", "the prefix of Label Studio"),
        # Nothing fits: a check of images will say so.
        ("gone.png", "gone.png", ""),
        ("f0.JPG", "f0.JPG", ""),
    ],
)
def test_an_image_is_found_and_how_is_told(folder: Path, stated: str, name: str, how: str) -> None:
    ledger = Ledger()
    assert ImageNames(folder, ledger).find(stated, "here") == name
    notes = [entry.what for entry in ledger if entry.fate is Fate.NOTED]
    assert [note for note in notes if how not in note] == []
    assert len(notes) == bool(how)


def test_several_images_of_one_stem_are_not_chosen_from(folder: Path) -> None:
    with pytest.raises(AnnotationError, match=r"no image 'two', but two\.jpg and two\.png"):
        ImageNames(folder, Ledger()).find("two", "here")


def test_one_image_does_not_stand_for_two_names(folder: Path) -> None:
    names = ImageNames(folder, Ledger())
    for _ in range(2):
        assert names.find("cam1/c.jpg", "here") == "c.jpg"
    with pytest.raises(AnnotationError, match=r"'cam2/c\.jpg' and 'cam1/c\.jpg' would both be"):
        names.find("cam2/c.jpg", "here")


def test_an_absolute_path_below_the_folder_is_its_file(folder: Path) -> None:
    for name in ("cam1/f0.JPG", "c.jpg"):
        names = ImageNames(folder, Ledger())
        assert names.find(str((folder / name).absolute()), "here") == name


def test_the_longest_end_that_is_there_is_meant(folder: Path) -> None:
    (folder / "cam2").mkdir()
    (folder / "cam2" / "f0.JPG").write_bytes(b"")
    names = ImageNames(folder, Ledger())
    assert names.find("/data/cam2/f0.JPG", "here") == "cam2/f0.JPG"
    assert names.find("/data/cam1/f0.JPG", "here") == "cam1/f0.JPG"


def test_names_that_are_alike_twice_are_not_chosen_from(folder: Path) -> None:
    (folder / "C.Jpg").write_bytes(b"")
    with pytest.raises(AnnotationError, match=r"no image 'C\.JPG', but C\.Jpg and c\.jpg"):
        ImageNames(folder, Ledger()).find("C.JPG", "here")
