"""Doubtful labels in the report: where two families are, and never in another number."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from doubtful_labels import OBJECTS, ROWS, Right, answering, objects, pair
from report_browser import IN_BROWSER, opened_page
from scored_runs import World

from vlmeval_findit.leaderboard import Board, make_board
from vlmeval_findit.report import Bound, doubts_of, make_page
from vlmeval_findit.report import page as page_module
from vlmeval_findit.scoring import load_runs
from vlmeval_findit.statistics import LabelFault

WRONG = (7, 21)


def at_label(at: int, answer: Right) -> Right:
    """Answer what the wrong labels say: one object is missing."""
    return Right(answer.boxes[:1]) if at in WRONG else answer


def at_hand(world: World, patch: pytest.MonkeyPatch) -> None:
    patch.setenv("FINDIT_TABLES", str(world.folder))
    patch.setenv("FINDIT_IMAGES", f"Pascal={world.folder / 'pictures'}")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Return runs of four models; only Follower answers as two wrong labels say."""
    world = World(tmp_path_factory.mktemp("doubtful"))
    with pytest.MonkeyPatch.context() as patch:
        at_hand(world, patch)
        for at in range(ROWS):
            world.picture(f"{at}.jpg", at)
        right = objects(world, {at: pair(at)[:1] for at in WRONG})
        for model in ("Left", "Right", "Third"):
            world.predict(model, OBJECTS, answering(OBJECTS, right))
        follower = answering(OBJECTS, right, change=at_label)
        world.predict("Follower", OBJECTS, follower)
    return world


@pytest.fixture
def board(world: World, monkeypatch: pytest.MonkeyPatch) -> Board:
    at_hand(world, monkeypatch)
    return make_board(load_runs([world.runs]))


def data_of(html: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', html, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def page_of(board: Board) -> str:
    return make_page(board, datetime.now(UTC))


def test_share_by_kind_and_bound(board: Board) -> None:
    (doubts,) = doubts_of(board)
    assert {row.index for row in doubts.listed} == set(WRONG)
    assert doubts.by_fault == {LabelFault.MISSING: 2}
    assert (doubts.dataset, doubts.rows) == ("Pascal", ROWS)
    assert set(doubts.voters) == {"Left", "Right", "Third", "Follower"}
    bounds = {each.model: each for each in doubts.bounds}
    objects_of_rows = 2 * ROWS
    found = objects_of_rows - len(WRONG)
    lower, whole = pytest.approx(200 * found / (found + objects_of_rows)), pytest.approx(100)
    assert bounds["Follower"] == Bound("Follower", whole, 1, lower, 4)
    assert bounds["Left"] == Bound("Left", lower, 2, whole, 1)
    assert len(doubts.moves) == 4


@pytest.mark.parametrize("others", [(), ("Left", "Third")])
def test_what_datasets_have_in_common_is_said_once(
    others: tuple[str, ...], board: Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dataset without a doubt has no row of zeros."""
    (doubts,) = doubts_of(board)
    none = [replace(doubts, dataset=name, listed=(), bounds=()) for name in ("Quiet", "Calm")]
    second = replace(doubts, dataset="Second", voters=others or doubts.voters)
    monkeypatch.setattr(page_module, "doubts_of", lambda board: (doubts, *none, second))
    section = page_of(board).split('<section id="labels"')[1].split("</section>")[0]
    assert "None is doubtful on Quiet, Calm." in section
    rows = re.findall(r'<tr><th scope="row"><span>(.*?)</span>', section.split("<details>")[0])
    assert rows == ["Pascal", "Second"]
    (bound,) = re.findall(r"<summary>(A bound.*?)</summary>", section)
    assert bound.endswith("models would have another rank: 4 models on Pascal, Second")
    assert section.count(", ".join(doubts.voters)) == 1
    assert (f"Compared: {', '.join(doubts.voters)}." in section) == (not others)
    assert ("Compared models</th>" in section) == bool(others)


def test_answers_can_be_filtered_by_doubt(board: Board) -> None:
    cards = data_of(page_of(board))["cards"]
    doubtful = [card for card in cards if "doubt" in card]
    assert {card["index"] for card in doubtful} == set(WRONG)
    assert {(card["doubt"], card["doubted_by"]) for card in doubtful} == {
        ("missing", "3 of 4 models")
    }


def test_doubtful_rows_are_among_few_cards(board: Board) -> None:
    cards = data_of(make_page(board, datetime.now(UTC), cards=20))["cards"]
    assert {card["index"] for card in cards if "doubt" in card} == set(WRONG)


def test_no_other_number_depends_on_doubts(board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    html = page_of(board)
    monkeypatch.setattr(page_module, "doubts_of", lambda board: ())
    without = page_of(board)
    assert "Doubtful labels</h2>" in html
    assert "Doubtful labels</h2>" not in without
    section = re.compile(r'<section id="(?!labels|gallery)\w+".*?</section>', re.DOTALL)
    assert section.findall(html) == section.findall(without)
    data = data_of(html)
    for card in data["cards"]:
        card.pop("doubt", None)
        card.pop("doubted_by", None)
    assert data == data_of(without)


def test_one_family_has_no_section(board: Board) -> None:
    def of_one_family(run: Any) -> Any:
        identity = run.provenance.identity
        known = replace(identity, answering=replace(identity.answering, row="Qwen3-VL"))
        return replace(run, provenance=replace(run.provenance, identity=known))

    alike = make_board([of_one_family(row.run) for row in board.runs])
    assert doubts_of(alike) == ()
    assert 'id="labels"' not in page_of(alike)


def test_without_predictions_there_is_no_bound(board: Board) -> None:
    path = board.runs[0].run.path
    text = path.read_bytes()
    path.unlink()
    try:
        (doubts,) = doubts_of(board)
    finally:
        path.write_bytes(text)
    model = board.runs[0].run.model
    assert doubts.unbounded == (model,)
    assert model not in {each.model for each in doubts.bounds}
    assert len(doubts.listed) == len(WRONG)


def test_without_the_table_there_is_no_section(
    board: Board, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FINDIT_TABLES", str(tmp_path))
    assert doubts_of(board) == ()


@pytest.mark.slow
class TestInBrowser:
    pytestmark = IN_BROWSER

    def test_a_button_shows_the_answers(self, browser: Any, board: Board, tmp_path: Path) -> None:
        path = tmp_path / "report.html"
        path.write_text(page_of(board), encoding="utf-8")
        with opened_page(browser, path):
            browser.find_element("css selector", ".show-doubts").click()
            count = browser.find_element("id", "count").text
            cards = [card.text for card in browser.find_elements("css selector", "#cards .card")]
        assert count == "8 answers"
        assert all("label doubtful: missing (3 of 4 models)" in card for card in cards)
