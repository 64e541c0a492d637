"""Tables of the report in a browser: they are open, sort, filter, copy, and lead to answers."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import report_browser as chrome
from report_browser import IN_BROWSER
from scored_runs import World, query, speaking

pytestmark = IN_BROWSER

MODELS = {"=Best": 1.0, "Third-10": 0.4, "Third-9": 0.5, "second": 0.8}
SETS = ("Pascal", "RefCOCO")
FIRST = "document.querySelector('.scores table')"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Four models on two datasets in two formats; one lacks a dataset."""
    with pytest.MonkeyPatch.context() as patch:
        world = World(tmp_path_factory.mktemp("world"))
        world.at_hand(patch)
        pictures = world.folder / "pictures"
        patch.setenv("FINDIT_IMAGES", ",".join(f"{name}={pictures}" for name in SETS))
        for name in SETS:
            world.table(name, [query(at, f"{at}.png") for at in range(12)])
        for at in range(12):
            world.picture(f"{at}.png", at)
        for model, chance in MODELS.items():
            for name in SETS[: 1 if model == "Third-10" else 2]:
                for format_, part in (("xyxy_json", 1.0), ("xyxy_text", 0.5)):
                    variant = f"FindIt_{name}_{format_}"
                    world.predict(model, variant, speaking(variant, chance * part))
        yield chrome.write_report(world.runs)


def column(opened: Any, name: str) -> list[str]:
    """Return the values of a column of the first table, without intervals."""
    script = (
        f"const table = {FIRST};"
        "const heads = [...table.tHead.rows[0].cells]"
        "    .map(cell => cell.querySelector('.head').textContent);"
        "return [...table.tBodies[0].rows].filter(row => !row.hidden).map(row =>"
        "  [...row.cells[heads.indexOf(arguments[0])].childNodes]"
        "    .filter(node => node.nodeName !== 'SMALL').map(node => node.textContent).join(''))"
    )
    return opened.execute_script(script, name)


def heads(opened: Any) -> list[str]:
    shown = "[...cells].filter(cell => !cell.hidden)"
    return opened.execute_script(
        f"const {{ cells }} = {FIRST}.tHead.rows[0];"
        f"return {shown}.map(cell => cell.querySelector('.head').textContent)"
    )


def sort_by(opened: Any, name: str) -> None:
    """Press Enter on a head, as a keyboard does."""
    buttons = opened.find_elements("css selector", ".scores[open] thead .head")
    (button,) = [each for each in buttons if each.text == name]
    button.send_keys("\n")


def test_the_first_table_is_open_and_sorts_by_every_head(opened: Any) -> None:
    states = "return [...document.querySelectorAll('.scores')].map(each => each.open)"
    first, *others = opened.execute_script(states)
    assert first
    assert others
    assert not any(others)
    as_ranked = column(opened, "model")
    for name in heads(opened):
        sort_by(opened, name)
        once = column(opened, name)
        order = f"return {FIRST}.querySelector('[aria-sort]').ariaSort"
        first_order = opened.execute_script(order)
        sort_by(opened, name)
        twice = column(opened, name)
        assert {first_order, opened.execute_script(order)} == {"ascending", "descending"}
        known = [value for value in once if value not in ("", "–", "?")]
        assert once[: len(known)] == known, "what is missing is last"
        assert twice[: len(known)] == known[::-1] or len(set(known)) < len(known)
        assert set(twice[len(known) :]) == set(once[len(known) :])
    sort_by(opened, "model")
    assert column(opened, "model") == ["=Best", "second", "Third-9", "Third-10"]
    sort_by(opened, "Pascal")
    values = [float(value.split()[0]) for value in column(opened, "Pascal")]
    assert values == sorted(values, reverse=True)
    assert set(as_ranked) == set(MODELS)


DOWN, UP, RIGHT, HOME = "\ue015", "\ue013", "\ue014", "\ue011"


def press(opened: Any, key: str) -> Any:
    """Press a key and return what has the focus then."""
    opened.switch_to.active_element.send_keys(key)
    return opened.switch_to.active_element


def press_on(opened: Any, key: str) -> list[Any]:
    """Press a key while it moves the focus; return what had it."""
    met = [opened.switch_to.active_element]
    while (reached := press(opened, key)) not in met:
        met.append(reached)
    return met


def test_the_first_table_is_one_stop_and_arrows_move(opened: Any) -> None:
    """Each value is reached, from the head of its column."""
    buttons = opened.execute_script(f"return [...{FIRST}.querySelectorAll('button')]")
    stops = "return [...arguments[0].querySelectorAll('[tabindex=\"0\"]')]"
    table = opened.find_element("css selector", ".scores table")
    (stop,) = opened.execute_script(stops, table)
    assert stop == buttons[0]
    assert opened.execute_script(f"return {FIRST}.parentElement.tabIndex") == -1
    opened.execute_script("arguments[0].focus()", stop)
    met = []
    for head in heads(opened):
        below = press_on(opened, DOWN)
        assert below[0].text == head
        met += below
        press_on(opened, UP)
        press(opened, RIGHT)
    assert {each.id for each in buttons} == {each.id for each in met}
    press(opened, HOME)
    assert opened.execute_script(stops, table) == [buttons[0]]
    write_filters(opened, "second", "")
    (stop,) = opened.execute_script(stops, table)
    assert stop.is_displayed()


def write_filters(opened: Any, models: str, sets: str) -> None:
    fields = opened.find_elements("css selector", ".scores[open] .tools input")
    for field, text in zip(fields, (models, sets), strict=True):
        field.send_keys("\ue003" * 20, text)  # Backspaces


def test_what_is_shown_is_filtered_and_copied(opened: Any) -> None:
    opened.execute_script(
        "window.copied = [];"
        "navigator.clipboard.writeText = async (text) => { window.copied.push(text); }"
    )
    write_filters(opened, "third, BEST", "refcoco")
    assert set(column(opened, "model")) == {"=Best", "Third-9", "Third-10"}
    assert {name for name in heads(opened) if "Pascal" in name or "Overall" in name} == set()
    assert "RefCOCO" in heads(opened)
    for button in opened.find_elements("css selector", ".scores[open] .tools button"):
        button.send_keys("\n")
    markdown, text = opened.execute_script("return window.copied")
    lines = markdown.splitlines()
    assert lines[1] == "|" + " --- |" * len(heads(opened))
    assert len(lines) == 2 + 3
    assert all(line.count("|") == lines[0].count("|") for line in lines)
    rows = list(csv.DictReader(text.splitlines()))
    assert {row["model"] for row in rows} == {"'=Best", "Third-9", "Third-10"}
    assert [row["RefCOCO"] for row in rows] == column(opened, "RefCOCO")
    elsewhere = "RefCOCO elsewhere"
    for row in rows:
        if row[elsewhere] != "–":
            assert float(row[elsewhere]) >= 0
            assert row[f"{elsewhere} ranks"]
            assert row[f"{elsewhere} 95 % interval"]
    write_filters(opened, "", "")
    assert len(column(opened, "model")) == len(MODELS)


def test_a_value_on_a_dataset_leads_to_its_answers(opened: Any) -> None:
    buttons = opened.find_elements("css selector", ".scores[open] .to-answers")
    assert len(buttons) == 7, "models by datasets, less the one that is lacking"
    for button in buttons[:2]:
        title = button.get_attribute("title")
        button.send_keys("\n")
        model, dataset = title.removeprefix("Answers of ").split(" on ")
        chosen = "return ['model', 'dataset', 'format'].map(id => at(id).value)"
        shown = opened.execute_script(chosen.replace("at(", "document.getElementById("))
        assert shown == [model, dataset, "reported formats"]
        assert chrome.text_of(opened, "count") == "12 answers"


@pytest.mark.parametrize("width", [390, 1280])
def test_tables_widen_no_page(opened: Any, width: int) -> None:
    with chrome.emulated(opened, width):
        assert opened.execute_script("return document.documentElement.scrollWidth") <= width


HEADS = """
for (const details of document.querySelectorAll('details')) details.open = true;
const found = [];
for (const table of document.querySelectorAll('.wide > table')) {
  const region = table.parentElement;
  region.scrollLeft = 1000;
  const name = table.querySelector('tbody th[scope=row]');
  if (!region.clientWidth || !name || region.scrollLeft < 5) continue;
  const head = table.tHead.rows[0].cells[name.cellIndex];
  const [above, below] = [head, name].map((cell) => cell.getBoundingClientRect().left);
  found.push([region.ariaLabel, above - region.getBoundingClientRect().left, above - below]);
}
return found;
"""


def test_the_head_of_names_stays_above_them(opened: Any) -> None:
    """Where a table is scrolled under its names, no other column's head stands above these."""
    with chrome.emulated(opened, 390):
        heads_of = opened.execute_script(HEADS)
    assert len(heads_of) > 4
    for name, from_edge, from_name in heads_of:
        assert abs(from_edge) < 1, name
        assert abs(from_name) < 1, name


def test_two_models_have_the_mean_over_datasets(opened: Any) -> None:
    """It stands above the dataset's metrics, turns with the sides, and formats have none."""
    means = "#difference tbody:first-of-type"
    (name,) = chrome.texts(opened, f"{means} th")
    assert name.startswith("F1@0.5, Overall (mean of 2)")
    values = chrome.texts(opened, f"{means} td")
    assert " to " in values[3]
    said = {name: chrome.text_of(opened, name) for name in ("mean-text", "difference-text")}
    assert said["mean-text"].startswith("On average over 2 datasets (Overall), ")
    dataset = opened.execute_script("return document.getElementById('sides-dataset').value")
    assert said["difference-text"].startswith(f"On {dataset}, ")
    opened.find_element("id", "turn").click()
    turned = chrome.texts(opened, f"{means} td")
    assert turned[:2] == values[1::-1]
    assert turned[2] == values[2].translate(str.maketrans("+-", "-+"))
    assert turned[4] == values[4]
    chrome.choose(opened, left="second · xyxy_json")
    chrome.choose(opened, right="second · xyxy_text")
    assert chrome.texts(opened, f"{means} td") == []
    assert chrome.text_of(opened, "mean-text") == ""


def test_one_image_is_shown_with_all_models(opened: Any) -> None:
    """In the order of their ranks; an opened answer turns to the next model's, and back to it."""
    from selenium.webdriver.common.keys import Keys

    chrome.choose(opened, order="models")
    ranked = column(opened, "model")
    names = opened.execute_script(
        "return [...document.querySelectorAll('#cards .query')].map(query =>"
        "  [...query.querySelectorAll('.words > b')].map(name => name.textContent))"
    )
    assert len(names) == 3
    assert names == [ranked] * 3, "queries of all models come first"
    # 12 queries have four models, 12 have three.
    assert chrome.text_of(opened, "count") == "84 answers to 24 queries"
    cards = opened.find_elements("css selector", "#cards .card")
    opened.execute_script("arguments[0].focus()", cards[5])
    chrome.press(opened, Keys.ENTER)
    first = chrome.text_of(opened, "detail-title")
    assert first.startswith(ranked[1])
    # Twelve answers further is the next page.
    chrome.press(opened, *[Keys.ARROW_RIGHT] * 12)
    assert chrome.text_of(opened, "detail-title").startswith(ranked[1])
    chrome.press(opened, Keys.ESCAPE)
    assert chrome.text_of(opened, "page") == "page 2 of 8"
    focused = opened.switch_to.active_element.find_element("css selector", ".words > b")
    assert focused.text == ranked[1]
