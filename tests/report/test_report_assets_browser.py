"""A page whose answers lie beside it, opened from a disk in a real browser."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from scored_runs import saying, small_world, speaking
from test_report_browser import EVIL, JSON, TEXT, browser, choose, count, pytestmark, shown

from vlmeval_findit.leaderboard.board import make_board
from vlmeval_findit.report.assets import Written, write_page
from vlmeval_findit.runs.scored_run import load_runs

__all__ = ["browser", "pytestmark"]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Written]:
    """Its last run, of which the first page of the gallery shows nothing, says "seldom"."""
    with pytest.MonkeyPatch.context() as patch:
        world = small_world(tmp_path_factory.mktemp("a world"), patch)
        world.predict("Evil", JSON, saying(EVIL))
        world.predict("Evil", TEXT, saying(EVIL))
        world.predict("Good", JSON, speaking(JSON, 1.0))
        world.predict("Good", TEXT, saying("seldom [50, 100, 250, 600] [600, 200, 900, 900]"))
        board = make_board(load_runs([world.runs]))
        yield write_page(world.folder / "a page.html", board, datetime.now(UTC), limit=1_000)


@pytest.fixture
def opened(browser: Any, written: Written) -> Any:
    browser.get("about:blank")
    for kind in ("browser", "performance"):
        browser.get_log(kind)
    browser.get(written.page.as_uri())
    return browser


def loaded(browser: Any) -> list[str]:
    """The files that were asked for since somebody looked last; their names without the hash."""
    messages = (json.loads(one["message"])["message"] for one in browser.get_log("performance"))
    asked = (
        one["params"]["request"]["url"]
        for one in messages
        if one["method"] == "Network.requestWillBeSent"
    )
    names = (url.rsplit("/", 1)[1] for url in asked if not url.startswith(("data:", "about:")))
    return sorted(name.rsplit("-", 1)[0] for name in names)


PICTURES = "return document.querySelectorAll('#cards image').length === 12"


def test_answers_are_loaded_when_they_are_to_be_seen(opened: Any) -> None:
    assert loaded(opened) == ["a%20page.html"]
    assert count(opened) == "48 answers"
    choose(opened, model="Evil")
    opened.execute_script("document.getElementById('gallery').scrollIntoView()")
    shown(opened, PICTURES)
    asked = loaded(opened)
    assert asked == ["answers-0000", "answers-0001", "pictures-0000"]
    cards = choose(opened, format="xyxy_text", model="Good")
    shown(opened, "return document.querySelectorAll('#cards image').length === 12")
    assert "answers-0003" not in asked
    assert loaded(opened) == ["answers-0003"]
    assert len(cards) == 12
    assert opened.get_log("browser") == []
    assert opened.execute_script("return document.getElementById('legend').hidden") is False


def test_an_answer_shows_what_its_file_holds_and_runs_nothing(opened: Any) -> None:
    opened.execute_script("document.getElementById('gallery').scrollIntoView()")
    shown(opened, PICTURES)
    choose(opened, model="Evil", format="xyxy_json")
    opened.execute_script("document.querySelector('#cards .card').click()")
    assert opened.execute_script("return document.getElementById('reply').textContent") == EVIL
    assert opened.title == "FindIt report"


def test_an_answer_that_the_address_names_brings_its_file(browser: Any, written: Written) -> None:
    browser.get("about:blank")
    browser.get(f"{written.page.as_uri()}#answer=Good/Pascal/xyxy_text/3")
    reply = "return document.getElementById('reply').textContent"
    assert shown(browser, reply).startswith("seldom")
    shown(browser, "return document.querySelectorAll('#detail image').length === 1")


def test_a_search_finds_replies_that_were_not_loaded(opened: Any) -> None:
    choose(opened, search="seldom")
    shown(opened, "return document.getElementById('count').textContent === '12 answers'")
    assert choose(opened, model="Evil") == []


def test_without_its_folder_the_page_says_so(
    browser: Any, written: Written, tmp_path: Path
) -> None:
    moved = tmp_path / "moved.html"
    moved.write_bytes(written.page.read_bytes())
    browser.get(moved.as_uri())
    browser.execute_script("document.getElementById('gallery').scrollIntoView()")
    lost = shown(
        browser, "const e = document.getElementById('missing'); return !e.hidden && e.innerText"
    )
    assert "not in the folder a page_files beside it" in lost
    assert len(choose(browser, model="Good")) == 12
    browser.get_log("browser")
