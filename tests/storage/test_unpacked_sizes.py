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
