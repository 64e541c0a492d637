"""Stage 1 of VP-Bench as its authors publish it, read as it is."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from edited_tables import edit_cells
from vpbench_stand_in import ROWS, picture, row, write_parquet, write_tsv

from vlmeval_findit.benchmarks.vpbench import (
    HintColumn,
    QuestionKind,
    VPQuery,
    is_absent,
    prepare_stage1,
    question_kind,
    read_table,
    write_table,
)
from vlmeval_findit.benchmarks.vpbench import stage1_release as release
from vlmeval_findit.cli import main
from vlmeval_findit.data import load_dataset
from vlmeval_findit.storage import TableError


def queries(lmu: Path) -> dict[int, VPQuery]:
    return {query.index: query for query in read_table(lmu / "VPBench_Stage1.tsv")}


def meta(lmu: Path) -> dict[str, Any]:
    return json.loads((lmu / "VPBench_Stage1.meta.json").read_text())


@pytest.mark.parametrize("write", [write_tsv, write_parquet])
def test_files_become_questions(lmu: Path, write: Any) -> None:
    prepare_stage1(write(lmu / f"vp_bench_stage_1.{write.__name__.partition('_')[2]}"), lmu)
    result = queries(lmu)
    assert sorted(result) == [1, 2, 3, 4, 5, 6, 7, 9]
    assert (meta(lmu)["dropped"], meta(lmu)["official"]) == (1, False)
    kinds = ["reference", "counting", "localisation", "existence", "unknown"]
    assert [result[i].kind.value for i in (1, 3, 4, 5, 7)] == kinds
    assert [query.index for query in result.values() if query.absent] == [5, 6]
    assert (result[7].hint, result[7].amount, result[7].shapes) == ("", "", ())
    assert result[3].amount == "2"
    assert [result[i].shapes for i in (2, 4, 5)] == [("contour",), ("oval", "box"), ("tag",)]
    assert result[4].options == (("A", "a cat"), ("B", "a dog"))
    assert result[2].images == result[3].images != result[4].images
    images = lmu / "images" / "VPBench"
    assert (images / result[1].images[0]).read_bytes() == picture(0)
    assert (images / result[9].images[0]).read_bytes() == picture(9, "PNG")
    assert result[9].images[0].endswith(".png")
    assert len(list(images.iterdir())) == 5


def test_hints_answers_and_images_as_the_release_has_them(lmu: Path) -> None:
    rows = [
        row(3, hint="Look at it."),
        row(4, hint=float("nan"), answer=" b "),
        row(5, hint="", answer=float("nan")),
        row(6, hint="", image="3"),  # the image of row 3
        row(7, hint="", image="99"),
        row(8, hint="", image="!" * 100),
        row(9, hint="", image="aGVsbG8="),
    ]
    notes = prepare_stage1(write_tsv(lmu / "stage.tsv", rows), lmu).notes
    result = queries(lmu)
    assert (result[3].hint, result[3].hint_column) == ("Look at it.", HintColumn.HINT)
    assert (result[4].hint, result[4].hint_column) == (rows[1]["context"], HintColumn.CONTEXT)
    assert [query.answer for query in result.values()] == ["A", "B", "", "A"]
    assert result[6].images == result[3].images != result[4].images
    assert sorted(result) == [3, 4, 5, 6]
    assert "3 rows dropped: no image" in notes
    assert "1 questions without an answer: asked, not scored" in notes


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"index": "one"}, r"line 3, column index: 'one' is not a whole number"),
        ({"index": 1}, r"line 3: duplicate index 1"),
        ({"answer": "D", "D": ""}, r"line 3, column answer: 'D' is not an option: A, B, C"),
    ],
)
def test_a_row_that_cannot_be_asked_is_named(lmu: Path, changed: dict[str, Any], says: str) -> None:
    source = write_tsv(lmu / "stage.tsv", [row(1), {**row(2), **changed}])
    with pytest.raises(TableError, match=rf"stage\.tsv, {says}"):
        prepare_stage1(source, lmu)
    assert not (lmu / "VPBench_Stage1.tsv").exists()


def test_files_that_cannot_be_read(lmu: Path) -> None:
    bare = [{name: value for name, value in row(1).items() if name != "answer"} | {"anser": "B"}]
    source = write_tsv(lmu / "stage.tsv", bare)
    (lmu / "torn.tsv").write_bytes(source.read_bytes().replace(b"anser", b"answer")[:-9])
    (lmu / "odd.parquet").write_bytes(b"PAR1")
    (lmu / "empty").mkdir()
    for name, says in {
        "stage.tsv": r"no column 'answer': did you mean anser\?",
        "torn.tsv": r"torn\.tsv, line 2: the cells do not match the columns",
        "odd.parquet": r"odd\.parquet: not a Parquet file",
        "empty": r"neither vp_bench_stage_1\.tsv nor a Parquet",
    }.items():
        with pytest.raises((TableError, FileNotFoundError), match=says):
            prepare_stage1(lmu / name, lmu)


def test_the_command_reads_a_folder_and_knows_the_authors_file(
    lmu: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = lmu / "parts"
    folder.mkdir()
    write_parquet(folder / "stage_1.part0000.parquet", ROWS[:4])
    write_parquet(folder / "stage_1.part0001.parquet", ROWS[4:])
    assert main(["data", "get", "VPBench", "--from", str(folder)]) == 0
    out = capsys.readouterr().out
    assert "8 queries" in out
    assert "kinds: reference 4, counting 1, localisation 1, existence 1, unknown 1" in out
    assert "1 rows dropped: no image" in out
    assert "1 of 8 questions do not say their kind" in out
    assert "not vp_bench_stage_1.tsv with MD5 21414c284f1f621be97cdc7ec4587b17" in out
    for name in ("VPBench_Stage1", "VPBench_Stage1_original"):
        assert len(load_dataset(name).queries) == 8
    assert set(meta(lmu)["sources"]) == {"stage_1.part0000.parquet", "stage_1.part0001.parquet"}

    official = write_tsv(folder / "vp_bench_stage_1.tsv")
    monkeypatch.setattr(release, "OFFICIAL_MD5", hashlib.md5(official.read_bytes()).hexdigest())
    notes = prepare_stage1(folder, lmu).notes
    assert meta(lmu)["official"]
    assert not any("MD5" in note for note in notes)


# --- wording --------------------------------------------------------------------------------------


def test_the_kind_of_a_question() -> None:
    kinds = {
        "How many red boxes are there?": QuestionKind.COUNTING,
        "Is there a red box?": QuestionKind.EXISTENCE,
        "Which of these marks is present?": QuestionKind.EXISTENCE,
        "Where is the scribble?": QuestionKind.LOCALISATION,
        "In which quadrant is the oval?": QuestionKind.LOCALISATION,
        "What does the blue arrow point at?": QuestionKind.REFERENCE,
        "What is the marked object?": QuestionKind.REFERENCE,
        "Who is nowhere to be seen?": QuestionKind.UNKNOWN,
        "Which toolbox-maker?": QuestionKind.UNKNOWN,
    }
    assert {variant: question_kind(variant) for variant in kinds} == kinds


def test_a_right_option_says_that_there_is_no_such_mark() -> None:
    absent = {
        ("What is in the red box?", "There is no red box"): True,
        ("What is in the red box?", "No such mark."): True,
        ("What is in the red box?", "The red box is not shown"): True,
        ("What is in the red box?", "The mark is absent"): True,
        ("What is in the red box?", "There is no dog in the red box"): False,
        ("What is in the red box?", "a dog with no tail"): False,
        ("Is there a round blue tag?", "No, there is not"): True,
        ("Is there a dog in the red box?", "No"): False,
        ("Is there a red box?", "Yes"): False,
        ("Which of these marks is present?", "None of them"): True,
        ("How many dogs are in the red box?", "None"): False,
        ("What is in the red box?", "a notebook"): False,
    }
    assert {case: is_absent(*case) for case in absent} == absent


# --- tables ---------------------------------------------------------------------------------------


def test_a_table_round_trips_and_names_a_damaged_cell(tmp_path: Path) -> None:
    query = VPQuery(
        index=3,
        label="Which?\t\u2028",
        images=("a.jpg", "b/c.png"),
        hint='say "it"\nplease',
        question="Which?\t\u2028",
        options=(("A", "one"), ("C", "three")),
        answer="C",
        amount="2",
        shapes=("box", "oval"),
        properties=("red",),
        kind=QuestionKind.EXISTENCE,
        absent=True,
        source="Scenes",
        cluster="scenes/7.png",
    )
    written = write_table(tmp_path, "VPBench_Mine", [query], {"source": "here"})
    assert read_table(written.path) == [query]
    facts = json.loads((tmp_path / "VPBench_Mine.meta.json").read_text())
    assert (facts["source"], facts["absent"], facts["kinds"]["existence"]) == ("here", 1, 1)
    edit_cells(written.path, answer="B")
    with pytest.raises(TableError, match=r"line \d+, column answer: 'B' is not an option: A, C"):
        read_table(written.path)
