"""Bars and pairs of the report in a browser, with names that are markup."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import report_browser as chrome
from report_browser import IN_BROWSER
from scored_runs import World, query, saying, speaking

from vlmeval_findit.statistics import TOO_FEW_IMAGES, WHICH_IMAGES_COUNT, FamilyOfTests

pytestmark = IN_BROWSER

JSON = "FindIt_Pascal_xyxy_json"
TEXT = "FindIt_Pascal_xyxy_text"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Good finds all, in text half; Evil finds the first ten of thirty; Talks says words."""
    with pytest.MonkeyPatch.context() as patch:
        created = World(tmp_path_factory.mktemp("world"))
        created.at_hand(patch)
        created.table("Pascal", [query(i, f"{i}.png", chrome.EVIL) for i in range(30)])
        for i in range(30):
            created.picture(f"{i}.png", i)
        right = speaking(JSON, 1.0)
        created.predict("Good", JSON, right)
        created.predict("Good", TEXT, speaking(TEXT, 0.5))
        created.predict(
            "<i>Evil", JSON, lambda asked, rng: right(asked, rng) if asked.index < 10 else "[]"
        )
        created.predict("Talks", JSON, saying(chrome.EVIL))
        yield chrome.write_report(created.runs)


# --- side by side ---------------------------------------------------------------------------------


def test_the_page_opens_with_two_models_that_differ(opened: Any) -> None:
    heads = chrome.texts(opened, "#difference thead th")
    assert heads == ["Percent", "Good", "<i>Evil", "Difference", "95 % interval", "p"]
    first = chrome.texts(opened, "#difference tbody:nth-of-type(2) tr:first-child td")
    assert first[:3] == ["100.0", "50.0", "+50.0"]
    assert chrome.texts(opened, "#finds td") == ["10", "20", "0", "0"]
    assert chrome.text_of(opened, "couple-count") == "20 queries"
    assert len(chrome.texts(opened, ".couple")) == 4
    sentence = chrome.text_of(opened, "difference-text")
    assert sentence.startswith(
        "On Pascal, Good has 50.0 points of F1@0.5 elsewhere more than <i>Evil (95 % interval +"
    )
    assert sentence.endswith(f"p < 0.001, {FamilyOfTests.MODELS.value}).")
    assert "row 10 · A - B: +100.0" in chrome.texts(opened, ".couple h3")[0]
    assert chrome.EVIL in chrome.texts(opened, ".couple h3")[0]
    assert "nothing found" in chrome.texts(opened, "#difference tbody:last-of-type th")


def test_swapped_sides_change_signs_and_cells(opened: Any) -> None:
    before = chrome.texts(opened, "#difference tbody:nth-of-type(2) tr:first-child td")
    opened.find_element("id", "turn").click()
    assert chrome.texts(opened, "#difference thead th")[1:3] == ["<i>Evil", "Good"]
    after = chrome.texts(opened, "#difference tbody:nth-of-type(2) tr:first-child td")
    assert after[:3] == ["50.0", "100.0", "-50.0"]
    low, high = before[3].split(" to ")
    turn = str.maketrans("+-", "-+")
    assert after[3] == f"{high} to {low}".translate(turn)
    assert after[4] == before[4]
    assert chrome.text_of(opened, "difference-text").startswith(
        "On Pascal, Good has 50.0 points of F1@0.5 elsewhere more than <i>Evil"
    )
    assert chrome.texts(opened, "#finds td") == ["10", "0", "20", "0"]
    chrome.choose(opened, show="only B finds (20)")
    assert chrome.text_of(opened, "couple-count") == "20 queries"
    chrome.choose(opened, show="only A finds (0)")
    assert chrome.text_of(opened, "couple-count") == "0 queries"
    opened.find_element("id", "turn").click()
    assert chrome.texts(opened, "#difference tbody:nth-of-type(2) tr:first-child td") == before


def test_two_formats_of_a_model_are_named_by_format(opened: Any) -> None:
    chrome.choose(opened, left="Good · xyxy_json")
    chrome.choose(opened, right="Good · xyxy_text")
    assert chrome.texts(opened, "#difference thead th")[1:3] == ["xyxy_json", "xyxy_text"]
    chrome.choose(opened, show="both find")
    assert {"row" in title for title in chrome.texts(opened, ".couple h3")} == {True}
    # Talks has no pair with Good's other format; the other side falls back to an existing pair.
    chrome.choose(opened, left="Talks")
    assert "Good · xyxy_text" not in chrome.texts(opened, "#right option")
    assert chrome.texts(opened, "#difference thead th")[1] == "Talks"


def test_a_metric_without_a_test_says_why(opened: Any) -> None:
    """30 images were asked; Talks predicts no box on any, and precision divides by boxes."""
    note = opened.find_element("id", "few-images")
    assert not note.is_displayed()
    chrome.choose(opened, left="Good · xyxy_json", right="Talks")
    names = chrome.texts(opened, "#difference tbody:nth-of-type(2) th")
    reasons = chrome.texts(opened, "#difference tbody:nth-of-type(2) tr td:last-child")
    by_metric = dict(zip(names, reasons, strict=True))
    # Good has two formats: models are compared elsewhere.
    assert by_metric["Precision elsewhere"] == TOO_FEW_IMAGES
    assert by_metric["F1@0.5 elsewhere"] == "< 0.001"
    assert by_metric["F1@0.5"] == "see elsewhere"
    assert note.is_displayed()
    assert note.text == f"No test where {TOO_FEW_IMAGES}: {WHICH_IMAGES_COUNT}."


def test_both_answers_are_drawn_at_one_scale(opened: Any) -> None:
    halves = opened.execute_script(
        "const rect = e => { const r = e.getBoundingClientRect(); return [r.width, r.height] };"
        "return [...document.querySelector('.couple').querySelectorAll('.card')].map(card => ["
        "  rect(card.querySelector('svg')), rect(card.querySelector('image')),"
        "  [...card.querySelectorAll('[data-role]')].map(box => box.dataset.role),"
        "  card.querySelector('image').getAttribute('href').length])"
    )
    (left, right) = halves
    assert left[0] == pytest.approx(right[0], abs=0.6)
    assert left[1] == pytest.approx(right[1], abs=0.6)
    assert left[2] == ["truth", "truth", "hit", "hit"]
    assert right[2] == ["truth", "truth"]
    assert left[3] == right[3]


# --- lost points ----------------------------------------------------------------------------------


def opened_bar(browser: Any, model: str) -> list[Any]:
    """Open a model's bar with the keyboard; returns its error types, as buttons."""
    from selenium.webdriver.common.keys import Keys

    bar = browser.execute_script(
        "return [...document.querySelectorAll('#losses .loss')].find(bar => "
        "  bar.querySelector('.whose').textContent === arguments[0])",
        model,
    )
    summary = bar.find_element("css selector", "summary")
    browser.execute_script("arguments[0].focus()", summary)
    chrome.press(browser, Keys.ENTER)
    return bar.find_elements("css selector", ".parts button")


def test_an_opened_bar_leads_to_the_answers(opened: Any) -> None:
    from selenium.webdriver.common.keys import Keys

    (nothing,) = opened_bar(opened, "<i>Evil")
    assert nothing.text.startswith("nothing found: 50.0 points")
    assert "40 errors" in nothing.text
    chrome.press(opened, Keys.TAB, Keys.ENTER)
    assert chrome.text_of(opened, "count") == "20 answers"
    assert opened.switch_to.active_element.get_attribute("id") == "gallery-title"
    chosen = {
        name: opened.find_element("id", name).get_property("value")
        for name in ("model", "dataset", "format", "error_type", "reason")
    }
    assert chosen == {
        "model": "<i>Evil", "dataset": "Pascal", "format": "xyxy_json",
        "error_type": "lost: nothing found", "reason": "",
    }  # fmt: skip
    # Filters can be cleared and combined, and another error type sets them again.
    chrome.choose(opened, error_type="all")
    assert chrome.text_of(opened, "count") == "30 answers"
    chrome.choose(opened, model="all")
    chrome.choose(opened, format="all")
    chrome.choose(opened, error_type="nothing found")
    assert int(chrome.text_of(opened, "count").split()[0]) > 20
    (unreadable,) = opened_bar(opened, "Talks")
    opened.execute_script("arguments[0].click()", unreadable)
    assert chrome.text_of(opened, "count") == "30 answers"
    assert all("Talks" in card for card in chrome.texts(opened, "#cards .card"))


def test_bars_are_of_models_or_of_datasets(opened: Any) -> None:
    shown = "#losses .whose"
    assert chrome.texts(opened, shown) == ["Good", "<i>Evil", "Talks"]
    chrome.choose(opened, **{"loss-of": "<i>Evil"})
    assert chrome.texts(opened, shown) == ["Pascal"]


def test_groups_of_a_bar_are_the_sums_of_its_types(opened: Any) -> None:
    """Drawn widths, words and the values of the page agree, and fill the bar."""
    bars = opened.execute_script(
        "const data = JSON.parse(document.getElementById('data').textContent);"
        "const drawn = each => [each.className, parseFloat(each.style.width)];"
        "return [...document.querySelectorAll('#losses .loss')].map((bar, place) => ["
        "  data.losses.bars[place], [...bar.querySelectorAll('.segment')].map(drawn),"
        "  bar.querySelector('.stack').ariaLabel, data.error_types, data.error_groups])"
    )
    assert bars
    for bar, segments, words, error_types, groups in bars:
        (of_score, score), *others = segments
        assert of_score == "segment score"
        assert score + sum(width for _, width in others) == pytest.approx(100, abs=0.02)
        points = [0.0] * len(groups)
        for place, lost, *_ in bar[5]:
            points[error_types[place][3]] += lost
        drawn = {int(name[-1]): width for name, width in others}
        assert drawn == pytest.approx({at: lost for at, lost in enumerate(points) if lost})
        for at, lost in drawn.items():
            assert f"{groups[at][0]}: {lost:.1f}" in words


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_segments_stand_out_and_their_words_can_be_read(opened: Any, scheme: str) -> None:
    script = (
        "const rgb = text => text.match(/\\d+/g).slice(0, 3).map(Number);"
        "const style = element => getComputedStyle(element);"
        "const stack = document.querySelector('.loss .stack');"
        "return [rgb(style(document.body).backgroundColor),"
        "  ...['score', ...Array(5).keys()].map(name => {"
        "    const button = document.createElement('span');"
        "    button.className = `segment ${name === 'score' ? name : 'c' + name}`;"
        "    stack.append(button);"
        "    const pair = [rgb(style(button).color), rgb(style(button).backgroundColor)];"
        "    button.remove(); return pair; })]"
    )
    with chrome.emulated(opened, color_scheme=scheme):
        ground, *colours = opened.execute_script(script)
    assert len({tuple(colour) for _, colour in colours}) == 6
    for ink, colour in colours:
        assert chrome.contrast(ink, colour) > 4.5
        assert chrome.contrast(colour, ground) > 3
