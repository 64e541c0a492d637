"""``errors`` of runs whose details are read again, run after run: the same bytes."""

from __future__ import annotations

import gc
import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from few_fast import few_fast
from scored_runs import World, failing, query, saying, speaking
from toy_benchmark import guessing, letters

from vlmeval_findit.boxes import Truth
from vlmeval_findit.cli import errors as command
from vlmeval_findit.cli import main
from vlmeval_findit.protocol import RowTable, ScoredRow
from vlmeval_findit.scoring import RowData, Run, load_runs, read_details, with_details

__all__ = ["letters"]

JSON = "FindIt_Pascal_xyxy_json"
ZOO = "Letters_Zoo_plain"


@pytest.fixture
def paths(letters: World) -> list[str]:
    """Return runs of boxes: a twin, recoverable replies, queries with nothing to find."""
    queries = [query(at, f"{at // 2}.jpg") for at in range(20)]
    some = [replace(q, truth=Truth((), ())) if q.index % 5 == 0 else q for q in queries]
    letters.table("Pascal", [replace(q, tags={"time": "dn"[q.index % 2]}) for q in some])
    talks = saying("It is at [100, 100, 300, 600], I think.")
    good = speaking(JSON, 0.8, 12)
    twin = speaking(JSON, 0.9, 12)
    named = (("Fails", JSON, failing), ("Good", JSON, good), ("Good", f"{JSON}_constrained", twin))
    return [str(letters.predict(*each)) for each in (*named, ("Talks", JSON, talks))]


@pytest.mark.parametrize(
    ("by", "paired"), few_fast([("size", True), ("label", False), ("time", True)], 2)
)
def test_the_output_is_that_of_rows_with_details(
    paths: list[str], tmp_path, monkeypatch, capsys, by: str, paired: bool
) -> None:
    against = ["--against", paths[0]] if paired else []
    outputs = []
    for keep in (RowData.SUMS, RowData.DETAILS):
        monkeypatch.setattr(command, "load_runs", lambda paths, keep=keep, **_: loaded(paths, keep))
        out = tmp_path / f"{keep.name}.json"
        assert main(["errors", *paths, "--by", by, *against, "--json", str(out)]) == 0
        outputs.append((capsys.readouterr(), out.read_bytes()))
    assert outputs[0] == outputs[1]
    assert len(json.loads(outputs[0][1])) == 4
    for words in ("lenient parsing", "have nothing to find", f"by {by}"):
        assert words in outputs[0][0].out


def loaded(paths: Iterable[Path], keep: RowData) -> list[Run]:
    return load_runs(paths, keep=keep)


def test_the_details_of_one_run_are_held_at_a_time(paths: list[str], monkeypatch) -> None:
    held: list[int] = []

    def counting(run: Run) -> Run:
        assert isinstance(run.rows, RowTable)
        detailed = with_details(run)
        gc.collect()
        rows = (thing for thing in gc.get_objects() if isinstance(thing, ScoredRow))
        held.append(sum(bool(row.details) for row in rows))
        return detailed

    monkeypatch.setattr(command, "with_details", counting)
    gc.freeze()  # Objects of other tests do not count
    assert main(["errors", *paths, "--by", "size", "--against", paths[0]]) == 0
    assert held == [20] * 4


def test_a_run_without_slices_keeps_the_other_columns(
    letters: World, paths: list[str], tmp_path, capsys
) -> None:
    """A kind of slices that only the runs of the first benchmark have."""
    out = tmp_path / "errors.json"
    zoo = letters.predict("Guesses", ZOO, guessing(0.5))
    assert main(["errors", *paths, str(zoo), "--by", "time", "--json", str(out)]) == 2
    assert f"Guesses_{ZOO}.json has no slices by 'time'" in capsys.readouterr().err
    models = [entry["model"] for entry in json.loads(out.read_text("utf-8"))]
    assert models == ["Fails", "Good", "Good", "Talks"]


@pytest.mark.parametrize("keep", RowData)
def test_chosen_rows_are_read_with_their_details(world: World, keep: RowData) -> None:
    world.predict("Good", JSON, speaking(JSON, 0.8))
    (run,) = load_runs([world.runs], keep=keep)
    expected = [with_details(run).rows[at] for at in (1, 4, 11)]
    assert read_details(run, [1, 4, 11]) == expected


def test_query_scores_are_those_of_rows_with_details(letters: World, paths: list[str]) -> None:
    zoo = letters.predict("Guesses", ZOO, guessing(0.5))
    held = {keep: loaded([*map(Path, paths), zoo], keep) for keep in RowData}
    scores = {keep: [run.query_scores for run in runs] for keep, runs in held.items()}
    assert scores[RowData.SUMS] == scores[RowData.DETAILS]
    assert {min(of_run) for of_run in scores[RowData.DETAILS]} == {0.0}
