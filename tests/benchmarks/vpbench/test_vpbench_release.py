"""Stage 1 of VP-Bench as its authors publish it, read as it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from edited_tables import edit_cells
from vpbench_stand_in import ROWS, picture, row, write_parquet, write_tsv

from vlmeval_findit.benchmarks import load
from vlmeval_findit.benchmarks.vpbench.question_tables import read_table, write_table
from vlmeval_findit.benchmarks.vpbench.stage1_release import prepare
from vlmeval_findit.benchmarks.vpbench.vp_query import (
    HintColumn,
    QuestionKind,
    VPQuery,
    is_absent,
    kind_of,
)
from vlmeval_findit.cli import main
from vlmeval_findit.core.table_files import TableError


def queries(lmu: Path) -> dict[int, VPQuery]:
    return {query.index: query for query in read_table(lmu / "VPBench_Stage1.tsv")}


def meta(lmu: Path) -> dict[str, Any]:
    return json.loads((lmu / "VPBench_Stage1.meta.json").read_text())


@pytest.mark.parametrize("write", [write_tsv, write_parquet])
def test_files_become_questions(lmu: Path, write: Any) -> None:
    source = write(lmu / f"vp_bench_stage_1.{write.__name__.partition('_')[2]}")
    prepare(source, lmu)
    result = queries(lmu)
    assert sorted(result) == [1, 2, 3, 4, 5, 6, 7, 9]
    assert meta(lmu)["dropped"] == 1
    assert not meta(lmu)["official"]
    kinds = ["reference", "counting", "localisation", "existence", "unknown"]
    assert [result[i].kind.value for i in (1, 3, 4, 5, 7)] == kinds
    assert [query.index for query in result.values() if query.absent] == [5, 6]
    assert result[1].hint == "The mark is a red box."
    assert result[1].hint_column is HintColumn.CONTEXT
    assert (result[7].hint, result[7].amount, result[7].shapes) == ("", "", ())
    assert result[3].amount == "2"
    assert result[2].shapes == ("contour",)
    assert result[4].shapes == ("oval", "box")
    assert result[5].shapes == ("tag",)
    assert result[4].options == (("A", "a cat"), ("B", "a dog"))
    assert result[2].images == result[3].images != result[4].images
    images = lmu / "images" / "VPBench"
    assert (images / result[1].images[0]).read_bytes() == picture(0)
    assert (images / result[9].images[0]).read_bytes() == picture(9, "PNG")
    assert result[9].images[0].endswith(".png")
    assert len(list(images.iterdir())) == 5


def test_a_column_hint_goes_first(lmu: Path) -> None:
    rows = [row(1, hint="Look at it."), row(2, hint=float("nan"))]
    prepare(write_tsv(lmu / "stage.tsv", rows), lmu)
    result = queries(lmu)
    assert (result[1].hint, result[1].hint_column) == ("Look at it.", HintColumn.HINT)
    assert (result[2].hint, result[2].hint_column) == (rows[1]["context"], HintColumn.CONTEXT)


def test_the_index_of_an_earlier_row_is_its_image(lmu: Path) -> None:
    rows = [row(3), row(2, image="7"), row(4, image="3")]
    prepare(write_tsv(lmu / "stage.tsv", rows), lmu)
    result = queries(lmu)
    assert set(result) == {3, 4}
    assert len({query.images for query in result.values()}) == 1


@pytest.mark.parametrize("image", ["!" * 100, "aGVsbG8="])
def test_a_damaged_picture_is_left_out_and_counted(lmu: Path, image: str) -> None:
    result = prepare(write_tsv(lmu / "stage.tsv", [row(1), row(2, image=image)]), lmu)
    assert set(queries(lmu)) == {1}
    assert "1 rows dropped: no image" in result.notes


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"index": "one"}, r"line 3, column index: 'one' is no whole number"),
        ({"index": 1}, r"line 3: index 1 stands twice"),
        ({"question": " "}, r"line 3, column question: is empty"),
        ({"answer": "D", "D": ""}, r"line 3, column answer: 'D' is no option: A, B, C"),
        (dict.fromkeys("ABCD", ""), r"line 3, column A: there is no option"),
    ],
)
def test_a_row_that_cannot_be_asked_is_named(lmu: Path, changed: dict[str, Any], says: str) -> None:
    source = write_tsv(lmu / "stage.tsv", [row(1), {**row(2), **changed}])
    with pytest.raises(TableError, match=rf"stage\.tsv, {says}"):
        prepare(source, lmu)
    assert not (lmu / "VPBench_Stage1.tsv").exists()


def test_an_answer_in_lower_case_and_a_missing_answer(lmu: Path) -> None:
    rows = [row(1, answer=" b "), row(2, answer=float("nan"))]
    result = prepare(write_parquet(lmu / "stage.parquet", rows), lmu)
    assert [query.answer for query in queries(lmu).values()] == ["B", ""]
    assert "1 questions without an answer: asked, not scored" in result.notes


def test_files_that_cannot_be_read(lmu: Path) -> None:
    bare = [{name: value for name, value in row(1).items() if name != "answer"} | {"anser": "B"}]
    with pytest.raises(TableError, match=r"no column 'answer': did you mean anser\?"):
        prepare(write_tsv(lmu / "stage.tsv", bare), lmu)
    (lmu / "torn.tsv").write_bytes(
        (lmu / "stage.tsv").read_bytes().replace(b"anser", b"answer")[:-9]
    )
    with pytest.raises(TableError, match=r"torn\.tsv, line 2: \d+ cells for 12 columns"):
        prepare(lmu / "torn.tsv", lmu)
    (lmu / "odd.parquet").write_bytes(b"PAR1")
    with pytest.raises(TableError, match=r"odd\.parquet"):
        prepare(lmu / "odd.parquet", lmu)
    (lmu / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match=r"neither vp_bench_stage_1\.tsv nor a Parquet"):
        prepare(lmu / "empty", lmu)


def test_parquet_files_of_a_folder_become_a_table(lmu: Path) -> None:
    folder = lmu / "parts"
    folder.mkdir()
    write_parquet(folder / "stage_1.part0000.parquet", ROWS[:4])
    write_parquet(folder / "stage_1.part0001.parquet", ROWS[4:])
    (folder / "vp_bench_stage_2_meta.part0000.parquet").write_bytes(b"another table")
    prepare(folder, lmu)
    assert len(queries(lmu)) == 8
    assert set(meta(lmu)["sources"]) == {"stage_1.part0000.parquet", "stage_1.part0001.parquet"}


def test_the_authors_file_is_known_by_its_checksum(
    lmu: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import hashlib

    from vlmeval_findit.benchmarks.vpbench import stage1_release as release

    source = write_tsv(lmu / "stage.tsv")
    monkeypatch.setattr(release, "OFFICIAL_MD5", hashlib.md5(source.read_bytes()).hexdigest())
    result = prepare(source, lmu)
    assert meta(lmu)["official"]
    assert not any("MD5" in note for note in result.notes)


def test_the_command_prints_what_it_wrote(lmu: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = write_tsv(lmu / "vp_bench_stage_1.tsv")
    assert main(["data", "get", "VPBench", "--from", str(source)]) == 0
    out = capsys.readouterr().out
    assert "8 queries" in out
    assert "kinds: reference 4, counting 1, localisation 1, existence 1, unknown 1" in out
    assert "1 rows dropped: no image" in out
    assert "1 of 8 questions do not say their kind" in out
    assert "not vp_bench_stage_1.tsv with MD5 21414c284f1f621be97cdc7ec4587b17" in out
    assert len(load("VPBench_Stage1").queries) == len(load("VPBench_Stage1_original").queries) == 8


# --- wording --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("How many red boxes are there?", QuestionKind.COUNTING),
        ("Is there a red box?", QuestionKind.EXISTENCE),
        ("Are there any arrows in the picture?", QuestionKind.EXISTENCE),
        ("Which of these marks is present?", QuestionKind.EXISTENCE),
        ("Where is the scribble?", QuestionKind.LOCALISATION),
        ("In which quadrant is the oval?", QuestionKind.LOCALISATION),
        ("Which region holds the mark?", QuestionKind.LOCALISATION),
        ("What does the blue arrow point at?", QuestionKind.REFERENCE),
        ("What is the marked object?", QuestionKind.REFERENCE),
        ("What is this?", QuestionKind.UNKNOWN),
        ("Who is nowhere to be seen?", QuestionKind.UNKNOWN),
        ("Which toolbox-maker?", QuestionKind.UNKNOWN),
    ],
)
def test_the_kind_of_a_question(question: str, kind: QuestionKind) -> None:
    assert kind_of(question) is kind


@pytest.mark.parametrize(
    ("question", "right", "absent"),
    [
        ("What is in the red box?", "There is no red box", True),
        ("What is in the red box?", "No such mark.", True),
        ("What is in the red box?", "The red box is not shown", True),
        ("What is in the red box?", "The mark is absent", True),
        ("What is in the red box?", "There is no dog in the red box", False),
        ("What is in the red box?", "a dog with no tail", False),
        ("Is there a round blue tag?", "No", True),
        ("Is there a round blue tag?", "No, there is not", True),
        ("Is there a dog in the red box?", "No", False),
        ("Is there a red box?", "Yes", False),
        ("Which of these marks is present?", "None of them", True),
        ("How many dogs are in the red box?", "None", False),
        ("What is in the red box?", "a notebook", False),
    ],
)
def test_a_right_option_says_that_there_is_no_such_mark(
    question: str, right: str, absent: bool
) -> None:
    assert is_absent(question, right) is absent


# --- tables ---------------------------------------------------------------------------------------

QUERY = VPQuery(
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


def test_a_table_gives_back_its_questions(tmp_path: Path) -> None:
    written = write_table(tmp_path, "VPBench_Mine", iter([QUERY]), {"source": "here"})
    assert read_table(written.path) == [QUERY]
    assert written.queries == 1
    facts = json.loads((tmp_path / "VPBench_Mine.meta.json").read_text())
    assert (facts["source"], facts["absent"], facts["kinds"]["existence"]) == ("here", 1, 1)


@pytest.mark.parametrize(
    ("column", "cell", "says"),
    [
        ("answer", "B", "'B' is no option: A, C"),
        ("kind", "riddle", "should be 'existence'"),
    ],
)
def test_a_damaged_table_is_named(tmp_path: Path, column: str, cell: str, says: str) -> None:
    path = edit_cells(write_table(tmp_path, "VPBench_Mine", [QUERY], {}).path, **{column: cell})
    with pytest.raises(TableError, match=rf"line \d+, column {column}: .*{says}"):
        read_table(path)
