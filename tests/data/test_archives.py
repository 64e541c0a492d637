"""Archives: only named members, whatever an archive says, and only whole and right images."""

from __future__ import annotations

import gzip
import io
import json
import os
import signal
import struct
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from stand_ins import SIZE, errand, files_of, info, jpeg, tar_of, zip_of
from test_data_get import child
from web import Answer, Web, web_server

from vlmeval_findit.data.fetch import archives
from vlmeval_findit.data.fetch.archives import (
    ArchiveError,
    WantedMembers,
    refused,
    take_tar,
    take_zip,
)
from vlmeval_findit.data.fetch.download import Client
from vlmeval_findit.data.fetch.images import bring
from vlmeval_findit.data.fetch.store import PARTS, Store
from vlmeval_findit.data.sources import SOURCES

NAMES = ["000001.jpg", "000002.jpg", "000003.jpg"]
TEST, TRAINVAL = "VOCtest_06-Nov-2007.tar", "VOCtrainval_06-Nov-2007.tar"
FOLDER = "VOCdevkit/VOC2007/JPEGImages"


@pytest.fixture
def web() -> Iterator[Web]:
    with web_server() as server:
        yield server


def voc(web: Web, folder: Path, names: list[str] = NAMES) -> dict[str, str]:
    return bring(errand(web, folder, names), SOURCES["Pascal"], names, None)


def member(name: str) -> str:
    return f"{FOLDER}/{name}"


def photos(*names: str) -> dict[str, bytes]:
    return {member(name): jpeg(int(name[:6])) for name in names}


# --- what is taken ------------------------------------------------------------------------------


def test_named_members_of_two_archives_and_nothing_else(tmp_path: Path, web: Web) -> None:
    others = {f"{FOLDER}/9{i:05}.jpg": b"not wanted" for i in range(50)}
    web.serve(TEST, tar_of({**others, **photos("000001.jpg")}))
    web.serve(TRAINVAL, tar_of({**photos("000002.jpg", "000003.jpg"), **others}))
    assert voc(web, tmp_path) == {}
    assert files_of(tmp_path) == {name: jpeg(int(name[:6])) for name in NAMES}


def test_the_second_archive_is_not_read_when_all_is_found(tmp_path: Path, web: Web) -> None:
    web.serve(TEST, tar_of(photos(*NAMES)))
    assert voc(web, tmp_path) == {}
    assert web.counts() == {f"/{TEST}": 2}, "How large it is, and all of it."


@pytest.mark.parametrize("mode", ["w:gz", "w:bz2", "w:xz"])
def test_compressed_archives(tmp_path: Path, web: Web, mode: str) -> None:
    web.serve("images.tar.gz", tar_of({"images/objects365_v1_1.jpg": jpeg()}, mode))
    names = ["objects365_v1_1.jpg"]
    assert bring(errand(web, tmp_path, names), SOURCES["RefL4"], names, None) == {}


def test_of_a_zip_only_the_named_bytes_are_asked_for(tmp_path: Path, web: Web) -> None:
    rest = {f"flickr30k-images/{i}.jpg": os.urandom(60_000) for i in range(40)}
    body = zip_of({**rest, "flickr30k-images/77.jpg": jpeg(7)})
    web.serve("flickr30k-images.zip", body)
    work = errand(web, tmp_path, ["77.jpg"])
    arrived: list[int] = []
    work.client.got = arrived.append
    assert bring(work, SOURCES["Flickr30k"], ["77.jpg"], None) == {}
    assert files_of(tmp_path)["77.jpg"] == jpeg(7)
    assert sum(arrived) < len(body) / 3


def test_a_zip_from_a_server_without_ranges(tmp_path: Path, web: Web) -> None:
    web.serve("flickr30k-images.zip", Answer(zip_of({"x/77.jpg": jpeg(7)}), ranges=False))
    work = errand(web, tmp_path, ["77.jpg"])
    assert bring(work, SOURCES["Flickr30k"], ["77.jpg"], None) == {}
    assert files_of(tmp_path) == {"77.jpg": jpeg(7)}


# --- servers that misbehave -----------------------------------------------------------------------


def test_cut_off_in_the_middle(tmp_path: Path, web: Web) -> None:
    body = tar_of(photos(*NAMES))
    web.serve(TEST, body, Answer(body, cut=len(body) // 2), Answer(body, cut=100), body)
    assert voc(web, tmp_path) == {}
    assert len(files_of(tmp_path)) == 3
    begins = [int((given or "").removeprefix("bytes=").partition("-")[0]) for _, given in web.asked]
    assert begins[:2] == [0, 0], "How large it is, and all of it."
    assert 0 < begins[2] <= begins[3]


def test_cut_off_without_ranges(tmp_path: Path, web: Web) -> None:
    body = tar_of(photos(*NAMES))
    whole = Answer(body, ranges=False)
    web.serve(TEST, whole, Answer(body, cut=len(body) // 2, ranges=False), whole)
    assert voc(web, tmp_path) == {}
    assert len(files_of(tmp_path)) == 3


def test_changed_while_it_is_read(tmp_path: Path, web: Web) -> None:
    body, other = tar_of(photos(*NAMES)), tar_of(photos(*reversed(NAMES)))
    web.serve(TEST, body, Answer(body, cut=len(body) * 2 // 3), other)
    whys = voc(web, tmp_path)
    assert "changed on the server while it was read" in whys["000003.jpg"]
    assert all(body == jpeg(int(name[:6])) for name, body in files_of(tmp_path).items())


def test_ends_early(tmp_path: Path, web: Web) -> None:
    body = tar_of(photos(*NAMES))
    web.serve(TEST, body[: len(jpeg(1)) + len(jpeg(2)) // 2])
    whys = voc(web, tmp_path)
    assert "damaged archive" in whys["000003.jpg"]
    assert "sources.voc2007" in whys["000003.jpg"]
    assert files_of(tmp_path) == {"000001.jpg": jpeg(1)}


@pytest.mark.parametrize("row", ["Pascal", "Flickr30k"])
def test_a_web_page_instead(tmp_path: Path, web: Web, row: str) -> None:
    for file in (TEST, TRAINVAL, "flickr30k-images.zip"):
        web.serve(file, b"<html>" + b"page " * 500)
    names = ["000001.jpg"]
    whys = bring(errand(web, tmp_path, names), SOURCES[row], names, None)
    assert "damaged archive" in whys["000001.jpg"]
    assert files_of(tmp_path) == {}


def test_not_in_any_archive(tmp_path: Path, web: Web) -> None:
    for file in (TEST, TRAINVAL):
        web.serve(file, tar_of(photos("000001.jpg")))
    whys = voc(web, tmp_path)
    assert set(whys) == {"000002.jpg", "000003.jpg"}
    assert whys["000002.jpg"].startswith(f"in none of {TEST}, {TRAINVAL}")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"no image", "is not an image that can be read"),
        (jpeg(2)[:-600], "does not decode"),
        (jpeg(2, (32, 32)), "is 32x32, but its annotations are for 256x192"),
        (b"", "is empty"),
    ],
)
def test_a_member_that_is_not_the_image(tmp_path: Path, web: Web, content: bytes, why: str) -> None:
    web.serve(TEST, tar_of({**photos("000001.jpg", "000003.jpg"), member("000002.jpg"): content}))
    whys = voc(web, tmp_path)
    assert list(whys) == ["000002.jpg"]
    assert why in whys["000002.jpg"]
    assert set(files_of(tmp_path)) == {"000001.jpg", "000003.jpg"}


# --- hostile archives -----------------------------------------------------------------------------

LINKS = {
    "symbolic link": info(member("000002.jpg"), tarfile.SYMTYPE, "../../../../outside/secret.jpg"),
    "hard link": info(member("000002.jpg"), tarfile.LNKTYPE, "../../outside/secret.jpg"),
    "device": info(member("000002.jpg"), tarfile.CHRTYPE),
    "folder": info(member("000002.jpg"), tarfile.DIRTYPE),
    "climbs out": info(f"../../../outside/{member('000002.jpg')}"),
    "absolute path": info(f"/tmp/outside/{member('000002.jpg')}"),
}


@pytest.mark.parametrize("why", LINKS)
def test_hostile_members_are_refused_and_nothing_outside_changes(
    tmp_path: Path, web: Web, why: str
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.jpg").write_bytes(jpeg(2))
    folder = tmp_path / "images"
    good = [(info(member(name)), jpeg(int(name[:6]))) for name in ("000001.jpg", "000003.jpg")]
    # A link in the way, to be followed by the members after it.
    way = [(info("VOCdevkit/VOC2007/JPEGImages", tarfile.SYMTYPE, str(outside)), b"")]
    web.serve(TEST, tar_of([*way, (LINKS[why], jpeg(2)), *good]))
    whys = voc(web, folder)
    assert list(whys) == ["000002.jpg"]
    assert (why if LINKS[why].isreg() else "is not a plain file") in whys["000002.jpg"]
    assert "refused" in whys["000002.jpg"]
    assert files_of(outside) == {"secret.jpg": jpeg(2)}
    assert set(files_of(folder)) == {"000001.jpg", "000003.jpg"}
    assert not any(path.is_symlink() for path in folder.rglob("*"))


def refl4(web: Web, folder: Path, names: list[str]) -> dict[str, str]:
    """What could not be had of an archive in gzip."""
    return bring(errand(web, folder, names), SOURCES["RefL4"], names, None)


O365 = [f"objects365_v1_{i}.jpg" for i in range(3)]


def gzip_of() -> bytes:
    """An archive whose members stand in it as they are, so that one can be damaged in silence."""
    body = tar_of({f"images/{name}": jpeg(i) for i, name in enumerate(O365)})
    return gzip.compress(body, compresslevel=0)


def middle(seed: int) -> bytes:
    """Pixels of a photograph."""
    return jpeg(seed)[9000:9050]


def test_a_damaged_member_of_a_gzip_archive_is_found_by_its_checksum(
    tmp_path: Path, web: Web
) -> None:
    body = bytearray(gzip_of())
    body[body.index(middle(1))] ^= 1
    web.serve("images.tar.gz", bytes(body))
    whys = refl4(web, tmp_path, O365)
    assert set(whys) == set(O365), "nobody knows which of them it is"
    assert "CRC check failed" in whys[O365[1]]
    assert files_of(tmp_path) == {}
    web.serve("images.tar.gz", gzip_of())
    assert refl4(web, tmp_path, O365) == {}
    assert files_of(tmp_path) == {name: jpeg(i) for i, name in enumerate(O365)}


def test_a_gzip_archive_that_ends_early_gives_nothing(tmp_path: Path, web: Web) -> None:
    body = gzip_of()
    web.serve("images.tar.gz", body[: body.index(middle(2))])
    whys = refl4(web, tmp_path, O365)
    assert set(whys) == set(O365)
    assert "damaged archive" in whys[O365[0]]
    assert files_of(tmp_path) == {}
    assert not list((tmp_path / PARTS).glob("*.new"))


@pytest.mark.parametrize("mode", ["w:gz", "w:bz2", "w:xz"])
def test_a_bomb_is_not_unpacked(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "_UNPACKED_AT_LEAST", 1 << 20)
    monkeypatch.setattr(archives, "_MOST_PER_BYTE", 2)
    body = tar_of({"zeros": bytes(1 << 23), "a/1.jpg": jpeg()}, mode)
    assert len(body) < 1 << 17
    with pytest.raises(ArchiveError, match=r"a bomb: more than 1,[0-9,]* bytes came out"):
        take_tar(
            io.BytesIO(body), WantedMembers({"1.jpg": "1.jpg"}), lambda n, c: None, len(body) * 99
        )


class Endless(io.RawIOBase):
    """A server that never stops sending what one would have to hold in memory."""

    def __init__(self, begin: bytes) -> None:
        self._begin = begin
        self.sent = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = self._begin[: len(buffer)] or b"1\n" * (len(buffer) // 2)
        self._begin = self._begin[len(data) :]
        buffer[: len(data)] = data
        self.sent += len(data)
        assert self.sent < 1 << 24, "it is read on and on"
        return len(data)


def header_of(kind: bytes, size: int) -> bytes:
    member = tarfile.TarInfo("x")
    member.type, member.size = kind, size
    return member.tobuf(tarfile.GNU_FORMAT)


def pax_sparse() -> bytes:
    """A sparse file whose list of pieces stands before its content, and has no end."""
    said = "".join(
        f"{len(line) + 4} {line}\n"
        for line in ("GNU.sparse.major=1", "GNU.sparse.minor=0", "GNU.sparse.realsize=9")
    ).encode()
    pax = header_of(tarfile.XHDTYPE, len(said)) + said.ljust(512, b"\0")
    return pax + header_of(tarfile.REGTYPE, 1 << 40) + b"9999999999\n"


@pytest.mark.parametrize(
    ("begin", "why"),
    [
        (header_of(tarfile.XHDTYPE, 1 << 33), "a header of"),
        (header_of(tarfile.XGLTYPE, 1 << 33), "a header of"),
        (header_of(tarfile.GNUTYPE_LONGNAME, 1 << 33), "a header of"),
        (header_of(tarfile.GNUTYPE_LONGLINK, 1 << 33), "a header of"),
        (header_of(tarfile.GNUTYPE_SPARSE, 1 << 33), "a sparse file"),
        (pax_sparse(), "a sparse file"),
    ],
)
def test_headers_without_end_are_not_held_in_memory(begin: bytes, why: str) -> None:
    wanted = WantedMembers({"1.jpg": "1.jpg"})
    with pytest.raises(ArchiveError, match=why):
        take_tar(io.BufferedReader(Endless(begin)), wanted, lambda n, c: None, 9999)


def test_a_good_member_after_a_hostile_one_is_taken(tmp_path: Path, web: Web) -> None:
    hostile = (LINKS["symbolic link"], b"")
    web.serve(TEST, tar_of([hostile, (info(member("000002.jpg")), jpeg(2))]))
    assert voc(web, tmp_path, ["000002.jpg"]) == {}


PLANTED = {
    "link": lambda path, outside: path.symlink_to(outside / "secret.jpg"),
    "dangling link": lambda path, outside: path.symlink_to(outside / "new.jpg"),
    "pipe": lambda path, outside: os.mkfifo(path),
}


@pytest.mark.parametrize("what", PLANTED)
@pytest.mark.parametrize("ending", ["", ".new"])
def test_what_somebody_planted_where_a_part_is_written(
    tmp_path: Path, web: Web, what: str, ending: str
) -> None:
    """In a folder that several users share."""
    outside, folder = tmp_path / "outside", tmp_path / "images"
    outside.mkdir()
    (outside / "secret.jpg").write_bytes(b"secret")
    for name in ("000001.jpg", "COCO_train2014_000000000001.jpg"):
        part = Store(folder, {}).part(name)
        part.parent.mkdir(parents=True, exist_ok=True)
        PLANTED[what](part.with_name(part.name + ending), outside)
        sidecar = {"url": f"{web.url}{name}", "validator": '"1"'}
        part.with_name(f"{part.name}.json").write_text(json.dumps(sidecar))
    web.serve(TEST, tar_of(photos("000001.jpg")))
    assert voc(web, folder, ["000001.jpg"]) == {}
    coco = ["COCO_train2014_000000000001.jpg"]
    web.serve(coco[0], jpeg(9))
    assert bring(errand(web, folder, coco), SOURCES["COCO_train2014"], coco, None) == {}
    assert files_of(outside) == {"secret.jpg": b"secret"}
    for name in ("000001.jpg", *coco):
        assert not (folder / name).is_symlink()
        assert (folder / name).is_file()


def test_a_link_for_the_folder_of_parts_or_a_folder_for_an_image(tmp_path: Path, web: Web) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    web.serve(TEST, tar_of(photos(*NAMES)))
    linked = tmp_path / "linked"
    linked.mkdir()
    (linked / PARTS).symlink_to(outside)
    assert "is a link: remove it" in voc(web, linked)["000001.jpg"]
    assert files_of(outside) == {}
    folder = tmp_path / "images"
    (folder / "000002.jpg").mkdir(parents=True)
    whys = voc(web, folder)
    assert list(whys) == ["000002.jpg"]
    assert "is a folder: move it away" in whys["000002.jpg"]
    assert (folder / "000003.jpg").is_file()


def test_a_member_that_is_too_large(tmp_path: Path) -> None:
    archive = tar_of({member("000001.jpg"): b"x" * 5000})
    wanted = WantedMembers({"000001.jpg": member("000001.jpg")})
    take_tar(io.BytesIO(archive), wanted, lambda name, content: pytest.fail("kept"), 4999)
    assert "has 5000 bytes, more than 4999" in wanted.refused["000001.jpg"]


@pytest.mark.parametrize(
    ("name", "why"),
    [("/a/1.jpg", "absolute"), ("a/../../1.jpg", "climbs"), ("C:\\a\\1.jpg", "absolute")],
)
def test_hostile_zip_members(name: str, why: str) -> None:
    wanted = WantedMembers({"1.jpg": "1.jpg"})
    take_zip(
        io.BytesIO(zip_of({name: jpeg()})), wanted, lambda name, content: pytest.fail("kept"), 9999
    )
    assert why in wanted.refused["1.jpg"]


def test_a_zip_with_a_symbolic_link() -> None:
    import zipfile

    entry = zipfile.ZipInfo("a/1.jpg")
    entry.external_attr = 0o120777 << 16
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(entry, "/etc/passwd")
    wanted = WantedMembers({"1.jpg": "1.jpg"})
    take_zip(buffer, wanted, lambda name, content: pytest.fail("kept"), 9999)
    assert "not a plain file" in wanted.refused["1.jpg"]


def test_damaged_zip() -> None:
    body = zip_of({"1.jpg": jpeg()})
    with pytest.raises(ArchiveError, match="damaged archive"):
        take_zip(io.BytesIO(body[:-30]), WantedMembers({"1.jpg": "1.jpg"}), lambda n, c: None, 9999)


def zip_with_a_directory_of(size: int) -> bytes:
    """A zip (64-bit form) that says that its central directory has ``size`` bytes, all zeros."""
    record = struct.pack("<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, 0, 0, 1, 1, size, 0)
    where = struct.pack("<4sLQL", b"PK\6\7", 0, size, 1)
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    return bytes(size) + record + where + end


@pytest.mark.parametrize("ranges", [True, False])
def test_a_central_directory_that_would_fill_the_memory(
    tmp_path: Path, web: Web, ranges: bool
) -> None:
    body = zip_with_a_directory_of(17 << 20)
    web.serve("flickr30k-images.zip", Answer(body, ranges=ranges))
    work = errand(web, tmp_path, ["77.jpg"])
    arrived: list[int] = []
    work.client.got = arrived.append
    whys = bring(work, SOURCES["Flickr30k"], ["77.jpg"], None)
    assert "central directory has 17,825,792 bytes, more than" in whys["77.jpg"]
    assert not ranges or sum(arrived) < 2 << 20, "Refused before it is asked for."


def test_names_that_stay_inside() -> None:
    assert refused("./a/b..c/d.jpg") is None
    assert WantedMembers({"a": "b/c.jpg"}).find("./x/b/c.jpg") == "a"
    assert WantedMembers({"a": "b/c.jpg"}).find("x/bb/c.jpg") is None


# --- interrupted ----------------------------------------------------------------------------------


def test_killed_in_the_middle_of_an_archive(tmp_path: Path, web: Web) -> None:
    size = (512, 384)
    whole = {f"{i:06}.jpg": jpeg(i, size) for i in range(5)}
    body = tar_of({member(name): content for name, content in whole.items()})
    web.serve(TEST, Answer(body, pace=0.01))
    folder = tmp_path / "images"
    process = child(web, folder, "Pascal", list(whole))
    end = time.monotonic() + 120
    while not folder.is_dir() or len(files_of(folder)) < 2:
        assert time.monotonic() < end
        assert process.poll() is None
        time.sleep(0.002)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    there = files_of(folder)
    assert 2 <= len(there) < 5
    assert all(whole[name] == content for name, content in there.items())
    web.serve(TEST, body)
    assert child(web, folder, "Pascal", list(whole)).communicate()[0].strip() == "{}"
    assert files_of(folder) == whole
    before = web.requests
    assert child(web, folder, "Pascal", list(whole)).communicate()[0].strip() == "{}"
    assert web.requests == before
    assert SIZE != size


def test_a_server_that_sends_no_bytes_is_given_up(
    tmp_path: Path, web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    web.serve("flickr30k-images.zip", zip_of({"x/77.jpg": jpeg(7)}))
    web.serve(TEST, tar_of(photos("000001.jpg")))
    monkeypatch.setattr(Client, "pieces", lambda self, response: iter(()))
    whys = bring(errand(web, tmp_path, ["77.jpg"]), SOURCES["Flickr30k"], ["77.jpg"], None)
    assert "0 bytes came of" in voc(web, tmp_path, ["000001.jpg"])["000001.jpg"]
    assert "bytes came of" in whys["77.jpg"]
