"""A review in a real browser: by keyboard alone, by touch, blind, and interrupted."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import report_browser as chrome
from report_browser import IN_BROWSER
from review_pages import LABEL, PROPOSAL, SIZE, TABLE, VOTERS, random_row, row_of, write_page
from waits import until

from vlmeval_findit.protocol import Answer
from vlmeval_findit.report import ReviewRow, Source
from vlmeval_findit.storage import read_reviews

pytestmark = IN_BROWSER

SET = Answer((LABEL, (10, 10, 60, 50)), ("dog", "cat"))
MORE = Answer((*SET.boxes, PROPOSAL), (*SET.labels, "horse"))
CLASSES = ("dog", "cat", "horse")


def set_row(folder: Path, index: int) -> ReviewRow:
    """Make a row of a detection dataset: the label lacks a horse."""
    return row_of(
        folder, index, SET, MORE, kind="missing", single=False, classes=CLASSES, asked="dog, cat"
    )


@contextmanager
def reviewing(browser: Any, folder: Path, rows: list[ReviewRow], name: str = "ab") -> Iterator[Any]:
    """Open the page of rows as a reviewer who says who they are; downloads go to the folder."""
    page = write_page(folder / "review.html", rows)
    to = {"behavior": "allow", "downloadPath": str(folder)}
    browser.execute_cdp_cmd("Browser.setDownloadBehavior", to)
    with chrome.opened_page(browser, page, title="Review of Fruit"):
        browser.execute_script("localStorage.clear()")
        reload(browser)
        if name:
            begin(browser, name)
        yield browser
        requests = [
            json.loads(entry["message"])["message"] for entry in browser.get_log("performance")
        ]
        sent = [
            each["params"] for each in requests if each["method"] == "Network.requestWillBeSent"
        ]
        addresses = [each["request"]["url"] for each in sent]
        assert [
            each for each in addresses if not each.startswith(("file:", "data:", "blob:"))
        ] == []


def reload(browser: Any) -> None:
    """Load the page anew; on a busy machine refresh() may return before."""
    browser.execute_script("window.isOld = true")
    browser.refresh()
    chrome.shown(browser, f"{chrome.LOADED} && !window.isOld")


def begin(browser: Any, name: str) -> None:
    from selenium.webdriver.common.keys import Keys

    chrome.shown(browser, "return document.activeElement.id === 'name'")
    chrome.press(browser, name, Keys.ENTER)
    chrome.shown(browser, "return !document.getElementById('who').open")


def place(browser: Any) -> str:
    return chrome.text_of(browser, "place").split(" of ")[0]


def pressed(browser: Any) -> list[str]:
    """Return the buttons of the row's decision."""
    script = "return [...document.querySelectorAll('#choice [aria-pressed=true]')].map(b => b.id)"
    return [str(name) for name in browser.execute_script(script)]


def letter_of(browser: Any, box: tuple[float, ...]) -> str:
    """Return the letter of the candidate whose box is here: keys for a scripted reviewer."""
    found = browser.execute_script(
        "const group = [...document.querySelectorAll('.candidates g')].find(g => {"
        "  const r = g.querySelector('rect'); return +r.getAttribute('x') === arguments[0] &&"
        "  +r.getAttribute('y') === arguments[1]; });"
        "return group && group.getAttribute('class')",
        box[0],
        box[1],
    )
    assert found in ("c-A", "c-B"), found
    return str(found[-1].lower())


def saved(browser: Any, folder: Path) -> list[dict[str, Any]]:
    """Save with the key, and return the lines of the file."""
    path = folder / "reviews.jsonl"
    path.unlink(missing_ok=True)
    chrome.press(browser, "s")
    until(lambda: path.is_file() and path.read_text(encoding="utf-8").endswith("\n"))
    read_reviews([path])  # Refuses what is not as it should be
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


# --- the keyboard ---------------------------------------------------------------------------------


def test_the_keyboard_alone_reviews_twelve_rows(browser: Any, tmp_path: Path) -> None:
    from selenium.webdriver.common.keys import Keys

    rows = [row_of(tmp_path, index) for index in range(1, 10)]
    rows += [random_row(tmp_path, 20), set_row(tmp_path, 21), row_of(tmp_path, 22)]
    with reviewing(browser, tmp_path, rows):
        assert place(browser) == "Row 1"
        chrome.press(browser, letter_of(browser, LABEL))  # 1
        chrome.press(browser, letter_of(browser, PROPOSAL))  # 2
        chrome.press(browser, "2")  # 3
        chrome.press(browser, "x")  # 4
        chrome.press(browser, "u")  # 5
        chrome.press(browser, "x", "z", letter_of(browser, LABEL))  # 6, taken back once
        assert place(browser) == "Row 7"
        # An edit: from B, its upper left corner 3 right and 10 down, its lower right one 1 up.
        chrome.press(browser, "e", "e", *[Keys.ARROW_RIGHT] * 3, Keys.SHIFT + Keys.ARROW_DOWN)
        chrome.press(browser, Keys.TAB, Keys.ARROW_UP, Keys.ARROW_UP, "z", Keys.ENTER)  # 7
        reload(browser)
        assert place(browser) == "Row 8"
        assert chrome.text_of(browser, "count") == "7 decided"
        chrome.press(browser, letter_of(browser, LABEL))  # 8
        chrome.press(browser, Keys.ARROW_LEFT, Keys.ARROW_LEFT, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
        chrome.press(browser, "e", Keys.ESCAPE, letter_of(browser, LABEL))  # 9
        chrome.press(browser, letter_of(browser, LABEL))  # 10, random
        chrome.press(browser, letter_of(browser, PROPOSAL))  # 11, a set
        chrome.press(browser, letter_of(browser, LABEL))  # 12
        assert chrome.text_of(browser, "proposal-text") == (
            "All rows are decided. Save the file. To change one, go back to it."
        )
        header, *lines = saved(browser, tmp_path)
        read = read_reviews([tmp_path / "reviews.jsonl"])
        assert (len(read.audits), len(read.decisions())) == (1, 12)
        assert chrome.text_of(browser, "save").split() == ["S", "Saved"]
    assert header["audit"]["table"] == TABLE
    verdicts = [line["verdict"] for line in lines]
    expected = ["label", "model", "both", "exclude", "unsure", "label", "edited"]
    assert verdicts == [*expected, "label", "label", "label", "model", "label"]
    assert [line["index"] for line in lines] == [row.index for row in rows]
    assert {line["reviewer"] for line in lines} == {"ab"}
    assert lines[1]["accept"] == [{"boxes": [[*PROPOSAL]], "labels": []}]
    assert {tuple(each["boxes"][0]) for each in lines[2]["accept"]} == {LABEL, PROPOSAL}
    ((edited,),) = [answer["boxes"] for answer in lines[6]["accept"]]
    starts = [(x1 + 3, y1 + 10, x2, y2 - 1) for x1, y1, x2, y2 in (LABEL, PROPOSAL)]
    assert tuple(edited) in starts
    assert (lines[9]["drawn"], lines[9]["kind"], lines[9]["p"]) == ("random", "", None)
    assert (lines[0]["drawn"], lines[0]["kind"], lines[0]["p"]) == (
        "listed",
        "wrong object",
        0.987654,
    )
    assert lines[0]["voters"] == [*VOTERS]
    assert lines[10]["accept"] == [
        {"boxes": [[*box] for box in MORE.boxes], "labels": [*MORE.labels]}
    ]


def test_a_held_key_decides_one_row(browser: Any, tmp_path: Path) -> None:
    with reviewing(browser, tmp_path, [row_of(tmp_path, index) for index in range(4)]):
        browser.execute_script(
            "for (const repeat of [false, true, true])"
            "  dispatchEvent.call(document.body, new KeyboardEvent('keydown',"
            "    {key: 'x', repeat, bubbles: true}))"
        )
        assert chrome.text_of(browser, "count") == "1 decided"


def test_keys_after_the_last_row_change_nothing(browser: Any, tmp_path: Path) -> None:
    from selenium.webdriver.common.keys import Keys

    with reviewing(browser, tmp_path, [row_of(tmp_path, index) for index in range(2)]):
        chrome.press(browser, "x", "u", *"ab2exu", Keys.ARROW_RIGHT, "x")
        assert pressed(browser) == ["unsure"]
        reload(browser)
        chrome.press(browser, *"abx")
        assert pressed(browser) == ["unsure"]
        chrome.press(browser, Keys.ARROW_LEFT, "u", *"xx")
        verdicts = {line["index"]: line["verdict"] for line in saved(browser, tmp_path)[1:]}
    assert verdicts == {0: "unsure", 1: "unsure"}


def test_keys_of_the_browser_stay_its_own(browser: Any, tmp_path: Path) -> None:
    from selenium.webdriver.common.keys import Keys

    with reviewing(browser, tmp_path, [row_of(tmp_path, 1)]):
        chrome.press(browser, Keys.CONTROL + "b", Keys.ALT + "x")
        assert chrome.text_of(browser, "count") == "0 decided"


def test_undo_goes_back_step_by_step(browser: Any, tmp_path: Path) -> None:
    with reviewing(browser, tmp_path, [row_of(tmp_path, index) for index in range(4)]):
        chrome.press(browser, "x", "u", "z")
        assert (place(browser), chrome.text_of(browser, "count")) == ("Row 2", "1 decided")
        chrome.press(browser, "z", "z", "z")
        assert (place(browser), chrome.text_of(browser, "count")) == ("Row 1", "0 decided")


def test_what_a_file_has_is_decided_anew(browser: Any, tmp_path: Path) -> None:
    """Files are appended to: the last line of a row counts."""
    with reviewing(browser, tmp_path, [row_of(tmp_path, index) for index in range(3)]):
        chrome.press(browser, "x")
        saved(browser, tmp_path)
        chrome.press(browser, "z")
        assert "Choose again: the last choice counts" in chrome.text_of(browser, "told")
        chrome.press(browser, "u")
        assert place(browser) == "Row 2"
        lines = saved(browser, tmp_path)[1:]
    assert [(line["index"], line["verdict"]) for line in lines] == [(0, "exclude"), (0, "unsure")]


# --- blindness ------------------------------------------------------------------------------------


def test_the_document_does_not_tell_before_the_choice(browser: Any, tmp_path: Path) -> None:
    rows = [row_of(tmp_path, 1), random_row(tmp_path, 2), set_row(tmp_path, 3)]
    with reviewing(browser, tmp_path, rows):
        for row in rows:
            shown = browser.execute_script(
                "const copy = document.querySelector('main').cloneNode(true);"
                "copy.querySelectorAll('image, #told, #unsure').forEach(each => each.remove());"
                "return copy.outerHTML"
            )
            words = set(re.findall(r"[\w.]+", re.sub("aria-label|</?label", "", shown)))
            told = {
                "label",
                "models",
                "listed",
                "random",
                "missing",
                "object",
                "sealed",
                "0.987654",
            }
            assert words.isdisjoint(told | {"1.jpg"}), row.index
            assert not any(voter in shown for voter in VOTERS)
            assert not browser.find_elements("id", "data")
            chrome.press(browser, "x")
        assert chrome.text_of(browser, "told").startswith("Row 3. You: no answer is right.")


def test_after_the_choice_the_row_is_told(browser: Any, tmp_path: Path) -> None:
    from selenium.webdriver.common.keys import Keys

    with reviewing(browser, tmp_path, [row_of(tmp_path, 1), random_row(tmp_path, 2)]):
        label, other = (letter_of(browser, box).upper() for box in (LABEL, PROPOSAL))
        chrome.press(browser, label.lower())
        told = chrome.text_of(browser, "told")
        meanings = sorted([f"{label} is the label.", f"{other} is the models’: 2 of 3 models."])
        doubt = "Doubt: wrong object."
        assert told == " ".join(["Row 1. You: the label is right.", *meanings, doubt])
        chrome.press(browser, "2")
        assert chrome.text_of(browser, "told").endswith("A random row.")
        chrome.press(browser, Keys.ARROW_LEFT)
        letters = browser.execute_script(
            "return [...document.querySelectorAll('.letter')].map(each => each.textContent)"
        )
        assert sorted(letters) == sorted([f"{label} label", f"{other} models"])
        assert pressed(browser) == [label.lower()]


def test_a_chosen_decoy_is_another_answer(browser: Any, tmp_path: Path) -> None:
    with reviewing(browser, tmp_path, [random_row(tmp_path, 1, source=Source.DECOY)]):
        chosen = letter_of(browser, PROPOSAL)
        chrome.press(browser, chosen)
        assert pressed(browser) == [chosen]
        assert "is something else of the picture. A random row." in chrome.text_of(browser, "told")
        (line,) = saved(browser, tmp_path)[1:]
    assert (line["verdict"], line["accept"][0]["boxes"]) == ("edited", [[*PROPOSAL]])


def test_a_candidate_without_more_boxes_says_so(browser: Any, tmp_path: Path) -> None:
    with reviewing(browser, tmp_path, [set_row(tmp_path, 1)]):
        more = letter_of(browser, PROPOSAL)
        less = "b" if more == "a" else "a"
        assert chrome.text_of(browser, less).split(" ", 1)[1].strip().endswith("(no more boxes)")
        assert "Thin boxes are in both." in chrome.text_of(browser, "question")


def test_a_single_candidate_is_right_or_not(browser: Any, tmp_path: Path) -> None:
    rows = [replace(random_row(tmp_path, index), other=None) for index in range(2)]
    with reviewing(browser, tmp_path, rows):
        assert chrome.text_of(browser, "question") == "Is A right?"
        chrome.press(browser, "b", "2")
        assert chrome.text_of(browser, "count") == "0 decided"
        chrome.press(browser, "a")
        (line,) = saved(browser, tmp_path)[1:]
    assert (line["verdict"], line["accept"][0]["boxes"]) == ("label", [[*LABEL]])


def test_candidates_weigh_the_same(browser: Any, tmp_path: Path) -> None:
    with reviewing(browser, tmp_path, [row_of(tmp_path, 1)]):
        looks = browser.execute_script(
            "return ['A', 'B'].map(letter => {"
            "  const line = getComputedStyle(document.querySelector(`.c-${letter} .line`));"
            "  return [line.stroke.match(/\\d+/g).map(Number), line.strokeWidth,"
            "    line.strokeDasharray, line.opacity]; })"
        )
    (one, *first), (other, *second) = looks
    assert first == second
    assert one != other
    assert chrome.contrast(one, other) < 1.15, "of equal brightness, also to who sees no colour"


# --- interrupted, and by others -------------------------------------------------------------------


def read_file(browser: Any, path: Path, into: str = "earlier") -> str:
    browser.find_element("id", into).send_keys(str(path))
    told = "who-told" if into == "earlier-first" else "told"
    return str(chrome.shown(browser, f"return document.getElementById('{told}').textContent"))


def drop(browser: Any, path: Path) -> None:
    """Drop a file on the page."""
    browser.execute_script(
        "const dataTransfer = new DataTransfer();"
        "dataTransfer.items.add(new File([arguments[0]], 'reviews.jsonl'));"
        "document.body.dispatchEvent(new DragEvent('drop', {dataTransfer, bubbles: true}))",
        path.read_text(encoding="utf-8"),
    )


def test_an_earlier_file_goes_on(browser: Any, tmp_path: Path) -> None:
    rows = [row_of(tmp_path, index) for index in range(4)]
    with reviewing(browser, tmp_path, rows):
        chrome.press(browser, "x", "u")
        saved(browser, tmp_path)
    path = (tmp_path / "reviews.jsonl").rename(tmp_path / "earlier.jsonl")
    with reviewing(browser, tmp_path, rows, name=""):
        browser.find_element("id", "earlier-first").send_keys(str(path))
        chrome.shown(browser, "return !document.getElementById('who').open")
        assert chrome.text_of(browser, "told") == "2 decisions read."
        assert (place(browser), chrome.text_of(browser, "count")) == ("Row 3", "2 decided")
        assert read_file(browser, path) == "2 decisions read.", "a second time"
        browser.execute_script("document.getElementById('told').textContent = ''")
        drop(browser, path)
        assert chrome.shown(browser, "return document.getElementById('told').textContent")
        assert chrome.text_of(browser, "count") == "2 decided"
        chrome.press(browser, "2")
        lines = saved(browser, tmp_path)[1:]
    assert [line["verdict"] for line in lines] == ["exclude", "unsure", "both"]
    assert {line["reviewer"] for line in lines} == {"ab"}


def changed(line: dict[str, Any], **fields: Any) -> str:
    return json.dumps({**line, **fields})


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"table": "sha256:" + "1" * 64}, "The file reviews another table: nothing was read."),
        ({"row": "sha256:" + "1" * 64}, "Line 1: row 1 has another picture, expression or box"),
        ({"verdict": "perhaps"}, "Line 1: “perhaps” is no verdict. Nothing was read."),
        ({"verdict": "constructor"}, "Line 1: “constructor” is no verdict"),
        ({"date": "yesterday"}, "Line 1: “yesterday” is no date"),
        ({"accept": [{"boxes": [], "labels": None}]}, "Line 1: accept should be a list of answers"),
        ({"accept": [{"boxes": [["<b>"]]}]}, "Line 1: accept should be a list of answers"),
        ({"format": 2}, "Line 1 is not of a reviews.jsonl: nothing was read."),
        ({"index": 99}, "0 decisions read. 1 of rows that are not on this page"),
        ({"reviewer": "cd"}, "0 decisions read. 1 by others or of other tables"),
    ],
)
def test_a_line_that_cannot_be_used(
    browser: Any, tmp_path: Path, fields: dict[str, Any], told: str
) -> None:
    with reviewing(browser, tmp_path, [row_of(tmp_path, 1), row_of(tmp_path, 2)]):
        chrome.press(browser, "x")
        line = saved(browser, tmp_path)[1]
        chrome.press(browser, "z")
        browser.execute_script("document.getElementById('told').textContent = ''")
        path = tmp_path / "other.jsonl"
        path.write_text(changed(line, **{"date": "2026-01-31", **fields}), encoding="utf-8")
        assert read_file(browser, path).startswith(told)
        assert chrome.text_of(browser, "count") == "1 decided"


def test_another_window_goes_on_with_the_same(browser: Any, tmp_path: Path) -> None:
    with reviewing(browser, tmp_path, [row_of(tmp_path, index) for index in range(4)]):
        first = browser.current_window_handle
        address = browser.current_url
        browser.execute_script(
            "window.stored = 0; Storage.prototype.setItem = () => { window.stored += 1; }"
        )
        browser.switch_to.new_window("tab")
        browser.get(address)
        chrome.shown(browser, chrome.LOADED)
        second = browser.current_window_handle
        chrome.press(browser, "x", "x")
        browser.switch_to.window(first)
        chrome.shown(browser, "return document.getElementById('count').textContent === '2 decided'")
        assert browser.execute_script("return window.stored") == 0, "it may be old by now"
        # Not before: a window that is closed may take what it just stored with it.
        browser.switch_to.window(second)
        browser.close()
        browser.switch_to.window(first)


def test_another_reviewer_in_the_same_browser_is_blind(browser: Any, tmp_path: Path) -> None:
    with reviewing(browser, tmp_path, [row_of(tmp_path, index) for index in range(4)]):
        chrome.press(browser, "x", "x")
        browser.find_element("id", "reviewer").click()
        begin(browser, "cd")
        assert (place(browser), chrome.text_of(browser, "count")) == ("Row 1", "0 decided")
        chrome.press(browser, "u")
        assert [line["reviewer"] for line in saved(browser, tmp_path)[1:]] == ["cd"]
        reload(browser)
        assert chrome.text_of(browser, "count") == "1 decided"
        browser.find_element("id", "reviewer").click()
        begin(browser, "ab")
        assert (place(browser), chrome.text_of(browser, "count")) == ("Row 3", "2 decided")


def test_without_a_store_the_page_says_so(browser: Any, tmp_path: Path) -> None:
    with reviewing(browser, tmp_path, [row_of(tmp_path, index) for index in range(3)]):
        assert not browser.find_element("id", "not-kept").is_displayed()
        browser.execute_script("Storage.prototype.setItem = () => { throw new Error('full') }")
        chrome.press(browser, "x")
        assert browser.find_element("id", "not-kept").is_displayed()
        assert len(saved(browser, tmp_path)) == 2


def test_twenty_unchanged_labels_propose_to_stop(browser: Any, tmp_path: Path) -> None:
    rows = [row_of(tmp_path, index) for index in range(20)]
    rows[7:7] = [random_row(tmp_path, 100 + index) for index in range(3)]
    rows += [row_of(tmp_path, index) for index in range(20, 24)]
    with reviewing(browser, tmp_path, rows):
        proposal = browser.find_element("id", "proposal")
        for _ in range(22):
            chrome.press(browser, letter_of(browser, LABEL))
            assert not proposal.is_displayed()
        chrome.press(browser, letter_of(browser, LABEL))
        assert "The last 20 doubted labels are right" in proposal.text
        chrome.press(browser, letter_of(browser, LABEL))
        assert not proposal.is_displayed()
        chrome.press(browser, letter_of(browser, PROPOSAL))
        chrome.press(browser, letter_of(browser, LABEL))
        assert not proposal.is_displayed()


# --- editing --------------------------------------------------------------------------------------


def test_a_corner_is_dragged(browser: Any, tmp_path: Path) -> None:
    from selenium.webdriver.common.action_chains import ActionChains

    with reviewing(browser, tmp_path, [row_of(tmp_path, 1)]):
        chrome.press(browser, "e")
        scale = browser.execute_script(
            "return document.querySelector('#picture svg').getScreenCTM().a"
        )
        (corner,) = [
            each
            for each in browser.find_elements("css selector", ".handle")
            if each.get_attribute("aria-label").startswith("bottom right")
        ]
        ActionChains(browser).drag_and_drop_by_offset(corner, round(20 * scale), 0).perform()
        browser.find_element("id", "accept").click()
        assert pressed(browser) == ["edit"]
        (line,) = saved(browser, tmp_path)[1:]
    ((x1, y1, x2, y2),) = line["accept"][0]["boxes"]
    (start,) = [box for box in (LABEL, PROPOSAL) if (box[0], box[1]) == (x1, y1)]
    assert (line["verdict"], y2) == ("edited", pytest.approx(start[3], abs=1))
    assert x2 == pytest.approx(start[2] + 20, abs=1.5)


def test_boxes_of_a_set_are_added_named_and_removed(browser: Any, tmp_path: Path) -> None:
    from selenium.webdriver.common.keys import Keys

    with reviewing(browser, tmp_path, [set_row(tmp_path, 1)]):
        chrome.press(browser, "e")
        if (
            browser.execute_script("return document.querySelectorAll('.editing .edited').length")
            == 3
        ):
            chrome.press(browser, "e")
        chrome.press(browser, "i", Keys.DELETE, "i")
        chrome.choose(browser, **{"class": "horse"})
        chrome.press(browser, "n", Keys.DELETE, Keys.ENTER)
        (line,) = saved(browser, tmp_path)[1:]
    (answer,) = line["accept"]
    assert answer["labels"] == ["cat", "horse"]
    assert answer["boxes"] == [[10, 10, 60, 50], [160, 120, 240, 180]]


def test_an_edit_without_a_change_is_the_candidate(browser: Any, tmp_path: Path) -> None:
    from selenium.webdriver.common.keys import Keys

    with reviewing(browser, tmp_path, [row_of(tmp_path, 1)]):
        chosen = "label" if letter_of(browser, LABEL) == "a" else "model"
        chrome.press(browser, "e", Keys.ARROW_LEFT, Keys.ARROW_RIGHT, Keys.ENTER)
        assert pressed(browser) == ["a"]
        (line,) = saved(browser, tmp_path)[1:]
    assert line["verdict"] == chosen


def test_an_edited_box_stays_in_its_picture(browser: Any, tmp_path: Path) -> None:
    from selenium.webdriver.common.keys import Keys

    with reviewing(browser, tmp_path, [row_of(tmp_path, 1)]):
        chrome.press(browser, "e", *[Keys.SHIFT + Keys.ARROW_LEFT] * 40)
        chrome.press(browser, Keys.TAB, *[Keys.SHIFT + Keys.ARROW_UP] * 40, Keys.TAB)
        chrome.press(browser, *[Keys.SHIFT + Keys.ARROW_DOWN] * 40, Keys.ENTER)
        (line,) = saved(browser, tmp_path)[1:]
    ((x1, y1, x2, y2),) = line["accept"][0]["boxes"]
    assert (x1, y2, y2 - y1) == (0, SIZE[1], 1)
    assert x1 < x2 <= SIZE[0]


FRAME = "requestAnimationFrame(() => requestAnimationFrame(arguments[0]))"


def touch(browser: Any, *places: tuple[float, float]) -> None:
    """Put a finger on the first place, move it over the others, and lift it; each is drawn."""
    kinds = ["touchStart", *["touchMove"] * (len(places) - 1), "touchEnd"]
    points = [[{"x": x, "y": y}] for x, y in places]
    for kind, of_kind in zip(kinds, [*points, []], strict=True):
        values = {"type": kind, "touchPoints": of_kind}
        browser.execute_cdp_cmd("Input.dispatchTouchEvent", values)
        browser.execute_async_script(FRAME)


def pinch(browser: Any, factor: float) -> None:
    """Draw two fingers on the picture apart."""
    x, y, *_ = middle_of(browser, "#picture svg")
    for kind, apart in (("touchStart", 40), ("touchMove", 60), ("touchMove", 40 * factor)):
        points = [{"x": x + side * apart / 2, "y": y, "id": side + 1} for side in (-1, 1)]
        values = {"type": kind, "touchPoints": points}
        browser.execute_cdp_cmd("Input.dispatchTouchEvent", values)
        browser.execute_async_script(FRAME)
    browser.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})


def middle_of(browser: Any, selector: str) -> list[float]:
    """Return the middle of an element and its size, in pixels of the screen."""
    found: list[float] = browser.execute_script(
        "const r = document.querySelector(arguments[0]).getBoundingClientRect();"
        "return [r.x + r.width / 2, r.y + r.height / 2, r.width, r.height]",
        selector,
    )
    return found


def tap(browser: Any, name: str) -> None:
    """Tap a button, which is large enough for a finger; returns after its click."""
    x, y, width, height = middle_of(browser, f"#{name}")
    assert min(width, height) >= 40, name
    wait = "window.isTapped = false; addEventListener('click', () => { isTapped = true; }, true)"
    browser.execute_script(wait)
    touch(browser, (x, y))
    chrome.shown(browser, "return window.isTapped")


# --- a phone, injection, light and dark -----------------------------------------------------------


def test_a_phone_reviews_by_touch(browser: Any, tmp_path: Path) -> None:
    browser.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": True})
    rows = [row_of(tmp_path, 1, asked="a long expression, " * 6), set_row(tmp_path, 2)]
    try:
        with (
            chrome.emulated(browser, 390),
            reviewing(browser, tmp_path, [*rows, row_of(tmp_path, 3)]),
        ):
            size = {"width": 390, "height": 664, "deviceScaleFactor": 1, "mobile": True}
            browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
            view = "return document.querySelector('#picture svg').viewBox.baseVal.width"
            assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
            bottom = "return document.getElementById('moves').getBoundingClientRect().bottom"
            assert browser.execute_script(bottom) <= 664, "all of a row is on the screen"
            tap(browser, "nearer")
            assert browser.execute_script(view) == pytest.approx(SIZE[0] / 1.5)
            pinch(browser, 2)
            assert browser.execute_script(view) == pytest.approx(SIZE[0] / 3, rel=0.05)
            tap(browser, "both")
            tap(browser, "edit")
            x, y, *_ = middle_of(browser, ".handle[aria-label^=whole]")
            touch(browser, (x, y), (x + 20, y), (x + 30, y))
            tap(browser, "add-box")
            tap(browser, "accept")
            tap(browser, "exclude")
            tap(browser, "undo")
            assert place(browser) == "Row 3"
            tap(browser, "unsure")
            lines = saved(browser, tmp_path)[1:]
    finally:
        browser.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": False})
    assert [line["verdict"] for line in lines] == ["both", "edited", "unsure"]
    *edited, _ = lines[1]["accept"][0]["boxes"]
    (moved,) = [box for box in edited if tuple(box) not in MORE.boxes]
    (start,) = [box for box in MORE.boxes if box[1] == moved[1]]
    assert moved[0] > start[0] + 5


def test_foreign_text_stays_text(browser: Any, tmp_path: Path) -> None:
    evil = f"</script>{chrome.EVIL}"
    row = row_of(tmp_path, 1, asked=evil, kind=evil, classes=(evil,), voters=(evil,), single=False)
    label, proposal = Answer((LABEL,), (evil,)), Answer((PROPOSAL,), (evil,))
    rows = [row_of(tmp_path, 2, label, proposal, asked=evil, classes=(evil,), single=False), row]
    with reviewing(browser, tmp_path, rows, name="<b>"):
        assert chrome.text_of(browser, "asked") == evil
        chrome.press(browser, "e", "n", "z")
        browser.find_element("id", "cancel").click()
        chrome.press(browser, "a", "x")
        assert chrome.text_of(browser, "told").endswith(f"Doubt: {evil}.")
        lines = saved(browser, tmp_path)[1:]
    assert lines[0]["accept"][0]["labels"] == [evil]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_review_can_be_read_in_light_and_dark(browser: Any, tmp_path: Path, scheme: str) -> None:
    rows = [row_of(tmp_path, 1)]
    with chrome.emulated(browser, color_scheme=scheme), reviewing(browser, tmp_path, rows):
        pairs = browser.execute_script(
            "const rgb = text => text.match(/\\d+/g).slice(0, 3).map(Number);"
            "const ground = rgb(getComputedStyle(document.body).backgroundColor);"
            "return ['asked', 'question', 'told', 'count'].map(id =>"
            "  [rgb(getComputedStyle(document.getElementById(id)).color), ground])"
        )
    assert all(chrome.contrast(*pair) > 4.5 for pair in pairs)
    assert (chrome.luminance(pairs[0][1]) > 0.5) == (scheme == "light")
