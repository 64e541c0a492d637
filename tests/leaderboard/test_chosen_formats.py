"""Models whose format was chosen are ranked and tested elsewhere, in every output alike."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from boards import JSON, NOW, TEXT, csv_rows
from few_fast import few_fast
from openpyxl import load_workbook
from rich.console import Console
from scored_runs import CallResult, World, query, small_world, speaking, with_facts

from vlmeval_findit.analysis import TOO_FEW_TO_CHOOSE
from vlmeval_findit.cli import main, print_board
from vlmeval_findit.leaderboard import (
    OVERALL,
    Board,
    PaperStyle,
    as_latex,
    as_markdown,
    make_board,
    remarks,
    to_openvlm,
    values_table,
    write_board,
)
from vlmeval_findit.protocol import ScoredRow, sum_rows
from vlmeval_findit.report import (
    choose_pairs,
    forest_of,
    headlines_of,
    losses_of,
    make_page,
    pair_values,
    panels_of,
)
from vlmeval_findit.scoring import Run, load_runs
from vlmeval_findit.statistics import RankRange, second_half

F1 = "F1@0.5"
FORMATS = [
    f"{order}_{out}"
    for order in ("xyxy", "xywh", "yxyx", "cxcywh")
    for out in ("json", "text", "json_bbox_2d")
]
IMAGES = 40


def finding(name: str, seed: int, rate: float = 0.6) -> CallResult:
    """Return a model that finds the objects of some rows, drawn by a seed."""
    right = speaking(name, 1.0)
    found = np.random.default_rng(seed).random(1_000) < rate
    return lambda asked, generator: right(asked, generator) if found[asked.index] else "[]"


@pytest.fixture(scope="module")
def equal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Model many in twelve formats, model one in one: all find 60 %; images of one query.

    Its tests only read.
    """
    with pytest.MonkeyPatch.context() as patch:
        yield _equal(small_world(tmp_path_factory.mktemp("equal"), patch))


def _equal(world: World) -> World:
    for table in ("Pascal", "SVG"):
        world.table(table, [query(i, picture=f"{table}{i}.jpg") for i in range(IMAGES)])
        for at, name in enumerate(FORMATS):
            full = f"FindIt_{table}_{name}"
            world.predict("many", full, finding(full, 100 + at + 50 * (table == "SVG")))
        one = f"FindIt_{table}_xyxy_json"
        world.predict("one", one, finding(one, 7 + (table == "SVG")))
    return world


def board_of(world: World, *formats: str) -> Board:
    return make_board(load_runs([world.runs]), formats)


def f1(rows: Iterable[ScoredRow]) -> float:
    """Return F1 in percent, from the definition."""
    sums = sum_rows(list(rows))
    return 200 * sums["tp"] / (sums["n_pred"] + sums["n_gt"])


# --- the value ------------------------------------------------------------------------------------


def test_each_half_is_scored_in_the_format_of_the_other(equal: World) -> None:
    """Computed again from the sums of rows."""
    board = board_of(equal)
    rows: dict[tuple[str, str, bool], list[ScoredRow]] = {}
    for each in board.runs:
        for row in each.run.rows if each.run.model == "many" else ():
            (second,) = second_half((f"{each.run.variant.images}/{row.source}",))
            place = each.dataset, each.run.variant.format, bool(second)
            rows.setdefault(place, []).append(row)
    tables = ("Pascal", "SVG")

    def value(name: str, second: bool) -> float:
        return round(np.mean([f1(rows[table, name, second]) for table in tables]), 1)

    first, other = (max(FORMATS, key=lambda name: value(name, half)) for half in (False, True))
    assert first != other
    values = []
    for table in tables:
        entry = board.entry("many", table, F1)
        values.append(f1(rows[table, other, False] + rows[table, first, True]))
        assert entry.elsewhere.value == pytest.approx(values[-1])
        assert entry.interval is None
        assert entry.elsewhere.interval.low < entry.elsewhere.value < entry.elsewhere.interval.high
    overall = board.entry("many", OVERALL, F1)
    assert overall.elsewhere.value == pytest.approx(np.mean(values))
    assert overall.value > overall.elsewhere.value


def test_a_format_that_leads_on_both_halves_keeps_its_value(world: World) -> None:
    world.table("Pascal", [query(i, picture=f"{i}.jpg") for i in range(IMAGES)])
    world.predict("Good", JSON, finding(JSON, 1, 0.9))
    world.predict("Good", TEXT, finding(TEXT, 2, 0.2))
    world.predict("One", JSON, finding(JSON, 3, 0.5))
    entry = board_of(world).entry("Good", "Pascal", F1)
    named = board_of(world, "xyxy_json").entry("Good", "Pascal", F1)
    assert (entry.value, entry.elsewhere.value) == (named.value, pytest.approx(named.value))
    assert entry.elsewhere.interval.low == pytest.approx(named.interval.low)
    assert entry.elsewhere.interval.high == pytest.approx(named.interval.high)


def test_halves_are_of_images_and_of_nothing_else(world: World) -> None:
    """Queries of an image are in one half, for every model, dataset, order and selection."""
    names = tuple(f"Pascal/{at}.jpg" for at in range(400))
    halves = dict(zip(names, second_half(names), strict=True))
    assert dict(zip(names[::-2], second_half(names[::-2]), strict=True)).items() <= halves.items()
    assert 160 < sum(halves.values()) < 240
    world.table("Pascal", [query(i, picture=f"{i // 3}.jpg") for i in range(90)])
    for at, name in enumerate(FORMATS[:4]):
        full = f"FindIt_Pascal_{name}"
        world.predict("many", full, finding(full, at))
    (answers,) = board_of(world).elsewhere.values()
    half_of_run = [
        {halves[f"Pascal/{query_ // 3}.jpg"] for query_ in each.queries} for each in answers.answers
    ]
    assert [len(each) for each in half_of_run] == [1] * len(half_of_run)
    assert sorted(np.concatenate([each.queries for each in answers.answers])) == list(range(90))


def test_nothing_changes_where_a_format_was_named(equal: World, tmp_path: Path) -> None:
    """Named by --format, or the only one: the same files, byte by byte."""
    runs = load_runs([equal.runs])
    alone = [run for run in runs if run.variant.format == "xyxy_json"]
    named, only = make_board(runs, ["xyxy_json"]), make_board(alone)
    assert named.elsewhere == only.elsewhere == {}
    for text in (as_markdown(named), to_openvlm(named, NOW), as_latex(named)):
        assert "elsewhere" not in text
    assert to_openvlm(named, NOW) == to_openvlm(only, NOW)
    for board in (named, only):
        assert all(
            entry.interval for cell in board.cells.values() for entry in cell.entries.values()
        )
    # A format named for one model leaves the other's choice.
    assert {model for model, _ in make_board(runs, ["one=xyxy_json"]).elsewhere} == {"many"}
    assert make_board(runs, ["many=xyxy_json"]).elsewhere == {}


# --- every output ---------------------------------------------------------------------------------


def test_every_output_ranks_and_tests_the_same_value(equal: World, tmp_path: Path, capsys) -> None:
    board = board_of(equal)
    write_board(board, tmp_path, NOW)
    expected = {}
    for model in board.models:
        entry = board.entry(model, OVERALL, F1)
        expected[model] = f"{entry.tested:.1f} ({entry.tested_interval.low:.1f}"
    assert expected["many"] != f"{board.entry('many', OVERALL, F1).value:.1f}"
    order = sorted(board.models, key=lambda model: -board.entry(model, OVERALL, F1).tested)
    assert list(board.models) == order

    # Terminal
    print_board(board)
    lines = capsys.readouterr().out.splitlines()
    head = next(line for line in lines if line.startswith("rank"))
    assert "Overall elsewhere" in head
    for model, text in expected.items():
        (line,) = (line for line in lines if re.match(rf" *\d+.* {model} .*\(", line))
        assert text in line

    # Markdown and LaTeX
    for model, text in expected.items():
        value, low = text.split(" (")
        row = re.escape(value) + r"\S* ?(#\S+)? ?\??(<sub>| <sub>|\{?\\\w+ )" + re.escape(low)
        assert re.search(rf"\| {model} \|.*{row}", as_markdown(board)), model
        tex = re.escape(value) + r"\}?(\\,\S+)? \{\\scriptsize " + re.escape(low)
        assert re.search(rf"& {model} &.*{tex}", as_latex(board, PaperStyle.FULL)), model
        booktabs = as_latex(board, PaperStyle.BOOKTABS)
        assert re.search(rf"& {model} &.*[& {{]{re.escape(value)}", booktabs), model

    # CSV, JSON, sheet, OpenVLM
    rows = [row for row in csv_rows(tmp_path / "leaderboard.csv") if "Overall" in row["dataset"]]
    content = json.loads((tmp_path / "leaderboard.json").read_text("utf-8"))["rows"]
    book = load_workbook(tmp_path / "leaderboard.xlsx")["Scores"]
    results = json.loads((tmp_path / "openvlm.json").read_text("utf-8"))["results"]
    titles = [cell.value for cell in book[3]]
    for model in board.models:
        tested = board.entry(model, OVERALL, F1).tested
        (row,) = (row for row in rows if row["model"] == model)
        assert float(row[f"{F1} elsewhere"]) == pytest.approx(tested, abs=1e-4)
        assert int(row[f"{F1} rank"]) == board.entry(model, OVERALL, F1).rank
        (as_json,) = (r for r in content if (r["model"], r["dataset"]) == (model, "mean: Overall"))
        assert as_json[f"{F1} elsewhere"]["value"] == pytest.approx(tested, abs=1e-4)
        place = titles.index("model")
        of_model = next(r for r in book.iter_rows(4) if r[place].value == model)
        in_sheet = of_model[titles.index("Overall elsewhere")].value
        assert in_sheet == pytest.approx(tested, abs=1e-4)
        in_openvlm = results[model]["FindIt_average_Overall"]
        assert in_openvlm[f"{F1} elsewhere"] == round(tested, 2)
        assert in_openvlm["Overall"] == round(board.entry(model, OVERALL, F1).value, 2)

    # Report
    panels = panels_of(board)
    dots = {dot.model: dot for dot in panels[0].dots}
    rows_of_chart = forest_of(board, panels).charts[0][1]["data"]["values"]
    in_chart = {
        row["model"]: row["value"] for row in rows_of_chart if row["panel"] == panels[0].name
    }
    for model in board.models:
        assert in_chart[model] == pytest.approx(board.entry(model, OVERALL, F1).tested, abs=1e-4)
    lower = order[-1]
    to_above = board.entry(lower, OVERALL, F1).to_above
    assert dots[lower].to_best.value == pytest.approx(to_above.value)
    assert dots[lower].to_best.p_value == pytest.approx(to_above.p_value)
    first = {each.question: each for each in headlines_of(board, panels, losses_of(board))}
    assert expected[order[0]].split(" (")[0] in first["Which model is best?"].because
    assert "in its best format, which is optimistic" in first["Which model is best?"].because or (
        order[0] == "one"
    )
    page = make_page(board, NOW)
    assert "Overall elsewhere" in page

    # A against B in the report
    runs = [row.run for row in board.runs]
    for pair in pair_values(choose_pairs(board), board, runs):
        models = [runs[pair[side]].model for side in ("left", "right")]
        if len(set(models)) < 2:
            assert pair["chosen"] == []
            continue
        (title, left, right, value, low, high, p, told), plain = pair["metrics"][:2]
        entries = [board.entry(model, pair["dataset"], F1) for model in models]
        assert title == f"{F1} elsewhere"
        assert [left, right] == pytest.approx([entry.tested for entry in entries], abs=1e-4)
        assert value == pytest.approx(left - right, abs=1e-3)
        assert low < value < high
        below = next(entry for entry in entries if entry.to_above is not None)
        assert p == pytest.approx(below.to_above.corrected)
        assert told == below.to_above.significant
        assert plain[:3] == pytest.approx([F1, *(e.value for e in entries)], abs=1e-4)
        assert plain[4:] == [None] * 4


def test_the_table_fits_80_columns(equal: World, capsys, monkeypatch) -> None:
    board = board_of(equal)
    terminal = Console(width=80, force_terminal=True, color_system=None)
    monkeypatch.setattr("vlmeval_findit.cli.printing.console", lambda: terminal)
    print_board(board)
    printed = capsys.readouterr().out
    lines = printed.splitlines()
    assert "What was lost: in leaderboard.md" in lines
    assert "mostly by" not in printed
    assert max(map(len, lines)) <= 80
    assert any(line.startswith("rank") for line in lines)
    assert "elsewhere: each half of the images in the format that is best on" in printed


# --- where it is not known, or there was no choice ------------------------------------------------


def test_too_few_images_for_two_halves_are_not_tested(world: World) -> None:
    world.table("Pascal", [query(i, picture=f"{i}.jpg") for i in range(6)])
    for name in (JSON, TEXT):
        world.predict("many", name, speaking(name, 0.9, 3))
    world.predict("one", JSON, speaking(JSON, 0.4, 3))
    board = board_of(world)
    (answers,) = board.elsewhere.values()
    assert answers.unknown == TOO_FEW_TO_CHOOSE
    entries = [board.entry(model, "Pascal", F1) for model in board.models]
    assert [entry.ranks for entry in entries] == [RankRange(1, 2, untested=True)] * 2
    assert entries[0].rank == 1
    (row,) = re.findall(r"\| 1–2 \? \| many \|.*", as_markdown(board))[:1]
    assert "**–**" not in row
    (line,) = dict(remarks(board))["Elsewhere"]
    assert line == f"many on Pascal: not known: {TOO_FEW_TO_CHOOSE}; ranked by its value, untested"
    known = "? without a value: ranked by its value where elsewhere is not known"
    assert known in as_markdown(board)
    assert known not in as_markdown(make_board(load_runs([world.runs]), ["xyxy_json"]))
    (record,) = (
        r for r in values_table(board).records() if (r["model"], r["dataset"]) == ("many", "Pascal")
    )
    assert (record[f"{F1} elsewhere"], record[f"{F1} low"]) == (None, None)
    first = {e.question: e for e in headlines_of(board, panels_of(board), losses_of(board))}
    assert first["Is that certain?"].answer == "Not known"
    assert "no value elsewhere of many is known" in first["Is that certain?"].because
    for text in (as_markdown(board), as_latex(board), make_page(board, NOW)):
        assert TOO_FEW_TO_CHOOSE in text


@pytest.mark.parametrize("made", ["fewer rows", "other prompts", "another scorer"])
@pytest.mark.parametrize("rest", few_fast([1, 2], 1))
def test_a_run_that_is_not_compared_counts_nowhere(world: World, made: str, rest: int) -> None:
    """However good it is: values, ranks and tests are as without it, and a line names it."""
    world.table("Pascal", [query(i, picture=f"{i}.jpg") for i in range(IMAGES)])
    runs = []
    for at, name in enumerate(FORMATS[:rest]):
        full = f"FindIt_Pascal_{name}"
        runs.append(world.run("Half", full, finding(full, at, 0.7)))
    one = f"FindIt_Pascal_{FORMATS[0]}"
    for model in ("Other", "Third"):
        runs.append(world.run(model, one, finding(one, 5, 0.75)))
    best = f"FindIt_Pascal_{FORMATS[2]}"
    rows = 20 if made == "fewer rows" else None
    better = world.run("Half", best, finding(best, 9, 1.0), rows=rows)
    if made == "other prompts":
        better = with_facts(better, prompts="others")
    if made == "another scorer":
        scored_with = {"vlmeval_findit": "0" * 12}
        better = replace(better, provenance=replace(better.provenance, scored_with=scored_with))
    without, board = make_board(runs), make_board([*runs, better])
    assert [each.run for each in board.excluded] == [better]
    assert board.models == without.models
    for place, cell in board.cells.items():
        assert replace(cell, left_out=0) == without.cells[place]
    (line,) = (line for line in dict(remarks(board))["Formats tried"] if "not compared" in line)
    assert line.startswith("Half: 1 further format that was asked some of its queries and not ")
    assert "Formats tried" not in dict(remarks(without)) or rest == 2


def test_a_format_of_one_dataset_is_chosen_there_only(world: World) -> None:
    """A search on Pascal, then its best format on SVG: SVG chose nothing."""
    for table in ("Pascal", "SVG"):
        world.table(table, [query(i, picture=f"{table}{i}.jpg") for i in range(IMAGES)])
    for at, name in enumerate(FORMATS[:8]):
        full = f"FindIt_Pascal_{name}"
        world.predict("many", full, finding(full, at))
    best = board_of(world).run("many", "Pascal").variant.format
    on_svg = f"FindIt_SVG_{best}"
    world.predict("many", on_svg, finding(on_svg, 77))
    board = board_of(world)
    assert [dataset for _, dataset in board.elsewhere] == ["Pascal"]
    values = [board.entry("many", name, F1) for name in ("Pascal", "SVG")]
    assert values[0].tested < values[0].value
    assert values[1].tested == values[1].value
    overall = board.entry("many", OVERALL, F1)
    assert overall.tested == pytest.approx(np.mean([each.tested for each in values]))


def test_a_better_format_on_fewer_datasets_was_not_the_choice(world: World) -> None:
    """The reported one was run on most datasets: no value decided, so none is optimistic."""
    for table in ("Pascal", "SVG"):
        world.table(table, [query(i, picture=f"{table}{i}.jpg") for i in range(IMAGES)])
        name = f"FindIt_{table}_xyxy_json"
        world.predict("M", name, finding(name, 1, 0.4))
    world.predict("M", TEXT, finding(TEXT, 2, 0.9))
    board = board_of(world)
    assert board.run("M", "Pascal").variant.format == "xyxy_json"
    assert board.elsewhere == {}


def test_failed_calls_of_other_formats_leave_no_rank(equal: World) -> None:
    """A metric over answered calls ranks no model that has failed calls, in any of its formats."""
    runs = load_runs([equal.runs])
    before = make_board(runs)
    others = {
        each.run.variant
        for answers in before.elsewhere.values()
        for each in answers.answers
        if each.run is not answers.reported
    }
    assert others
    failing_runs = []
    for run in runs:
        if run.model == "many" and run.variant in others:
            rows = [replace(row, failed=at > 0) for at, row in enumerate(run.rows)]
            run = replace(run, rows=tuple(rows))
        failing_runs.append(run)
    board = make_board(failing_runs)
    assert not board.run("many", "Pascal").failed
    assert board.entry("many", OVERALL, F1).rank is None
    assert board.entry("many", OVERALL, board.metrics[0].name).rank is not None


def test_equal_models_are_seldom_told_apart(world: World) -> None:
    """The best of 12 equal formats leads in most boards; elsewhere it leads in half of them.

    benchmarks/test_chosen_formats.py draws hundreds.
    """
    world.table("Pascal", [query(i, picture=f"{i}.jpg") for i in range(IMAGES)])
    template = [
        world.run("many", f"FindIt_Pascal_{n}", finding(f"FindIt_Pascal_{n}", 0)) for n in FORMATS
    ]
    leads = {"reported": 0, "elsewhere": 0}
    marks = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        runs = [_drawn(run, rng) for run in template]
        runs.append(_drawn(replace(template[0], model="one"), rng))
        board = make_board(runs)
        many, one = (board.entry(model, OVERALL, F1) for model in ("many", "one"))
        leads["reported"] += many.value > one.value
        leads["elsewhere"] += many.tested > one.tested
        assert many.ranks == one.ranks or {1, 2} == {many.ranks.worst, one.ranks.worst}
        marks += many.ranks.worst == one.ranks.worst == 2
    assert leads["reported"] >= 10
    assert 2 <= leads["elsewhere"] <= 10
    assert marks >= 10


def _drawn(run: Run, rng: np.random.Generator) -> Run:
    """Return the run with new hits, at 60 %."""
    found = rng.random(len(run.rows)) < 0.6
    rows = []
    for row, hit in zip(run.rows, found, strict=True):
        counts = {"tp": int(hit), "n_pred": 1, "n_gt": 1, "iou_sum": float(hit)}
        rows.append(replace(row, sums={**row.sums, **counts}, slices={}))
    drawn = replace(run, rows=tuple(rows))
    assert sum_rows(drawn.rows)["n_gt"] == IMAGES
    return drawn


def test_compare_says_that_a_format_was_one_of_many(equal: World, tmp_path: Path, capsys) -> None:
    for model in ("many", "one"):
        (tmp_path / model).mkdir()
        for path in equal.runs.glob(f"{model}_FindIt_Pascal_*"):
            (tmp_path / model / path.name).write_bytes(path.read_bytes())
    sides = [f"{tmp_path / 'many'}={FORMATS[2]}", f"{tmp_path / 'one'}={FORMATS[0]}"]
    assert main(["compare", *sides]) == 0
    printed = capsys.readouterr().out
    assert "A: one of 12 formats in its folder." in printed
    assert "B: one of" not in printed
