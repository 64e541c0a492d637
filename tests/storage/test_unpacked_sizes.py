"""Packed files of others: whatever they unpack to, little memory is taken and no row is lost."""

from __future__ import annotations

import gzip
import io
import json
import re
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import openpyxl
import pyarrow
import pytest
from bounded import told_within
from few_fast import few_fast
from pyarrow import parquet

from vlmeval_findit.core import UnpackedSizeError, gunzip, most_unpacked
from vlmeval_findit.storage import PredictionError, TableError, parquet_rows, read_predictions

ROWS = 50
MEGABYTES = 200
MOST_HELD = 96 << 20


def sheet(
    change: Callable[[bytes], bytes] = lambda xml: xml, member: str = "sheet1.xml", more: int = 0
) -> bytes:
    """Return a sheet of predictions in which a member is changed; ``more`` zeros follow in it."""
    book = openpyxl.Workbook()
    assert book.active is not None
    book.active.append(["index", "prediction", "label"])
    for index in range(ROWS):
        book.active.append([index, "[[0, 0, 9, 9]]", "a" if index % 2 else None])
    whole = io.BytesIO()
    book.save(whole)
    changed = io.BytesIO()
    with zipfile.ZipFile(whole) as source, zipfile.ZipFile(changed, "w", 8) as target:
        for info in source.infolist():
            content = source.read(info.filename)
            with target.open(info.filename, "w") as f:
                if not info.filename.endswith(member):
                    f.write(content)
                    continue
                f.write(change(content))
                for _ in range(more):
                    f.write(b" " * (1 << 20))
    return changed.getvalue()


def stating(dimension: bytes) -> Callable[[bytes], bytes]:
    return lambda xml: re.sub(rb"<dimension[^>]*/>", dimension, xml)


@pytest.mark.parametrize(
    "stated",
    [b'<dimension ref="%b"/>' % ref for ref in (b"A1:C51", b"A1:C26", b"A1", b"A1:A51", b"C9:C9")]
    + [b'<dimension ref="A1:B51"/>', b'<dimension ref="A1:XFD1048576"/>', b""],
)
def test_a_sheet_has_all_its_rows_and_columns(stated: bytes, tmp_path: Path) -> None:
    path = tmp_path / "m.xlsx"
    path.write_bytes(sheet(stating(stated)))
    replies = read_predictions(path)
    assert [reply.index for reply in replies] == [*range(ROWS)]
    assert sum("label" in reply.stated for reply in replies) == ROWS // 2


def long_cell(xml: bytes) -> bytes:
    begin, end = xml.split(b"</sheetData>")
    text = b"x" * (MEGABYTES << 20)
    return b'%b<row r="52"><c r="A52" t="inlineStr"><is><t>%b</t></is></c></row></sheetData>%b' % (
        begin, text, end,
    )  # fmt: skip


def many_rows(xml: bytes) -> bytes:
    begin, end = xml.split(b"</sheetData>")
    return begin + b"<row><c><v>7</v></c></row>" * (MEGABYTES << 20 >> 5) + b"</sheetData>" + end


BOMBS = {
    "blanks behind the sheet": lambda: sheet(more=MEGABYTES),
    "a theme": lambda: sheet(member="theme1.xml", more=20),
    "styles": lambda: sheet(member="styles.xml", more=20),
    "relations": lambda: sheet(member="workbook.xml.rels", more=20),
    "a long cell": lambda: sheet(long_cell),
    "many rows": lambda: sheet(many_rows),
}


@pytest.mark.parametrize("bomb", few_fast(BOMBS, 4))
def test_a_sheet_that_unpacks_to_too_much_is_refused(bomb: str, tmp_path: Path) -> None:
    path = tmp_path / "m.xlsx"
    path.write_bytes(BOMBS[bomb]())
    with pytest.raises(PredictionError, match="unpacks") as got:
        held_while(lambda: read_predictions(path))
    assert str(path) in str(got.value)


MILLION = 1_000_000


def in_sheet(more: bytes) -> bytes:
    """Return a sheet with more rows."""
    return sheet(lambda xml: xml.replace(b"</sheetData>", more + b"</sheetData>"))


def with_member(name: str, content: bytes, members: int = 1) -> bytes:
    """Return a sheet with more members; ``{}`` of the name is a member's number."""
    changed = io.BytesIO(sheet())
    with zipfile.ZipFile(changed, "a", 8) as archive:
        for number in range(members):
            archive.writestr(name.format(number), content)
    return changed.getvalue()


TEXTS = b"application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml"
TYPE_OF_TEXTS = b'<Override PartName="/xl/sharedStrings.xml" ContentType="%b"/></Types>' % TEXTS
SPACE = b"http://schemas.openxmlformats.org/spreadsheetml/2006/main"


def with_texts(texts: bytes, more: bytes = b"") -> bytes:
    """Return a sheet with shared texts, and more rows."""
    target = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(in_sheet(more))) as source,
        zipfile.ZipFile(target, "w", 8) as archive,
    ):
        for name in source.namelist():
            archive.writestr(name, source.read(name).replace(b"</Types>", TYPE_OF_TEXTS))
        archive.writestr("xl/sharedStrings.xml", b'<sst xmlns="%b">%b</sst>' % (SPACE, texts))
    return target.getvalue()


def with_entities(xml: bytes) -> bytes:
    entities = b'<!ENTITY a "aaaaaaaaaa">'
    for one, ten in zip(b"abcdefgh", b"bcdefghi", strict=True):
        entities += b'<!ENTITY %c "%b">' % (ten, b"&%c;" % one * 10)
    begin = b"<!DOCTYPE worksheet [%b]>" % entities
    return begin + xml.replace(b"</sheetData>", b"</sheetData><x>&i;</x>")


# They unpack to less than a file may, and become much more
ELEMENTS = {
    "empty rows": lambda: in_sheet(b"<row/>" * (2 * MILLION)),
    "empty cells": lambda: in_sheet(b"<row>" + b"<c/>" * (2 * MILLION) + b"</row>"),
    "merged cells": lambda: sheet(
        lambda xml: xml.replace(
            b"</sheetData>",
            b"</sheetData><mergeCells>"
            + b'<mergeCell ref="A1:XFD9"/>' * MILLION
            + b"</mergeCells>",
        )
    ),
    "shared texts": lambda: with_texts(b"<si><t/></si>" * MILLION),
    "styles": lambda: sheet(
        lambda xml: xml.replace(b"</cellXfs>", b"<xf/>" * (MILLION // 2) + b"</cellXfs>"),
        "styles.xml",
    ),
    "names": lambda: sheet(
        lambda xml: xml.replace(b"</sheets>", b"</sheets>" + b"<x/>" * MILLION), "workbook.xml"
    ),
    "relations": lambda: sheet(
        lambda xml: xml.replace(
            b"</Relationships>", b"<Relationship/>" * (MILLION // 4) + b"</Relationships>"
        ),
        "workbook.xml.rels",
    ),
    "entities": lambda: sheet(with_entities),
    "a text of 20 MB in 2,000 rows": lambda: with_texts(
        b"<si><t>" + b"x" * (20 << 20) + b"</t></si>",
        b"".join(
            b'<row><c><v>%d</v></c><c t="s"><v>0</v></c></row>' % row for row in range(100, 2100)
        ),
    ),
}


SHORT = ("styles", "names", "relations", "entities")


@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=[] if kind in SHORT else pytest.mark.slow) for kind in ELEMENTS],
)
def test_a_sheet_of_too_many_parts_is_refused(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "m.xlsx"
    path.write_bytes(ELEMENTS[kind]())
    told = told_within(lambda: read_predictions(path), seconds=20, mebibytes=250)
    assert told.startswith(f"error: {path}: "), told[:200]
    assert "no sheet of a table" in told or "document type" in told


PLACES = {
    "a row of number 10**12": (b'<row r="1000000000000"><c><v>7</v></c></row>', "spread over"),
    "the last cell of all": (b'<row r="1048576"><c r="XFD1048576"><v>7</v></c></row>', "spread"),
    "a cell far behind in every row": (
        b"<row><c/><c/><c/></row>" * 2000 + b'<row><c r="XFD2052"/></row>',
        "spread over",
    ),
    "a row that was there": (b'<row r="7"><c><v>7</v></c></row>', "row 7 comes after row 51"),
    "rows backwards": (b'<row r="90"/><row r="89"><c/></row>', "row 89 comes after row 90"),
    "a cell that was there": (
        b'<row r="52"><c r="A52"><v>7</v></c><c r="A52"/></row>',
        "in row 52, cell A52 does not come after",
    ),
    "cells backwards": (
        b'<row r="52"><c r="B52"><v>7</v></c><c r="A52"/></row>',
        "in row 52, cell A52 does not come after",
    ),
    "a cell of another row": (b'<row r="52"><c r="A7"/></row>', "cell A7 stands in row 52"),
}


@pytest.mark.parametrize("kind", PLACES)
def test_a_sheet_with_unsound_places_is_refused(kind: str, tmp_path: Path) -> None:
    """Rows and cells were dropped in silence, or empty ones made for hours."""
    more, why = PLACES[kind]
    path = tmp_path / "m.xlsx"
    path.write_bytes(in_sheet(more))
    with pytest.raises(PredictionError, match=re.escape(why)) as got:
        held_while(lambda: read_predictions(path))
    assert "save it again" in str(got.value)


def without_places(xml: bytes) -> bytes:
    return re.sub(rb' r="[A-Z]*\d+"', b"", xml)


LINK = (
    b'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
    b'<Relationship Id="rId1" Type="http://schemas.openxmlformats.org/officeDocument/2006/'
    b'relationships/externalLinkPath" Target="http://192.0.2.1/x.xlsx" TargetMode="External"/>'
    b"</Relationships>"
)

SOUND = {
    "no places": lambda: sheet(without_places),
    "all cells merged": lambda: sheet(
        lambda xml: xml.replace(
            b"</sheetData>",
            b'</sheetData><mergeCells count="1"><mergeCell ref="A1:XFD1048576"/></mergeCells>',
        )
    ),
    "65,536 members": lambda: with_member("xl/media/{}.png", b"", 1 << 16),
    "a link to another file": lambda: with_member("xl/worksheets/_rels/sheet1.xml.rels", LINK),
    "a picture that is no XML": lambda: with_member("xl/drawings/drawing1.xml", b"\x89PNG"),
}


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=pytest.mark.slow if kind == "65,536 members" else [])
        for kind in SOUND
    ],
)
def test_an_odd_sheet_has_all_its_rows(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "m.xlsx"
    path.write_bytes(SOUND[kind]())
    replies = read_predictions(path)
    assert [reply.index for reply in replies] == [*range(ROWS)]
    assert {reply.text for reply in replies} == {"[[0, 0, 9, 9]]"}


def zipped(**members: bytes) -> bytes:
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return whole.getvalue()


OTHERS = {
    "xls": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(4096),  # and xlsx with a password
    "ods": zipped(mimetype=b"application/vnd.oasis.opendocument.spreadsheet"),
    "html": b"<table><tr><td>index</td></tr></table>",
    "csv": b"index,prediction\n0,[]\n",
    "an archive of nothing": zipped(),
    "nothing": b"",
}


@pytest.mark.parametrize("kind", OTHERS)
def test_other_files_named_as_sheets_are_refused(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "m.xlsx"
    path.write_bytes(OTHERS[kind])
    with pytest.raises(PredictionError, match="not a readable xlsx sheet"):
        read_predictions(path)


def held_while(read: Callable[[], object]) -> None:
    """Read something, and see how much memory it took."""
    tracemalloc.start()
    try:
        read()
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < MOST_HELD


@pytest.mark.parametrize("members", few_fast([40, 1], 1))
def test_gzip_is_unpacked_up_to_a_limit(members: int) -> None:
    packed = gzip.compress(b"0" * ((MEGABYTES << 20) // members)) * members
    with pytest.raises(UnpackedSizeError, match="it unpacks from"):
        held_while(lambda: gunzip(packed))


def test_usual_files_are_far_below_the_limit() -> None:
    """The same boxes a hundred thousand times are packed to a fiftieth."""
    boxes = [{"image_id": 7, "category_id": 1, "bbox": [1.5, 2, 3, 4], "score": 0.5}] * 100_000
    text = json.dumps(boxes).encode()
    assert gunzip(gzip.compress(text)) == text
    assert len(text) < most_unpacked(1) / 4
    with pytest.raises(UnpackedSizeError):
        gunzip(gzip.compress(bytes(most_unpacked(1) + 1)))


def test_parquet_pages_are_unpacked_up_to_a_limit(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    table = pyarrow.table({"text": [("x" * (1 << 20)) + str(at) for at in range(60)]})
    parquet.write_table(table, path, compression="zstd", use_dictionary=False)
    assert path.stat().st_size < 1 << 20
    with pytest.raises(TableError, match="it unpacks from"):
        list(parquet_rows(path))
    parquet.write_table(table.slice(0, 20), path, compression="zstd", use_dictionary=False)
    assert len(list(parquet_rows(path))) == 20
