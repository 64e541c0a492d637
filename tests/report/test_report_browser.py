"""The report in a browser: it opens, filters work, boxes are at their places, charts answer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import report_browser as chrome
from report_browser import IN_BROWSER
from scored_runs import HEIGHT, WIDTH, World, grid, query, saying, speaking
from toy_benchmark import guessing, letters
from waits import until

__all__ = ["letters"]
pytestmark = IN_BROWSER

JSON = "FindIt_Pascal_xyxy_json"
TEXT = "FindIt_Pascal_xyxy_text"
BOX = (50.0, 25.0, 150.0, 75.0)
SMALL = (10.0, 10.0, 30.0, 30.0)
LARGE = (40.0, 0.0, 160.0, 100.0)


def near(asked: Any, _: Any) -> str:
    """Answer a box with an IoU of 0.4 in even rows, words in row 1, else nothing."""
    if asked.index % 2:
        return "I see it." if asked.index == 1 else "[]"
    x1, y1, x2, y2 = grid(asked.truth.boxes[0])
    return f'[{{"bbox": [{x1}, {y1}, {x1 + (x2 - x1) * 0.4}, {y2}]}}]'


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Twenty queries: Good finds all, in text half; Near%<i> little; Talks answers with scripts.

    Picture 0 is black with a white rectangle exactly where its box is.
    """
    from PIL import Image, ImageDraw

    with pytest.MonkeyPatch.context() as patch:
        world = World(tmp_path_factory.mktemp("world"))
        world.at_hand(patch)
        boxes = [BOX, *[SMALL] * 7, *[LARGE] * 12]
        queries = [query(at, f"{at}.png", chrome.EVIL, boxes=[box]) for at, box in enumerate(boxes)]
        tagged = [replace(row, tags={"time": "<b>night"}) for row in queries[1:6]]
        world.table("Pascal", [queries[0], *tagged, *queries[6:]])
        for at in range(1, 20):
            world.picture(f"{at}.png", at)
        picture = Image.new("RGB", (WIDTH, HEIGHT))
        ImageDraw.Draw(picture).rectangle((50, 25, 149, 74), fill="white")
        picture.save(world.folder / "pictures" / "0.png")
        world.predict("Good", JSON, speaking(JSON, 1.0))
        world.predict("Good", TEXT, speaking(TEXT, 0.5, 5))
        world.predict("Near%<i>", JSON, near)
        world.predict("Talks", JSON, saying(chrome.EVIL))
        yield chrome.write_report(world.runs)


def open_first(browser: Any, **filters: str) -> None:
    chrome.choose(browser, order="row", **filters)
    browser.execute_script("document.querySelector('#cards .card').click()")


def test_it_loads_nothing_but_itself(opened: Any, page: Path) -> None:
    requests = [
        message["params"]["request"]["url"]
        for entry in opened.get_log("performance")
        if (message := json.loads(entry["message"])["message"])["method"]
        == "Network.requestWillBeSent"
    ]
    assert {url for url in requests if not url.startswith("data:")} == {page.as_uri()}
    assert chrome.text_of(opened, "count") == "60 answers", "those in reported formats"
    opened.find_element("id", "all-answers").click()
    assert chrome.text_of(opened, "count") == "80 answers"
    broken = opened.execute_async_script(
        "const done = arguments[0];"
        "Promise.all([...document.querySelectorAll('#cards image')].map(node => {"
        "  const image = new Image(); image.src = node.getAttribute('href');"
        "  return image.decode().then(() => 0, () => 1);"
        "})).then(all => done(all.reduce((a, b) => a + b, 0)))"
    )
    assert broken == 0
    # Texts of a model are shown and not run.
    assert all(chrome.EVIL in card for card in chrome.choose(opened, model="Talks"))
    open_first(opened)
    assert opened.find_element("id", "reply").text == chrome.EVIL


# --- filters --------------------------------------------------------------------------------------


def test_filters(opened: Any) -> None:
    def counts(**values: str) -> int:
        chrome.choose(opened, **values)
        return int(chrome.text_of(opened, "count").split()[0])

    assert all("Good" in card for card in chrome.choose(opened, model="Good"))
    assert counts() == 20, "in its reported format"
    assert counts(format="") == 40
    assert counts(format="xyxy_text") == 20
    assert counts(model="", format="", reason="not JSON") >= 20
    assert counts(reason="", search="i SEE it") == 1
    assert counts(search="nothing like it") == 0
    assert chrome.texts(opened, "#part option") == ["all", "time: <b>night"]
    assert counts(search="", part="0") == 20
    assert chrome.texts(opened, "#size option") == ["all", "small", "medium", "large"]
    assert counts(part="", size="small") == 28
    assert counts(size="large", model="Good", format="xyxy_json") == 12
    assert counts(size="", model="", error_type="none") == 20
    opened.find_element("id", "iou-from").send_keys("0.3")
    assert counts(error_type="") == 30
    opened.find_element("id", "iou-to").send_keys("0.5")
    assert counts() == 10
    assert all("IoU 0.40" in card for card in chrome.choose(opened, order="best"))
    opened.find_element("id", "all-answers").click()
    assert counts() == 80


def test_orders_and_pages(opened: Any) -> None:
    def f1(cards: list[str]) -> list[float]:
        return [float(card.split("F1@0.5 ")[1].split(" %")[0]) for card in cards]

    worst, best = (f1(chrome.choose(opened, order=order)) for order in ("worst", "best"))
    assert worst == sorted(worst)
    assert best == sorted(best, reverse=True)
    assert worst[0] < best[0]
    cards = chrome.choose(opened, order="disagree")
    assert all("formats differ by" in card and "Good" in card for card in cards)
    chrome.choose(opened, order="row", format="")
    assert chrome.text_of(opened, "page") == "page 1 of 7"
    assert not opened.find_element("id", "previous").is_enabled()
    opened.execute_script("document.getElementById('next').click()")
    assert chrome.text_of(opened, "page") == "page 2 of 7"


def test_an_overlay_lies_where_its_box_is(opened: Any) -> None:
    """By geometry: the box's edges are those of the white rectangle."""
    chrome.choose(opened, model="Good", format="xyxy_json", order="row")
    (left, top, right, bottom), box = opened.execute_script(
        "const svg = document.querySelector('#cards .card svg');"
        "const rect = node => { const r = node.getBoundingClientRect();"
        "  return [r.left, r.top, r.right, r.bottom]; };"
        "return [rect(svg.querySelector('image')), rect(svg.querySelector('[data-role=truth]'))]"
    )
    # A thumbnail may be smaller than its original, and is shown larger or smaller.
    across = (right - left) / WIDTH
    down = (bottom - top) / HEIGHT
    assert across == pytest.approx(down, rel=1e-3)
    expected = [left + 50 * across, top + 25 * down, left + 150 * across, top + 75 * down]
    assert box == pytest.approx(expected, abs=1.6)


def test_the_keyboard_is_enough(opened: Any) -> None:
    from selenium.webdriver.common.keys import Keys

    chrome.choose(opened, model="Good", format="", order="row")
    opened.execute_script("document.querySelector('#cards .card').focus()")
    chrome.press(opened, Keys.ENTER)
    assert chrome.text_of(opened, "detail-title").endswith("row 0")
    assert not opened.find_element("id", "back").is_enabled()
    chrome.press(opened, Keys.ARROW_LEFT)
    assert chrome.text_of(opened, "detail-title").endswith("row 0")
    chrome.press(opened, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    assert chrome.text_of(opened, "detail-title").endswith("row 1")
    focus = "(document.activeElement.closest('#detail') || document.activeElement).tagName"
    for _ in range(30):
        chrome.press(opened, Keys.TAB)
        assert opened.execute_script(f"return {focus}") in ("DIALOG", "BODY")
    opened.execute_script("document.getElementById('forward').focus()")
    chrome.press(opened, Keys.ESCAPE)
    # A dialog's ``close`` is a separate task, after the keys.
    place = "[...document.querySelectorAll('#cards .card')].indexOf(document.activeElement)"
    chrome.shown(opened, f"return {place} === 2")
    chrome.press(opened, Keys.ARROW_RIGHT)
    assert chrome.text_of(opened, "page") == "page 2 of 4"


@pytest.mark.parametrize("width", [320, 390, 1280])
def test_no_line_of_an_answer_is_cut(opened: Any, width: int) -> None:
    with chrome.emulated(opened, width):
        chrome.choose(opened, format="", order="disagree")
        opened.execute_script("document.querySelector('#cards .card').click()")
        lines = "[...document.querySelectorAll('#detail .texts :is(p, small, li, h4)')]"
        texts = opened.execute_script(f"return {lines}.map(each => each.textContent)")
        assert any("points apart on this query" in text for text in texts)
        cut = f"{lines}.filter(each => each.scrollWidth > each.clientWidth + 1)"
        assert opened.execute_script(f"return {cut}.map(each => each.textContent)") == []


# --- light, dark, motion, paper -------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_light_and_dark_can_be_read(opened: Any, scheme: str) -> None:
    """Text of page and plots has a contrast of at least 4.5 (WCAG AA) with the ground."""
    colours = (
        "const rgb = text => text.match(/\\d+/g).slice(0, 3).map(Number);"
        "const label = document.querySelector('.chart svg text');"
        "return [rgb(getComputedStyle(label).fill), "
        "rgb(getComputedStyle(document.body).backgroundColor)]"
    )
    with chrome.emulated(opened, color_scheme=scheme):
        assert chrome.contrast(*opened.execute_script(colours)) > 4.5
        opened.execute_script("document.getElementById('theme').click()")
        ink, ground = opened.execute_script(colours)
        assert chrome.contrast(ink, ground) > 4.5
        assert (chrome.luminance(ground) > 0.5) == (scheme == "dark")
        theme = opened.find_element("id", "theme")
        # The button is pressed while dark is on.
        pressed = "false" if scheme == "dark" else "true"
        assert (theme.text, theme.get_attribute("aria-pressed")) == ("Dark", pressed)


def test_print_opens_details_and_hides_filters(opened: Any) -> None:
    # A table has what the bars have.
    closed = "return document.querySelectorAll('details:not([open], .loss)').length"
    before = opened.execute_script(closed)
    opened.execute_script("dispatchEvent(new Event('beforeprint'))")
    assert (before > 0, opened.execute_script(closed)) == (True, 0)
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    shown = {x: opened.find_element("id", x).is_displayed() for x in ("cards", "filters", "losses")}
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    assert shown == {"cards": True, "filters": False, "losses": True}
    opened.execute_script("dispatchEvent(new Event('afterprint'))")
    assert opened.execute_script(closed) == before


def test_all_charts_are_drawn_for_print(opened: Any) -> None:
    """Those that were never in view, too, and as wide as they are where they are shown."""
    lacking = (
        "return [...document.querySelectorAll('.chart')].filter(figure => "
        "!figure.querySelector('.drawing > div svg, .drawing > .nothing')).length"
    )
    assert opened.execute_script(lacking) > 0
    # A browser waits for what is settled already, and for no more.
    settled = (
        "const done = arguments[0];"
        "dispatchEvent(new Event('beforeprint'));"
        "(async () => { for (let at = 0; at < 1000; at += 1) await null; })()"
        f".then(() => done((() => {{ {lacking}; }})()));"
    )
    assert opened.execute_async_script(settled) == 0
    apart = (
        "for (const node of document.querySelectorAll('.off')) node.style.display = 'block';"
        "const places = [...document.querySelectorAll('.chart .drawing')];"
        "return places.map(place => place.clientWidth - place.parentNode.dataset.width);"
    )
    widths = opened.execute_script(apart)
    assert len(widths) > 4
    assert {*widths} == {0}


# --- charts ---------------------------------------------------------------------------------------

MARK = ".role-mark > [aria-label]"


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (390, 844)])
def test_the_first_screen_answers(opened: Any, width: int, height: int) -> None:
    """Best model, certainty, what is in doubt, format, and costliest error."""
    with chrome.emulated(opened, width):
        best, certain, followed, form, error = chrome.texts(opened, "#headlines > div")
        assert best.startswith("Which model is best?\nGood\nF1@0.5 100.0 %")
        assert certain.startswith("Is that certain?\nYes\n")
        assert followed.startswith("Are replies in the format that was asked for?\nFormat not")
        assert form.startswith("In which format?\nxyxy_json\nthe best of 2 formats for Good")
        assert error.startswith("Which error costs ")
        # On a phone, what warns has its place before what explains.
        last = "#headlines" if width > 640 else "#headlines > :nth-child(3)"
        bottom = f"return document.querySelector('{last}').getBoundingClientRect().bottom"
        assert opened.execute_script(bottom) < height


@pytest.mark.parametrize("section", ["#best", "#formats"])
def test_a_mark_shows_its_text(opened: Any, section: str) -> None:
    """When it is pointed at, and with Tab and the arrow keys."""
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    marks = chrome.drawn(opened, section).find_elements("css selector", MARK)
    ActionChains(opened).move_to_element(marks[0]).perform()
    tip = opened.find_element("id", "tip")
    assert tip.text == marks[0].get_attribute("aria-label")
    assert "Good" in tip.text
    assert [mark.get_attribute("tabindex") for mark in marks[:2]] == ["0", "-1"]
    opened.execute_script("arguments[0].focus()", marks[0])
    chrome.press(opened, Keys.ARROW_RIGHT)
    assert tip.text == marks[1].get_attribute("aria-label") != marks[0].get_attribute("aria-label")
    chrome.press(opened, Keys.ESCAPE)
    assert not tip.is_displayed()


@pytest.mark.parametrize(("kind", "begins"), [("svg", b"<svg"), ("png", b"\x89PNG")])
def test_a_chart_is_saved(opened: Any, tmp_path: Path, kind: str, begins: bytes) -> None:
    to = {"behavior": "allow", "downloadPath": str(tmp_path)}
    opened.execute_cdp_cmd("Browser.setDownloadBehavior", to)
    chrome.drawn(opened, "#best").find_element("css selector", f".save [value={kind}]").click()
    path = tmp_path / f"standings.{kind}"
    until(lambda: path.is_file() and path.read_bytes().startswith(begins))


def test_details_are_drawn_when_they_are_chosen(opened: Any) -> None:
    details = "return [...document.querySelectorAll('.detail')].filter(node => node.open).length"
    assert opened.execute_script(details) == 1
    chrome.drawn(opened, "[data-detail=thresholds]")
    chrome.choose(opened, **{"detail-of": "not-as-asked"})
    assert opened.execute_script(details) == 1
    assert opened.find_element("id", "reasons").is_displayed()


def test_checkpoints_are_drawn(browser: Any, world: World) -> None:
    for step, chance in ((4, 0.2), (30, 0.9)):
        world.predict(f"ft-step-{step}", JSON, speaking(JSON, chance))
    with chrome.opened_page(browser, chrome.write_report(world.runs)):
        chrome.choose(browser, **{"detail-of": "checkpoints"})
        chart = chrome.drawn(browser, "[data-detail=checkpoints]")
        texts = [
            mark.get_attribute("aria-label") for mark in chart.find_elements("css selector", MARK)
        ]
        assert [text.split(":")[0] for text in texts] == ["ft, step 4", "ft, step 30"]


# --- lines of text --------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [1280, 390])
def test_lines_stand_under_the_picture(browser: Any, letters: World, width: int) -> None:
    letters.predict("M", "Letters_Zoo_plain", guessing(0.5))
    page = chrome.write_report(letters.runs)
    with chrome.emulated(browser, width), chrome.opened_page(browser, page, title="Letters report"):
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
        cards = browser.execute_script(
            "return [...document.querySelectorAll('.card')].map(card => ["
            "  card.querySelector('svg').getBoundingClientRect().bottom,"
            "  ...[...card.querySelectorAll('.line')].map(line => "
            "    [line.getBoundingClientRect().top, line.innerText,"
            "     getComputedStyle(line).borderLeftStyle])])"
        )
        # There are no boxes to hide, and no labels on them.
        assert not browser.find_element("id", "legend").is_displayed()
        browser.execute_script("document.querySelector('.card').click()")
        assert len(browser.find_elements("css selector", "#detail-body .line")) == 2
    pairs = [(truth[1], answer[1]) for _, truth, answer in cards]
    assert {line.split(" ")[0] for pair in pairs for line in pair} == {"=", "✓", "✗"}
    assert ("= expected A: cat", "✓ right A: cat") in pairs
    assert ("= expected A: cat", "✗ wrong B: dog") in pairs
    styles = {line[1].split(" ")[0]: line[2] for _, *lines in cards for line in lines}
    assert len(set(styles.values())) == 3
    assert all(top >= bottom - 1 for bottom, *lines in cards for top, *_ in lines)
