"""Score against cost in a browser: labels can be read, the cost is chosen, marks answer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import report_browser as chrome
from costly_runs import costing
from report_browser import IN_BROWSER
from scored_runs import small_world, speaking

from vlmeval_findit.leaderboard import make_board
from vlmeval_findit.report import make_page
from vlmeval_findit.scoring import Run, load_runs

pytestmark = IN_BROWSER

JSON = "FindIt_Pascal_xyxy_json"
MORE = ("FindIt_Pascal_xyxy_text", "FindIt_Pascal_xywh_json")
MODELS = 16
FIGURE = "figure[data-charts=model-costs]"
MARK = ".role-mark > [aria-label]"


def with_cost(run: Run) -> Run:
    """Give a run made-up costs: the dearer, the better, and every fourth without a price."""
    at = int(run.model.rpartition("-")[2])
    in_json = 2.0 if run.variant.format == "xyxy_json" else 1.0
    dollars = None if at % 4 == 3 else 0.02 * 1.5**at
    return costing(
        run,
        seconds_median=0.2 + 0.05 * at,
        tokens_out=in_json * (40 - at),
        usd_per_1000=dollars,
        usd_source="price table",
        pixels=262_144.0,
    )


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("world")
    with pytest.MonkeyPatch.context() as patch:
        world = small_world(folder, patch)
        for at in range(MODELS):
            for name in (JSON, *(MORE if at < 2 else ())):
                world.predict(f"Some-Vision-Model-{at}", name, speaking(name, (at + 1) / MODELS))
        path = folder / "report.html"
        runs = list(map(with_cost, load_runs([world.runs])))
        path.write_text(make_page(make_board(runs), datetime.now(UTC), 20), encoding="utf-8")
        yield path


def choose(browser: Any, cost: str) -> None:
    """Choose a cost of the models' chart, and wait until it is drawn."""
    browser.execute_script(
        "const select = document.querySelector(`${arguments[0]} [name=cost]`);"
        "select.value = [...select.options].find(o => o.textContent === arguments[1]).value;"
        "document.querySelector(`${arguments[0]} .drawing`).dataset.before = 'yes';"
        "document.querySelector(`${arguments[0]} .drawing > *`).id = 'before';"
        "select.dispatchEvent(new Event('change'));",
        FIGURE,
        cost,
    )
    chrome.shown(browser, f"return !document.querySelector('{FIGURE} #before')")


def boxes(browser: Any, marks: str) -> list[list[float]]:
    """Return the edges of the visible marks of the models' chart."""
    script = (
        "return [...document.querySelectorAll(arguments[0])]"
        ".filter(node => getComputedStyle(node).opacity !== '0')"
        ".map(node => node.getBoundingClientRect()).map(r => [r.left, r.top, r.right, r.bottom])"
    )
    return browser.execute_script(script, f"{FIGURE} .drawing > div {marks}")


def meet(one: list[float], other: list[float]) -> bool:
    across = one[0] < other[2] and other[0] < one[2]
    return across and one[1] < other[3] and other[1] < one[3]


@pytest.mark.parametrize("cost", ["dollars for 1,000 queries", "pixels sent a query"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_labels_can_be_read(browser: Any, page: Path, width: int, scheme: str, cost: str) -> None:
    with (
        chrome.emulated(browser, width, color_scheme=scheme),
        chrome.opened_page(browser, page),
    ):
        chrome.drawn(browser, "#cost")
        choose(browser, cost)
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
        labels = boxes(browser, ".mark-text.role-mark text")
        assert len(labels) >= (3 if width == 390 else 8)
        ticks = browser.execute_script(
            "return [...document.querySelectorAll(arguments[0])].map(tick => tick.textContent)",
            f"{FIGURE} .drawing > div .role-axis-label text",
        )
        assert not [tick for tick in ticks if "…" in tick]
        ((left, top, right, bottom),) = boxes(browser, "svg")
        for at, label in enumerate(labels):
            assert (label[0] >= left, label[2] <= right + 1) == (True, True)
            assert (label[1] >= top, label[3] <= bottom) == (True, True)
            # Two letters may touch in height; a word never hides another.
            inner = [label[0] + 1, label[1] + 2, label[2] - 1, label[3] - 2]
            assert not any(meet(inner, other) for other in labels[:at])
        colours = (
            "const rgb = text => text.match(/\\d+/g).slice(0, 3).map(Number);"
            f"const label = document.querySelector('{FIGURE} .mark-text.role-mark text');"
            "return [rgb(getComputedStyle(label).fill), "
            "rgb(getComputedStyle(document.body).backgroundColor)]"
        )
        assert chrome.contrast(*browser.execute_script(colours)) > 4.5


def test_a_chosen_cost_changes_front_and_list(opened: Any) -> None:
    chrome.drawn(opened, "#cost")
    front = f"{FIGURE} .front"
    lacking = f"{FIGURE} .lacking"
    (by_seconds,) = chrome.texts(opened, front)
    assert by_seconds.startswith("Some-Vision-Model-0 (")
    assert by_seconds.endswith("Some-Vision-Model-15 (100.0 %, 0.95)")
    marked = opened.find_elements("css selector", f"{FIGURE} .drawing > div [aria-label$=front]")
    assert len(marked) == len(by_seconds.split("; ")) > 5
    assert not opened.find_element("css selector", lacking).is_displayed()
    choose(opened, "tokens out a query")
    # The best model needs the fewest tokens, but for a poor one that is reported in text.
    assert chrome.texts(opened, front) == [
        "Some-Vision-Model-1 (15.4 %, 39); Some-Vision-Model-15 (100.0 %, 50)"
    ]
    choose(opened, "dollars for 1,000 queries")
    (text,) = chrome.texts(opened, lacking)
    assert text.startswith("Not drawn: 4 of 16, whose dollars for 1,000 queries are not known")
    names = re.findall(r"\S+", text.replace(";", " "))
    assert [f"Some-Vision-Model-{at}" in names for at in range(MODELS)] == [
        at % 4 == 3 for at in range(MODELS)
    ]
    marks = opened.find_elements("css selector", f"{FIGURE} .drawing > div {MARK}")
    assert len(marks) == MODELS - 4
    texts = [mark.get_attribute("aria-label") for mark in marks]
    assert texts[0].endswith("0.02 dollars for 1,000 queries (price table); on the Pareto front")
    costs = [float(text.split(" dollars")[0].split()[-1]) for text in texts]
    assert costs == sorted(costs)
    # Equal costs have no front but the best.
    choose(opened, "pixels sent a query")
    assert chrome.texts(opened, front) == ["Some-Vision-Model-15 (100.0 %, 262,144)"]


def test_marks_answer_to_keys_and_to_a_tap(opened: Any) -> None:
    from selenium.webdriver.common.keys import Keys

    marks = chrome.drawn(opened, "#cost").find_elements("css selector", MARK)
    tip = opened.find_element("id", "tip")
    opened.execute_script("arguments[0].focus()", marks[0])
    chrome.press(opened, Keys.ARROW_RIGHT)
    assert tip.text == marks[1].get_attribute("aria-label")
    assert " seconds a query (median)" in tip.text
    opened.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": True})
    opened.execute_script(
        "arguments[0].dispatchEvent(new MouseEvent('click', {bubbles: true}))", marks[2]
    )
    opened.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": False})
    assert tip.text == marks[2].get_attribute("aria-label")


def test_formats_of_another_model_are_chosen(opened: Any) -> None:
    figure = "figure[data-charts=format-costs]"
    opened.execute_script(f"document.querySelector('{figure}').scrollIntoView()")
    chrome.shown(opened, f"return document.querySelector('{figure} .drawing > div svg')")
    options = chrome.texts(opened, f"{figure} [name=panel] option")
    assert sorted(options) == ["Some-Vision-Model-0", "Some-Vision-Model-1"]
    opened.execute_script(
        f"const select = document.querySelector('{figure} [name=panel]');"
        "select.value = '1'; select.dispatchEvent(new Event('change'))"
    )
    label = f'{figure} .drawing [aria-label^="{options[1]}: F1@0.5 against "]'
    chrome.shown(opened, f"return document.querySelector('{label}')")
