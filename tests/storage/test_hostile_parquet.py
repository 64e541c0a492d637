"""Parquet files that lie, nest, repeat or hold other things: refused, or read in little memory."""

from __future__ import annotations

import io
import random
import struct
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bounded import told_within

from vlmeval_findit.storage import TableError, parquet_rows

MEBI = 1 << 20
MANY = 5_000_000


def table(**columns: Any) -> bytes:
    """Return a Parquet file of columns."""
    whole = io.BytesIO()
    pq.write_table(pa.table(columns), whole, compression="zstd", store_schema=False)
    return whole.getvalue()


def same_text(mebibytes: int, rows: int) -> Any:
    """Return a column with one long text, which is stored once."""
    texts = pa.array(["x" * (mebibytes * MEBI)])
    return pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), texts)


def groups(column: Any, count: int) -> bytes:
    """Return a file of a column that is there several times."""
    part = pa.table({"a": column})
    whole = io.BytesIO()
    with pq.ParquetWriter(whole, part.schema, compression="zstd") as file:
        for _ in range(count):
            file.write_table(part)
    return whole.getvalue()


def nested(depth: int) -> bytes:
    kind: Any = pa.int32()
    value: Any = 1
    for _ in range(depth):
        kind = pa.list_(kind)
        value = [value]
    return table(a=pa.array([value], kind))


def varint(number: int) -> bytes:
    """Return a number as footers write it: zigzag, seven bits a byte."""
    number <<= 1
    parts = []
    while number > 127:
        parts.append(number & 127 | 128)
        number >>= 7
    return bytes([*parts, number])


def with_footer(change: Callable[[bytes], bytes]) -> bytes:
    """Return a file of 77,777 rows whose footer is changed."""
    whole = table(a=list(range(77777)))
    (length,) = struct.unpack("<I", whole[-8:-4])
    content = whole[: -8 - length]
    footer = change(whole[-8 - length : -8])
    return content + footer + struct.pack("<I", len(footer)) + b"PAR1"


def stating(rows: int) -> bytes:
    return with_footer(lambda footer: footer.replace(varint(77777), varint(rows)))


def ended(length: int) -> bytes:
    """Return a file that states another length of its footer."""
    return table(a=[1])[:-8] + struct.pack("<I", length) + b"PAR1"


def wrong_text() -> bytes:
    raw = pa.array([b"\xff\xfe"], pa.binary())
    return table(a=pa.Array.from_buffers(pa.utf8(), 1, raw.buffers()))


FILES: dict[str, Callable[[], bytes]] = {
    "a text of 20 MB in 2,000 rows": lambda: table(a=same_text(20, 2000)),
    "a text of 1 MB in 1,000,000 rows": lambda: table(a=same_text(1, 1_000_000)),
    "100,000,000 equal numbers": lambda: groups(pa.array([0] * MANY, pa.int8()), 20),
    "100,000,000 nulls": lambda: groups(pa.nulls(MANY, pa.string()), 20),
    "100,000,000 empty lists": lambda: groups(
        pa.ListArray.from_arrays(pa.array([0] * (MANY + 1), pa.int32()), pa.array([], pa.int8())),
        20,
    ),
    "150 lists deep": lambda: nested(150),
    "60 lists deep": lambda: nested(60),
    "5,000 columns": lambda: table(**{f"c{at}": [1] for at in range(5000)}),
    "10 ** 15 rows, says the footer": lambda: stating(10**15),
    "less rows than there are": lambda: stating(3),
    "rows below zero": lambda: with_footer(lambda footer: footer.replace(varint(77777), b"\x01")),
    "a footer of 4 GB": lambda: ended(0xFFFFFFFF),
    "a footer of 2 GB": lambda: ended(0x7FFFFFFF),
    "a footer of nothing": lambda: ended(0),
    "a footer of one byte": lambda: ended(1),
    "a footer of zeros": lambda: with_footer(lambda footer: bytes(len(footer))),
    "a footer of lists": lambda: with_footer(lambda footer: b"\x19\xfc" * 4000),
    "a footer of structs": lambda: with_footer(lambda footer: b"\x1c" * 100_000),
    "an encrypted footer": lambda: table(a=[1])[:-4] + b"PARE",
    "nothing": lambda: b"",
    "marks alone": lambda: b"PAR1PAR1",
    "cut": lambda: table(a=list(range(9999)))[:-300],
    "text that is none": wrong_text,
    "a time of no calendar": lambda: table(a=pa.array([1 << 60], pa.timestamp("ms"))),
    "a day of no calendar": lambda: table(a=pa.array([1 << 30], pa.date32())),
    "nanoseconds": lambda: table(a=pa.array([timedelta(1)], pa.duration("us")), b=[1]),
}


def read(path: Path) -> int:
    rows = 0
    for _ in parquet_rows(path):
        rows += 1
    return rows


@pytest.mark.slow
@pytest.mark.parametrize("kind", FILES)
def test_a_file_is_read_or_refused_in_little_memory(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    path.write_bytes(FILES[kind]())
    told = told_within(partial(read, path), seconds=20, mebibytes=350)
    assert told.startswith("answer") or f"error: {path}: " in told, told
    assert len(told) < 500


@pytest.mark.slow
def test_damage_anywhere_is_told(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    rng = random.Random(3)
    whole = table(a=list(range(300)), b=[[float(at)] * 4 for at in range(300)], c=["é"] * 300)

    def read_all() -> int:
        refused = 0
        for _ in range(400):
            spoilt = bytearray(whole)
            for _ in range(rng.choice([1, 3, 20])):
                spoilt[rng.randrange(len(spoilt))] = rng.randrange(256)
            path.write_bytes(spoilt)
            try:
                read(path)
            except TableError:
                refused += 1
        return refused

    told = told_within(read_all, seconds=60, mebibytes=400)
    assert int(told.removeprefix("answer: ")) > 50, told
