"""Rows of Parquet that hold other things than images and boxes: refused, by their place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from few_fast import every_nth_fast
from stand_ins import jpeg

from vlmeval_findit.benchmarks.findit import find_table
from vlmeval_findit.cli import main

pytestmark = pytest.mark.usefixtures("data_root")

BOX = [1.0, 2.0, 30.0, 40.0]
IMAGE = {"bytes": jpeg(1), "path": "a.jpg"}
OBJECTS = {"bbox": [BOX], "category": ["cat"]}


def things(bbox: Any, category: Any = ("cat",)) -> dict[str, Any]:
    return {"image": IMAGE, "objects": {"bbox": bbox, "category": list(category)}}


def pictured(content: Any, path: str = "a.jpg") -> dict[str, Any]:
    return {"image": {"bytes": content, "path": path}, "objects": OBJECTS}


ROWS: dict[str, Any] = {
    "no box": {"image": IMAGE, "objects": {"bbox": None, "category": None}},
    "a null for a box": things([None]),
    "nulls in a box": things([[1.0, None, 3.0, 4.0]]),
    "NaN in a box": things([[1.0, float("nan"), 3.0, 4.0]]),
    "infinity in a box": things([[1.0, 2.0, float("inf"), 4.0]]),
    "three numbers": things([[1.0, 2.0, 3.0]]),
    "boxes of text": things([["1", "2", "3", "4"]]),
    "boxes in boxes": things([[[1.0, 2.0, 3.0, 4.0]]]),
    "a box without its label": things([BOX], []),
    "a null for a label": things([BOX], [None]),
    "a number without a name": things([BOX], [7]),
    "objects of text": {"image": IMAGE, "objects": "cat"},
    "a null for objects": {"image": IMAGE, "objects": None},
    "a null for an image": {"image": None, "objects": OBJECTS},
    "an image without bytes": pictured(None, "/etc/passwd"),
    "an image of nothing": pictured(b""),
    "an image of text": pictured("x"),
    "an image of numbers": pictured([1, 2]),
    "a web page for an image": pictured(b"<html>"),
    "an image that is cut": pictured(jpeg(1)[:60]),
    "an image that climbs": pictured(None, "../../a.jpg"),
    "an image elsewhere": pictured(None, "http://127.0.0.1/a.jpg"),
    "a number for an image": {"image": 7, "objects": OBJECTS},
    "no column of objects": {"image": IMAGE},
}


@pytest.mark.parametrize("kind", every_nth_fast(ROWS, 3))
def test_a_row_of_other_things_is_refused_by_its_place(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "test.parquet"
    pq.write_table(pa.Table.from_pylist([ROWS[kind]]), path)
    status = main(["data", "import", str(path), "--name", "Odd"])
    told = capsys.readouterr().err
    assert status == 2
    assert told.startswith("error: ")
    assert str(tmp_path) in told
    with pytest.raises(FileNotFoundError):
        find_table("Odd")
