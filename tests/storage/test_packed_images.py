"""Tables of others with images in their cells: rows by places, and images named by content."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from vpbench_stand_in import picture

from vlmeval_findit.storage import TableError, named_image, parquet_rows, store_image, tsv_rows


class OtherError(ValueError):
    """What a reader of another room raises."""


def write_parquet(path: Path, rows: list[dict[str, Any]]) -> Path:
    pq.write_table(pa.Table.from_pylist(rows), path)
    return path


def test_rows_of_parquet_have_the_chosen_columns(tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "a.parquet", [{"a": n, "b": str(n)} for n in range(40)])
    assert [row for _, row in parquet_rows(path)] == [{"a": n, "b": str(n)} for n in range(40)]
    chosen = list(parquet_rows(path, ["b", "c"], needed=["a"]))
    assert chosen == [(f"{path}, row {n}", {"b": str(n)}) for n in range(40)]


@pytest.mark.parametrize("error", [TableError, OtherError])
def test_other_parquet_is_refused_as_the_reader_says(
    error: type[ValueError], tmp_path: Path
) -> None:
    path = write_parquet(tmp_path / "a.parquet", [{"image": 1}])
    with pytest.raises(error, match="no column 'images': did you mean image") as raised:
        next(parquet_rows(path, needed=["images"], error=error))
    assert type(raised.value) is error
    path.write_bytes(b"PAR1")
    with pytest.raises(error, match=r"a\.parquet: not a Parquet file") as raised:
        next(parquet_rows(path, error=error))
    assert type(raised.value) is error


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a\n1\n", "no column 'b'"),
        ("a\tb\n1\n", "line 2: the cells do not match the columns"),
        ("a\tb\n1\t2\t3\n", "line 2: the cells do not match the columns"),
    ],
)
def test_other_tsv_is_refused(text: str, why: str, tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text(text)
    with pytest.raises(TableError, match=why):
        list(tsv_rows(path, ["a", "b"]))


def test_an_image_has_one_name_in_every_cell(tmp_path: Path) -> None:
    data = picture(0)
    text = base64.b64encode(data).decode()
    cells = (data, {"bytes": data, "path": "x.png"}, text, f"data:image/jpeg;base64,{text}")
    name = store_image(data, tmp_path)
    assert name.endswith(".jpg")
    assert (tmp_path / name).read_bytes() == data
    for cell in cells:
        assert named_image(cell) == (name, data)
    for cell in (None, 3, {"path": "x.png"}, b"no image", ""):
        with pytest.raises(ValueError, match=r"^no image$|^not an image"):
            named_image(cell)
