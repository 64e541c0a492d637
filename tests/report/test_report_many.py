"""A page of many models: its length is bounded, and its plots can be read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from few_fast import few_fast
from many_runs import FORMATS, make_runs
from report_browser import NEEDS_CHROMIUM, choose, drawn, emulated, opened_page

from vlmeval_findit.leaderboard import Board, make_board
from vlmeval_findit.protocol import ScoredRow
from vlmeval_findit.report import (
    MOST_CURVES,
    DetailedCharts,
    board_charts,
    gather_transcripts,
    make_page,
)
from vlmeval_findit.scoring import RowData, Run, load_runs, read_details

MODELS = 45


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Board]:
    """Yield the board of models in two formats each, which differ by name and chance only."""
    folder = tmp_path_factory.mktemp("many")
    path = make_runs(folder, 2 * MODELS, 12, FORMATS[:2])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FINDIT_TABLES", str(folder))
        patch.setenv("FINDIT_IMAGES", f"Pascal={folder / 'pictures'}")
        yield make_board(load_runs([path], keep=RowData.SUMS))


@pytest.fixture(scope="module")
def page(board: Board, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(make_page(board, datetime.now(UTC), 100), encoding="utf-8")
    return path


def few(board: Board, models: int) -> Board:
    return make_board([row.run for row in board.runs if row.run.model in board.models[:models]])


@pytest.mark.parametrize("models", few_fast([1, MOST_CURVES, MOST_CURVES + 1], 2))
def test_curves_are_those_of_the_first_models(
    board: Board, monkeypatch: pytest.MonkeyPatch, models: int
) -> None:
    monkeypatch.setenv("FINDIT_TABLES", str(board.runs[0].run.path.parents[1]))
    some = few(board, models)
    details = DetailedCharts(some)
    read: list[str] = []

    def noted(run: Run) -> Sequence[ScoredRow]:
        read.append(run.model)
        return read_details(run)

    monkeypatch.setattr(board_charts, "read_details", noted)
    for transcript in gather_transcripts([row.run for row in some.runs])[0]:
        details.add(transcript)
    ((title, drawn),) = details.drawn()
    assert title == "IoU thresholds"
    rows = drawn.charts[0][1]["data"]["values"]
    assert list(dict.fromkeys(row["model"] for row in rows)) == list(some.models[:MOST_CURVES])
    # Of the others not even the details are read.
    assert sorted(read) == sorted(some.models[:MOST_CURVES])
    assert {model for model, _ in details.curves} == set(some.models[:MOST_CURVES])
    assert bool(details.note) == (models > MOST_CURVES)


@pytest.mark.parametrize(("models", "is_long"), few_fast([(MODELS, True), (5, False)], 1))
def test_what_is_long_is_folded_or_scrolls(
    board: Board, monkeypatch: pytest.MonkeyPatch, models: int, is_long: bool
) -> None:
    monkeypatch.setattr("vlmeval_findit.report.page.DRAWN_MAPS", 40)
    notes = tuple(f"asked without <{at}>" for at in range(models))
    some = few(board, models)
    forced = some.runs[0].run
    runs = [replace(forced, provenance=replace(forced.provenance, forced=notes[:1]))]
    html = make_page(make_board([*runs, *(row.run for row in some.runs[1:])]), datetime.now(UTC))
    # A format is a line, however many models are reported in it.
    (reported,) = re.findall(r"<h3>Formats reported</h3>.*?<ul>(.*?)</ul>", html, re.S)
    assert reported.count("<li>") <= len(FORMATS[:2])
    assert reported.count("<b>") == models
    tables = re.findall(r'<div[^>]* ?class="wide( many)?"[^>]*>(.*?)</table>', html, re.S)
    scrolls = [many != "" for many, _ in tables]
    assert scrolls == [rows.count("<tr>") > 1 + 40 for _, rows in tables]
    assert any(scrolls) == is_long
    # A chart of some models says so.
    assert (
        "The first 24 models, and the best of each panel; the table has all." in html
    ) == is_long
    assert ("The first 40 models; the table has all." in html) == is_long
    # A note on few runs is visible, and is text.
    assert re.search(r"<h3>Forced</h3>\s*<ul><li>[^<]*asked without &lt;0&gt;</li></ul>", html)


@pytest.mark.slow
@NEEDS_CHROMIUM
@pytest.mark.parametrize("width", [1280, 390])
def test_it_is_looked_through(browser: Any, page: Path, width: int) -> None:
    with emulated(browser, width), opened_page(browser, page):
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
        # The gallery begins within ten screens, for any number of models.
        above = "return document.getElementById('gallery').getBoundingClientRect().top"
        assert browser.execute_script(above) < 10 * 900
        # Charts are no wider than there is room, and have their names inside.
        choose(browser, **{"detail-of": "thresholds"})
        drawn(browser, "[data-detail=thresholds]")
        names = browser.execute_script(
            "const svg = document.querySelector('[data-detail=thresholds] .drawing > div svg');"
            "const edge = svg.getBoundingClientRect();"
            "return [...svg.querySelectorAll('.role-legend-label text')].map(label => {"
            "  const {right, bottom} = label.getBoundingClientRect();"
            "  return right <= edge.right && bottom <= edge.bottom && edge.width <= innerWidth; })"
        )
        assert names == [True] * MOST_CURVES
        # A few bars first, the others on demand.
        bars = "return document.querySelectorAll('#losses .loss').length"
        assert browser.execute_script(bars) == 20
        more = browser.find_element("id", "all-losses")
        assert more.text == f"Show all {MODELS}"
        browser.execute_script("arguments[0].click()", more)
        assert browser.execute_script(bars) == MODELS
        assert not more.is_displayed()
        browser.execute_script("document.querySelector('#lost details').open = true")
        table = "return document.querySelector('#lost .wide').getBoundingClientRect().height"
        assert browser.execute_script(table) <= 900
        browser.execute_script("document.querySelector('#best details').open = true")
        # A scrolled table keeps its header.
        scrolled, top = browser.execute_script(
            "const box = document.querySelector('#best .wide.many');"
            "box.scrollTop = 500;"
            "const head = box.querySelector('thead th').getBoundingClientRect();"
            "return [box.scrollTop, head.top - box.getBoundingClientRect().top]"
        )
        assert scrolled == 500
        assert abs(top) <= 2
