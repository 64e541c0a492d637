"""The answers of a report in a real browser: the mix, filters, links, zoom and the open answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from scored_runs import World, grid, query, saying, speaking
from test_report_browser import LOADED, browser, choose, count, pytestmark, shown

from vlmeval_findit.leaderboard.board import make_board
from vlmeval_findit.report.page import make_page
from vlmeval_findit.runs.scored_run import load_runs

__all__ = ["browser", "pytestmark"]

JSON = "FindIt_Pascal_xyxy_json"
EVIL = "<img src=x onerror=\"document.title='run'\">"
SMALL, LARGE = (10.0, 10.0, 30.0, 30.0), (40.0, 0.0, 160.0, 100.0)


def near(one: Any, _: Any) -> str:
    """A model that says a box with an IoU of 0.4 in even rows, words in row 1, else nothing."""
    if one.index % 2:
        return "I see it." if one.index == 1 else "[]"
    x1, y1, x2, y2 = grid(one.truth.boxes[0])
    return f'[{{"bbox": [{x1}, {y1}, {x1 + (x2 - x1) * 0.4}, {y2}]}}]'


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Twenty queries, small objects first; Good finds all, Near/<i> little, Talks nothing."""
    with pytest.MonkeyPatch.context() as patch:
        world = World(tmp_path_factory.mktemp("world"))
        world.at_hand(patch)
        queries = [query(i, f"{i}.png", EVIL, boxes=[SMALL if i < 8 else LARGE]) for i in range(20)]
        world.table("Pascal", [replace(one, tags={"time": "<b>night"}) for one in queries])
        for i in range(20):
            world.picture(f"{i}.png", i)
        world.predict("Good", JSON, speaking(JSON, 1.0))
        world.predict("Near%<i>", JSON, near)
        world.predict("Talks", JSON, saying(EVIL))
        path = world.folder / "report.html"
        html = make_page(make_board(load_runs([world.runs])), datetime.now(UTC))
        path.write_text(html, encoding="utf-8")
        yield path


@pytest.fixture
def opened(browser: Any, page: Path) -> Iterator[Any]:
    browser.get("about:blank")
    browser.get_log("browser")
    browser.get(page.as_uri())
    yield browser
    assert browser.get_log("browser") == []
    assert browser.title == "FindIt report"
    assert browser.execute_script("return document.querySelectorAll('main img').length") == 0


def text_of(browser: Any, name: str) -> Any:
    return browser.execute_script("return document.getElementById(arguments[0]).textContent", name)


def is_open(browser: Any) -> Any:
    return browser.execute_script("return document.getElementById('detail').open")


def press(browser: Any, *keys: str) -> None:
    for key in keys:
        browser.switch_to.active_element.send_keys(key)


def open_first(browser: Any, **filters: str) -> None:
    choose(browser, order="row", **filters)
    browser.execute_script("document.querySelector('#cards .card').click()")


# --- the mix --------------------------------------------------------------------------------------


def test_a_mix_has_a_hit_a_near_miss_and_every_error_type(opened: Any) -> None:
    cards = choose(opened)
    assert len(cards) == 12
    said = [card.split("\n") for card in cards]
    assert "✓ right" in said[0]
    assert "IoU 0.40" in cards[1]
    errors = opened.execute_script(
        "return [...document.querySelectorAll('#cards .error')].map(one => one.textContent)"
    )
    assert set(errors) == {"✓ right", "✗ localisation", "✗ refused", "✗ not readable"}
    rows = {line for lines in said for line in lines if " · row " in line}
    assert len({one.rsplit(" ", 1)[1] for one in rows}) == 12, "each has a picture of its own"
    # The error types have the colours of the bars.
    colours = opened.execute_script(
        "const colour = one => getComputedStyle(one).backgroundColor;"
        "const chips = [...document.querySelectorAll('#cards .error')].map(one => "
        "  [one.textContent.slice(2), colour(one)]);"
        "const key = name => [...document.querySelectorAll('#error_types li')].find(one => "
        "  one.textContent.trim() === name);"
        "return chips.filter(([name]) => key(name)).map(([name, seen]) => "
        "  [seen, colour(key(name).querySelector('i'))])"
    )
    assert colours
    assert all(chip == bar for chip, bar in colours)


def test_truth_and_answers_are_told_apart_without_colour(opened: Any) -> None:
    """By dashes, and by a sign at each box that the legend explains."""
    choose(opened, order="row")
    looks = opened.execute_script(
        "return [...document.querySelectorAll('#cards svg rect[data-role]')].map(one => "
        "  [one.dataset.role, getComputedStyle(one).strokeDasharray])"
    )
    assert len({role for role, _ in looks}) == len({dash for _, dash in looks}) == 3
    assert ["truth", "none"] in looks
    tags = opened.execute_script(
        "return [...document.querySelectorAll('#cards svg .tag')].map(one => one.textContent)"
    )
    assert {"T", "✓ 1.00", "✗ 0.40"} <= set(tags)
    legend = opened.find_element("id", "legend").text
    for sign, name in (("T", "ground truth"), ("✓", "hit"), ("✗", "miss"), ("≠", "wrong label")):
        assert f"{sign} {name}" in legend.replace("\n", " ")


# --- filters --------------------------------------------------------------------------------------


def test_filters_of_size_iou_and_error_type(opened: Any) -> None:
    sizes = opened.execute_script(
        "return [...document.getElementById('size').options].map(one => one.text)"
    )
    assert sizes == ["all", "small", "large"]
    choose(opened, size="small")
    assert count(opened) == "24 answers"
    choose(opened, size="large", model="Good")
    assert count(opened) == "12 answers"
    choose(opened, size="", model="", error_type="none")
    assert count(opened) == "20 answers"
    choose(opened, error_type="")
    number(opened, "iou-from", "0.3")
    assert count(opened) == "30 answers"
    number(opened, "iou-to", "0.5")
    assert count(opened) == "10 answers"
    assert all("IoU 0.40" in card for card in choose(opened, order="best"))
    opened.find_element("id", "all-answers").click()
    assert count(opened) == "60 answers"


def number(browser: Any, name: str, value: str) -> None:
    browser.find_element("id", name).send_keys(value)


# --- links ----------------------------------------------------------------------------------------

NEAR = f"#answer={quote('Near%<i>', safe='')}/Pascal/xyxy_json/2"


def test_an_open_answer_is_in_the_address(opened: Any, page: Path) -> None:
    open_first(opened, model="Near%<i>")
    assert opened.current_url.endswith("/Pascal/xyxy_json/0")
    opened.find_element("id", "forward").click()
    opened.find_element("id", "forward").click()
    assert opened.current_url == page.as_uri() + NEAR
    opened.find_element("id", "copy").click()
    said = shown(opened, "return document.getElementById('copied').textContent")
    assert said in ("Link copied", opened.current_url)
    opened.find_element("id", "close").click()
    shown(opened, "return location.hash === ''")
    assert opened.current_url == page.as_uri()


def test_the_address_opens_its_answer(opened: Any, browser: Any, page: Path) -> None:
    browser.get("about:blank")
    browser.get(page.as_uri() + NEAR)
    assert is_open(browser)
    assert text_of(browser, "detail-title") == "Near%<i> · Pascal · xyxy_json · row 2"
    browser.find_element("id", "close").click()
    # The keyboard goes to its card, in the gallery of all answers.
    shown(browser, "return document.activeElement.classList.contains('card')")
    assert count(browser) == "60 answers"
    assert "row 2" in browser.execute_script("return document.activeElement.innerText")
    # Of a page that is open, too.
    browser.execute_script("location.hash = arguments[0]", NEAR.replace("/2", "/4"))
    shown(browser, "return document.getElementById('detail').open")
    assert text_of(browser, "detail-title").endswith("row 4")


@pytest.mark.parametrize(
    "address",
    ["Good/Pascal/xyxy_json/77", "Good", quote(EVIL), "%E0%A4%A/a/b/1", "__proto__/Pascal//1"],
)
def test_an_address_of_no_answer_opens_none(browser: Any, page: Path, address: str) -> None:
    browser.get("about:blank")
    browser.get_log("browser")
    browser.get(f"{page.as_uri()}#answer={address}")
    assert not is_open(browser)
    assert count(browser).startswith("This page does not have the answer of its address")
    assert browser.get_log("browser") == []
    assert browser.title == "FindIt report"


# --- the open answer ------------------------------------------------------------------------------

VIEW = (
    "return document.querySelector('#detail .zoomable').getAttribute('viewBox')"
    ".split(' ').map(Number)"
)


def view(browser: Any) -> Any:
    return browser.execute_script(VIEW)


def test_buttons_and_keys_zoom(opened: Any) -> None:
    from selenium.webdriver.common.keys import Keys

    open_first(opened, model="Good")
    whole = view(opened)
    assert whole == [0, 0, 200, 100]
    opened.find_element("id", "nearer").click()
    x, y, width, height = view(opened)
    assert (width, height) == pytest.approx((200 / 1.5, 100 / 1.5), abs=0.1)
    assert (x + width / 2, y + height / 2) == pytest.approx((100, 50), abs=0.1)
    press(opened, "+")
    assert view(opened)[2] == pytest.approx(200 / 2.25, abs=0.1)
    press(opened, Keys.SHIFT + Keys.ARROW_RIGHT)
    assert view(opened)[0] > (200 - 200 / 2.25) / 2
    for _ in range(20):
        press(opened, Keys.SHIFT + Keys.ARROW_RIGHT)
    x, _, width, _ = view(opened)
    assert x + width == pytest.approx(200, abs=0.1), "it stays on the picture"
    press(opened, "-")
    assert view(opened)[2] == pytest.approx(200 / 1.5, abs=0.1)
    press(opened, "0")
    assert view(opened) == whole
    opened.find_element("id", "farther").click()
    assert view(opened) == whole
    for _ in range(12):
        press(opened, "+")
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
    open_first(opened, model="Good")
    touch(opened, "touchStart", (0.8, 0.5))
    for x in (0.7, 0.5, 0.3):
        touch(opened, "touchMove", (x, 0.5))
    touch(opened, "touchEnd")
    shown(opened, "return document.getElementById('detail-title').textContent.endsWith('row 1')")
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
    assert text_of(opened, "detail-title").endswith("row 1")


def test_arrows_turn_and_nothing_turns_past_the_ends(opened: Any) -> None:
    from selenium.webdriver.common.keys import Keys

    open_first(opened, model="Good")
    assert not opened.find_element("id", "back").is_enabled()
    assert opened.switch_to.active_element.get_attribute("id") == "forward"
    press(opened, Keys.ARROW_LEFT)
    assert text_of(opened, "detail-title").endswith("row 0")
    press(opened, *[Keys.ARROW_RIGHT] * 3)
    assert text_of(opened, "detail-title").endswith("row 3")
    for _ in range(30):
        press(opened, Keys.TAB)
        inside = "return document.activeElement.closest('#detail, body') !== null && (document."
        assert opened.execute_script(
            inside + "activeElement === document.body || "
            "document.activeElement.closest('#detail') !== null)"
        )
    press(opened, Keys.ESCAPE)
    assert not is_open(opened)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_an_open_answer_fits_the_window(opened: Any, scheme: str, width: int) -> None:
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    opened.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        opened.refresh()
        shown(opened, LOADED)
        folded = opened.execute_script("return !document.getElementById('fold').open")
        assert folded == (width == 390)
        open_first(opened, model="Near%<i>")
        inner, outer, least = opened.execute_script(
            "const d = document.getElementById('detail');"
            "const sides = [...d.querySelectorAll('.bar button')].map(one => "
            "  Math.min(one.offsetWidth, one.offsetHeight));"
            "return [d.scrollWidth, d.clientWidth, Math.min(...sides)]"
        )
        assert inner <= outer <= width
        assert least >= 40, "buttons are large enough for a finger"
    finally:
        opened.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_printed_it_is_answers_without_filters(opened: Any) -> None:
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        for name, printable in (("cards", True), ("filters", False), ("losses", True)):
            assert opened.find_element("id", name).is_displayed() == printable
    finally:
        opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
