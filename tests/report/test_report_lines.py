"""Lines of text in a real browser: under their picture, and told apart without colour."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from scored_runs import World, world
from test_report_browser import browser, pytestmark
from toy_benchmark import guessing, letters

from vlmeval_findit.leaderboard.board import make_board
from vlmeval_findit.report.page import make_page
from vlmeval_findit.runs.scored_run import load_runs

__all__ = ["browser", "letters", "pytestmark", "world"]


@pytest.mark.parametrize("width", [1280, 390])
def test_lines_stand_under_the_picture(
    browser: Any, letters: World, tmp_path: Path, width: int
) -> None:
    letters.predict("M", "Letters_Zoo_plain", guessing(0.5))
    path = tmp_path / "report.html"
    board = make_board(load_runs([letters.runs]))
    path.write_text(make_page(board, datetime.now(UTC)), encoding="utf-8")
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get_log("browser")
    browser.get(path.as_uri())
    try:
        check_lines(browser, width)
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def check_lines(browser: Any, width: int) -> None:
    assert browser.get_log("browser") == []
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    cards = browser.execute_script(
        "return [...document.querySelectorAll('.card')].map(card => ["
        "  card.querySelector('svg').getBoundingClientRect().bottom,"
        "  ...[...card.querySelectorAll('.line')].map(line => "
        "    [line.getBoundingClientRect().top, line.innerText,"
        "     getComputedStyle(line).borderLeftStyle])])"
    )
    said = [(truth[1], answer[1]) for _, truth, answer in cards]
    assert {one.split(" ")[0] for pair in said for one in pair} == {"=", "✓", "✗"}
    assert ("= expected A: cat", "✓ right A: cat") in said
    assert ("= expected A: cat", "✗ wrong B: dog") in said
    styles = {line[1].split(" ")[0]: line[2] for _, *lines in cards for line in lines}
    assert len(set(styles.values())) == 3
    for bottom, *lines in cards:
        assert all(top >= bottom - 1 for top, *_ in lines)
    # There are no boxes to hide, and no labels on them.
    assert not browser.find_element("id", "legend").is_displayed()
    browser.execute_script("document.querySelector('.card').click()")
    assert len(browser.find_elements("css selector", "#detail-body .line")) == 2
