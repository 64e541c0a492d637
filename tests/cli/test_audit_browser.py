"""From runs to reviewed scores: the audit's page in a browser, and what its file does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import report_browser as chrome
from doubtful_labels import EXPRESSIONS, Right, answering, expressions
from report_browser import IN_BROWSER
from scored_runs import World
from waits import until

from vlmeval_findit.cli import main
from vlmeval_findit.protocol import Reviews, ReviewVerdict, RowChoice
from vlmeval_findit.storage import read_reviews

pytestmark = IN_BROWSER

ELSEWHERE = (140.0, 10.0, 180.0, 50.0)
WRONG = (3, 7, 20, 41)
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[int, Right]:
    """Write a table with four wrong labels, and runs of two models; return the truth."""
    world = World(tmp_path)
    world.at_hand(monkeypatch)
    monkeypatch.chdir(tmp_path)
    answers = expressions(world, dict.fromkeys(WRONG, ELSEWHERE))
    for model in ("Left", "Right"):
        world.predict(model, EXPRESSIONS, answering(EXPRESSIONS, answers))
    return answers


def nearest(browser: Any, box: tuple[float, ...]) -> str:
    """Return the key of the candidate that is nearest to the right box."""
    found = browser.execute_script(
        "const far = node => ['x', 'y'].reduce((sum, key, i) =>"
        "  sum + Math.abs(node.querySelector('rect').getAttribute(key) - arguments[0][i]), 0);"
        "const groups = [...document.querySelectorAll('.candidates > g')];"
        "return groups.sort((a, b) => far(a) - far(b))[0].getAttribute('class')",
        list(box),
    )
    return str(found)[-1].lower()


def review(browser: Any, page: Path, right: dict[int, Right]) -> Reviews:
    """Review all rows of a page as somebody who knows the truth, and save them."""
    from selenium.webdriver.common.keys import Keys

    to = {"behavior": "allow", "downloadPath": str(page.parent)}
    browser.execute_cdp_cmd("Browser.setDownloadBehavior", to)
    with chrome.opened_page(browser, page, title="Review of RefCOCO"):
        chrome.press(browser, "ab", Keys.ENTER)
        while not browser.find_element("id", "proposal").is_displayed():
            index = int(chrome.text_of(browser, "asked").removeprefix("object "))
            chrome.press(browser, nearest(browser, right[index].boxes[0]))
        chrome.press(browser, "s")
    path = page.parent / "reviews.jsonl"
    until(lambda: path.is_file() and path.read_text(encoding="utf-8").endswith("\n"))
    return read_reviews([path])


def test_a_review_gives_the_true_scores(
    browser: Any, right: dict[int, Right], tmp_path: Path, capsys: Capture
) -> None:
    assert main(["audit", "runs", "--review", "review.html"]) == 0
    reviews = review(browser, tmp_path / "review.html", right)
    decisions = reviews.decisions()
    changed = {index for index, each in decisions.items() if each.verdict is ReviewVerdict.MODEL}
    assert changed == {*WRONG}
    assert {each.drawn for each in decisions.values()} == {RowChoice.LISTED, RowChoice.RANDOM}
    assert len(decisions) == 24
    assert main(["data", "reviews", "reviews.jsonl"]) == 0
    assert main(["audit", "runs", "--reviews", "reviews.jsonl"]) == 0
    capsys.readouterr()
    assert main(["leaderboard", "runs", "--reviews", "reviews.jsonl"]) == 0
    board = capsys.readouterr().out
    assert f"RefCOCO [reviewed {reviews.digest}]" in board
    for model in ("Left", "Right"):
        (line,) = [line for line in board.splitlines() if f" {model} " in line and "†" in line]
        assert "93.3 (" in line
        assert "100.0 (" in line
