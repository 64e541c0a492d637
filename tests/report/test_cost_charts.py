"""Score against cost: which points are drawn, in which words, and what is listed below."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from costly_runs import costing, partly_failed
from few_fast import every_nth_fast
from scored_runs import World, saying, speaking

from vlmeval_findit.leaderboard import Board, make_board
from vlmeval_findit.protocol import COSTS, Better, Cost, Metric, RunCosts
from vlmeval_findit.report import (
    COST_AXES,
    CostCharts,
    CostPanel,
    CostPoint,
    cost_charts,
    cost_note,
    cost_text,
    format_costs_of,
    format_panels,
    front_table,
    make_page,
    model_panels,
    panels_of,
)
from vlmeval_findit.scoring import Run

JSON = "FindIt_Pascal_xyxy_json"
TEXT = "FindIt_Pascal_xyxy_text"
LABELS = "FindIt_Pascal_multilabel_xyxy_json"
NOW = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
IN_PART = "known of some answers: not compared"
AXES = {cost.name: at for at, cost in enumerate(COST_AXES)}
SECONDS = AXES["seconds"]
TOKENS = AXES["tokens out"]
DOLLARS = AXES["USD"]
GPU_SECONDS = AXES["GPU seconds"]
CPU_SECONDS = AXES["CPU seconds"]
PIXELS = AXES["pixels"]


def model_panel(*runs: Run) -> CostPanel:
    """Return the first panel of a board of these runs."""
    board = make_board(runs)
    return model_panels(board, panels_of(board))[0]


def on_front(panel: CostPanel, axis: int) -> set[str]:
    return {panel.points[at].label for at in panel.fronts[axis]}


# --- the points -----------------------------------------------------------------------------------


def test_each_cost_has_its_front(world: World) -> None:
    good = world.run("Good", JSON, speaking(JSON, 1.0))
    poor = world.run("Poor", JSON, speaking(JSON, 0.3))
    panel = model_panel(
        costing(good, seconds_median=2.0, tokens_out=50.0),
        costing(poor, seconds_median=3.0, tokens_out=5.0),
    )
    assert [point.label for point in panel.points] == ["Good", "Poor"]
    assert panel.points[0].score > panel.points[1].score > 0
    assert on_front(panel, SECONDS) == {"Good"}
    assert on_front(panel, TOKENS) == {"Good", "Poor"}
    assert on_front(panel, DOLLARS) == set()


@pytest.mark.parametrize(
    "cost", every_nth_fast([cost for cost in COSTS if cost.axis], 3), ids=lambda cost: cost.name
)
def test_a_cost_of_some_answers_is_on_no_front(cost: Cost, world: World) -> None:
    """Whoever's cheapest answers alone are known would beat everybody."""
    whole = world.run("Whole", JSON, speaking(JSON, 0.9))
    part = world.run("Part", JSON, speaking(JSON, 1.0))
    known = cost_fields_of(cost)
    for number, has_front in ((len(part.rows), True), (3, False)):
        cheap = costing(part, **{known[0]: 1.0, known[1]: number})
        panel = model_panel(costing(whole, **{known[0]: 9.0}), cheap)
        axis = COST_AXES.index(cost)
        expected = {"Part"} if has_front else {"Whole"}
        assert on_front(panel, axis) == expected
        assert len(panel.known(axis)) == 2, "both are drawn, with what is known"
        (its,) = (at for at, point in enumerate(panel.points) if point.model == "Part")
        assert panel.standing(its, axis) == "on the Pareto front" if has_front else IN_PART
        charts = CostCharts("costs", (panel,), "seconds")
        assert (IN_PART in str(charts.values())) == (not has_front)


def cost_fields_of(cost: Cost) -> tuple[str, str]:
    """Return the fields of a run's costs that have its value and how often it is known."""
    return cost.summaries[0].key, cost.known_key


def test_failed_calls_are_misses_on_the_chart(world: World) -> None:
    """Of four of twelve calls that fail, and eight that find all: 16 of 24 objects are hit."""
    nine = [9] * 12
    good = world.predict("Good", JSON, speaking(JSON, 0.9))
    part = world.predict("Fails", JSON, speaking(JSON, 1.0))
    runs = [
        partly_failed(good, (), nine),
        partly_failed(world.predict("Fails", TEXT, saying("[]")), (), nine),
        partly_failed(part, range(0, 12, 3), nine),
    ]
    board = make_board(runs)
    (panel,) = model_panels(board, panels_of(board))
    assert panel.metric.name == "F1@0.5 (failed calls as misses)"
    assert on_front(panel, TOKENS) == {"Good"}
    (formats,) = format_panels(board)
    assert on_front(formats, TOKENS) == {"xyxy_json"}
    for drawn in (panel, formats):
        scores = {point.format: point.score for point in drawn.points if point.model == "Fails"}
        assert scores["xyxy_json"] == pytest.approx(100 * 2 * 16 / (16 + 24))


def test_no_point_is_cheaper_by_calls_that_failed(world: World) -> None:
    """Each query has as many tokens in both; a third of one's calls fail, the long ones."""
    tokens = [100 if at % 3 == 0 else 10 for at in range(12)]
    whole = partly_failed(world.predict("Whole", JSON, speaking(JSON, 1.0)), (), tokens)
    fails = partly_failed(
        world.predict("Fails", JSON, speaking(JSON, 1.0)), range(0, 12, 3), tokens
    )
    panel = model_panel(whole, fails)
    assert [point.costs.tokens_out for point in panel.points] == [40.0, 10.0]
    assert [point.shared.tokens_out for point in panel.points] == [10.0, 10.0]
    assert on_front(panel, TOKENS) == {"Whole"}


def test_costs_over_datasets_are_their_mean(world: World) -> None:
    runs = []
    for name, dollars in ((JSON, 1.0), (LABELS, 4.0)):
        good = world.run("Good", name, speaking(name, 1.0))
        poor = world.run("Poor", name, saying("[]"))
        runs += [costing(good, usd_per_1000=dollars, tokens_out=dollars), costing(poor)]
    runs[1] = costing(runs[1], usd_per_1000=2.0)
    good_point, poor_point = model_panel(*runs).points
    assert good_point.costs.usd_per_1000 == 2.5
    # Of one of two datasets nothing is known.
    assert poor_point.costs.usd_per_1000 is None


@pytest.mark.parametrize(
    ("costs", "axis", "text"),
    [
        (RunCosts(9, seconds_known=9, seconds_median=0.012345), SECONDS, "0.0123"),
        (RunCosts(9, tokens_out_known=3, tokens_out=1234.5), TOKENS, "1,234 (of 3 of 9 answers)"),
        (RunCosts(9, usd_known=9, usd_per_1000=1.5, usd_source="prices"), DOLLARS, "1.5 (prices)"),
        (
            RunCosts(9, usd_known=8, usd_per_1000=0.75, usd_source="batch price"),
            DOLLARS,
            "0.75 (batch price, of 8 of 9 answers)",
        ),
        (RunCosts(9, pixels_known=9, pixels=262_144.0), PIXELS, "262,144"),
        (RunCosts(9, gpu_seconds_known=9, gpu_seconds=4.5), GPU_SECONDS, "4.5"),
        (RunCosts(9, cpu_seconds_known=8, cpu_seconds=0.5), CPU_SECONDS, "0.5 (of 8 of 9 answers)"),
    ],
)
def test_a_cost_says_of_what_it_is_known(costs: RunCosts, axis: int, text: str) -> None:
    cost = COST_AXES[axis]
    assert f"{cost_text(cost, costs)} ({cost_note(cost, costs)})".removesuffix(" ()") == text


def test_a_cheap_model_of_low_rank_is_drawn(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Standings show the first models only; a front without the cheapest would be wrong."""
    monkeypatch.setattr(cost_charts, "MODELS", 1)
    runs = []
    for model, chance, tokens in (("Best", 1.0, 50.0), ("Dear", 0.6, 60.0), ("Cheap", 0.2, 5.0)):
        run = world.run(model, JSON, speaking(JSON, chance))
        runs.append(costing(run, tokens_out=tokens))
    assert [point.model for point in model_panel(*runs).points] == ["Best", "Cheap"]


def test_formats_of_a_model_are_a_panel(world: World) -> None:
    board = board_of(world)
    (panel,) = format_panels(board)
    assert (panel.title, [point.label for point in panel.points]) == (
        "Good",
        ["xyxy_json", "xyxy_text"],
    )
    # As good in both, so the cheaper one is on the front.
    assert on_front(panel, TOKENS) == {"xyxy_text"}
    assert "Good on Pascal" in {panel.title for panel in format_panels(board_of(world, LABELS))}


def board_of(world: World, *more: str) -> Board:
    """Return a board: Good in two formats, Poor of which no tokens are known."""
    runs = [
        costing(world.run("Good", JSON, speaking(JSON, 1.0)), tokens_out=40.0),
        costing(world.run("Good", TEXT, speaking(TEXT, 1.0)), tokens_out=9.0),
        costing(world.run("Poor", JSON, saying("[]")), pixels=20_000.0),
    ]
    runs += [costing(world.run("Good", name, speaking(name, 1.0))) for name in more]
    return make_board(runs)


def test_formats_that_lie_apart_come_first(world: World) -> None:
    """A picture of equal points says nothing, whoever's formats they are."""
    runs = []
    for model, chances in {"Best": (1.0, 1.0), "Apart": (0.9, 0.3)}.items():
        for name, chance in zip((JSON, TEXT), chances, strict=True):
            runs.append(costing(world.run(model, name, speaking(name, chance)), tokens_out=9.0))
    panels = format_panels(make_board(runs))
    assert [panel.points[0].model for panel in panels] == ["Apart", "Best"]


def test_the_table_has_every_point(world: World) -> None:
    board = board_of(world)
    table = front_table(board, model_panels(board, panels_of(board)))
    assert [field.name for field in table.fields][4:] == [
        "tokens out a query",
        "pixels sent a query",
        "on the front by",
    ]
    assert [[row[at] for at in (0, 1, 4, 5, 6)] for row in table.rows] == [
        ["Good", "xyxy_text", 9.0, None, "tokens out"],
        ["Poor", "xyxy_json", None, 20_000.0, None],  # It scores nothing
    ]
    table = front_table(board, format_panels(board))
    assert [[row[at] for at in (1, 4, 5)] for row in table.rows] == [
        ["xyxy_json", 40.0, None],
        ["xyxy_text", 9.0, "tokens out"],
    ]


@pytest.mark.parametrize(
    ("known", "first"),
    [
        ((1.0, 2.0), "tokens out a query"),
        # Of one of two points, so the other cost shows more.
        ((1.0, None), "seconds a query (median)"),
    ],
)
def test_the_first_cost_is_known_of_most(
    world: World, known: tuple[float | None, ...], first: str
) -> None:
    runs = []
    for name, tokens in zip((JSON, TEXT), known, strict=True):
        run = world.run("Good", name, saying("[]"))
        runs.append(costing(run, seconds_median=1.0, tokens_out=tokens))
    costs = format_costs_of(make_board(runs))
    assert costs is not None
    assert costs.choices[costs.first] == first


def test_the_table_says_what_costs_rest_on(world: World) -> None:
    runs = [costing(world.run(model, JSON, saying("[]")), tokens_out=1.0) for model in "AB"]
    runs[1] = costing(runs[1], tokens_out=1.0, retried=2)
    board = make_board(runs)
    table = front_table(board, model_panels(board, panels_of(board)))
    assert table.fields[-1].name == "costs"
    assert [row[-1] for row in table.rows] == ["", "2 of 12 after several attempts"]


# --- the picture ----------------------------------------------------------------------------------


def charts_of(*points: tuple[str, float, float | None], metric: Metric | None = None) -> CostCharts:
    """Return charts of points by label, score and dollars."""
    drawn = []
    for label, score, usd in points:
        costs = RunCosts(usd_per_1000=usd)
        drawn.append(CostPoint(label, "", label, score, None, costs, costs))
    metric = metric or Metric("F1@0.5", {}, {})
    return CostCharts("costs", (CostPanel("Pascal", "Pascal", metric, tuple(drawn)),), "seconds")


def test_points_without_the_cost_are_listed() -> None:
    costs = charts_of(("A", 80.0, 3.0), ("B", 60.0, 1.0), ("<b>", 90.0, None))
    assert costs.choices == ["dollars for 1,000 queries"]
    assert costs.lacking == ["<b>"]
    assert costs.front == ["B (60.0 %, 1)", "A (80.0 %, 3)"]
    (panel,) = costs.values()["panels"]
    assert [(point["name"], *point["costs"]) for point in panel["points"]][2] == ("<b>", None)


@pytest.mark.parametrize(("points", "is_drawn"), [(2, False), (3, True)])
def test_two_points_are_a_table_and_no_chart(points: int, is_drawn: bool) -> None:
    costs = charts_of(*((f"M{at}", 80.0 - at, 3.0 + at) for at in range(points)))
    assert costs.is_worth_drawing is is_drawn


def test_lower_scores_and_their_unit() -> None:
    metric = Metric("MAE", {"error": 1}, {"asked": 1}, unit="m", better=Better.LOWER)
    costs = charts_of(("A", 0.5, 3.0), ("B", 0.9, 1.0), ("C", 0.95, 2.0), metric=metric)
    assert costs.front == ["B (0.9 m, 1)", "A (0.5 m, 3)"]
    (spec, *_) = costs.values()["charts"]
    assert spec["layer"][0]["encoding"]["y"]["title"] == "MAE (m, lower is better) (m)"


@pytest.mark.parametrize(("dearest", "is_log"), [(2.0, False), (100.0, True)])
def test_costs_far_apart_have_a_logarithmic_axis(dearest: float, is_log: bool) -> None:
    values = charts_of(("A", 80.0, 1.0), ("B", 90.0, dearest)).values()
    assert values["panels"][0]["is_log"] == [is_log]
    (spec,) = values["charts"]
    across = spec["layer"][0]["encoding"]["x"]["scale"]
    assert across["zero"], "about equal costs do not look apart"


def test_labels_move_where_vega_keeps_text() -> None:
    """The page patches the text marks of what Vega-Lite makes of a chart, by their place."""
    import vl_convert

    values = charts_of(("A", 80.0, 1.0)).values()
    for spec in values["charts"]:
        vega = vl_convert.vegalite_to_vega(spec)
        (patch,) = spec["usermeta"]["embedOptions"]["patch"]
        _, _, place, key = patch["path"].split("/")
        assert (vega["marks"][int(place)]["type"], key) == ("text", "transform")
        names = {mark["name"]: mark["type"] for mark in vega["marks"]}
        assert [names[name] for name in patch["value"][0]["avoidMarks"]] == ["line", "symbol"]


# --- the page -------------------------------------------------------------------------------------


def page_of(board: Board) -> str:
    return make_page(board, NOW, cards=4)


def cost_section(page: str) -> str:
    return page.split('<section id="cost"')[1].split("</section>")[0]


def test_two_models_are_a_table_and_no_chart(world: World) -> None:
    section = cost_section(page_of(board_of(world)))
    assert "<figure" not in section
    first, *_ = section.split("<table")[1:]
    assert '<th scope="col">on the front by</th>' in first
    assert "“On the front”" in section


def test_the_page_has_charts_lists_and_the_table(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CostCharts, "is_worth_drawing", True)
    section = cost_section(page_of(board_of(world)))
    assert section.count("<figure") == section.count("The chart needs JavaScript.") == 2
    # The cost that most of the models have, and who lacks it, before any script runs.
    assert '<option value="0" selected>tokens out a query</option>' in section
    assert '<span class="front">Good (100.0 %, 9)</span>' in section
    assert "Not drawn: 1 of 2, whose tokens out a query are not known" in section
    assert "<p>Poor</p>" in section
    assert '<option value="1">pixels sent a query</option>' in section
    assert "dollars" not in section
    # Without another cost the formats lack nothing.
    assert '<details class="lacking" hidden open>' in section
    assert '<th scope="col">on the front by</th>' in section
    # Of Good's formats the reported one is the cheapest: no sentence names another.
    assert '<th scope="col">cheapest as good</th>' in section
    assert "about as good as xyxy" not in section


def test_without_a_known_cost_there_is_no_section(world: World) -> None:
    runs = [costing(world.run(model, JSON, saying("[]"))) for model in ("A", "B")]
    page = page_of(make_board(runs))
    assert 'id="cost"' not in page
    assert 'href="#cost"' not in page


def test_names_are_no_markup(world: World) -> None:
    evil = "</script><img src=x onerror=alert(1)>"
    run = world.run("M", JSON, saying("[]"))
    runs = [costing(run, tokens_out=4.0)]
    runs += [costing(replace(run, model=name), tokens_out=9.0) for name in (evil, "a\x1b[31m")]
    page = page_of(make_board(runs))
    assert evil not in page
    assert "\x1b" not in page
    data = re.search(r'id="data">(.*?)</script>', page, re.DOTALL)
    assert data is not None
    points = json.loads(data[1])["costs"]["model-costs"]["panels"][0]["points"]
    assert any("img src=x" in point["name"] for point in points)
