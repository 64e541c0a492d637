"""Images out of archives: only named members, whatever an archive says."""

from __future__ import annotations

import gzip
import io
import random
import tarfile
import warnings
import zipfile
from pathlib import Path

import pytest
from stand_ins import fetch_job, files_of, info, jpeg, tar_of, zip_of
from web import Answer, Web

from vlmeval_findit.data import SOURCES, ArchiveError, fetch_images, read_members

NAMES = ["000001.jpg", "000002.jpg", "000003.jpg"]
TEST = "VOCtest_06-Nov-2007.tar"
TRAINVAL = "VOCtrainval_06-Nov-2007.tar"
FOLDER = "VOCdevkit/VOC2007/JPEGImages"


def fetch(web: Web, folder: Path, row: str = "Pascal", names: list[str] = NAMES) -> dict[str, str]:
    """Fetch images of a row; return why some could not be had."""
    return fetch_images(fetch_job(web, folder, names), SOURCES[row], names, None)


def member(name: str) -> str:
    return f"{FOLDER}/{name}"


def photos(*names: str) -> dict[str, bytes]:
    return {member(name): jpeg(int(name[:6])) for name in names}


def test_named_members_of_as_many_archives_as_it_takes(tmp_path, web: Web) -> None:
    others = {f"{FOLDER}/9{i:05}.jpg": b"not named" for i in range(50)}
    web.serve(TEST, tar_of({**others, **photos("000001.jpg")}))
    assert fetch(web, tmp_path, names=NAMES[:1]) == {}
    assert web.counts() == {f"/{TEST}": 1}
    web.serve(TRAINVAL, tar_of({**photos("000002.jpg"), **others}))
    problems = fetch(web, tmp_path)
    assert files_of(tmp_path) == {name: jpeg(int(name[:6])) for name in NAMES[:2]}
    assert list(problems) == NAMES[2:]
    assert problems[NAMES[2]].startswith(f"in none of {TEST}, {TRAINVAL}")


def test_an_archive_gives_all_that_the_table_needs(tmp_path, web: Web) -> None:
    """Who asked for a few rows would else download it again for the others."""
    web.serve(TEST, tar_of(photos(*NAMES[:2])))
    job = fetch_job(web, tmp_path, NAMES)
    assert fetch_images(job, SOURCES["Pascal"], NAMES[:1], None) == {}
    assert set(files_of(tmp_path)) == set(NAMES[:2])
    assert [call.args for call in job.progress.finished.call_args_list] == [(NAMES[0],)]
    # For the third alone no archive is looked at: nobody asked for it.
    assert web.counts() == {f"/{TEST}": 1}


@pytest.mark.parametrize("mode", ["w:gz", "w:bz2", "w:xz", "zip"])
def test_compressed_archives(tmp_path, web: Web, mode: str) -> None:
    members = {"x/1.jpg": b"not named", "x/77.jpg": jpeg(7)}
    packed = zip_of(members) if mode == "zip" else tar_of(members, mode)
    web.serve("flickr30k-images.zip", packed)
    assert fetch(web, tmp_path, "Flickr30k", ["77.jpg"]) == {}
    assert files_of(tmp_path) == {"77.jpg": jpeg(7)}


def test_an_archive_is_resumed_by_the_next_run(tmp_path, web: Web) -> None:
    body = tar_of(photos(*NAMES))
    web.serve(TEST, Answer(body, cut=len(body) // 2), Answer(b"", 403))
    web.serve(TRAINVAL, Answer(b"", 403))
    assert set(fetch(web, tmp_path)) == set(NAMES)
    web.serve(TEST, body)
    assert fetch(web, tmp_path) == {}
    assert str(web.asked[-1][1]).startswith("bytes=")


@pytest.mark.parametrize("damage", ["changed", "ends early", "a web page"])
def test_nothing_of_a_damaged_archive_is_used(tmp_path, web: Web, damage: str) -> None:
    names = [f"{i}.jpg" for i in range(3)]
    # Stored, not compressed, so that a member can be damaged in silence.
    plain = tar_of({f"images/{i}.jpg": jpeg(i) for i in range(3)})
    body = gzip.compress(plain, compresslevel=0)
    at = body.index(jpeg(1)[9000:9050])
    flipped = body[:at] + bytes([body[at] ^ 1]) + body[at + 1 :]
    page = b"<html>" + b"page " * 500
    spoilt = {"changed": flipped, "ends early": body[:at], "a web page": page}
    web.serve("images.tar.gz", spoilt[damage])
    problems = fetch(web, tmp_path, "RefL4", names)
    assert set(problems) == set(names), "nothing tells which member it is"
    assert "damaged archive" in problems["0.jpg"]
    assert "(sources.refl4" in problems["0.jpg"]
    assert files_of(tmp_path) == {}
    web.serve("images.tar.gz", body)
    assert fetch(web, tmp_path, "RefL4", names) == {}


@pytest.mark.parametrize(
    ("content", "why"),
    [(b"no image", "is not an image that can be read"), (jpeg(2, (32, 32)), "is 32x32, but its")],
)
def test_a_member_that_is_not_the_image(tmp_path, web: Web, content: bytes, why: str) -> None:
    web.serve(TEST, tar_of({**photos("000001.jpg", "000003.jpg"), member("000002.jpg"): content}))
    problems = fetch(web, tmp_path)
    assert list(problems) == ["000002.jpg"]
    assert why in problems["000002.jpg"]
    assert set(files_of(tmp_path)) == {"000001.jpg", "000003.jpg"}


HOSTILE = {
    "symbolic link": info(member("000002.jpg"), tarfile.SYMTYPE, "../../../../outside/secret.jpg"),
    "hard link": info(member("000002.jpg"), tarfile.LNKTYPE, "../../outside/secret.jpg"),
    "device": info(member("000002.jpg"), tarfile.CHRTYPE),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_members_are_not_read_and_nothing_outside_changes(
    tmp_path, web: Web, kind: str
) -> None:
    outside = tmp_path / "outside"
    folder = tmp_path / "images"
    outside.mkdir()
    (outside / "secret.jpg").write_bytes(jpeg(2))
    good = [
        (info(member("000001.jpg")), jpeg(1)),
        (info(f"../../../outside/{member('000003.jpg')}"), jpeg(3)),
    ]
    # A link in the way, to be followed by the members after it.
    way = [(info(FOLDER, tarfile.SYMTYPE, str(outside)), b"")]
    web.serve(TEST, tar_of([*way, (HOSTILE[kind], jpeg(2)), *good]))
    web.serve(TRAINVAL, tar_of({}))
    assert list(fetch(web, folder)) == ["000002.jpg"]
    assert files_of(outside) == {"secret.jpg": jpeg(2)}
    # The path of a member does not matter: it only offers content.
    assert set(files_of(folder)) == {"000001.jpg", "000003.jpg"}
    assert not any(path.is_symlink() for path in folder.rglob("*"))
    # A good member of the same name is used.
    web.serve(TRAINVAL, tar_of(photos("000002.jpg")))
    assert fetch(web, folder, names=["000002.jpg"]) == {}


def test_a_member_that_is_too_large(tmp_path) -> None:
    path = tmp_path / "a"
    path.write_bytes(tar_of({"a/1.jpg": b"x" * 5000}))
    read_members(path, {"1.jpg": "1.jpg"}, 4999, lambda *_: pytest.fail("stored"))


SMALL = jpeg(2, (32, 32))
SAME_END = {
    "a small one first": [("thumbs/000002.jpg", SMALL), (member("000002.jpg"), jpeg(2))],
    "a small one last": [(member("000002.jpg"), jpeg(2)), ("thumbs/000002.jpg", SMALL)],
    "one that does not decode": [("a/000002.jpg", jpeg(2)[:900]), ("b/000002.jpg", jpeg(2))],
    "appended": [(member("000002.jpg"), jpeg(2)[:900]), (member("000002.jpg"), jpeg(2))],
    "the last of three": [
        ("a/000002.jpg", SMALL),
        ("b/000002.jpg", b""),
        ("b/000002.jpg", jpeg(2)),
    ],
}


@pytest.mark.parametrize("members", SAME_END)
@pytest.mark.parametrize("pack", ["tar", "zip"])
def test_a_wrong_member_leaves_its_name_open(tmp_path, web: Web, members: str, pack: str) -> None:
    """A folder of an archive may have other files of the same names."""
    listed = SAME_END[members]
    if pack == "tar":
        body = tar_of([(info(name), it) for name, it in listed])
    else:
        whole = io.BytesIO()
        with warnings.catch_warnings(), zipfile.ZipFile(whole, "w") as archive:
            warnings.simplefilter("ignore")  # of a name that is there twice
            for name, it in listed:
                archive.writestr(name, it)
        body = whole.getvalue()
    web.serve("flickr30k-images.zip", body)
    assert fetch(web, tmp_path, "Flickr30k", ["000002.jpg"]) == {}
    assert files_of(tmp_path) == {"000002.jpg": jpeg(2)}


def test_the_last_of_equal_members_counts(tmp_path, web: Web) -> None:
    path = member("000002.jpg")
    web.serve(TEST, tar_of([(info(path), jpeg(2)), (info(path), jpeg(2)[:900])]))
    web.serve(TRAINVAL, tar_of({}))
    assert list(fetch(web, tmp_path, names=["000002.jpg"])) == ["000002.jpg"]
    assert files_of(tmp_path) == {}


@pytest.mark.parametrize("pack", ["zip", "w", "w:gz", "w:bz2", "w:xz"])
def test_damage_anywhere_is_a_damaged_archive(tmp_path, pack: str) -> None:
    """zipfile and tarfile raise many errors, those of texts and of seeking too."""
    rng = random.Random(pack)
    members = {f"a/é{at}.jpg": rng.randbytes(30) for at in range(3)}
    whole = zip_of(members) if pack == "zip" else tar_of(members, pack)
    path = tmp_path / "archive"
    refused = 0
    for _ in range(300):
        spoilt = bytearray(whole)
        for _ in range(rng.choice([1, 3, 20])):
            spoilt[rng.randrange(len(spoilt))] = rng.randrange(256)
        path.write_bytes(spoilt[: rng.choice([len(spoilt), rng.randrange(len(spoilt))])])
        try:
            read_members(path, {"é1.jpg": "é1.jpg"}, 1 << 20, lambda name, it: it.open().read())
        except ArchiveError:
            refused += 1
    assert refused > 50
