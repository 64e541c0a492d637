"""Two models, or two formats, have one verdict: in every output of the same runs."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from boards import NOW
from few_fast import few_fast
from openpyxl import load_workbook
from random_folders import make_folder
from scored_runs import CallResult, World, query, small_world, speaking
from stated_numbers import printed

from vlmeval_findit.leaderboard import (
    OVERALL,
    Board,
    as_latex,
    as_markdown,
    boards,
    cheapest_formats,
    format_spreads,
    make_board,
    write_board,
)
from vlmeval_findit.report import headlines_of, losses_of, make_page, panels_of
from vlmeval_findit.scoring import load_runs
from vlmeval_findit.statistics import ALPHA, Difference, RankRange

HEADLINE = "F1@0.5 (failed calls as misses)"
TABLES = ("Pascal", "SVG")
# The share of objects that a model finds in each format, of each table
SKILLS: Mapping[str, tuple[float, ...]] = {
    "Best": (0.95,),
    "Good": (0.8, 0.55),
    "Same": (0.8,),
    "Fair": (0.6,),
    "Poor": (0.15,),
}
FORMATS = ("xyxy_json", "xywh_json")


def finding(name: str, seed: int, rate: float) -> CallResult:
    right = speaking(name, 1.0)
    found = np.random.default_rng(seed).random(1_000) < rate
    return lambda asked, generator: right(asked, generator) if found[asked.index] else "[]"


def make_runs(world: World, models: Mapping[str, tuple[float, ...]] = SKILLS) -> None:
    for table in TABLES:
        world.table(table, [query(i, picture=f"{i}.jpg") for i in range(60)])
        for seed, (model, rates) in enumerate(models.items()):
            for format_, rate in zip(FORMATS, rates, strict=False):
                name = f"FindIt_{table}_{format_}"
                answer = finding(name, 10 * seed + len(format_), rate)
                world.predict(model, name, answer, folder=model)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with pytest.MonkeyPatch.context() as patch:
        world = small_world(tmp_path_factory.mktemp("verdicts"), patch)
        make_runs(world)
        yield world


@pytest.fixture(scope="module")
def board(world: World) -> Board:
    return make_board(load_runs([world.runs]))


def data_of(page: str) -> dict[str, Any]:
    """Return the values of a page's script."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    data: dict[str, Any] = json.loads(found[1])
    return data


# --- ranks ----------------------------------------------------------------------------------------


def pair_tests(board: Board, name: str, metric: str) -> dict[tuple[str, str], Difference]:
    """Test all pairs of models with a rank in a column, one by one."""
    places = {mean.name: mean.datasets for mean in board.means}
    (found,) = (each for each in board.metrics if each.name == metric)
    entries = {model: board.entry(model, name, metric) for model in board.models}
    ranked = [model for model, entry in entries.items() if entry and entry.rank]
    estimates = {
        model: board.tested_estimate(model, places.get(name, (name,)), (found,)) for model in ranked
    }
    choice = board.choice(name, metric)
    return {
        (left, right): choice.difference(one, other, metric)
        for left, right in combinations(ranked, 2)
        if (one := estimates[left]) is not None and (other := estimates[right]) is not None
    }


def ranges_of(board: Board, name: str, metric: str) -> dict[str, RankRange]:
    """Count what the tests of all pairs say; metrics are those of which more is better."""
    ranked = [m for m in board.models if (e := board.entry(m, name, metric)) and e.rank]
    better, worse, tested = (dict.fromkeys(ranked, 0) for _ in range(3))
    for (left, right), test in pair_tests(board, name, metric).items():
        if test.p_value is not None:
            tested[left] += 1
            tested[right] += 1
        if test.significant:
            above, below = (left, right) if test.value > 0 else (right, left)
            worse[above] += 1
            better[below] += 1
    count = len(ranked)
    return {m: RankRange(1 + better[m], count - worse[m], not tested[m]) for m in ranked}


def test_ranks_are_the_tests_of_all_pairs(board: Board) -> None:
    widths = set()
    for name in board.names():
        for metric in board.metrics:
            expected = ranges_of(board, name, metric.name)
            for model, ranges in expected.items():
                entry = board.entry(model, name, metric.name)
                assert entry is not None
                assert entry.ranks == ranges, (name, metric.name, model)
                assert entry.rank is not None
                assert ranges.best <= entry.rank <= ranges.worst
                widths.add(ranges.worst - ranges.best)
    assert {0, 1} <= widths, "some are certain and some are not"


@pytest.mark.parametrize("seed", few_fast(range(3), 1))
def test_ranks_of_random_folders_are_these_tests(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = make_folder(tmp_path, seed, monkeypatch)
    for each in boards(load_runs([made.runs])):
        for name in each.names():
            metric = each.metrics[0].name
            expected = ranges_of(each, name, metric)
            entries = {model: each.entry(model, name, metric) for model in expected}
            found = {model: entry.ranks for model, entry in entries.items() if entry}
            assert found == (expected if len(expected) > 1 else dict.fromkeys(expected))


def test_every_output_has_the_same_ranks(world: World, board: Board, tmp_path: Path) -> None:
    expected = {}
    for model in board.models:
        entry = board.entry(model, OVERALL, board.headline.name)
        assert entry is not None
        assert entry.ranks is not None
        expected[model] = (entry.ranks.best, entry.ranks.worst)
    write_board(board, tmp_path, NOW)
    page = make_page(board, NOW)
    found = {
        "terminal": _ranks(printed("leaderboard", world.runs, "--out", tmp_path / "out"), ""),
        "Markdown": _ranks(as_markdown(board).split("\n## ")[1], "| "),
        "LaTeX": _ranks(as_latex(board).split(r"\begin{table")[1].replace("--", "–"), "& "),
        "report": _ranks(re.sub("<[^>]+>", " ", page.split('<section id="best"')[1]), ""),
    }
    overall = "mean: Overall"
    with (tmp_path / "leaderboard.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["dataset"] == overall]
    content = json.loads((tmp_path / "leaderboard.json").read_text("utf-8"))["rows"]
    ends = [f"{HEADLINE} {end} rank" for end in ("best", "worst")]
    found["CSV"] = {row["model"]: tuple(int(row[end]) for end in ends) for row in rows}
    found["JSON"] = {
        row["model"]: tuple(row[end] for end in ends)
        for row in content
        if row["dataset"] == overall
    }
    sheet = load_workbook(tmp_path / "leaderboard.xlsx")["Scores"]
    in_sheet = [[cell.value for cell in row] for row in sheet.iter_rows(3)]
    assert in_sheet[0][:3] == ["best rank", "worst rank", "model"]
    found["sheet"] = {model: (best, worst) for best, worst, model, *_ in in_sheet[1:]}
    for output, ranks in found.items():
        assert ranks == expected, output


def _ranks(text: str, between: str) -> dict[str, tuple[int, int]]:
    """Return the ranks before the names of models, where a name comes first."""
    ranks: dict[str, tuple[int, int]] = {}
    for model in SKILLS:
        found = re.search(rf"(\d+)(?:–(\d+))? [ ?]*{re.escape(between)}\s*{model}\b", text)
        assert found, (model, text[:500])
        ranks[model] = (int(found[1]), int(found[2] or found[1]))
    return ranks


# --- pairs ----------------------------------------------------------------------------------------


def test_the_report_tells_models_apart_as_their_ranks_do(board: Board) -> None:
    seen = set()
    for panel in panels_of(board):
        name = panel.name if panel.name in board.names() else panel.datasets[0]
        tests = pair_tests(board, name, board.metrics[0].name)
        best, *others = panel.dots
        for dot in others:
            expected = tests.get((dot.model, best.model)) or tests[best.model, dot.model]
            assert dot.to_best is not None
            assert dot.to_best.significant == expected.significant
            assert dot.to_best.corrected == expected.corrected
    data = data_of(make_page(board, NOW))
    runs = [row.run for row in board.runs]
    for pair in data["pairs"]:
        if pair["family"] != "MODELS":
            continue
        left, right = (runs[pair[side]].model for side in ("left", "right"))
        dataset = runs[pair["left"]].board_dataset
        for title, *_, p, told in pair["metrics"]:
            metric = next(m.name for m in board.metrics if title.startswith(m.title))
            if p is None:
                continue
            tests = pair_tests(board, dataset, metric)
            expected = tests.get((left, right)) or tests[right, left]
            assert (p, told) == (pytest.approx(expected.corrected), expected.significant)
            seen.add(told)
    assert seen == {True, False}


@pytest.mark.parametrize(
    ("models", "certain"),
    few_fast(
        [
            ({"Best": (0.99,), "Poor": (0.15,)}, "Yes"),
            ({"Best": (0.8,), "Same": (0.75,)}, "No, it may be chance"),
            # The second is told apart from the best, if at all, as the third is.
            (SKILLS, None),
        ],
        2,
    ),
)
def test_the_card_is_certain_where_the_best_has_one_rank(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, models: dict[str, tuple[float, ...]], certain
) -> None:
    world = small_world(tmp_path, monkeypatch)
    make_runs(world, models)
    board = make_board(load_runs([world.runs]))
    panels = panels_of(board)
    answers = {each.question: each for each in headlines_of(board, panels, losses_of(board))}
    card = answers["Is that certain?"]
    ranks = panels[0].dots[0].entry.ranks
    assert ranks is not None
    assert (card.answer == "Yes") == (ranks.worst == 1)
    assert certain in (None, card.answer)
    if ranks.worst > 2:
        assert f"{ranks.worst - 1} models may be as good" in card.because


def test_a_lead_over_the_next_alone_is_not_certain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next misses what the best misses and more; a third finds other objects."""
    world = small_world(tmp_path, monkeypatch)
    world.table("Pascal", [query(i, picture=f"{i}.jpg") for i in range(60)])
    name = "FindIt_Pascal_xyxy_json"
    right = speaking(name, 1.0)
    for model, found in (("A", range(45)), ("B", range(32)), ("C", range(30, 60))):
        world.predict(model, name, lambda q, rng, f=found: right(q, rng) if q.index in f else "[]")
    board = make_board(load_runs([world.runs]))
    panels = panels_of(board)
    best, second, third = panels[0].dots
    assert (best.model, second.model, third.model) == ("A", "B", "C")
    assert second.to_best is not None
    assert third.to_best is not None
    assert (second.to_best.significant, third.to_best.significant) == (True, False)
    answers = {each.question: each for each in headlines_of(board, panels, losses_of(board))}
    card = answers["Is that certain?"]
    assert card.answer == "No, it may be chance"
    assert " ahead of C, p = " in card.because
    assert best.entry.ranks == RankRange(1, 2)


def test_two_formats_have_one_verdict(board: Board) -> None:
    """In formats.csv, what a format costs, how much it matters, and A against B."""
    rows = {(row.run.model, row.dataset, row.run.variant.format): row for row in board.runs}
    for spread in format_spreads(board):
        for other in (spread.median, spread.worst):
            row = rows[spread.model, spread.dataset, other.name]
            if spread.best.reported and not row.reported:
                assert other.to_best == row.to_reported
    for each in cheapest_formats(board):
        found = rows[each.model, each.dataset, each.cheapest.name]
        assert each.cheapest.row.to_reported == found.to_reported
    data = data_of(make_page(board, NOW))
    runs = [row.run for row in board.runs]
    formats = [pair for pair in data["pairs"] if pair["family"] == "FORMATS"]
    assert len(formats) == len(TABLES)
    for pair in formats:
        right = runs[pair["right"]]
        test = rows[right.model, right.board_dataset, right.variant.format].to_reported
        assert test is not None
        p, told = pair["metrics"][0][6:]
        assert (p, told) == (pytest.approx(test.corrected), test.significant)


class Row(NamedTuple):
    """A row of ``compare``."""

    value: float
    p: float
    starred: bool


def compared(text: str) -> dict[str, Row]:
    """Return the rows that ``compare`` prints of datasets, by their names."""
    rows = {}
    for line in text.splitlines():
        found = re.match(r"(\S.*?) {2,}[^+-]* ([+-]\d+\.\d) .* <?(\d\.\d+)( \*)?\s*$", line)
        if found:
            rows[found[1]] = Row(float(found[2]), float(found[3]), bool(found[4]))
    return rows


@pytest.mark.parametrize(
    "sides", [("Best", "Fair"), ("Same", "Fair"), ("Best", "Poor"), ("Fair", "Same")]
)
def test_compare_says_what_a_board_of_both_says(world: World, sides: tuple[str, str]) -> None:
    """Of datasets and their mean; files of one dataset say the same."""
    folders = [world.runs / side for side in sides]
    board = make_board(load_runs(folders))
    rows = compared(printed("compare", *folders))
    assert list(rows) == [f"mean of {len(TABLES)}", *TABLES]
    for shown, name in (("mean of 2", OVERALL), *((table, table) for table in TABLES)):
        (((left, _), test),) = pair_tests(board, name, HEADLINE).items()
        assert test.corrected is not None
        assert rows[shown].p == pytest.approx(max(test.corrected, 0.001), abs=6e-4)
        assert rows[shown].starred == test.significant == (test.corrected < ALPHA)
        gain = test.value if left == sides[0] else -test.value
        assert rows[shown].value == pytest.approx(gain, abs=0.051)
    for table in TABLES:
        files = [world.runs / side / f"{side}_FindIt_{table}_xyxy_json.json" for side in sides]
        of_files = compared(printed("compare", *files))["F1@0.5"]
        assert of_files == rows[table]


@pytest.mark.parametrize("count", few_fast([2, 3], 1))
def test_compare_says_of_formats_what_a_board_says(
    count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many formats lie in a folder; runs in one format, and two files, stand alone."""
    world = small_world(tmp_path, monkeypatch)
    formats = (*FORMATS, "yxyx_json")[:count]
    for table in TABLES:
        world.table(table, [query(i, picture=f"{i}.jpg") for i in range(60)])
        for seed, format_ in enumerate(formats):
            name = f"FindIt_{table}_{format_}"
            world.predict("M", name, finding(name, seed, 0.8 - 0.17 * seed), folder="one")
        name = f"FindIt_{table}_{formats[0]}"
        world.predict("M", name, finding(name, 9, 0.6), folder="again")
    one, again = world.runs / "one", world.runs / "again"
    rows = make_board(load_runs([one])).runs
    (reported,) = {row.run.variant.format for row in rows if row.reported}
    for other in {*formats} - {reported}:
        shown = compared(printed("compare", f"{one}={other}", f"{one}={reported}"))
        for row in rows:
            if row.run.variant.format == other:
                test = row.to_reported
                assert test is not None
                assert shown[row.dataset].p == pytest.approx(test.corrected, abs=6e-4)
                assert shown[row.dataset].starred == test.significant
    shown = compared(printed("compare", f"{one}={formats[0]}", again))
    for table in TABLES:
        files = [folder / f"M_FindIt_{table}_{formats[0]}.json" for folder in (one, again)]
        assert shown[table] == compared(printed("compare", *files))["F1@0.5"]


# --- bold -----------------------------------------------------------------------------------------


def test_values_that_are_printed_alike_are_bold_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One miss of 1,200 is below the printed digits, and is no tie."""
    world = small_world(tmp_path, monkeypatch)
    world.table("Pascal", [query(i, picture=f"{i % 40}.jpg") for i in range(1_200)])
    name = "FindIt_Pascal_xyxy_json"
    right = speaking(name, 1.0)
    for model, missed in (("A", 0), ("B", 1), ("C", 4)):
        world.predict(model, name, lambda q, rng, m=missed: "[]" if q.index < m else right(q, rng))
    board = make_board(load_runs([world.runs]))
    entries = [board.entry(model, "Pascal", "F1@0.5") for model in board.models]
    assert [entry and entry.rank for entry in entries] == [1, 2, 3]
    columns = list(_columns(as_markdown(board)))
    assert columns
    for cells in columns:
        bold = {cell.split()[0] for cell in cells if "**100.0**" in cell}
        assert (bold, sum("**" in cell for cell in cells)) == ({"A", "B"}, 2)


def _columns(markdown: str) -> Iterator[list[str]]:
    table = re.search(r"## F1@0.5\n\n((?:\|.*\n)+)", markdown)
    assert table
    head, _, *body = [line.strip("|\n").split(" | ") for line in table[1].splitlines()]
    for at, title in enumerate(head):
        if "<sub>" in title:
            yield [f"{row[1]} {row[at]}" for row in body]
