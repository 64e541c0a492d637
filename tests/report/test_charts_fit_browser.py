"""Charts of the report on a screen and on a phone: no word is cut, and nothing is too wide."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import report_browser as chrome
from report_browser import IN_BROWSER
from scored_runs import World, query, speaking

pytestmark = IN_BROWSER

MODELS = (
    *(f"QWEN3-VL-235B-A22B-Instruct-SFT-step{step}000-MERGED" for step in (1, 2)),
    *(f"Model-{at}" for at in range(6)),
    *(f"tune-refcoco-lr1e5-long-name-of-a-training-step-{step}000" for step in range(1, 5)),
)
SETS = ("Pascal", "RefCOCO")
GONE = "an-image-whose-name-is-long-and-that-is-gone-0001.png"
FORMATS = ("xyxy_json_bounding_box", "xyxy_json_coordinates", "xyxy_json", "xyxy_text", "yxyx_text")

# Words outside their picture, and pictures wider than their place; labels of points may lack room.
_CUT = """
const found = [];
for (const figure of document.querySelectorAll('.chart')) {
  const place = figure.querySelector('.drawing');
  const svg = place.querySelector('div svg');
  const edge = svg.getBoundingClientRect();
  const name = figure.dataset.charts;
  if (edge.right > place.getBoundingClientRect().right + 1) found.push([name, 'too wide']);
  for (const text of svg.querySelectorAll('text')) {
    if (!text.textContent.trim()) continue;
    const box = text.getBoundingClientRect();
    const isOut = box.right > edge.right + 1 || box.left < edge.left - 1
      || box.bottom > edge.bottom + 1 || box.top < edge.top - 1;
    if (isOut || text.textContent.endsWith('…')) found.push([name, text.textContent]);
  }
}
return found;
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Twelve models of short and of long names, some of one training, in five formats."""
    with pytest.MonkeyPatch.context() as patch:
        world = World(tmp_path_factory.mktemp("world"))
        world.at_hand(patch)
        pictures = world.folder / "pictures"
        patch.setenv("FINDIT_IMAGES", ",".join(f"{name}={pictures}" for name in SETS))
        for name in SETS:
            queries = [query(at, f"{at % 6}.png") for at in range(11)]
            world.table(name, [*queries, query(11, GONE, "lamp")])
        for at in range(6):
            world.picture(f"{at}.png", at)
        for at, model in enumerate(MODELS):
            for name in SETS:
                for format_ in FORMATS if name == "Pascal" else FORMATS[:1]:
                    variant = f"FindIt_{name}_{format_}"
                    world.predict(model, variant, speaking(variant, 1 - at / 14, 6))
        yield chrome.write_report(world.runs)


@pytest.mark.parametrize("width", [1280, 390])
def test_no_word_of_a_chart_is_cut(browser: Any, page: Path, width: int) -> None:
    with chrome.emulated(browser, width), chrome.opened_page(browser, page):
        browser.execute_script(
            "for (const detail of document.querySelectorAll('.detail')) {"
            "  detail.open = true; detail.classList.remove('off'); }"
        )
        charts = browser.find_elements("css selector", ".chart")
        assert len(charts) >= 4
        for at in range(len(charts)):
            browser.execute_script(
                "document.querySelectorAll('.chart')[arguments[0]].scrollIntoView()", at
            )
            drawn = f"document.querySelectorAll('.chart')[{at}].querySelector('.drawing > div svg')"
            chrome.shown(browser, f"return {drawn}")
        assert browser.execute_script(_CUT) == []


def test_the_axis_of_scores_says_what_it_is_of(browser: Any, page: Path) -> None:
    """Its name, its unit, and where it begins if that is not 0."""
    with chrome.emulated(browser, 1280), chrome.opened_page(browser, page):
        chrome.drawn(browser, "#best")
        words = "return [...document.querySelectorAll(arguments[0])].map(each => each.textContent)"
        titles = browser.execute_script(words, "#best .drawing .role-axis-title text")
        data = browser.execute_script("return JSON.parse(document.getElementById('data').text)")
        spec = data["charts"]["standings"][0]
        ((start, end),) = {
            tuple(layer["encoding"]["x"]["scale"]["domain"]) for layer in spec["spec"]["layer"]
        }
        assert end == 100
        assert all(start <= row["low"] <= row["high"] <= end for row in spec["data"]["values"])
        assert titles
        assert set(titles) == {f"F1@0.5 (%), from {start}" if start else "F1@0.5 (%)"}


# Options that lack room in their closed select, or that read as another one.
_CUT_OPTIONS = """
const found = [];
const pen = document.createElement('canvas').getContext('2d');
for (const select of document.querySelectorAll('select')) {
  const place = select.getBoundingClientRect();
  if (!place.width) continue;
  pen.font = getComputedStyle(select).font;
  const labels = new Map();
  for (const { label, textContent } of select.options) {
    const isCut = pen.measureText(label).width + 34 > place.width + 1;
    if (isCut) found.push([select.id || select.name, label]);
    if ((labels.get(label) ?? textContent) !== textContent) found.push([label, textContent]);
    labels.set(label, textContent);
  }
}
return found;
"""
_OPEN_ALL = """
for (const detail of document.querySelectorAll('details')) {
  detail.open = true;
  detail.classList.remove('off');
}
"""


@pytest.mark.parametrize("widths", [(1280,), (390,), (1280, 390), (390, 1280)])
def test_no_option_is_cut_or_reads_as_another(
    browser: Any, page: Path, widths: tuple[int, ...]
) -> None:
    """The names of sets, formats, models and their classes are long; a window may be turned."""
    with chrome.emulated(browser, widths[0]), chrome.opened_page(browser, page):
        browser.execute_script(_OPEN_ALL)
        with chrome.emulated(browser, widths[-1]):
            are_whole = (
                "[...document.getElementById('left').options]"
                ".every(option => option.label === option.textContent)"
            )
            chrome.shown(browser, f"return {are_whole} === {str(widths[-1] == 1280).lower()}")
            assert browser.execute_script(_CUT_OPTIONS) == []


@pytest.mark.parametrize("width", [1280, 390])
def test_words_for_a_lacking_image_are_whole(browser: Any, page: Path, width: int) -> None:
    """They lie within the picture, and no box crosses them."""
    with chrome.emulated(browser, width), chrome.opened_page(browser, page):
        chrome.choose(browser, search=GONE, format="")
        chrome.choose(browser, search="lamp")
        words = (
            "return [...document.querySelectorAll('.picture .gone')].map(each => {"
            "  const [box, edge] = [each, each.parentElement].map(e => e.getBoundingClientRect());"
            "  return [each.textContent, each === each.parentElement.lastElementChild,"
            "    box.left >= edge.left && box.right <= edge.right]; })"
        )
        found = chrome.shown(browser, words)
        assert {tuple(each) for each in found} == {(f"{GONE} is not here", True, True)}


def test_titles_beside_low_maps_are_not_turned(browser: Any, page: Path) -> None:
    """Turned, the word is longer than two rows, and meets that of the next map."""
    with chrome.emulated(browser, 390), chrome.opened_page(browser, page):
        chrome.drawn(browser, "#formats")
        script = (
            "return [...document.querySelectorAll('#formats .drawing > div .role-axis-title text')]"
            ".filter(each => each.textContent === 'representation')"
            ".map(each => each.getBoundingClientRect()).map(box => [box.top, box.bottom])"
        )
        titles = sorted(browser.execute_script(script))
        assert titles
        for (_, bottom), (top, _) in pairwise(titles):
            assert bottom < top


def test_rows_of_doubtful_labels_are_low_on_a_phone(browser: Any, page: Path) -> None:
    """Names of models do not become a column of syllables."""
    with chrome.emulated(browser, 390), chrome.opened_page(browser, page):
        heights = browser.execute_script(
            "return [...document.querySelectorAll('#labels > .wide tbody tr')]"
            ".map(each => each.offsetHeight)"
        )
        assert heights
        assert max(heights) < 60


@pytest.mark.parametrize("width", [1280, 390])
def test_cards_have_the_whole_names_of_models(browser: Any, page: Path, width: int) -> None:
    """Checkpoints of one training differ at the ends of their names."""
    with chrome.emulated(browser, width), chrome.opened_page(browser, page):
        cut = (
            "return [...document.querySelectorAll('.card .words > :not(.reply)')]"
            ".filter(each => each.scrollWidth > each.clientWidth + 1 && each.clientWidth)"
            ".map(each => each.textContent)"
        )
        for section in ("gallery", "compare"):
            browser.execute_script(f"document.getElementById('{section}').scrollIntoView()")
            assert chrome.shown(
                browser, f"return document.querySelector('#{section} .card .words')"
            )
        assert browser.execute_script(cut) == []
