"""The answers of a report in a browser: the mix, links, zoom and the open answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import report_browser as chrome
from report_browser import IN_BROWSER
from scored_runs import saying, small_world
from test_report_browser import open_first, page

__all__ = ["page"]
pytestmark = IN_BROWSER

GOOD = {"model": "Good", "format": "xyxy_json"}


def is_open(browser: Any) -> Any:
    return browser.execute_script("return document.getElementById('detail').open")


# --- the mix --------------------------------------------------------------------------------------


def test_a_mixed_reply_shows_every_error_type(opened: Any) -> None:
    cards = chrome.choose(opened)
    assert len(cards) == 12
    lines = [card.split("\n") for card in cards]
    assert "✓ right" in lines[0]
    assert any("IoU 0.40" in card for card in cards)
    errors = {"✓ right", "✗ localisation", "✗ refused", "✗ nothing found"}
    assert errors <= set(chrome.texts(opened, "#cards .error"))
    rows = {line.rsplit(" ", 1)[1] for card in lines for line in card if " · row " in line}
    assert len(rows) == 12, "each has another picture"
    # The error types have the colours of their groups in the bars.
    colours = opened.execute_script(
        "const colour = element => getComputedStyle(element).backgroundColor;"
        "const chips = [...document.querySelectorAll('#cards .error')].map(chip => "
        "  [chip.textContent.slice(2), colour(chip)]);"
        "const data = JSON.parse(document.getElementById('data').textContent);"
        "const { error_types, error_groups } = data;"
        "const groupOf = name => error_groups[error_types.find(([, each]) => each === name)[3]][0];"
        "const key = name => [...document.querySelectorAll('#error_groups li')].find(item => "
        "  item.textContent.trim().startsWith(groupOf(name)));"
        "return chips.filter(([name]) => name !== 'right' && key(name)).map(([name, shade]) => "
        "  [shade, colour(key(name).querySelector('i'))])"
    )
    assert colours
    assert all(chip == bar for chip, bar in colours)


NOT_IN_ORDER = "✗ no rectangle: corners not in order"
BADGES = {
    "x turned": ("[900, 100, 100, 900]", NOT_IN_ORDER),
    "y turned": ("[100, 900, 900, 100]", NOT_IN_ORDER),
    "no area": ("[100, 100, 100, 900]", "✗ no rectangle"),
    "in order": ("[0, 0, 1, 1]", "✗ background"),
}


def test_a_badge_says_why_a_drawn_box_is_none(browser: Any, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        world = small_world(tmp_path, patch)
        for name, (reply, _) in BADGES.items():
            world.predict(name.replace(" ", "-"), "FindIt_Pascal_xyxy_text", saying(f"[{reply}]"))
        written = chrome.write_report(world.runs)
    with chrome.opened_page(browser, written) as opened:
        for name, (_, badge) in BADGES.items():
            chrome.choose(opened, model=name.replace(" ", "-"))
            badges = set(chrome.texts(opened, "#cards .error"))
            assert badge in badges, name
            assert (NOT_IN_ORDER in badges) == (badge == NOT_IN_ORDER), name


def test_truth_and_answers_differ_without_colour(opened: Any) -> None:
    """By dashes, and by a sign at each box that the legend explains."""
    chrome.choose(opened, order="row")
    looks = opened.execute_script(
        "return [...document.querySelectorAll('#cards svg rect[data-role]')].map(box => "
        "  [box.dataset.role, getComputedStyle(box).strokeDasharray])"
    )
    assert len({role for role, _ in looks}) == len({dash for _, dash in looks}) == 3
    assert ["truth", "none"] in looks
    tags = opened.execute_script(
        "return [...document.querySelectorAll('#cards svg .tag')].map(node => node.textContent)"
    )
    assert {"T", "✓ 1.00", "✗ 0.40"} <= set(tags)
    legend = opened.find_element("id", "legend").text
    for sign, name in (("T", "ground truth"), ("✓", "hit"), ("✗", "miss"), ("≠", "wrong label")):
        assert f"{sign} {name}" in legend.replace("\n", " ")


# --- links ----------------------------------------------------------------------------------------

NEAR = f"#answer={quote('Near%<i>', safe='')}/Pascal/xyxy_json/2"


def test_an_open_answer_is_in_the_address(opened: Any, page: Path) -> None:
    open_first(opened, model="Near%<i>")
    assert opened.current_url.endswith("/Pascal/xyxy_json/0")
    opened.find_element("id", "forward").click()
    opened.find_element("id", "forward").click()
    assert opened.current_url == page.as_uri() + NEAR
    opened.find_element("id", "copy").click()
    message = chrome.shown(opened, "return document.getElementById('copied').textContent")
    assert message in ("Link copied", opened.current_url)
    opened.find_element("id", "close").click()
    chrome.shown(opened, "return location.hash === ''")
    assert opened.current_url == page.as_uri()


def test_the_address_opens_its_answer(opened: Any, browser: Any, page: Path) -> None:
    browser.get("about:blank")
    browser.get(page.as_uri() + NEAR)
    assert is_open(browser)
    assert chrome.text_of(browser, "detail-title") == "Near%<i> · Pascal · xyxy_json · row 2"
    browser.find_element("id", "close").click()
    # The keyboard goes to its card, in the gallery of all answers.
    chrome.shown(browser, "return document.activeElement.classList.contains('card')")
    assert chrome.text_of(browser, "count") == "80 answers"
    assert "row 2" in browser.execute_script("return document.activeElement.innerText")
    # Of a page that is open, too.
    browser.execute_script("location.hash = arguments[0]", NEAR.replace("/2", "/4"))
    chrome.shown(browser, "return document.getElementById('detail').open")
    assert chrome.text_of(browser, "detail-title").endswith("row 4")


@pytest.mark.parametrize(
    "address",
    ["Good/Pascal/xyxy_json/77", quote(chrome.EVIL), "%E0%A4%A/a/b/1", "__proto__/Pascal//1"],
)
def test_an_address_of_no_answer_opens_none(browser: Any, page: Path, address: str) -> None:
    with chrome.opened_page(browser, page, f"#answer={address}"):
        assert not is_open(browser)
        missing = "This page does not have the answer of its address"
        assert chrome.text_of(browser, "count").startswith(missing)


# --- the open answer ------------------------------------------------------------------------------


def view(browser: Any) -> Any:
    return browser.execute_script(
        "return document.querySelector('#detail .zoomable').getAttribute('viewBox')"
        ".split(' ').map(Number)"
    )


def test_buttons_and_keys_zoom(opened: Any) -> None:
    from selenium.webdriver.common.keys import Keys

    open_first(opened, **GOOD)
    whole = view(opened)
    assert whole == [0, 0, 200, 100]
    opened.find_element("id", "nearer").click()
    x, y, width, height = view(opened)
    assert (width, height) == pytest.approx((200 / 1.5, 100 / 1.5), abs=0.1)
    assert (x + width / 2, y + height / 2) == pytest.approx((100, 50), abs=0.1)
    chrome.press(opened, "+")
    assert view(opened)[2] == pytest.approx(200 / 2.25, abs=0.1)
    chrome.press(opened, Keys.SHIFT + Keys.ARROW_RIGHT)
    assert view(opened)[0] > (200 - 200 / 2.25) / 2
    for _ in range(20):
        chrome.press(opened, Keys.SHIFT + Keys.ARROW_RIGHT)
    x, _, width, _ = view(opened)
    assert x + width == pytest.approx(200, abs=0.1), "it stays on the picture"
    chrome.press(opened, "0")
    assert view(opened) == whole
    opened.find_element("id", "farther").click()
    assert view(opened) == whole
    for _ in range(12):
        chrome.press(opened, "+")
    assert view(opened)[2] == pytest.approx(200 / 16, abs=0.1)
    opened.find_element("id", "whole").click()
    assert view(opened) == whole


def touch(browser: Any, kind: str, *points: tuple[float, float]) -> None:
    """Touch the picture, at shares of its width and height."""
    left, top, width, height = browser.execute_script(
        "const r = document.querySelector('#detail .zoomable').getBoundingClientRect();"
        "return [r.left, r.top, r.width, r.height]"
    )
    fingers = [
        {"x": left + x * width, "y": top + y * height, "id": at} for at, (x, y) in enumerate(points)
    ]
    browser.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": kind, "touchPoints": fingers})


def test_fingers_zoom_and_turn(opened: Any) -> None:
    open_first(opened, **GOOD)
    touch(opened, "touchStart", (0.8, 0.5))
    for x in (0.7, 0.5, 0.3):
        touch(opened, "touchMove", (x, 0.5))
    touch(opened, "touchEnd")
    chrome.shown(
        opened, "return document.getElementById('detail-title').textContent.endsWith('row 1')"
    )
    touch(opened, "touchStart", (0.45, 0.5), (0.55, 0.5))
    touch(opened, "touchMove", (0.35, 0.5), (0.65, 0.5))
    touch(opened, "touchMove", (0.3, 0.5), (0.7, 0.5))
    touch(opened, "touchEnd")
    zoomed = view(opened)
    assert zoomed[2] == pytest.approx(50, rel=0.1)
    # One finger moves what is zoomed, and turns nothing.
    touch(opened, "touchStart", (0.8, 0.5))
    touch(opened, "touchMove", (0.5, 0.5))
    touch(opened, "touchMove", (0.2, 0.5))
    touch(opened, "touchEnd")
    assert view(opened)[0] > zoomed[0]
    assert chrome.text_of(opened, "detail-title").endswith("row 1")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_an_open_answer_fits_the_window(opened: Any, scheme: str, width: int) -> None:
    with chrome.emulated(opened, width, color_scheme=scheme):
        opened.refresh()
        chrome.shown(opened, chrome.LOADED)
        folded = opened.execute_script("return !document.getElementById('fold').open")
        assert folded == (width == 390)
        open_first(opened, model="Near%<i>")
        inner, outer, least = opened.execute_script(
            "const d = document.getElementById('detail');"
            "const sides = [...d.querySelectorAll('.bar button')].map(button => "
            "  Math.min(button.offsetWidth, button.offsetHeight));"
            "return [d.scrollWidth, d.clientWidth, Math.min(...sides)]"
        )
        assert inner <= outer <= width
        assert least >= 40, "buttons are large enough for a finger"
