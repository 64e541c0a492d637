"""A race of formats: who is dropped when, what is asked, and what is never lost."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from itertools import pairwise
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from engine_fakes import FakeDeployment, FakeModel, Message, files, go
from reproductions import dataset_of, query
from simulated import estimate_from, names, sums_of
from simulated_races import raced as raced_on_paper
from simulated_races import rows_of

from vlmeval_findit.analysis import RACE_ROUNDS, choose_best_format, race_calls, rounds_of
from vlmeval_findit.benchmarks import parse
from vlmeval_findit.boxes import BoxToWrite, write
from vlmeval_findit.cli import report_formats, sweep_command
from vlmeval_findit.data import load_dataset
from vlmeval_findit.engine import CellBuilder
from vlmeval_findit.models import ModelEntry
from vlmeval_findit.scoring import CellResult, SearchError
from vlmeval_findit.statistics import ALPHA, FEWEST_IMAGES, chance_of_lead, paired_difference
from vlmeval_findit.sweeps import Sweep, grid_tables, parse_sweep, search_sweep

QUERIES = 40


def test_race_rounds_grow_by_whole_images() -> None:
    cell, other = (
        CellBuilder(skip_missing=None).cell("M", parse(f"FindIt_Demo_{written}"), None, {})
        for written in ("xyxy_text", "all_json_bbox_2d")
    )
    rounds = rounds_of(cell.dataset, cell.rows)
    assert len(rounds) == len(RACE_ROUNDS)
    assert rounds[-1] == cell.rows
    queries = cell.dataset.queries
    for before, after in pairwise(rounds):
        assert set(before) <= set(after)
        more = {queries[row].images for row in set(after) - set(before)}
        assert not more & {queries[row].images for row in before}, "an image is not cut in two"
    assert rounds == rounds_of(cell.dataset, other.rows)
    assert list(rounds[2]) == sorted(rounds[2]), "in the table's order"


@pytest.mark.parametrize("pictures", [1, 3, 7])
def test_a_round_ends_with_the_image_that_its_share_reaches(pictures: int) -> None:
    """Of few images the first round has one, not none."""
    dataset = dataset_of([query(at, (20.0, 10.0, 100.0, 50.0)) for at in range(pictures)])
    expected = [ceil(share * pictures) for share in RACE_ROUNDS]
    assert [len(rows) for rows in rounds_of(dataset, range(pictures))] == expected


# --- who is out -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_chance_of_a_lead() -> None:
    """It falls with the distance and, behind, with what was seen; few images have none."""
    rng = np.random.default_rng(0)
    hard = rng.random((20, 2))
    f1 = "F1@0.5"
    good, poor = (estimate_from(names(20), sums_of(rng, 20, rate, hard)) for rate in (0.9, 0.3))
    assert paired_difference(good, poor, f1).value > 20
    chances = [chance_of_lead(poor, good, f1, share) for share in (0.1, 0.5, 0.9)]
    assert chances == sorted(chances, reverse=True)
    assert chances[1] < 1e-4
    assert chance_of_lead(good, poor, f1, 0.5) > 0.99
    for share in (0.2, 0.8, 0.99):
        assert chance_of_lead(good, good, f1, share) == 0.5, "equal so far: it is open"
    # However small a lead, the more of it was seen the less it is turned.
    behind, ahead = (chance_of_lead(*pair, f1, 0.5) for pair in ((poor, good), (good, poor)))
    assert behind + ahead == pytest.approx(1)
    few = estimate_from(names(FEWEST_IMAGES - 1), sums_of(rng, FEWEST_IMAGES - 1, 0.9))
    assert chance_of_lead(few, few, f1, 0.5) is None


RATES = {
    "equal": [0.7] * 8,
    "two equal": [0.6] * 2,
    "from 0.5 to 0.8": list(np.linspace(0.5, 0.8, 8)),
    "one better by 0.15": [0.6] * 7 + [0.75],
    "one better by 0.05": [0.6] * 7 + [0.65],
    "near 1": [0.97] * 6 + [0.99, 0.9],
    "sixteen": [0.6] * 8 + [0.4] * 8,
}
"""How often each format finds a box."""


@pytest.mark.slow
@pytest.mark.parametrize("images", [QUERIES, 4 * QUERIES])
def test_races_keep_the_format_that_a_search_chooses(images: int) -> None:
    """Measured: 5 and 1 of 210 are lost; by the rule of 1.0 it was 75 and 56."""
    lost, races, asked = 0, 0, []
    for kind, rates in RATES.items():
        for time in range(30):
            rng = np.random.default_rng([time, images, len(kind)])
            race = raced_on_paper(rows_of(rng, rates, images))
            lost += race.chosen in race.dropped
            races += 1
            asked.append(race.asked)
            assert (race.won == race.chosen) == (race.chosen not in race.dropped)
    assert lost <= ALPHA * races
    assert np.mean(asked) <= 0.75


# --- through the engine ---------------------------------------------------------------------------


class Skilled(FakeModel):
    """Finds what there is as often as its format lets it, the same queries each time.

    It answers no call in the format ``dead``.
    """

    def __init__(self, skills: dict[str, float], other: float = 0.4, dead: str = "") -> None:
        super().__init__()
        self._skills, self._other, self._dead = skills, other, dead
        self._queries = load_dataset("FindIt_Scenes_mini_xyxy_json").queries.values()

    def generate(self, message: Message, dataset: str) -> Any:
        super().generate(message, dataset)
        image = message[0]["value"]
        text = message[-1]["value"]
        query = next(
            each
            for each in self._queries
            if image.endswith(each.images[0]) and f'"{each.label}"' in text
        )
        variant = parse(dataset)
        if variant.format == self._dead:
            raise TimeoutError
        drawn = hashlib.sha256(f"{dataset}{query.images[0]}".encode()).digest()[0] / 256
        if drawn >= self._skills.get(variant.format, self._other):
            return "[]"
        scale = np.array([1000 / query.width, 1000 / query.height] * 2)
        boxes = [BoxToWrite(tuple(np.array(box) * scale)) for box in query.truth.boxes]
        return write(boxes, variant.reply)


SKILLS = {"yxhw_json_bbox_2d": 0.95, "yxhw_json_coordinates": 0.96}


def race_sweep(folder: Path, race: bool = True, limit: int | None = QUERIES) -> Sweep:
    places = (folder / "search", folder / "calls.jsonl")
    table = grid_tables()["Scenes_mini"]
    return search_sweep(ModelEntry("FullImage"), table, limit, places, race=race)


@pytest.fixture(scope="module")
def raced(tmp_path_factory: pytest.TempPathFactory, lmu_data: Path) -> tuple[list[CellResult], int]:
    """Return the results of a race, and how many calls it made."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LMUData", str(lmu_data))
        model = Skilled(SKILLS)
        return go(race_sweep(tmp_path_factory.mktemp("raced")), FakeDeployment(model)), model.calls


def test_a_race_finds_the_winner_with_half_the_calls(
    raced: tuple[list[CellResult], int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results, calls = raced
    assert choose_best_format(results).format.startswith("yxhw_")
    assert race_calls(results) == (calls, 19 * QUERIES)
    assert calls < 0.55 * 19 * QUERIES
    out = [result for result in results if result.dropped]
    first = [result for result in out if result.dropped.round == 1]
    assert first, "far behind: out after the first round"
    assert {result.rows for result in first} == {8}
    assert {result.rows for result in results if result not in out} == {QUERIES}
    report_formats(results, tmp_path / "best.yaml", race=True)
    shown = capsys.readouterr().out
    assert f"the race asked {calls} of {19 * QUERIES} queries" in shown
    assert f"dropped after 8 of 40 queries: {first[0].variant.format} (" in shown
    reported = yaml.safe_load((tmp_path / "best.yaml").read_text())["models"]["FullImage"]["FindIt"]
    assert reported["race"]["calls"] == calls
    assert len(reported["race"]["dropped"]) == len(out)
    assert sum(item["chance"] for item in reported["race"]["dropped"]) <= ALPHA
    assert len(reported["averages"]) == len(results) - len(out)
    rows = {cell["dataset"]: cell["rows"] for cell in reported["cells"]}
    assert rows[first[0].variant.name] == 8


@pytest.mark.slow
def test_a_race_after_a_full_search_asks_nothing(
    raced: tuple[list[CellResult], int], tmp_path: Path
) -> None:
    whole = go(race_sweep(tmp_path, race=False), FakeDeployment(Skilled(SKILLS)))
    before = files(tmp_path / "search")
    again = go(race_sweep(tmp_path), FakeDeployment(None))
    dropped = [
        {each.variant.name: each.dropped for each in results} for results in (again, raced[0])
    ]
    assert dropped[0] == dropped[1], "further answers decide nothing"
    assert files(tmp_path / "search") == before
    assert choose_best_format(whole) == choose_best_format(again)


def test_a_format_that_never_answered_names_no_winner(tmp_path: Path) -> None:
    with pytest.raises(SearchError, match=r"every call of FullImage on .*xywh_text failed"):
        go(race_sweep(tmp_path), FakeDeployment(Skilled(SKILLS, dead="xywh_text")))


def test_each_model_races_for_itself(
    tmp_path: Path,
) -> None:
    text = """
models: [FullImage, FindIt-Nano]
datasets: [Scenes_mini, FindIt_Scenes_mini_xyxy_json_coordinates]
representations: [xyxy, xywh, yxhw]
outputs: json
keys: bbox_2d
limit: 40
race: true
"""
    sweep = replace(parse_sweep(text), work_dir=tmp_path / "out", journal=tmp_path / "calls.jsonl")
    results = go(sweep, FakeDeployment(Skilled(SKILLS, other=0.2)))
    for model in ("FullImage", "FindIt-Nano"):
        of_model = [result for result in results if result.model == model]
        raced = [result for result in of_model if result.compared]
        assert [r.rows for r in of_model if not r.compared] == [40]
        assert [r.variant.representation for r in raced if r.dropped is None] == ["yxhw"]
        assert len(raced) == 3


def test_contradicting_settings_are_refused(tmp_path: Path) -> None:
    config = tmp_path / "race.yaml"
    best = tmp_path / "best.yaml"
    config.write_text("models: FullImage\ndatasets: Demo\nrace: true\n")
    best.write_text("models: {FullImage: {FindIt: {winner: xyxy_text}}}")
    with pytest.raises(ValueError, match="--formats names one for each model"):
        sweep_command.main([str(config), "--formats", str(best)], standalone_mode=False)
