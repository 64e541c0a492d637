"""What scores nothing is the best nowhere, and on no front: in every output that marks a best."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from boards import NOW
from costly_runs import costing
from hypothesis import given
from hypothesis import strategies as st
from openpyxl import load_workbook
from scored_runs import World, query, saying, small_world, speaking

from vlmeval_findit.leaderboard import (
    Board,
    PaperStyle,
    as_latex,
    as_markdown,
    cheapest_formats,
    curve_table,
    format_spreads,
    group_comparable,
    learning_curves,
    make_board,
    spread_table,
    write_board,
)
from vlmeval_findit.protocol import Better, Metric
from vlmeval_findit.report import (
    headlines_of,
    learning_chart,
    losses_of,
    make_page,
    panels_of,
)
from vlmeval_findit.scoring import Run

FORMATS = ("xyxy_json", "xyxy_text")
TABLES = ("Pascal", "SVG")
# The share of objects that models find in each table
SKILLS: Mapping[str, Mapping[str, tuple[float, float]]] = {
    "all score nothing": {"A": (0.0, 0.0), "B": (0.0, 0.0), "C": (0.0, 0.0)},
    "one table scores nothing": {"A": (0.8, 0.0), "B": (0.5, 0.0), "C": (0.0, 0.0)},
    "each scores somewhere": {"A": (0.8, 0.0), "B": (0.0, 0.6), "C": (0.7, 0.5)},
}


@pytest.fixture(scope="module", params=SKILLS)
def board(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Board]:
    """Three models in two formats, which cost unlike."""
    with pytest.MonkeyPatch.context() as patch:
        world = small_world(tmp_path_factory.mktemp("nothing"), patch)
        runs = []
        for at, table in enumerate(TABLES):
            world.table(table, [query(i, picture=f"{i}.jpg") for i in range(12)])
            for cost, (model, skills) in enumerate(SKILLS[request.param].items()):
                for name in FORMATS:
                    run = run_of(world, model, f"FindIt_{table}_{name}", skills[at])
                    tokens = float(9 - cost + len(name))
                    runs.append(costing(run, tokens_out=tokens, seconds_median=tokens))
        yield make_board(runs, ["xyxy_json"])


def run_of(world: World, model: str, name: str, skill: float) -> Run:
    return world.run(model, name, speaking(name, skill) if skill else saying("[]"))


def values_of_headline(board: Board) -> set[bool]:
    """Return whether places of a board have a model that scores anything."""
    metric = board.metrics[0].name
    have = set()
    for name in board.names():
        known = [board.entry(model, name, metric) for model in board.models]
        have.add(any(entry is not None and entry.tested > 0 for entry in known))
    return have


BOLD = {
    "Markdown": (as_markdown, r"\*\*([\d.]+)\*\*"),
    "LaTeX": (lambda board: as_latex(board, PaperStyle.FULL), r"\\textbf\{([\d.]+)\}"),
    "booktabs": (as_latex, r"\\textbf\{([\d.]+)\}"),
    "page": (lambda board: make_page(board, NOW), r'class="figure[^"]* best">([\d.]+)'),
}


@pytest.mark.parametrize("output", BOLD)
def test_no_zero_is_bold(board: Board, output: str) -> None:
    write, pattern = BOLD[output]
    # Adherence is bold: all of these replies adhere.
    bold = [value for value in re.findall(pattern, write(board)) if value != "100.0"]
    assert "0.0" not in bold
    assert bool(bold) == (True in values_of_headline(board))


def test_no_zero_is_bold_in_a_sheet(board: Board, tmp_path: Path) -> None:
    write_board(board, tmp_path, NOW)
    for sheet in load_workbook(tmp_path / "leaderboard.xlsx"):
        for row in sheet.iter_rows(4):
            assert all(cell.value != 0 for cell in row if cell.font.bold), sheet.title


def points_in(charts: Any) -> list[dict[str, Any]]:
    """Return the points of the charts of a page, wherever they stand in its values."""
    if isinstance(charts, dict):
        if "standing" in charts and "value" in charts:
            return [charts]
        charts = list(charts.values())
    if not isinstance(charts, list):
        return []
    return [point for each in charts for point in points_in(each)]


def test_charts_mark_no_zero_as_the_best(board: Board) -> None:
    page = make_page(board, NOW)
    data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])
    rows = points_in(data["charts"]["standings"])
    for panel in {row["panel"] for row in rows}:
        of_panel = [row for row in rows if row["panel"] == panel]
        best = [row for row in of_panel if row["standing"] == "best"]
        assert all(row["value"] > 0 for row in best)
        assert bool(best) == any(row["value"] > 0 for row in of_panel)
    assert set(data["costs"]) == {"model-costs", "format-costs"}
    for charts in data["costs"].values():
        for panel in charts["panels"]:
            scores = [point["score"] for point in panel["points"]]
            for axis in range(len(charts["choices"])):
                front = [each["costs"][axis]["front"] for each in panel["points"]]
                assert any(front) == (max(scores) > 0)
                assert all(score > 0 for score, on in zip(scores, front, strict=True) if on)


def test_sentences_name_no_best_that_scores_nothing(board: Board) -> None:
    panels = panels_of(board)
    said = {each.question: each for each in headlines_of(board, panels, losses_of(board))}
    is_nothing = panels[0].dots[0].entry.tested == 0
    assert (said["Which model is best?"].answer == "None") == is_nothing
    assert ("Is that certain?" in said) != is_nothing
    spreads = format_spreads(board)
    for row in spread_table(board, spreads).records():
        assert (row["best"] is None) == (row["F1@0.5"] == 0)
    for each in cheapest_formats(board):
        assert each.reported.row.run.value(board.headline)


@pytest.mark.parametrize("skills", [(0.0, 0.0, 0.0), (0.0, 0.5, 0.3)])
def test_a_training_that_scores_nothing_has_no_best(world: World, skills: Sequence[float]) -> None:
    name = "FindIt_Pascal_xyxy_json"
    runs = [run_of(world, f"T-step-{at}", name, skill) for at, skill in enumerate(skills, 1)]
    (curve,) = learning_curves(group_comparable(runs)[0])
    has_best = any(skills)
    assert curve.has_best == has_best
    assert curve.verdict.startswith("best: step" if has_best else "no best checkpoint")
    bold = [cell.best for row in curve_table(curve).cells() for _, cell in row]
    assert any(bold) == has_best
    drawn = [row["best"] for row in learning_chart([curve])["data"]["values"]]
    assert any(drawn) == has_best


@given(
    unit=st.sampled_from(["%", "px", ""]),
    better=st.sampled_from(Better),
    value=st.floats(0, 100, allow_nan=False),
)
def test_only_what_is_better_than_no_answer_can_be_best(
    unit: str, better: Better, value: float
) -> None:
    metric = Metric("M", {"a": 1}, {"b": 1}, unit=unit, better=better)
    if metric.share:
        assert metric.can_be_best(value) == (f"{value:.1f}" != f"{metric.worst:.1f}")
    else:
        assert metric.can_be_best(value) == (value != metric.worst)
    assert not metric.can_be_best(metric.worst)
