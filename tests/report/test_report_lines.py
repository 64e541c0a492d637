"""Lines of text in a browser: under their picture, and different even without colour."""

from __future__ import annotations

from typing import Any

import pytest
from report_browser import IN_BROWSER, browser, emulated, opened_page, write_report
from scored_runs import World, world
from toy_benchmark import guessing, letters

__all__ = ["browser", "letters", "world"]
pytestmark = IN_BROWSER


@pytest.mark.parametrize("width", [1280, 390])
def test_lines_stand_under_the_picture(browser: Any, letters: World, width: int) -> None:
    letters.predict("M", "Letters_Zoo_plain", guessing(0.5))
    page = write_report(letters.runs)
    with emulated(browser, width), opened_page(browser, page, title="Letters report"):
        check_lines(browser, width)


def check_lines(browser: Any, width: int) -> None:
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    cards = browser.execute_script(
        "return [...document.querySelectorAll('.card')].map(card => ["
        "  card.querySelector('svg').getBoundingClientRect().bottom,"
        "  ...[...card.querySelectorAll('.line')].map(line => "
        "    [line.getBoundingClientRect().top, line.innerText,"
        "     getComputedStyle(line).borderLeftStyle])])"
    )
    pairs = [(truth[1], answer[1]) for _, truth, answer in cards]
    assert {line.split(" ")[0] for pair in pairs for line in pair} == {"=", "✓", "✗"}
    assert ("= expected A: cat", "✓ right A: cat") in pairs
    assert ("= expected A: cat", "✗ wrong B: dog") in pairs
    styles = {line[1].split(" ")[0]: line[2] for _, *lines in cards for line in lines}
    assert len(set(styles.values())) == 3
    for bottom, *lines in cards:
        assert all(top >= bottom - 1 for top, *_ in lines)
    # There are no boxes to hide, and no labels on them.
    assert not browser.find_element("id", "legend").is_displayed()
    browser.execute_script("document.querySelector('.card').click()")
    assert len(browser.find_elements("css selector", "#detail-body .line")) == 2
