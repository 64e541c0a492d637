"""Archives that lie, link, climb, nest or unpack to gigabytes, beside one good image."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import struct
import tarfile
import unicodedata
import warnings
import zipfile
import zlib
from collections.abc import Callable
from functools import cache

from stand_ins import info, jpeg, tar_of, zip_of

WANTED = "images/é1.jpg"
GOOD = jpeg(1)
_MIB = 1 << 20
_ZEROS = bytes(_MIB)

Archive = Callable[[], bytes]


# --- packed zeros: members that are packed once and repeated --------------------------------------


@cache
def _packed_zeros(pack: Callable[[bytes], bytes], mebibytes: int) -> bytes:
    """Return a member, or stream, of so many zeros; several in a row are one file."""
    return pack(bytes(mebibytes << 20))


def _header(name: str, size: int, kind: bytes = tarfile.REGTYPE) -> bytes:
    member = info(name, kind)
    member.size = size
    return member.tobuf(tarfile.GNU_FORMAT)


def _gigabytes(pack: Callable[[bytes], bytes], header: bytes, parts: int = 400) -> bytes:
    """Return a tar of 8 GB: a header, then zeros."""
    return pack(header) + _packed_zeros(pack, 20) * parts


def _good_tar() -> bytes:
    return tar_of({WANTED: GOOD})


# --- headers of tar -------------------------------------------------------------------------------


def _field(value: int, at: int = 124) -> bytes:
    """Return the header of the wanted member with a size in base 256."""
    header = bytearray(_header(WANTED, 0))
    header[at : at + 12] = (value % (1 << 96)).to_bytes(12, "big")
    if value >= 0:
        header[at] |= 0x80
    return _summed(header)


def _summed(header: bytearray) -> bytes:
    header[148:156] = b" " * 8
    header[148:156] = f"{sum(header):06o}\0 ".encode()
    return bytes(header)


def _pax(**values: str) -> bytes:
    """Return the wanted member with a header of pax."""
    member = info(WANTED)
    member.size = len(GOOD)
    member.pax_headers = {name.replace("__", "."): value for name, value in values.items()}
    body = GOOD + bytes(-len(GOOD) % 512)
    return member.tobuf(tarfile.PAX_FORMAT) + body + bytes(1024)


def _pax_text(text: bytes) -> bytes:
    """Return the wanted member after a header of pax with this content."""
    body = text + bytes(-len(text) % 512)
    return _header("x", len(text), tarfile.XHDTYPE) + body + _good_tar()


def _sparse_1_0(map_of: bytes) -> bytes:
    """Return a sparse member of the wanted name with a map of our own before its content."""
    head = _pax(GNU__sparse__major="1", GNU__sparse__minor="0", GNU__sparse__realsize="9000")
    begin = head.index(GOOD[:100])
    return head[:begin] + map_of + bytes(-len(map_of) % 512) + head[begin:]


def _old_sparse(real: int) -> bytes:
    header = bytearray(_header(WANTED, 0, tarfile.GNUTYPE_SPARSE))
    header[483:495] = b"\x80" + real.to_bytes(11, "big")
    return _summed(header) + bytes(1024)


def _endless_sparse() -> bytes:
    """Return a sparse member whose map says again and again that it goes on."""
    header = bytearray(_header(WANTED, 0, tarfile.GNUTYPE_SPARSE))
    header[482] = 1
    more = bytearray(512)
    more[504] = 1
    return _summed(header) + bytes(more) * 4000


def _long_names(count: int) -> bytes:
    return (
        _header("././@LongLink", 5, tarfile.GNUTYPE_LONGNAME) + b"a.jpg".ljust(512, b"\0")
    ) * count


def _links() -> bytes:
    return tar_of(
        [
            (info("images", tarfile.SYMTYPE, "/etc"), b""),
            (info(WANTED, tarfile.SYMTYPE, WANTED), b""),
            (info(WANTED, tarfile.LNKTYPE, "/etc/passwd"), b""),
            (info(WANTED, tarfile.FIFOTYPE), b""),
            (info(WANTED, tarfile.BLKTYPE), b""),
            (info(WANTED, tarfile.DIRTYPE), b""),
        ]
    )


TARS: dict[str, Archive] = {
    "gzip: 8 GB for a name": lambda: _gigabytes(gzip.compress, _header(WANTED, 8000 * _MIB)),
    "gzip: 8 GB of others": lambda: _gigabytes(gzip.compress, _header("x", 8000 * _MIB)),
    "gzip: 8 GB behind the end": lambda: _gigabytes(gzip.compress, _good_tar()),
    "bzip2: 8 GB of others": lambda: _gigabytes(bz2.compress, _header("x", 8000 * _MIB)),
    "xz: 8 GB of others": lambda: _gigabytes(lzma.compress, _header("x", 8000 * _MIB)),
    "gzip: a pax header of 8 GB": lambda: _gigabytes(
        gzip.compress, _header("x", 8000 * _MIB, tarfile.XHDTYPE)
    ),
    "xz: a global header of 8 GB": lambda: _gigabytes(
        lzma.compress, _header("x", 8000 * _MIB, tarfile.XGLTYPE)
    ),
    "gzip: a long name of 2 GB": lambda: _gigabytes(
        gzip.compress, _header("x", 2000 * _MIB, tarfile.GNUTYPE_LONGNAME), 100
    ),
    "a long name without its content": lambda: _header("x", 1 << 33, tarfile.GNUTYPE_LONGNAME),
    "a long link of 200 MB": lambda: (
        _header("x", 200 * _MIB, tarfile.GNUTYPE_LONGLINK) + _ZEROS * 200 + _good_tar()
    ),
    "2,000 long names": lambda: _long_names(2000) + _good_tar(),
    "a size below zero": lambda: _field(-512) + _good_tar(),
    "a size below zero that leads back": lambda: _good_tar()[:-10240] + _field(-1024),
    "a size of 2 ** 90": lambda: _field(1 << 90) + _good_tar(),
    "a pax size below zero": lambda: _pax(size="-1024"),
    "a pax size of text": lambda: _pax(size="much"),
    "a pax size of twenty digits": lambda: _pax(size="9" * 20),
    "a pax size of a million digits": lambda: _pax(size="9" * 1_000_000),
    "a pax time that is none": lambda: _pax(mtime="nan"),
    "a pax length of 0": lambda: _pax_text(b"0 path=x\n"),
    "a pax length beyond": lambda: _pax_text(b"999999999 path=x\n"),
    "a pax path that is no text": lambda: _pax_text(b"12 path=\xff\xfe\n"),
    "a pax character set": lambda: _pax_text(b"21 hdrcharset=BINARY\n13 path=\xff\xfe\n"),
    "sparse: 10 ** 15 pieces": lambda: _sparse_1_0(b"1000000000000000\n"),
    "sparse: text for pieces": lambda: _sparse_1_0(b"many\n"),
    "sparse: pieces beyond the file": lambda: _sparse_1_0(b"1\n999999999999\n9000\n"),
    "sparse: pieces below zero": lambda: _sparse_1_0(b"1\n-5\n-9000\n"),
    "sparse: no line": lambda: _sparse_1_0(b"7" * 512),
    "sparse: an odd map": lambda: _pax(GNU__sparse__map="1,2,x", GNU__sparse__size="9000"),
    "sparse: 60 MB of nothing": lambda: _old_sparse(60 * _MIB),
    "sparse: 2 ** 80 of nothing": lambda: _old_sparse(1 << 80),
    "sparse: a map without end": _endless_sparse,
    "links, devices, folders": _links,
    "gzip within gzip": lambda: gzip.compress(gzip.compress(_good_tar())),
    "a path of 100,000 folders": lambda: tar_of({"a/" * 100_000 + "é1.jpg": b"x"}, "w:gz"),
    "a path with a line end": lambda: tar_of({WANTED + "\n": GOOD}),
    "other letters": lambda: tar_of({WANTED.upper(): GOOD}),
    "other Unicode": lambda: tar_of({unicodedata.normalize("NFD", WANTED): GOOD}),
}


# --- zip ------------------------------------------------------------------------------------------


def _changed_zip(change: Callable[[zipfile.ZipInfo], object], method: int = 8) -> bytes:
    """Return the wanted member in a zip whose directory is changed before it is written."""
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", method) as archive:
        archive.writestr(WANTED, GOOD)
        change(archive.infolist()[0])
    return whole.getvalue()


def _stating(**values: int) -> Archive:
    def change(member: zipfile.ZipInfo) -> None:
        for name, value in values.items():
            setattr(member, name, value)

    return lambda: _changed_zip(change)


def _overlapping(count: int, name: Callable[[int], str], content: bytes) -> bytes:
    """Return a zip whose members are all the same bytes."""
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", 8) as archive:
        archive.writestr(name(0), content)
        first = archive.infolist()[0]
        for at in range(1, count):
            member = zipfile.ZipInfo(name(at))
            for field in ("CRC", "compress_size", "file_size", "header_offset", "compress_type"):
                setattr(member, field, getattr(first, field))
            archive.filelist.append(member)
    return whole.getvalue()


def _patched(old: bytes, new: bytes) -> Archive:
    def make() -> bytes:
        whole = zip_of({WANTED: GOOD})
        assert old in whole
        return whole.replace(old, new)

    return make


def _end(**fields: int) -> Archive:
    """Return a zip whose end states other numbers."""
    places = {"count": (10, "<H"), "size": (12, "<I"), "offset": (16, "<I"), "comment": (20, "<H")}

    def make() -> bytes:
        whole = bytearray(zip_of({WANTED: GOOD}))
        end = whole.rindex(b"PK\5\6")
        for name, value in fields.items():
            at, form = places[name]
            struct.pack_into(form, whole, end + at, value)
        return bytes(whole)

    return make


def _zip64(size: int, packed: int, offset: int) -> Archive:
    """Return a zip whose directory states its numbers in 64 bits."""

    def make() -> bytes:
        whole = bytearray(zip_of({WANTED: GOOD}))
        entry = whole.index(b"PK\1\2")
        end = whole.rindex(b"PK\5\6")
        extra = struct.pack("<HHQQQ", 1, 24, size, packed, offset)
        struct.pack_into("<II", whole, entry + 20, 0xFFFFFFFF, 0xFFFFFFFF)
        struct.pack_into("<I", whole, entry + 42, 0xFFFFFFFF)
        struct.pack_into("<H", whole, entry + 30, len(extra))
        length = struct.unpack_from("<I", whole, end + 12)[0]
        struct.pack_into("<I", whole, end + 12, length + len(extra))
        return bytes(whole[:end]) + extra + bytes(whole[end:])

    return make


def _bomb_member() -> bytes:
    """Return a member that states 100 bytes and unpacks to 200 MB."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = b"".join(packer.compress(_ZEROS) for _ in range(200)) + packer.flush()
    whole = bytearray(zip_of({WANTED: packed}))
    entry = whole.index(b"PK\1\2")
    struct.pack_into("<H", whole, 8, 8)
    struct.pack_into("<H", whole, entry + 10, 8)
    struct.pack_into("<I", whole, entry + 24, 100)
    return bytes(whole)


def _large_dictionary() -> bytes:
    """Return a member of LZMA that asks for a window of 4 GB."""
    whole = _changed_zip(lambda member: None, zipfile.ZIP_LZMA)
    begin = whole.index(b"\x09\x04\x05\x00")
    return whole[: begin + 5] + b"\xff\xff\xff\xff" + whole[begin + 9 :]


def _twice() -> bytes:
    whole = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(whole, "w") as archive:
        warnings.simplefilter("ignore")
        for at in range(500):
            archive.writestr(WANTED, b"no image %d" % at)
    return whole.getvalue()


ZIPS: dict[str, Archive] = {
    "a password": _stating(flag_bits=1),
    "strong encryption": _stating(flag_bits=0x41),
    "patches": _stating(flag_bits=0x20),
    "a wrong checksum": _stating(CRC=7),
    "method 9": _stating(compress_type=9),
    "method 93": _stating(compress_type=93),
    "method 99": _stating(compress_type=99),
    "stored, says the directory": _stating(compress_type=0),
    "one byte, says the directory": _stating(file_size=1),
    "60 MB, says the directory": _stating(file_size=60 * _MIB),
    "4 GB packed, says the directory": _stating(compress_size=0xFFFFFFFE),
    "nothing packed": _stating(compress_size=0),
    "a place beyond the end": _stating(header_offset=1 << 30),
    "zip64: 2 ** 64 bytes": _zip64((1 << 64) - 1, len(GOOD), 0),
    "zip64: 2 ** 63 packed": _zip64(len(GOOD), 1 << 63, 0),
    "zip64: a place of 2 ** 64": _zip64(len(GOOD), len(GOOD), (1 << 64) - 1),
    "zip64: a place of 2 ** 63": _zip64(len(GOOD), len(GOOD), 1 << 63),
    "an extra field that is cut": _stating(extra=b"\x01\x00\xff\x00"),
    "an end of 65,535 members": _end(count=65535),
    "an end without members": _end(count=0),
    "a directory of 4 GB": _end(size=0xFFFFFFFE),
    "a directory before the start": _end(size=0x7FFFFFFF),
    "a directory elsewhere": _end(offset=5),
    "a comment beyond the end": _end(comment=65535),
    "a name that is no UTF-8": _patched("é".encode(), b"\xff\xff"),
    "100 bytes that are 200 MB": _bomb_member,
    "LZMA with a window of 4 GB": _large_dictionary,
    "4,000 overlapping paths": lambda: _overlapping(4000, lambda at: f"{at}/{WANTED}", _ZEROS),
    "4,000 times one path": lambda: _overlapping(4000, lambda at: WANTED, _ZEROS),
    "100,000 others": lambda: _overlapping(100_000, lambda at: f"{at}.jpg", b"x"),
    "500 members of one path": _twice,
    "a link": lambda: _changed_zip(lambda member: setattr(member, "external_attr", 0o120777 << 16)),
    "other letters": lambda: zip_of({WANTED.upper(): GOOD}),
    "paths that climb": lambda: zip_of({f"../../../../{WANTED}": GOOD, "/etc/passwd": b"x"}),
    "a drive": lambda: zip_of({f"C:\\{WANTED}": GOOD, f"C:{WANTED}": b"x"}),
    "a zip within": lambda: zip_of({WANTED: zip_of({WANTED: GOOD})}),
    "a zip that is cut": lambda: zip_of({WANTED: GOOD})[:-30],
}
