"""What a file states twice, or hides, is refused with its place, whichever reader reads it."""

from __future__ import annotations

import io
import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import one_truth
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from one_truth import Picture, Thing, Writer, draw
from openpyxl import Workbook

from vlmeval_findit.benchmarks.findit import read_table
from vlmeval_findit.cli import main
from vlmeval_findit.core import StandsTwiceError, open_zip
from vlmeval_findit.storage import (
    PredictionError,
    TableError,
    parquet_rows,
    read_predictions,
    tsv_rows,
)

STEM = "FullImage_FindIt_Demo_xyxy_json"
HEADER = ("index", "prediction")
Says = tuple[str, ...]


def refused(read: Callable[[], object], kind: type[Exception], says: Says) -> None:
    with pytest.raises(kind) as error:
        read()
    for words in says:
        assert words in str(error.value)
    assert "\n" not in str(error.value)


# --- predictions ----------------------------------------------------------------------------------

# Names of columns, and what is said of them
COLUMNS: Mapping[str, tuple[Sequence[str], Says]] = {
    "a reply": (["index", "prediction", "prediction"], ("'prediction'", "columns 2 and 3")),
    "an index": (["index", "prediction", "index"], ("'index'", "columns 1 and 3")),
    "what is not read": (["index", "a", "prediction", "a"], ("'a'", "columns 2 and 4")),
}
ALIKE: Mapping[str, Sequence[str]] = {
    "letter case": ["index", "prediction", "Prediction"],
    "blanks": [" index", "prediction", "index"],
    "a record": ["index", "prediction", "extra_records", "EXTRA_RECORDS"],
}


def as_tsv(header: Sequence[str]) -> bytes:
    cells = ["0", *["[]"] * (len(header) - 1)]
    return ("\t".join(header) + "\n" + "\t".join(cells) + "\n").encode()


def as_xlsx(header: Sequence[str]) -> bytes:
    return workbook({"A": [header, [0, *["[]"] * (len(header) - 1)]]})


def as_json(header: Sequence[str]) -> bytes:
    pairs = [f'"{name}": {"0" if "index" in name else chr(34) * 2}' for name in header]
    return f"[{{{', '.join(pairs)}}}]".encode()


def as_json_lines(header: Sequence[str]) -> bytes:
    return as_json(header)[1:-1]


def workbook(sheets: Mapping[str, Sequence[Sequence[Any]]], *hidden: str) -> bytes:
    book = Workbook()
    book.remove(book.active)
    for title, rows in sheets.items():
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(row)
        if title in hidden:
            sheet.sheet_state = "hidden"
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


TABLES = {"tsv": as_tsv, "xlsx": as_xlsx}
FILES = {**TABLES, "json": as_json, "jsonl": as_json_lines}


def predictions(folder: Path, suffix: str, content: bytes) -> Path:
    path = folder / f"{STEM}.{suffix}"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("case", COLUMNS)
@pytest.mark.parametrize("suffix", TABLES)
def test_columns_of_one_name_are_refused(tmp_path: Path, suffix: str, case: str) -> None:
    header, says = COLUMNS[case]
    path = predictions(tmp_path, suffix, TABLES[suffix](header))
    refused(lambda: read_predictions(path), PredictionError, (str(path), *says))


@pytest.mark.parametrize("case", ALIKE)
@pytest.mark.parametrize("suffix", FILES)
def test_columns_that_may_be_one_are_refused(tmp_path: Path, suffix: str, case: str) -> None:
    header = ALIKE[case]
    path = predictions(tmp_path, suffix, FILES[suffix](header))
    says = (str(path), f"both {header[0 if case == 'blanks' else -2]!r} and {header[-1]!r} may be")
    refused(lambda: read_predictions(path), PredictionError, says)


@pytest.mark.parametrize("suffix", FILES)
def test_other_columns_may_be_alike(tmp_path: Path, suffix: str) -> None:
    path = predictions(tmp_path, suffix, FILES[suffix](["index", "prediction", "a", "A"]))
    assert len(read_predictions(path)) == 1


# --- workbooks ------------------------------------------------------------------------------------

ROWS = [HEADER, (0, "[]")]
NOTES = [("what", "when"), ("a", 1)]
SHEETS: Mapping[str, tuple[bytes, Says]] = {
    "the first is hidden": (
        workbook({"Old": ROWS, "New": NOTES}, "Old"),
        ("first sheet 'Old' is hidden", "show it, or delete it"),
    ),
    "both are tables": (
        workbook({"Old": ROWS, "New": ROWS}),
        ("'Old' and 'New' both have the columns index and prediction",),
    ),
    "the second is hidden": (workbook({"Old": ROWS, "New": ROWS}, "New"), ("'Old' and 'New'",)),
    "a title above": (
        workbook({"Old": ROWS, "New": [("Replies",), (), *ROWS]}),
        ("'Old' and 'New'",),
    ),
    "only the second is a table": (
        workbook({"Notes": NOTES, "Replies": ROWS}),
        ("'Notes' is read", "are in 'Replies': move that to the front"),
    ),
}


@pytest.mark.parametrize("case", SHEETS)
def test_a_sheet_that_would_be_passed_over_is_named(tmp_path: Path, case: str) -> None:
    content, says = SHEETS[case]
    path = predictions(tmp_path, "xlsx", content)
    refused(lambda: read_predictions(path), PredictionError, (str(path), *says))


def test_a_sheet_of_something_else_does_no_harm(tmp_path: Path) -> None:
    path = predictions(tmp_path, "xlsx", workbook({"Replies": ROWS, "Notes": NOTES}))
    assert [reply.text for reply in read_predictions(path)] == ["[]"]


PARTS = (
    "xl/worksheets/sheet1.xml",
    "xl/sharedStrings.xml",
    "xl/workbook.xml",
    "xl/_rels/workbook.xml.rels",
)


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("at_front", [True, False])
def test_a_part_that_stands_twice_is_refused(tmp_path: Path, part: str, at_front: bool) -> None:
    with ZipFile(io.BytesIO(workbook({"A": ROWS}))) as archive:
        parts = [(name, archive.read(name)) for name in archive.namelist()]
    of_part = dict(parts).get(part, b"<sst />")
    parts = [each for each in parts if each[0] != part]
    parts.insert(0, (part, of_part))
    parts.insert(0 if at_front else len(parts), (part, of_part.replace(b"0", b"1")))
    path = predictions(tmp_path, "xlsx", zipped(parts))
    refused(lambda: read_predictions(path), PredictionError, (f"holds {part!r} twice",))


# What stands in a part of a workbook, and what twice
INSIDE = {
    "a value": ("sheet1.xml", "<v>0</v></c>", "<v>0</v><v>1</v></c>", "has two values"),
    "a relation": (
        "workbook.xml.rels",
        "<Relationship ",
        '<Relationship Id="rId1" Type="a" Target="b" /><Relationship ',
        "the part rId1 twice",
    ),
}


@pytest.mark.parametrize("case", INSIDE)
def test_what_stands_twice_in_a_part_is_refused(tmp_path: Path, case: str) -> None:
    part, before, after, says = INSIDE[case]
    with ZipFile(io.BytesIO(workbook({"A": ROWS}))) as archive:
        parts = [(name, archive.read(name)) for name in archive.namelist()]
    changed = []
    for name, content in parts:
        text = content
        if name.endswith(part):
            assert before.encode() in content
            text = content.replace(before.encode(), after.encode(), 1)
        changed.append((name, text))
    path = predictions(tmp_path, "xlsx", zipped(changed))
    refused(lambda: read_predictions(path), PredictionError, (str(path), says))


def zipped(parts: Sequence[tuple[str, bytes]]) -> bytes:
    out = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a name that is there twice
        with ZipFile(out, "w") as archive:
            for name, content in parts:
                archive.writestr(name, content)
    return out.getvalue()


def test_an_archive_is_opened_if_its_members_differ() -> None:
    with open_zip(io.BytesIO(zipped([("a", b"1"), ("A", b"2")]))) as archive:
        assert archive.read("a") == b"1"
    with pytest.raises(StandsTwiceError, match="holds 'a' twice"):
        open_zip(io.BytesIO(zipped([("a", b"1"), ("a", b"1")]))).__enter__()


# --- tables with images ---------------------------------------------------------------------------


def test_columns_of_our_tables_have_names_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "Mine.tsv"
    path.write_text("index\timages\timages\n0\ta\tb\n")
    refused(lambda: read_table(path), TableError, ("Mine.tsv", "'images' (columns 2 and 3)"))


def test_columns_of_tables_with_images_have_names_of_their_own(tmp_path: Path) -> None:
    tsv = tmp_path / "a.tsv"
    tsv.write_text("index\timage\timage\n0\ta\tb\n")
    refused(lambda: list(tsv_rows(tsv, ())), TableError, ("a.tsv", "'image' (columns 2 and 3)"))
    parquet = tmp_path / "a.parquet"
    columns = [pa.array(["a"]), pa.array(["b"])]
    pq.write_table(pa.Table.from_arrays(columns, ["image", "image"]), parquet)
    for chosen in (None, ["image"], ["other"]):
        rows = parquet_rows(parquet, chosen)
        refused(lambda rows=rows: list(rows), TableError, ("a.parquet", "(columns 1 and 2)"))


# --- annotations ----------------------------------------------------------------------------------


@pytest.fixture
def data_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "LMUData"
    monkeypatch.setenv("LMUData", str(folder))
    return folder


def voc(inner: str, around: str = "<filename>a.png</filename>") -> dict[str, str]:
    return {"a.xml": f"<annotation>{around}<object>{inner}</object></annotation>"}


def cvat(inner: str) -> dict[str, str]:
    box = f'<box label="cat" xtl="1" ytl="1" xbr="9" ybr="9">{inner}</box>'
    image = f'<image name="a.png" width="640" height="480">{box}</image>'
    return {"a.xml": f"<annotations>{image}</annotations>"}


def yolo(**files: str) -> dict[str, str]:
    named = {name.replace("_", "."): text for name, text in files.items()}
    return {"a.txt": "0 0.5 0.5 0.1 0.1\n", **named}


def via(**shape: Any) -> dict[str, str]:
    region = {"shape_attributes": shape, "region_attributes": {"label": "cat"}}
    return {"a.json": json.dumps({"a.png1": {"filename": "a.png", "regions": [region]}})}


def supervisely(*splits: str, **more: Any) -> dict[str, str]:
    points = {"exterior": [[1, 1], [9, 9]], "interior": []}
    thing = {"classTitle": "cat", "geometryType": "rectangle", "points": points, **more}
    size = {"width": 640, "height": 480}
    tags = [{"name": split} for split in splits]
    return {"a.json": json.dumps({"size": size, "objects": [thing], "tags": tags})}


NAME = "<name>cat</name>"
SIDES = "<xmin>1</xmin><ymin>1</ymin><xmax>9</xmax><ymax>9</ymax>"
BOX = f"<bndbox>{SIDES}</bndbox>"
FLAG = '<attribute name="difficult">{}</attribute>'
ATTRIBUTE = "<attribute><name>difficult</name><value>{}</value></attribute>"
LINE = "a.png,cat,1,1,9,9"
# What is imported, its files, and what is said
SETS: Mapping[str, tuple[str, dict[str, str], Says]] = {
    "VOC: boxes": (".", voc(NAME + BOX + BOX), ("a.xml, object 0", "2 times <bndbox>")),
    "VOC: names": (".", voc(NAME + NAME + BOX), ("a.xml, object 0", "2 times <name>")),
    "VOC: sides": (
        ".",
        voc(f"{NAME}<bndbox>{SIDES}<xmin>3</xmin></bndbox>"),
        ("a.xml, object 0", "2 times <xmin>"),
    ),
    "VOC: flags": (
        ".",
        voc(f"{NAME}{BOX}<difficult>0</difficult><difficult>1</difficult>"),
        ("object 0", "2 times <difficult>"),
    ),
    "VOC: attributes": (
        ".",
        voc(f"{NAME}{BOX}<attributes>{ATTRIBUTE.format(0)}{ATTRIBUTE.format(1)}</attributes>"),
        ("object 0", "duplicate attribute 'difficult'"),
    ),
    "VOC: files": (
        ".",
        voc(NAME + BOX, "<filename>a.png</filename><filename>b.png</filename>"),
        ("a.xml", "2 times <filename>"),
    ),
    "VOC: sizes": (
        ".",
        voc(
            NAME + BOX,
            "<size><width>640</width><height>480</height></size><size><width>9</width></size>",
        ),
        ("a.xml", "2 times <size>"),
    ),
    "CVAT: attributes": (
        "a.xml",
        cvat(FLAG.format("false") + FLAG.format("true")),
        ("image 0 (a.png), shape 0", "duplicate attribute 'difficult'"),
    ),
    "YOLO: a list": (
        ".",
        yolo(classes_txt="cat\ncat\n"),
        ("classes.txt, classes", "'0' and '1' have one name, 'cat'"),
    ),
    "YOLO: names": (
        ".",
        yolo(data_yaml="names: [cat, dog, cat]\n"),
        ("data.yaml, names", "'0' and '2' have one name, 'cat'"),
    ),
    "YOLO: numbers": (
        ".",
        yolo(data_yaml="names: {0: cat, 00: dog}\n"),
        ("data.yaml, names", "duplicate class 0"),
    ),
    "Darknet: keys": (
        ".",
        yolo(obj_data="names = a.names\nnames = obj.names\n", obj_names="cat\n", a_names="dog\n"),
        ("obj.data", "duplicate key 'names'"),
    ),
    "Darknet: names": (
        ".",
        yolo(obj_data="names = obj.names\n", obj_names="cat\ndog\ncat\n"),
        ("obj.names, classes", "'0' and '2' have one name, 'cat'"),
    ),
    "COCO: names": (
        "a.json",
        {
            "a.json": '{"images": [{"id": 1, "file_name": "a.png"}], "annotations": [], '
            '"categories": [{"id": 1, "name": "cat"}, {"id": 2, "name": "cat"}]}'
        },
        ("a.json, categories", "1 and 2 have one name, 'cat'"),
    ),
    "Ultralytics: names": (
        "a.ndjson",
        {"a.ndjson": '{"type": "dataset", "task": "detect", "class_names": {"0": "a", "1": "a"}}'},
        ("a.ndjson", "class_names", "'0' and '1' have one name, 'a'"),
    ),
    "VIA: points": (
        "a.json",
        via(name="polygon", all_points_x=[1, 9, 9], all_points_y=[1, 9, 9, 1]),
        ("a.json", "has 3 x and 4 y of points"),
    ),
    "Supervisely: tags": (
        ".",
        supervisely(tags=[{"name": "difficult", "value": "no"}, {"name": "difficult"}]),
        ("objects[0], tags", "duplicate attribute 'difficult'"),
    ),
    "Supervisely: splits": (
        ".",
        supervisely("train", "val"),
        ("a.json, tags[1]", "of two splits, train and val"),
    ),
    "CSV: columns": (
        "a.csv",
        {"a.csv": f"image,label,x1,y1,x2,y2,x1\n{LINE},3\n"},
        ("a.csv, line 1", "'x1' (columns 3 and 7)"),
    ),
    "CSV: a label of two lines": (
        "a.csv",
        {"a.csv": 'image,label,x1,y1,x2,y2\na.png,"cat,1,1,9,9\na.png,dog",2,2,9,9\n'},
        ("a.csv, line 2", "ends in line 3", "is a quote missing?"),
    ),
    "CSV: a label of two words": (
        "a.csv",
        {"a.csv": f'image,label,x1,y1,x2,y2\n{LINE}\na.png,"big\ncat",1,1,9,9\n'},
        ("a.csv, line 3", "ends in line 4", "'big\\ncat'"),
    ),
    "CSV: a note that takes in a row": (
        "a.csv",
        {"a.csv": f'image,label,x1,y1,x2,y2,note\n{LINE},\n{LINE},"\n{LINE},"\n'},
        ("a.csv, line 3", "ends in line 4"),
    ),
}


@pytest.mark.parametrize("case", SETS)
def test_annotations_that_state_something_twice_are_refused(
    case: str,
    data_root: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    source, files, says = SETS[case]
    folder = tmp_path / "set"
    folder.mkdir()
    monkeypatch.chdir(folder)
    draw(folder, "a.png")
    for name, text in files.items():
        Path(name).write_text(text)
    assert main(["data", "import", source, "--name", "Mine"]) == 2
    message = " ".join(capsys.readouterr().err.split())
    for words in says:
        assert words in message


def test_columns_of_the_hub_have_names_of_their_own(
    data_root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    draw(tmp_path, "a.png")
    objects = [{"bbox": [[1, 1, 9, 9]], "category": ["cat"]}]
    columns = [pa.array(["a.png"]), pa.array(objects), pa.array(objects)]
    path = tmp_path / "a.parquet"
    pq.write_table(pa.Table.from_arrays(columns, ["file_name", "objects", "objects"]), path)
    assert main(["data", "import", str(path), "--name", "Mine"]) == 2
    assert "duplicate column 'objects' (columns 2 and 3)" in capsys.readouterr().err


def test_classes_of_the_hub_have_names_of_their_own(
    data_root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    draw(tmp_path, "a.png")
    objects = [{"bbox": [[1, 1, 9, 9]], "category": [1]}]
    table = pa.table({"file_name": ["a.png"], "objects": objects})
    features = {"objects": {"category": {"feature": {"names": ["cat", "cat"]}}}}
    stated = json.dumps({"info": {"features": features}})
    path = tmp_path / "a.parquet"
    pq.write_table(table.replace_schema_metadata({"huggingface": stated}), path)
    assert main(["data", "import", str(path), "--name", "Mine"]) == 2
    message = " ".join(capsys.readouterr().err.split())
    assert "a.parquet, names of classes: 0 and 1 have one name, 'cat'" in message


# Labels of these formats are words of a line
WITHOUT_LINES = (one_truth.dota, one_truth.kitti, one_truth.oidv4, one_truth.yolo)
QUOTED = [
    writer
    for writer in (*one_truth.OBJECTS, *one_truth.BARE, *one_truth.LINES)
    if writer not in WITHOUT_LINES and writer is not one_truth.cvat
]


@pytest.mark.parametrize("writer", QUOTED, ids=lambda writer: writer.__name__)
def test_a_label_of_two_lines_is_refused(
    writer: Writer, data_root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """XML makes one blank of a line end in an attribute, so CVAT has none."""
    box = (10.0, 20.0, 110.0, 220.0)
    folder = tmp_path / "set"
    folder.mkdir()
    draw(folder, "a.png")
    path = writer(folder, [Picture("a.png", [Thing("cat,5,5\na2.png,dog", box)])])
    assert main(["data", "import", str(path), "--name", "Mine"]) == 2
    message = " ".join(capsys.readouterr().err.split())
    assert "has 2 lines" in message or "a quote opens a cell" in message


def test_a_name_of_two_lines_is_refused_in_renames(
    data_root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    draw(tmp_path, "a.png")
    (tmp_path / "a.csv").write_text(f"image,label,x1,y1,x2,y2\n{LINE}\n")
    names = tmp_path / "names.csv"
    names.write_text('cow,ox\ncat,"big\ndog,puppy"\n')
    words = ["data", "import", str(tmp_path / "a.csv"), "--name", "Mine"]
    assert main([*words, "--rename-class", f"@{names}"]) == 2
    message = " ".join(capsys.readouterr().err.split())
    assert "names.csv, line 2: a quote opens a cell that ends in line 3" in message


# --- files of other programs ----------------------------------------------------------------------

OTHERS: Mapping[str, tuple[str, Says]] = {
    "replies": (
        '[{"index": 1, "response": "[]", "prediction": "[1]"}]',
        ("entry 1", "both response and prediction may be the reply"),
    ),
    "replies of lines": (
        '{"index": 1, "response": "", "prediction": ""}\n' * 2,
        ("line 1", "both response and prediction may be the reply"),
    ),
    "lists": (
        '{"annotations": [], "predictions": [{"index": 1, "prediction": "[]"}]}',
        ("both lists annotations and predictions",),
    ),
    "keys": ('[{"index": 1, "prediction": "", "prediction": "[]"}]', ("duplicate key",)),
}


@pytest.mark.parametrize("case", OTHERS)
def test_two_replies_of_other_programs_are_refused(
    case: str,
    demo_data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("LMUData", str(demo_data))
    text, says = OTHERS[case]
    path = tmp_path / "mine.json"
    path.write_text(text)
    assert main(["score", "--convert", str(path), "--data", "FindIt_Demo_xyxy_json"]) == 2
    message = " ".join(capsys.readouterr().err.split())
    for words in ("mine.json", *says):
        assert words in message


# --- replies that are none ------------------------------------------------------------------------

# What stands in place of a reply, and whether its call failed; the other replies are empty
NONE: Mapping[str, tuple[str, bytes, bool]] = {
    "null": ("json", b'[{"index": 0, "prediction": null}]', True),
    "NaN": ("json", b'[{"index": 0, "prediction": NaN}]', True),
    "null of a line": ("jsonl", b'{"index": 0, "prediction": null}', True),
    "null of the host": ("json", b'[{"index": 0, "prediction": {"prediction": null}}]', True),
    "a recorded end": (
        "json",
        rb'[{"index": 0, "prediction": null, "extra_records": '
        rb'"{\"findit\": {\"finish_reason\": \"stop\"}}"}]',
        False,
    ),
    "no text": ("json", b'[{"index": 0, "prediction": ""}]', False),
    "an empty cell": ("xlsx", workbook({"A": [HEADER, (0, None)]}), False),
    "an empty field": ("tsv", b"index\tprediction\n0\t\n", False),
}


@pytest.mark.parametrize("case", NONE)
def test_null_is_a_failed_call_and_an_empty_cell_empty(tmp_path: Path, case: str) -> None:
    suffix, content, failed = NONE[case]
    (reply,) = read_predictions(predictions(tmp_path, suffix, content))
    assert (reply.failed, reply.text) == (failed, "")


@pytest.mark.parametrize("value", ["5", "0.5", "true"])
@pytest.mark.parametrize("suffix", ["json", "jsonl", "xlsx"])
def test_a_number_is_no_reply(tmp_path: Path, suffix: str, value: str) -> None:
    row = f'{{"index": 0, "prediction": {value}}}'
    contents = {
        "json": f"[{row}]".encode(),
        "jsonl": row.encode(),
        "xlsx": workbook({"A": [HEADER, (0, value == "true" or float(value))]}),
    }
    path = predictions(tmp_path, suffix, contents[suffix])
    says = (f"{path}, row 1, column prediction: ", "is no text")
    refused(lambda: read_predictions(path), PredictionError, says)
