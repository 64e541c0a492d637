"""Objects with several expressions: found by all of their words, or by some."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refl4_stand_in import TEST, write_parquet
from scored_runs import World, query, saying, speaking

from vlmeval_findit.analysis import find_by_all_words, objects_named
from vlmeval_findit.benchmarks.refl4 import RefL4Split, prepare
from vlmeval_findit.cli import main
from vlmeval_findit.leaderboard import make_board, to_csv, words_table
from vlmeval_findit.protocol import FAILED_ANSWER
from vlmeval_findit.scoring import Run

NAME = "FindIt_RefCOCO_xyxy_json"
BOXES = [(10.0, 10.0, 50.0, 60.0), (60.0, 10.0, 100.0, 60.0), (110.0, 10.0, 150.0, 60.0)]
# Of each expression: its picture, the place of its box, and whether the model finds it
Asked = Sequence[tuple[int, int, bool]]
ASKED: Asked = [
    *((at, 0, True) for at in range(5) for _ in range(2)),
    *((at, 1, found) for at in range(5) for found in (True, False, at > 2)),
    (0, 2, True),  # An object with one expression
]


def run_of(world: World, asked: Asked, tags: Mapping[int, str] | None = None) -> Run:
    """Return a run that finds what it should, and fails on the last row."""
    queries = []
    for index, (picture, place, _) in enumerate(asked):
        plain = query(index, f"{picture}.jpg", f"words {index}", [BOXES[place]])
        if tags is not None:
            plain = replace(plain, tags={"object": tags[index]})
        queries.append(plain)
    world.table("RefCOCO", queries)
    right = speaking(NAME, 1.0)

    def answer(each: Any, generator: np.random.Generator) -> str:
        if each.index == len(asked) - 1:
            return f"{FAILED_ANSWER} via API."
        return right(each, generator) if asked[each.index][2] else "[]"

    return world.run("M", NAME, answer)


def counted(groups: Mapping[Any, Sequence[bool]]) -> dict[str, float]:
    """Count by hand."""
    several = [each for each in groups.values() if len(each) > 1]
    pairs = [pair for each in several for pair in combinations(each, 2)]
    found = [one for each in several for one in each]
    return {
        "objects": len(several),
        "expressions": len(found),
        "found": 100 * sum(found) / len(found),
        "worst of k": 100 * sum(map(all, several)) / len(several),
        "agreement": 100 * sum(one == other for one, other in pairs) / len(pairs),
    }


def row_of(run: Run) -> dict[str, Any]:
    (row,) = words_table(make_board([run])).records()
    return row


def test_objects_are_known_by_picture_and_box(world: World) -> None:
    groups: dict[Any, list[bool]] = {}
    for picture, place, found in ASKED:
        groups.setdefault((picture, place), []).append(found)
    row = row_of(run_of(world, ASKED))
    for name, value in counted(groups).items():
        assert row[name] == pytest.approx(value), name
    assert row["worst of k low"] <= row["worst of k"] <= row["worst of k high"]


def test_own_sets_name_objects_by_a_tag(world: World) -> None:
    """Boxes of one object that were drawn twice need not be equal."""
    tags = {at: str(at % 4) for at in range(len(ASKED))}
    groups: dict[Any, list[bool]] = {}
    for index, (picture, _, found) in enumerate(ASKED):
        is_failed = index == len(ASKED) - 1
        groups.setdefault((picture, tags[index]), []).append(found and not is_failed)
    row = row_of(run_of(world, ASKED, tags))
    assert {name: row[name] for name in counted(groups)} == pytest.approx(counted(groups))


def test_ref_l4_names_objects_by_its_ids(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{**each, "bbox_id": at // 3, "file_name": TEST[0]["file_name"]}
            for at, each in enumerate(TEST)]  # fmt: skip
    write_parquet(tmp_path / "parquet", test=rows)
    prepare(tmp_path / "parquet", RefL4Split.TEST, tmp_path / "tables", force=True)
    monkeypatch.setenv("FINDIT_TABLES", str(tmp_path / "tables"))
    run = World(tmp_path).run("M", "FindIt_RefL4Full_test_xyxy_json", saying("[]"))
    worded = find_by_all_words(run, objects_named(run))
    assert worded is not None
    assert (worded.objects, worded.expressions) == (len(rows) // 3, len(rows))
    assert worded.values == {"found": 0.0, "worst of k": 0.0, "agreement": 100.0}


@pytest.mark.parametrize("why", ["classes", "single expressions", "another table", "no table"])
def test_nothing_is_said_where_nothing_is_known(why: str, world: World) -> None:
    if why == "classes":
        world.table("Pascal", [query(at, "0.jpg", boxes=BOXES[:1]) for at in range(6)])
        run = world.run("M", "FindIt_Pascal_xyxy_json", saying("[]"))
    else:
        asked = ASKED if why != "single expressions" else [(at, 0, True) for at in range(6)]
        run = run_of(world, asked)
    if why == "another table":
        world.table("RefCOCO", [query(at, "0.jpg", boxes=BOXES[:1]) for at in range(9)])
    if why == "no table":
        (world.folder / "RefCOCO.tsv").unlink()
    assert find_by_all_words(run, objects_named(run)) is None
    assert words_table(make_board([run])).rows == []


def test_the_command_has_them_as_columns(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = run_of(world, ASKED)
    monkeypatch.chdir(world.folder)
    assert main(["leaderboard", str(world.runs), "--out", "board"]) == 0
    printed = capsys.readouterr().out
    assert "Several expressions of one object:" in printed
    text = Path("board/words.csv").read_text(encoding="utf-8")
    assert text == to_csv(words_table(make_board([run])))
    (row,) = csv.DictReader(io.StringIO(text))
    assert float(row["worst of k"]) < float(row["found"])
    assert "Several expressions of one object" in Path("board/leaderboard.md").read_text("utf-8")
    # Of a board without such objects no older file stays.
    world.table("RefCOCO", [query(at, f"{at}.jpg", boxes=BOXES[:1]) for at in range(9)])
    assert main(["leaderboard", str(world.runs), "--out", "board"]) == 0
    assert not Path("board/words.csv").exists()
