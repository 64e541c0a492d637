"""RefCOCO whole: every copy gives the published split, and says how it differs from it."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import refcoco_stand_ins as copies
from few_fast import every_nth_fast
from host_runs import require_host
from published_stand_ins import known, write_parquet
from test_importing import all_images_are_there, import_set, meta, metrics_of

from vlmeval_findit.benchmarks.findit import custom_rows
from vlmeval_findit.cli import main
from vlmeval_findit.data import SOURCES, Counts, load_dataset
from vlmeval_findit.storage import custom_datasets_file

pytestmark = pytest.mark.usefixtures("data_root")

SET = "RefCOCOFull"
VAL = "FindIt_RefCOCOFull_val_xyxy_json"


@pytest.fixture(autouse=True)
def small_counts(monkeypatch) -> None:
    known(monkeypatch, SET, parts=copies.COUNTS)


def asked(split: str) -> list[tuple[str, tuple[float, ...]]]:
    """Return expressions and boxes of a split, as they are asked."""
    name = f"FindIt_RefCOCOFull_{split}_xyxy_json"
    return [
        (query.label, tuple(round(number, 3) for number in query.truth.boxes[0]))
        for query in load_dataset(name).queries.values()
    ]


def expected(split: str) -> list[tuple[str, tuple[float, ...]]]:
    return [
        (text, tuple(copies.corners(thing)))
        for thing in copies.of_split(split)
        for text in thing.texts
    ]


def ledger(table: str) -> str:
    return json.dumps(meta(table)["ledger"], ensure_ascii=False)


@pytest.mark.parametrize("copy", every_nth_fast(copies.COPIES, 3))
def test_every_copy_gives_the_published_splits(tmp_path, copy: str, capsys) -> None:
    folder = copies.COPIES[copy](tmp_path / "copy")
    assert main(["data", "get", SET, "--from", str(folder)]) == 0
    output = " ".join(capsys.readouterr().out.split())
    assert f"note: this copy is {copy}" in output
    for split, counts in copies.COUNTS.items():
        assert asked(split) == expected(split)
        assert len(asked(split)) == counts.queries
        assert all_images_are_there(f"FindIt_RefCOCOFull_{split}_xyxy_json")
    half = metrics_of(tmp_path, VAL, lambda query: query.label != "dog")
    assert half["F1@0.5"] == 60


@pytest.mark.parametrize(
    ("row", "stem", "parts"),
    [("RefCOCOplusFull", "refcoco+", "val,testA"), ("RefCOCOgFull", "refcocog", "val")],
)
def test_the_other_sets_have_files_of_their_own(
    tmp_path, monkeypatch, row: str, stem: str, parts: str
) -> None:
    known(monkeypatch, row, parts=copies.COUNTS)
    folder = copies.write_lines(tmp_path / "copy", stem)
    copies.write_train2014(folder)
    assert import_set(SET, folder, "--partial") == 2
    assert import_set(row, folder, "--only", parts) == 0
    assert sorted(custom_rows()) == sorted(f"{row}_{part}" for part in parts.split(","))


def test_splits_of_a_table_are_told_apart(tmp_path, monkeypatch) -> None:
    known(monkeypatch, "RefCOCOplusFull", parts={"testA": Counts(images=1, queries=1)})
    folder = copies.write_tsv(tmp_path / "copy")
    assert import_set("RefCOCOplusFull", folder, "--only", "testA") == 0
    queries = load_dataset("FindIt_RefCOCOplusFull_testA_xyxy_json").queries
    assert [query.label for query in queries.values()] == ["bus"]


def test_what_is_there_is_made_again_on_demand(tmp_path, capsys) -> None:
    folder = copies.write_image_rows(tmp_path / "hub")
    get = ["data", "get", SET, "--from", str(folder)]
    assert main(get) == 0
    before = ledger("RefCOCOFull_val")
    assert main(get) == 2
    again = f"data import {folder} --set RefCOCOFull --replace"
    assert f"RefCOCOFull_val is there already. To make it again: {again}" in (
        capsys.readouterr().out
    )
    assert import_set(SET, folder, "--replace") == 0
    assert ledger("RefCOCOFull_val") == before
    assert import_set(SET, folder, "--name", "Mine") == 0
    assert import_set(SET, folder, "--name", "Mine") == 2
    assert "--set RefCOCOFull --name Mine --replace" in capsys.readouterr().out


def test_names_are_not_those_of_the_subsets(tmp_path, capsys) -> None:
    require_host()
    for name in ("RefCOCOFull", "RefCOCOFull_testA", "FindIt_RefCOCOFull_testA_xyxy_json"):
        assert main(["run", "--data", name, "--model", "Qwen3-VL-8B"]) == 2
        error = capsys.readouterr().err
        assert "data get RefCOCOFull --from PATH, then name FindIt_RefCOCOFull_" in error
    assert import_set(SET, copies.COPIES["Qwen-VL's JSON lines"](tmp_path / "copy")) == 0
    assert sorted(custom_rows()) == ["RefCOCOFull_testA", "RefCOCOFull_testB", "RefCOCOFull_val"]
    assert main(["run", "--data", "FindIt_RefCOCOFull_testA_xyz_json", "--model", "M"]) == 2
    assert "unknown representation 'xyz'" in capsys.readouterr().err


def test_published_counts_are_those_of_the_splits() -> None:
    rows = ("RefCOCOFull", "RefCOCOplusFull", "RefCOCOgFull")
    counts = [part.queries for row in rows for part in SOURCES.builtin[row].parts.values()]
    assert counts == [10834, 5657, 5095, 10758, 5726, 4889, 4896, 9602]


def test_a_copy_with_fewer_rows_says_so(tmp_path, capsys) -> None:
    folder = copies.COPIES["Qwen-VL's JSON lines"](tmp_path / "copy")
    path = folder / "refcoco_testA.jsonl"
    path.write_text(path.read_text().splitlines()[0])
    assert import_set(SET, folder) == 1
    assert "refcoco_testA.jsonl: 1 queries, published are 2." in capsys.readouterr().out
    assert import_set(SET, folder, "--partial", "--replace") == 0
    assert meta("RefCOCOFull_testA")["unlike published"] == "1 queries, published are 2"
    assert "not as published: 1 queries, published are 2" in ledger("RefCOCOFull_testA")


def test_a_copy_of_some_splits_says_how_to_import_them(tmp_path, capsys) -> None:
    folder = copies.COPIES["Qwen-VL's JSON lines"](tmp_path / "copy")
    (folder / "refcoco_val.jsonl").unlink()
    assert main(["data", "get", SET, "--from", str(folder)]) == 2
    error = capsys.readouterr().err
    assert "2 subsets, published are 3 (missing: val). To import those that are there" in error
    assert f"data import {folder} --set RefCOCOFull --partial" in error
    assert import_set(SET, folder, "--partial") == 0


def test_an_expression_without_words_is_left_out(tmp_path, capsys) -> None:
    folder = copies.COPIES["Qwen-VL's JSON lines"](tmp_path / "copy")
    path = folder / "refcoco_testA.jsonl"
    path.write_text(path.read_text().replace("tall one", "  "))
    assert import_set(SET, folder, "--partial") == 0
    assert "left out: expressions without words (1), the first" in capsys.readouterr().out


# --- a copy that mixes splits ---------------------------------------------------------------------


def test_a_mixed_val_alone_is_refused(tmp_path, capsys) -> None:
    folder = copies.write_answers(tmp_path / "hub")
    assert import_set(SET, folder, "--partial") == 1
    output = capsys.readouterr().out
    assert "val of this copy (lmms-lab's) holds UNC's val and 5,000 objects more" in output
    assert f"data import {folder} --set RefCOCOFull --only testA,testB" in output
    assert asked("testA") == expected("testA")
    assert asked("testB") == expected("testB")
    assert "RefCOCOFull_val" not in custom_rows()
    assert "the split test, which is none of UNC's" in ledger("RefCOCOFull_testA")
    assert import_set(SET, folder, "--only", "testA,testB", "--replace") == 0


@pytest.mark.parametrize(
    "beside", [copies.write_lines, lambda folder: copies.write_refs(folder, instances=False)]
)
def test_annotations_beside_a_mixed_val_select(
    tmp_path, beside: Callable[[Path], Path], data_root: Path
) -> None:
    folder = beside(copies.write_answers(tmp_path / "hub"))
    assert import_set(SET, folder) == 0
    assert sorted(asked("val")) == sorted(expected("val"))
    noted = ledger("RefCOCOFull_val")
    assert "objects in images that are not of the published val" in noted
    assert "objects that another row has" in noted
    unpacked = sorted(path.name for path in (data_root / "images" / "RefCOCOFull_val").iterdir())
    assert unpacked == [copies.file_name(1), copies.file_name(2)]


def test_the_most_exact_copy_with_images_is_read(tmp_path) -> None:
    folder = copies.write_tsv(copies.write_lines(tmp_path / "both"))
    assert import_set(SET, folder) == 0
    assert "this copy is VLMEvalKit's RefCOCO.tsv" in ledger("RefCOCOFull_val")
    assert "another copy of the split: Qwen-VL's JSON lines" in ledger("RefCOCOFull_val")
    copies.write_train2014(folder)
    assert import_set(SET, folder, "--replace") == 0
    assert "this copy is Qwen-VL's JSON lines" in ledger("RefCOCOFull_val")


def test_annotations_without_images_say_where_to_put_them(tmp_path, capsys) -> None:
    folder = copies.write_lines(tmp_path / "copy")
    assert import_set(SET, folder) == 2
    assert f"ln -s /path/to/train2014 {folder}/train2014" in capsys.readouterr().out
    assert not custom_datasets_file().exists()


# --- pickles --------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", [0, 1, 2, 4])
def test_pickles_of_any_protocol_are_read(tmp_path, protocol: int) -> None:
    folder = copies.write_refs(tmp_path / "copy", protocol)
    copies.write_train2014(folder)
    assert import_set(SET, folder) == 0
    assert asked("val") == expected("val")


# As Python 2 writes a dictionary with a text of bytes: UTF-8, and Latin-1
PYTHON_2 = b"(lp0\n(dp1\nS'split'\np2\nS'val'\np3\nsS'sent'\np4\nS'%s'\np5\nsa."


@pytest.mark.parametrize("written", [rb"caf\xc3\xa9", rb"caf\xe9"])
def test_texts_of_python_2_are_read(tmp_path, written: bytes) -> None:
    from vlmeval_findit.data import read_plain_pickle

    path = tmp_path / "a.p"
    path.write_bytes(PYTHON_2 % written)
    assert read_plain_pickle(path) == [{"split": "val", "sent": "café"}]


class Runs:
    """Runs a command when it is unpickled."""

    def __init__(self, command: str) -> None:
        self.command = command

    def __reduce__(self) -> Any:
        return os.system, (self.command,)


class Builds:
    def __init__(self) -> None:
        self.state = 1


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda command: pickle.dumps([Runs(command)], 0), "UnpicklingError: it asks for posix"),
        (lambda command: pickle.dumps([Runs(command)], 2), "it asks for posix.system"),
        (lambda command: pickle.dumps([Runs(command)], 4), "it asks for posix.system"),
        (lambda command: f"cos\nsystem\n(S'{command}'\ntR.".encode(), "it asks for os.system"),
        (lambda command: f"(S'{command}'\nios\nsystem\n.".encode(), "it asks for os.system"),
        (lambda command: f"(cos\nsystem\nS'{command}'\no.".encode(), "it asks for os.system"),
        (lambda command: b"\x80\x02\x82\x01.", "unregistered extension code 1"),
        (lambda command: b"P1\n.", "it asks for the object '1' of another file"),
        (lambda command: pickle.dumps(Builds()), "it asks for test_refcoco_copies.Builds"),
        (lambda command: pickle.dumps(copies.refs())[:-9], "nothing of it is used"),
        (lambda command: b"", "EOFError"),
        (lambda command: b"<html>", "nothing of it is used"),
        (lambda command: pickle.dumps({"refs": 1}), "refs(unc).p: should be a list"),
        (lambda command: pickle.dumps([1]), "refs(unc).p[0]: 1 should be an object"),
    ],
)
def test_pickles_never_run_code(tmp_path, make: Callable[[str], bytes], why: str, capsys) -> None:
    folder = copies.write_refs(tmp_path / "copy")
    copies.write_train2014(folder)
    marker = tmp_path / "ran"
    (folder / "refcoco" / "refs(unc).p").write_bytes(make(f"touch {marker}"))
    assert import_set(SET, folder, "--partial") == 2
    assert why in capsys.readouterr().out
    assert not marker.exists()


# --- what cannot be used --------------------------------------------------------------------------


def _line(**change: Any) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        path = folder / "refcoco_val.jsonl"
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        rows[1] |= change
        path.write_text("\n".join(map(json.dumps, rows)))

    return write


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (_line(bbox=[1, 2]), "refcoco_val.jsonl, line 2, bbox: [1, 2] should be [x1, y1, x2, y2]"),
        (_line(image="a.jpg"), "line 2: 'a.jpg' names no image of COCO train2014"),
        (_line(width=99), "COCO_train2014_000000000001.jpg is 99x100 here, 200x100 before"),
        # [x, y, width, height] of an object on the right, taken as corners
        (_line(bbox=[100, 10, 60, 80]), "has no area"),
        (_line(bbox=[100, 10, 260, 80]), "leaves COCO_train2014_000000000001.jpg"),
    ],
)
def test_lines_that_cannot_be_used(
    tmp_path, change: Callable[[Path], None], why: str, capsys
) -> None:
    folder = copies.COPIES["Qwen-VL's JSON lines"](tmp_path / "copy")
    change(folder)
    assert import_set(SET, folder, "--partial") == 1
    assert why in capsys.readouterr().out
    assert "RefCOCOFull_val" not in custom_rows()


@pytest.mark.parametrize(
    ("column", "value", "why"),
    [
        ("question", "Where is it?", "question: no expression between <ref> and </ref>"),
        ("answer", "[0.1, 0.2", "answer: "),
        ("image", "x", "line 2, image: "),
        ("answer", "[10, 20, 60, 60]", "leaves"),
    ],
)
def test_rows_of_the_table_that_cannot_be_used(
    tmp_path, column: str, value: str, why: str, capsys
) -> None:
    rows = copies.tsv_rows()
    rows[0][column] = value
    assert import_set(SET, copies.write_tsv(tmp_path / "copy", rows), "--partial") == 1
    assert why in capsys.readouterr().out


def test_our_own_table_is_not_a_copy(tmp_path, capsys) -> None:
    folder = tmp_path / "LMUData"
    folder.mkdir()
    (folder / "RefCOCO.tsv").write_text("index\timages\n0\t[]\n")
    assert import_set(SET, folder, "--partial") == 2
    assert "expected is VLMEvalKit's RefCOCO.tsv" in capsys.readouterr().out


def test_parquet_files_of_something_else(tmp_path, capsys) -> None:
    folder = write_parquet(tmp_path / "hub", "testA", [{"text": "a"}])
    assert import_set(SET, folder, "--partial") == 2
    assert "no split of refcoco in any copy that is known" in capsys.readouterr().err
    (folder / "data" / "testA-00000-of-00001.parquet").write_text("a page")
    assert import_set(SET, folder, "--partial") == 2
    assert "not a Parquet file" in capsys.readouterr().err
