"""Parquet files that lie, nest, repeat or hold other things: refused, or read in little memory."""

from __future__ import annotations

import io
import os
import random
import struct
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
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


def zeros(count: int) -> Any:
    return pa.array(np.zeros(count, np.int8))


def row_of(values: Any, **options: Any) -> bytes:
    """Return a file of one row: a list of so many values."""
    ends = pa.array([0, len(values)], pa.int32())
    whole = io.BytesIO()
    cells = pa.table({"a": pa.ListArray.from_arrays(ends, values)})
    pq.write_table(cells, whole, compression="zstd", store_schema=False, **options)
    return whole.getvalue()


def prefixes(count: int) -> bytes:
    """Return a row of equal texts of 1 MB, each stored as the beginning of the one before."""
    return row_of(
        pa.array(["x" * MEBI] * count),
        use_dictionary=False,
        column_encoding={"a.list.element": "DELTA_BYTE_ARRAY"},
    )


def row_of_objects(count: int) -> bytes:
    """Return a row: a list of objects with three keys and no values."""
    nulls = pa.nulls(count, pa.int8())
    return row_of(pa.StructArray.from_arrays([nulls, nulls, nulls], ["a", "b", "c"]))


def row_of_maps(count: int) -> bytes:
    ends = pa.array([0, count], pa.int32())
    keys = pa.DictionaryArray.from_arrays(zeros(count), ["k"]).cast(pa.string())
    return table(a=pa.MapArray.from_arrays(ends, keys, pa.nulls(count, pa.int8())))


def row_of_lists(count: int) -> bytes:
    """Return a row: a list of empty lists."""
    ends = pa.array([0] * (count + 1), pa.int32())
    return row_of(pa.ListArray.from_arrays(ends, pa.array([], pa.int8())))


def understated(whole: bytes, *changes: tuple[int, int]) -> bytes:
    """Return a file whose footer, not its pages, states other numbers."""
    (length,) = struct.unpack("<I", whole[-8:-4])
    footer = whole[-8 - length : -8]
    for before, after in changes:
        assert varint(before) in footer
        footer = footer.replace(varint(before), varint(after))
    return whole[: -8 - length] + footer + struct.pack("<I", len(footer)) + b"PAR1"


def stated_bytes(whole: bytes) -> int:
    group = pq.ParquetFile(io.BytesIO(whole)).metadata.row_group(0)
    return int(group.total_byte_size)


def larger_pages(mebibytes: int, rows: int = 1) -> bytes:
    """Return a file whose pages are larger than its footer states."""
    whole = io.BytesIO()
    texts = ["x" * (mebibytes * MEBI)] * rows
    pq.write_table(pa.table({"a": texts}), whole, compression="zstd", use_dictionary=False)
    stated = stated_bytes(whole.getvalue())
    return understated(whole.getvalue(), (stated, 100))


FILES: dict[str, Callable[[], bytes]] = {
    "a text of 20 MB in 2,000 rows": lambda: table(a=same_text(20, 2000)),
    "a text of 1 MB in 1,000,000 rows": lambda: table(a=same_text(1, 1_000_000)),
    "100,000,000 equal numbers": lambda: groups(pa.array([0] * MANY, pa.int8()), 20),
    "100,000,000 nulls": lambda: groups(pa.nulls(MANY, pa.string()), 20),
    "100,000,000 empty lists": lambda: groups(
        pa.ListArray.from_arrays(pa.array([0] * (MANY + 1), pa.int32()), pa.array([], pa.int8())),
        20,
    ),
    "a row of 5,000,000 nulls": lambda: row_of(pa.nulls(MANY, pa.int8())),
    "a row of 50,000,000 nulls": lambda: row_of(pa.nulls(10 * MANY, pa.int8())),
    "a row of 200,000,000 nulls": lambda: row_of(pa.nulls(40 * MANY, pa.int8())),
    "a row of 50,000,000 nulls, says no footer": lambda: understated(
        row_of(pa.nulls(10 * MANY, pa.int8())), (10 * MANY, 7)
    ),
    "a row of 50,000,000 texts that are null": lambda: row_of(pa.nulls(10 * MANY, pa.string())),
    "a row of 50,000,000 equal numbers": lambda: row_of(zeros(10 * MANY)),
    "a row of 50,000,000 truths": lambda: row_of(zeros(10 * MANY).cast(pa.bool_())),
    "a row of 20,000,000 texts without signs": lambda: row_of(
        pa.DictionaryArray.from_arrays(zeros(4 * MANY), [""])
    ),
    "a row of 20,000,000 objects": lambda: row_of_objects(4 * MANY),
    "a row of 20,000,000 keys": lambda: row_of_maps(4 * MANY),
    "a row of 50,000,000 lists": lambda: row_of_lists(10 * MANY),
    "a row of 2,000 texts of 20 MB": lambda: row_of(same_text(20, 2000)),
    "a row of 1,000,000 texts of 1 MB": lambda: row_of(same_text(1, 1_000_000)),
    "a row of 10,000,000 texts of 1 KB": lambda: row_of(
        pa.DictionaryArray.from_arrays(zeros(2 * MANY), ["x" * 1024])
    ),
    "a row of 200 texts, each the last again": lambda: prefixes(200),
    "a row of 1,500 texts, each the last again": lambda: prefixes(1500),
    "30 MB, says no footer": lambda: larger_pages(30),
    "40 rows of 30 MB, says no footer": lambda: larger_pages(30, 40),
    "16 rows of 2 MB": lambda: table(a=["x" * (2 * MEBI)] * 16),
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


def make_apart(make: Callable[[], bytes], path: Path) -> None:
    """Write a file in a process of its own: what pyarrow keeps of memory would be no more of it."""
    child = os.fork()
    if child == 0:
        path.write_bytes(make())
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.slow
@pytest.mark.parametrize("kind", FILES)
def test_a_file_is_read_or_refused_in_little_memory(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    make_apart(FILES[kind], path)
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


# What the system says of a process that ended begins with what its parent had.
_WITH_ITS_PEAK = """
import sys
from vlmeval_findit.cli import main
status = main(sys.argv[1:])
for line in open("/proc/self/status"):
    if line.startswith("VmHWM"):
        print(line.split()[1], file=sys.stderr)
sys.exit(status)
"""


@pytest.mark.slow
def test_an_import_of_larger_pages_takes_little_memory(tmp_path: Path) -> None:
    """A page of 500 MB, of which the footer says 100 bytes, by the command itself."""
    path = tmp_path / "t.parquet"
    make_apart(partial(larger_pages, 500), path)
    words = ["data", "import", str(path), "--image-root", str(tmp_path), "--name", "Pages"]
    done = subprocess.run(
        [sys.executable, "-c", _WITH_ITS_PEAK, *words],
        env=os.environ | {"LMUData": str(tmp_path)},
        stderr=subprocess.PIPE,
        text=True,
    )
    assert done.returncode == 2
    assert f"{path}: a few of its rows take more memory" in done.stderr
    assert int(done.stderr.split()[-1]) >> 10 < 450
