"""Prediction files that are cut off, of another kind, or hold odd records."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmeval_findit.core.predictions import PredictionError, read_predictions
from vlmeval_findit.core.replies import FAILED, Recorded, Reply, recorded

ROWS = [{"index": i, "prediction": f"[{i}, 2, 3, 4]\n", "extra_records": "{}"} for i in range(50)]


def xlsx() -> bytes:
    out = io.BytesIO()
    pd.DataFrame(ROWS).to_excel(out, index=False)
    return out.getvalue()


def tsv() -> bytes:
    return pd.DataFrame(ROWS).to_csv(sep="\t", index=False, quoting=csv.QUOTE_ALL).encode()


def empty_sheet() -> bytes:
    from openpyxl import Workbook

    out = io.BytesIO()
    Workbook().save(out)
    return out.getvalue()


def zip_of_text() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("a.txt", "a")
    return out.getvalue()


DAMAGED: dict[str, tuple[str, bytes, str]] = {
    "xlsx, empty": ("xlsx", b"", "not a sheet that can be read: File is not a zip file"),
    "xlsx, cut off": ("xlsx", xlsx()[:-300], "not a sheet that can be read"),
    "xlsx that is another zip": ("xlsx", zip_of_text(), "not a sheet that can be read"),
    "xlsx, encrypted": ("xlsx", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(4000), "is encrypted,"),
    "xlsx without cells": ("xlsx", empty_sheet(), "has no line of column names"),
    "JSON, cut off": ("json", json.dumps(ROWS).encode()[:-100], "not JSON: "),
    "JSON, deep": ("json", b"[" * 200_000, "is nested too deeply"),
    "JSON, a huge number": ("json", b'[{"index": ' + b"9" * 5000 + b"}]", "not JSON: Exceeds"),
    "TSV, empty": ("tsv", b"", "has no line of column names"),
    "TSV, cut off in a reply": ("tsv", tsv()[: tsv().rfind(b"2, 3")], "unexpected end of data"),
    "TSV, cut off before a reply":
        ("tsv", tsv()[: tsv().rfind(b'\t"[49')], "row 50: 1 cells for 3"),
    "TSV, too many cells": ("tsv", b"index\tprediction\n1\ta\tb\n", "row 1: 3 cells for 2 columns"),
    "TSV, a column twice": ("tsv", b"index\tprediction\tindex\n", "column 'index' stands twice"),
    "TSV, UTF-16": ("tsv", tsv().decode().encode("utf-16"), "can't decode"),
    "TSV of other columns": ("tsv", b"id\tanswer\n1\ta\n", "row 1: no column 'index', only ['id',"),
}  # fmt: skip


@pytest.mark.parametrize(("suffix", "content", "why"), DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_file(tmp_path: Path, suffix: str, content: bytes, why: str) -> None:
    path = tmp_path / f"p.{suffix}"
    path.write_bytes(content)
    with pytest.raises(PredictionError) as error:
        read_predictions(path)
    assert str(error.value).startswith(str(path))
    assert why in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("end", range(0, len(tsv()), 97))
def test_a_file_that_is_cut_off_anywhere_has_no_shortened_reply(tmp_path: Path, end: int) -> None:
    """All replies that are read are whole, wherever the file ends."""
    path = tmp_path / "p.tsv"
    path.write_bytes(tsv()[:end])
    try:
        read = read_predictions(path)
    except PredictionError:
        return
    assert read == [Reply(row["index"], row["prediction"]) for row in ROWS[: len(read)]]


def test_what_files_may_have(tmp_path: Path) -> None:
    """A byte order mark, blank lines, zero bytes and very long replies are no damage."""
    long = "x" * 1_000_000
    path = tmp_path / "p.tsv"
    path.write_bytes(f"\ufeffindex\tprediction\n\n0\ta\0b\n1\t{long}\n".encode())
    assert read_predictions(path) == [Reply(0, "a\0b"), Reply(1, long)]
    path = tmp_path / "p.json"
    path.write_bytes(b'\xef\xbb\xbf[{"index": 0, "prediction": "a"}]')
    assert read_predictions(path) == [Reply(0, "a")]


def test_empty_cells_and_rows_of_a_sheet(tmp_path: Path) -> None:
    from openpyxl import Workbook

    book = Workbook()
    for row in (["index", "note", "prediction", None], [0, "n"], [1, None, "b"], [], [None]):
        book.active.append(row)
    path = tmp_path / "p.xlsx"
    book.save(path)
    assert read_predictions(path) == [Reply(0, ""), Reply(1, "b")]


# --- records of odd types -------------------------------------------------------------------------


FIELDS = (
    "finish_reason", "images", "thought", "ends_in_thought", "tokens", "model", "call", "other"
)  # fmt: skip


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=10,
)


@given(st.dictionaries(st.sampled_from((*FIELDS, "space")), json_values))
def test_any_record_becomes_plain(record: dict[str, Any]) -> None:
    result = recorded({"findit": record})
    assert recorded(json.loads(result.as_json(), parse_constant=pytest.fail)) == result
    assert isinstance(Reply(0, FAILED, result).failed, bool)


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        ({"finish_reason": None}, Recorded()),
        ({"images": [{"sent": [4, 3]}, 7]}, Recorded()),
        ({"images": [{"sent": [4, float("nan")], "mime": None}]},
         Recorded(images=({"sent": [4, None], "mime": None},))),
        ({"tokens": {"prompt": 5, "reply": 0, "a": float("nan"), "x": 1.5, "y": True, "z": -1}},
         Recorded(tokens={"prompt": 5, "reply": 0})),
        ({"call": {"cost": float("nan"), "id": "a"}}, Recorded(call={"id": "a"})),
        ({"call": {"cost": 0.5, "error": None}}, Recorded(call={"cost": 0.5, "error": None})),
        ({"call": {"a": {"b": {"c": float("nan"), "d": 1}}}},
         Recorded(call={"a": {"b": {"d": 1}}})),
        ({"call": {"cost": 10**400}, "tokens": {"prompt": 10**400}}, Recorded()),
        ({"model": {"row": 7, "identifier": "a"}}, Recorded(model={"identifier": "a"})),
        ({"ends_in_thought": True, "thought": {}}, Recorded(ends_in_thought=True)),
    ],
)  # fmt: skip
def test_what_is_left_of_odd_records(record: dict[str, Any], expected: Recorded) -> None:
    assert recorded({"findit": record}) == expected


def test_a_record_nested_too_deeply_is_left_out() -> None:
    deep: Any = 1
    for _ in range(900):
        deep = {"a": deep}
    assert recorded({"findit": {"call": {"deep": deep, "id": "x"}}}).call["id"] == "x"


@pytest.mark.parametrize(
    "space",
    [["unit"], 7, {"kind": ["unit"]}, {"kind": "pixels", "scene_max_size": float("nan")},
     {"kind": "pixels", "scene_max_size": 10**400}],
    ids=repr,
)  # fmt: skip
def test_a_space_that_is_none_is_never_dropped_in_silence(tmp_path: Path, space: Any) -> None:
    """Boxes would then be read in another space than the run's."""
    path = tmp_path / "p.json"
    extra = json.dumps({"findit": {"space": space}})
    rows = [{"index": 3, "prediction": "a", "extra_records": extra}]
    path.write_text(json.dumps(rows))
    with pytest.raises(PredictionError) as error:
        read_predictions(path)
    assert str(error.value).startswith(f"{path}, row 1, column extra_records: ")
    assert str(error.value).endswith(" are no settings of a coordinate space")
    assert recorded(extra).space is None
