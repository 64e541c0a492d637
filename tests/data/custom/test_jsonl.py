"""Custom questions in JSON lines: what is read, and what is refused with its line and key."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from few_fast import every_nth_fast
from jsonl_data import CAT, DOG, LINES, frames, import_lines, labelled
from paths import ROOT

from vlmeval_findit.benchmarks.findit import (
    DATASETS,
    Dataset,
    Family,
    FindItQuery,
    custom_rows,
    find_table,
    read_table,
)
from vlmeval_findit.data import QueryLine, load_dataset

pytestmark = pytest.mark.usefixtures("data_root")


def table(name: str = "Mine") -> list[FindItQuery]:
    return read_table(find_table(name))


# --- what is read ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("family", "expected"),
    [
        ("objdet", {"has_multilabel": True, "has_negatives": True}),
        ("refexp", {}),
        ("refexp_all", {"has_negatives": True, "has_caption": True}),
        ("insdet", {"has_negatives": True}),
        ("objdet_video", {"has_multilabel": True, "has_negatives": True, "frames": 4}),
        ("insdet_video", {"frames": 4}),
    ],
)
def test_lines_of_a_kind_make_a_dataset_of_their_family(
    tmp_path, family: str, expected: dict[str, Any]
) -> None:
    assert import_lines(tmp_path, LINES[family]) == 0
    folder = str(tmp_path / "images")
    row = Dataset("Mine", Family(family), "Mine", folder=folder, for_training=True, **expected)
    assert custom_rows() == {"Mine": row}
    lines = [line for line in LINES[family] if "labels" not in line]
    for query, line in zip(table(), lines, strict=True):
        per_frame = line["boxes"] if "images" in line else [line["boxes"]]
        label = line.get("label") or line.get("expression") or line["references"][0]
        assert query.label == label
        assert query.images == tuple(line.get("images") or [line["image"]])
        assert query.support == tuple(line.get("references", ()))
        assert query.caption == line.get("caption", "")
        assert query.truth.boxes == tuple(tuple(map(float, box)) for f in per_frame for box in f)
        assert query.truth.frames == tuple(at for at, f in enumerate(per_frame) for _ in f)


def test_several_labels_are_the_multilabel_table(tmp_path) -> None:
    assert import_lines(tmp_path, LINES["objdet"]) == 0
    (query,) = table("Mine_multilabel")
    assert query.label == "dog, cat, bird"
    assert query.truth.labels == ("cat", "dog")
    # Without lines of one label, the table of single labels is made of those of several.
    lines = [line for line in LINES["objdet"] if "labels" in line]
    assert import_lines(tmp_path, lines, "--replace") == 0
    boxes = {query.label: query.truth.boxes for query in table()}
    assert boxes == {"dog": (tuple(DOG),), "cat": (tuple(CAT),), "bird": ()}
    assert DATASETS["Mine"].has_negatives
    assert [query.tags for query in table()] == [{"time": "day"}] * 3


def test_what_a_file_may_have(tmp_path, capsys) -> None:
    """Tags of all kinds, ignored boxes, a byte order mark, empty lines, null, a line twice."""
    boxes = [CAT, {"box": DOG, "ignore": True}]
    tags = [{"time": "night", "n": 3}, None, {"n": 4, "ok": True}, {"time": None, "rain": False}]
    lines = [
        json.dumps({"image": "0.png", "expression": f"{at}", "boxes": boxes, "tags": of_line})
        for at, of_line in enumerate(tags)
    ]
    assert import_lines(tmp_path, ["\ufeff" + lines[0], "", "  \r", *lines, ""]) == 0
    assert "left out: repeated lines (1), the first: " in capsys.readouterr().out
    assert DATASETS["Mine"].family is Family.REFEXP
    expected = [{"time": "night", "n": "3"}, {}, {"n": "4", "ok": "yes"}, {"rain": "no"}]
    assert [query.tags for query in table()] == expected
    for query in table():
        assert query.truth.boxes == (tuple(CAT),)
        assert [(each.box, each.crowd) for each in query.truth.ignored] == [(tuple(DOG), False)]


def test_the_family_of_expressions_is_that_of_all_lines(tmp_path) -> None:
    plain = [{**line, "caption": None} for line in LINES["refexp"] + LINES["refexp_all"]]
    for lines in (plain, plain[::-1]):
        assert import_lines(tmp_path, lines, "--replace") == 0
        assert DATASETS["Mine"].family is Family.REFEXP_ALL


@pytest.mark.sees("data import --frames")
def test_videos_are_thinned_only_when_told(tmp_path, capsys) -> None:
    short = {"images": frames("a")[:3], "label": "cat", "boxes": [[CAT], [], [DOG]]}
    lines = [LINES["objdet_video"][0], short]
    assert import_lines(tmp_path, lines) == 2
    error = capsys.readouterr().err
    assert "line 2: 3 frames, but" in error
    assert "line 1 has 4" in error
    assert "--frames 3" in error
    assert import_lines(tmp_path, lines, "--frames", "5") == 2
    assert "line 2: 3 frames, which is less than 5" in capsys.readouterr().err
    assert import_lines(tmp_path, lines, "--frames", "3") == 0
    assert DATASETS["Mine"].frames == 3
    first, second = table()
    assert [*first.images] == [frames("a")[at] for at in (0, 1, 3)]
    assert (first.truth.frames, second.truth.frames) == ((0,), (0, 2))
    assert import_lines(tmp_path, lines, "--frames", "1", "--replace") == 0
    assert load_dataset("FindIt_Mine_f1_xyxy_json").variant.family is Family.OBJDET


def test_numbers_may_be_fractions(tmp_path) -> None:
    line = {"image": "0.png", "label": "cat", "boxes": [[0.25, 0, 1, 0.5]]}
    assert import_lines(tmp_path, [line]) == 2
    assert import_lines(tmp_path, [line], "--units", "fractions") == 0
    assert table()[0].truth.boxes == ((24, 0, 96, 32),)
    assert import_lines(tmp_path, [{**line, "boxes": []}], name="Nothing") == 0


# --- what is refused ------------------------------------------------------------------------------

GOOD = {"image": "0.png", "label": "cat", "boxes": [CAT]}
TWO = {"image": "0.png", "labels": ["cat", "dog"], "boxes": [labelled(CAT, "cat")]}
CLIP = {"images": frames("a"), "label": "cat", "boxes": [[], [], [], [CAT]]}


def but(line: dict[str, Any], **changed: Any) -> dict[str, Any]:
    return {**line, **changed}


UGLY: list[tuple[list[Any], str]] = [
    ([""], "mine.jsonl: no queries"),
    (["{"], "line 1: not JSON"),
    ([[GOOD]], "line 1: should be a mapping with the keys boxes, image, images, label"),
    ([GOOD, "", but(GOOD, bbox=[CAT])], "line 3: unknown key 'bbox': did you mean boxes?"),
    ([but(GOOD, image=["0.png"])], "line 1, image: ['0.png'] should be a text"),
    ([but(CLIP, images=[])], "line 1, images: [] should be a list of texts"),
    ([but(GOOD, label=None)], "needs one of label, labels, expression, references; has none"),
    ([but(GOOD, label=" ")], "line 1: label '' is empty"),
    ([GOOD, but(GOOD, label="dog", caption="x")], "line 1: no caption, but "),
    ([but(TWO, labels=["cat", "cat"])], "line 1: duplicate label"),
    ([but(TWO, labels=["cat", "Cat!"])], "labels 'cat' and 'Cat!' are the same to"),
    ([but(TWO, boxes=[CAT])], "line 1, boxes[0]: has no label; boxes have one where a line has"),
    ([but(TWO, boxes=[labelled(CAT, "dgo")])], "boxes[0], label: 'dgo' is not asked for"),
    ([but(TWO, boxes=[labelled([1, 2], "dog")])], "boxes[0], box: [1, 2] should be [x1, y1, x2"),
    ([{"image": "0.png", "label": "cat"}], "line 1: boxes is missing"),
    ([but(GOOD, boxes=CAT)], "line 1, boxes[0], box: 10 should be [x1, y1, x2, y2]"),
    ([but(GOOD, boxes=[[0, 0, 98, 9]])], "leaves its image of 96x64; as percent"),
    ([but(CLIP, boxes=[CAT])], "line 1, boxes: should be 4 lists of boxes, one a frame"),
    ([but(CLIP, boxes=[[], [], [CAT], [CAT, [5, 5, 1, 9]]])], "line 1, boxes[3][1], (5.0"),
    ([but(CLIP, images=[*frames("a")[:3], "small.png"])], "000.png is 96x64, but small.png is 32x"),
    ([but(CLIP, label=None, expression="x")], "line 1: an expression about 4 frames"),
    ([GOOD, but(GOOD, label=None, expression="x")], "line 2: has 'expression', but "),
    ([GOOD, but(GOOD, boxes=[DOG])], "line 2: the same query as "),
    ([but(GOOD, boxes=[{"box": CAT, "ignore": 2}])], "boxes[0], ignore: 2 should be true or false"),
    ([but(GOOD, image="gone.png")], "does not have the only image, gone.png. Name"),
    ([but(GOOD, tags="night")], "line 1, tags: 'night' should be an object"),
    ([but(GOOD, tags={"t": 0.5})], "line 1, tags: t: 0.5 is neither text, a whole number, true no"),
    ([but(GOOD, tags={"t": "a\nb"})], "line 1: tags: 'a\\nb' is not plain text on one line"),
    ([but(GOOD, tags={"size": "small"})], "line 1: tags: 'size' is a slice of every score already"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("lines", "why"), every_nth_fast(UGLY, 3), ids=[why[:40] for _, why in UGLY]
)
def test_what_cannot_be_asked_is_refused_and_leaves_nothing(
    tmp_path, data_root: Path, lines: list[Any], why: str, capsys
) -> None:
    assert import_lines(tmp_path, lines) == 2
    error = capsys.readouterr().err
    assert why in error
    assert error.startswith("error: ")
    assert error.count("\n") == 1
    assert not list(data_root.iterdir())


def test_the_page_names_every_key() -> None:
    page = (ROOT / "docs" / "reference" / "json-lines.md").read_text(encoding="utf-8")
    keys = [field.name for field in fields(QueryLine)]
    assert [key for key in keys if f"| `{key}`" not in page and f"or `{key}` |" not in page] == []


def test_the_same_twice_and_another_family(tmp_path, data_root: Path) -> None:
    assert import_lines(tmp_path, LINES["objdet"]) == 0
    files = {path.name: path.read_bytes() for path in data_root.iterdir()}
    assert import_lines(tmp_path, LINES["objdet"], "--replace") == 0
    assert {path.name: path.read_bytes() for path in data_root.iterdir()} == files
    assert import_lines(tmp_path, LINES["refexp"], "--replace") == 0
    assert DATASETS["Mine"].family is Family.REFEXP
    assert not list(data_root.glob("*multilabel*")), "of the family before"
    assert import_lines(tmp_path, LINES["objdet_video"], name="Other") == 0
    assert {*custom_rows()} == {"Mine", "Other"}
