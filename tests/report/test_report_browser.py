"""The report in a real browser: it opens, filters work, and a box lies where it is."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from scored_runs import World, query, saying, speaking

from vlmeval_findit.leaderboard.board import make_board
from vlmeval_findit.report.page import make_page
from vlmeval_findit.runs.scored_run import load_runs

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")
NEEDS_CHROMIUM = pytest.mark.skipif(
    CHROMIUM is None or DRIVER is None, reason="chromium and chromedriver are not installed"
)
pytestmark = [NEEDS_CHROMIUM, pytest.mark.slow]

JSON = "FindIt_Pascal_xyxy_json"
TEXT = "FindIt_Pascal_xyxy_text"
EVIL = "<script>document.title = 'run'</script><img src=x onerror=\"document.title='run'\">"
SIZE = (400, 300)
BOX = (100.0, 75.0, 300.0, 225.0)
LOADED = "return document.readyState === 'complete'"  # On a busy machine get() may return before


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    webdriver = pytest.importorskip("selenium.webdriver")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})

    class Browser(webdriver.Chrome):  # type: ignore[misc, name-defined]
        def get(self, url: str) -> None:
            super().get(url)
            shown(self, LOADED)

    driver = Browser(options, webdriver.ChromeService(DRIVER))
    driver.set_window_size(1200, 1000)
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Three models; picture 0 is black with a white rectangle exactly where its box is."""
    from PIL import Image, ImageDraw

    with pytest.MonkeyPatch.context() as patch:
        world = World(tmp_path_factory.mktemp("world"))
        patch.setenv("FINDIT_TABLES", str(world.folder))
        patch.setenv("FINDIT_IMAGES", f"Pascal={world.folder / 'pictures'}")
        first = replace(query(0, "0.png", boxes=[BOX]), width=SIZE[0], height=SIZE[1])
        others = [query(i, f"{i}.png", f"<b>{i}</b>") for i in range(1, 40)]
        tagged = [replace(one, tags={"time": "<b>night"}) for one in others[:5]]
        world.table("Pascal", [first, *tagged, *others[5:]])
        for i in range(1, 40):
            world.picture(f"{i}.png", i)
        picture = Image.new("RGB", SIZE)
        ImageDraw.Draw(picture).rectangle((100, 75, 299, 224), fill="white")
        picture.save(world.folder / "pictures" / "0.png")
        world.predict("Good", JSON, speaking(JSON, 0.9, 5))
        world.predict("Good", TEXT, speaking(TEXT, 0.5, 5))
        world.predict("Evil", JSON, saying(EVIL))
        found = load_runs([world.runs])
        path = world.folder / "report.html"
        html = make_page(make_board(found), datetime.now(UTC))
        path.write_text(html, encoding="utf-8")
        yield path


@pytest.fixture
def opened(browser: Any, page: Path) -> Any:
    browser.get("about:blank")
    browser.get_log("browser")
    browser.get_log("performance")
    browser.get(page.as_uri())
    return browser


def choose(browser: Any, **values: str) -> list[str]:
    """Set filters; the lines of the cards that are shown then."""
    for name, value in values.items():
        browser.execute_script(
            "const e = document.getElementById(arguments[0]); e.value = arguments[1];"
            "e.dispatchEvent(new Event(e.type === 'search' ? 'input' : 'change', {bubbles: true}))",
            name,
            value,
        )
    return browser.execute_script(
        "return [...document.querySelectorAll('#cards .card')].map(card => card.innerText)"
    )


def shown(browser: Any, script: str) -> Any:
    """What the script returns once it is true, which it must be soon."""
    wait = pytest.importorskip("selenium.webdriver.support.wait")
    return wait.WebDriverWait(browser, 60).until(lambda one: one.execute_script(script))


def choose_detail(browser: Any, name: str) -> None:
    browser.execute_script(
        "const e = document.getElementById('detail-of'); e.value = arguments[0];"
        "e.dispatchEvent(new Event('change'))",
        name,
    )


def count(browser: Any) -> str:
    return browser.execute_script("return document.getElementById('count').textContent")


def test_it_opens_without_errors_and_without_a_network(opened: Any, page: Path) -> None:
    assert opened.get_log("browser") == []
    requests = [
        message["params"]["request"]["url"]
        for entry in opened.get_log("performance")
        if (message := json.loads(entry["message"])["message"])["method"]
        == "Network.requestWillBeSent"
    ]
    assert {url for url in requests if not url.startswith("data:")} == {page.as_uri()}
    assert count(opened) == "120 answers"
    assert opened.execute_script("return document.images.length") == 0
    broken = opened.execute_async_script(
        "const done = arguments[0];"
        "Promise.all([...document.querySelectorAll('#cards image')].map(one => {"
        "  const image = new Image(); image.src = one.getAttribute('href');"
        "  return image.decode().then(() => 0, () => 1);"
        "})).then(all => done(all.reduce((a, b) => a + b, 0)))"
    )
    assert broken == 0


def test_what_a_model_says_is_shown_and_not_run(opened: Any) -> None:
    cards = choose(opened, model="Evil")
    assert len(cards) == 12
    assert EVIL in cards[0]
    assert "<b>" in "".join(cards)
    opened.find_element("css selector", "#cards .card").click()
    assert opened.find_element("id", "reply").text == EVIL
    assert opened.title == "FindIt report"
    assert opened.execute_script("return document.querySelectorAll('#gallery img').length") == 0
    assert opened.get_log("browser") == []


def test_filters(opened: Any) -> None:
    assert all("Good" in card for card in choose(opened, model="Good"))
    assert count(opened) == "80 answers"
    assert all("xyxy_text" in card for card in choose(opened, format="xyxy_text"))
    assert count(opened) == "40 answers"
    assert choose(opened, model="", format="", reason="not JSON")
    assert count(opened) == "40 answers"
    choose(opened, reason="", search="<B>17</b>")
    assert count(opened) == "3 answers"
    choose(opened, search="nothing like it")
    assert count(opened) == "0 answers"


def test_the_filter_of_parts(opened: Any) -> None:
    options = opened.execute_script(
        "return [...document.getElementById('part').options].map(one => [one.value, one.text])"
    )
    assert options == [["", "all"], ["0", "time: <b>night"]]
    choose(opened, part="0")
    assert count(opened) == "15 answers"
    choose(opened, part="0", model="Evil")
    assert count(opened) == "5 answers"
    opened.find_element("css selector", "#cards .card").click()
    assert "time: <b>night" in opened.find_element("id", "detail-body").text
    assert opened.get_log("browser") == []


def test_orders_and_pages(opened: Any) -> None:
    def f1(cards: list[str]) -> list[float]:
        return [float(card.split("F1@0.5 ")[1].split(" %")[0]) for card in cards]

    worst = f1(choose(opened, order="worst"))
    best = f1(choose(opened, order="best"))
    assert worst == sorted(worst)
    assert best == sorted(best, reverse=True)
    assert worst[0] < best[0]
    cards = choose(opened, order="disagree")
    assert all("formats differ by" in card and "Good" in card for card in cards)
    choose(opened, order="row")
    assert opened.find_element("id", "page").text == "page 1 of 10"
    assert not opened.find_element("id", "previous").is_enabled()
    opened.execute_script("document.getElementById('next').click()")
    assert opened.find_element("id", "page").text == "page 2 of 10"


def test_an_overlay_lies_where_its_box_is(opened: Any) -> None:
    """By geometry, and by pixels: the box's edges are those of the white rectangle."""
    choose(opened, model="Good", format="xyxy_json", order="row")
    place = opened.execute_script(
        "const svg = document.querySelector('#cards .card svg');"
        "const image = svg.querySelector('image').getBoundingClientRect();"
        "const box = svg.querySelector('[data-role=truth]').getBoundingClientRect();"
        "const rect = r => [r.left, r.top, r.right, r.bottom];"
        "return [rect(image), rect(box)]"
    )
    (left, top, right, bottom), box = place
    # The original is 400 x 300; its thumbnail may be smaller and is shown larger or smaller.
    across, down = (right - left) / SIZE[0], (bottom - top) / SIZE[1]
    assert across == pytest.approx(down, rel=1e-3)
    expected = [left + 100 * across, top + 75 * down, left + 300 * across, top + 225 * down]
    assert box == pytest.approx(expected, abs=1.6)


def test_boxes_can_be_hidden(opened: Any) -> None:
    choose(opened, model="Good", order="best")
    hits = "return document.querySelectorAll('#cards [data-role=hit]').length"
    assert opened.execute_script(hits) > 0
    opened.find_element("css selector", "#legend [value=hit]").click()
    assert opened.execute_script(hits) == 0


def test_the_keyboard_is_enough(opened: Any) -> None:
    from selenium.webdriver.common.keys import Keys

    choose(opened, model="Good", order="row")
    opened.execute_script("document.querySelector('#cards .card').focus()")
    title = "return document.getElementById('detail-title').textContent"
    is_open = "return document.getElementById('detail').open"
    opened.switch_to.active_element.send_keys(Keys.ENTER)
    assert opened.execute_script(is_open)
    assert opened.execute_script(title).endswith("row 0")
    opened.switch_to.active_element.send_keys(Keys.ARROW_RIGHT)
    opened.switch_to.active_element.send_keys(Keys.ARROW_RIGHT)
    assert opened.execute_script(title).endswith("row 1")
    opened.switch_to.active_element.send_keys(Keys.ESCAPE)
    assert not opened.execute_script(is_open)
    # A dialog's ``close`` comes as a task of its own, after the keys.
    place = "[...document.querySelectorAll('#cards .card')].indexOf(document.activeElement)"
    shown(opened, f"return {place} === 2")
    opened.switch_to.active_element.send_keys(Keys.ARROW_RIGHT)
    assert opened.find_element("id", "page").text == "page 2 of 7"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_light_and_dark_can_be_read(opened: Any, scheme: str) -> None:
    """Text of page and plots has a contrast of at least 4.5 (WCAG AA) with the ground."""
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    assert contrast(*colours(opened)) > 4.5
    opened.execute_script("document.getElementById('theme').click()")
    ink, ground = colours(opened)
    assert contrast(ink, ground) > 4.5
    assert (luminance(ground) > 0.5) == (scheme == "dark")
    theme = opened.find_element("id", "theme")
    # It is called as what it turns on, and pressed while that is on.
    assert (theme.text, theme.get_attribute("aria-pressed")) == (
        "Dark",
        "false" if scheme == "dark" else "true",
    )
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def colours(browser: Any) -> tuple[list[int], list[int]]:
    """The colours of a chart's text and of the page behind it."""
    return browser.execute_script(
        "const rgb = text => text.match(/\\d+/g).slice(0, 3).map(Number);"
        "const label = document.querySelector('.chart svg text');"
        "return [rgb(getComputedStyle(label).fill), "
        "rgb(getComputedStyle(document.body).backgroundColor)]"
    )


def luminance(colour: list[int]) -> float:
    parts = [c / 255 for c in colour]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: list[int], other: list[int]) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


# --- charts ---------------------------------------------------------------------------------------

MARK = ".role-mark > [aria-label]"


def drawn(browser: Any, section: str) -> Any:
    """The chart of a section, once the script has drawn it."""
    browser.execute_script(f"document.querySelector('{section} .chart').scrollIntoView()")
    shown(browser, f"return document.querySelector('{section} .drawing > div svg')")
    return browser.find_element("css selector", f"{section} .chart")


def test_the_first_screen_answers(opened: Any) -> None:
    """Who is best, whether that is certain, in which format, and which error costs most."""
    said = opened.execute_script(
        "return [...document.querySelectorAll('#headlines > div')].map(one => one.innerText)"
    )
    assert said[0].startswith("Which model is best?\nGood")
    assert said[1].startswith("Is that certain?\nYes\n")
    assert said[2].startswith("In which format?\nxyxy_json\nthe best of 2 for Good")
    assert said[3].startswith("Which error costs it most?\n")
    top, height = opened.execute_script(
        "const box = document.getElementById('headlines').getBoundingClientRect();"
        "return [box.bottom, innerHeight]"
    )
    assert top < height / 2


@pytest.mark.parametrize(("section", "model"), [("#best", "Good"), ("#formats", "Good")])
def test_a_mark_says_what_it_is(opened: Any, section: str, model: str) -> None:
    """When it is pointed at, and with Tab and the arrow keys."""
    from selenium.webdriver.common.keys import Keys

    chart = drawn(opened, section)
    marks = chart.find_elements("css selector", MARK)
    pytest.importorskip("selenium.webdriver.common.action_chains").ActionChains(
        opened
    ).move_to_element(marks[0]).perform()
    tip = opened.find_element("id", "tip")
    assert tip.text == marks[0].get_attribute("aria-label")
    assert model in tip.text
    assert [one.get_attribute("tabindex") for one in marks[:2]] == ["0", "-1"]
    opened.execute_script("arguments[0].focus()", marks[0])
    opened.switch_to.active_element.send_keys(Keys.ARROW_RIGHT)
    assert tip.text == marks[1].get_attribute("aria-label") != marks[0].get_attribute("aria-label")
    opened.switch_to.active_element.send_keys(Keys.ESCAPE)
    assert not tip.is_displayed()
    assert opened.get_log("browser") == []


@pytest.mark.parametrize("kind", ["svg", "png"])
def test_a_chart_is_saved(opened: Any, tmp_path: Path, kind: str) -> None:
    opened.execute_cdp_cmd(
        "Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)}
    )
    drawn(opened, "#best").find_element("css selector", f".save [value={kind}]").click()
    wait = pytest.importorskip("selenium.webdriver.support.wait")
    path = tmp_path / f"standings.{kind}"
    wait.WebDriverWait(opened, 60).until(lambda _: path.is_file() and path.stat().st_size)
    begins = {"svg": b"<svg", "png": b"\x89PNG"}[kind]
    assert path.read_bytes().startswith(begins)


def test_details_are_drawn_when_they_are_chosen(opened: Any) -> None:
    details = "return [...document.querySelectorAll('.detail')].filter(one => one.open).length"
    assert opened.execute_script(details) == 1
    drawn(opened, "[data-detail=thresholds]")
    choose_detail(opened, "not-as-asked")
    assert opened.execute_script(details) == 1
    assert opened.find_element("id", "reasons").is_displayed()


def test_nothing_moves_by_itself(opened: Any) -> None:
    """So there is nothing to leave out for who asked for less motion."""
    choose(opened, model="Good", order="row")
    opened.find_element("css selector", "#cards .card").click()
    opened.find_element("id", "nearer").click()
    opened.find_element("id", "forward").click()
    moving = (
        "return [document.getAnimations().length, [...document.querySelectorAll('*')].some(one =>"
        "  parseFloat(getComputedStyle(one).transitionDuration) || "
        "  getComputedStyle(one).scrollBehavior === 'smooth')]"
    )
    assert opened.execute_script(moving) == [0, False]


def test_on_paper_all_stands_open(opened: Any) -> None:
    closed = "return document.querySelectorAll('details:not([open])').length"
    before = opened.execute_script(closed)
    opened.execute_script("dispatchEvent(new Event('beforeprint'))")
    assert (before > 0, opened.execute_script(closed)) == (True, 0)
    opened.execute_script("dispatchEvent(new Event('afterprint'))")
    assert opened.execute_script(closed) == before
