"""Regions of masks and lines of text, in the report and on pictures: they differ without colour."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from report_browser import NEEDS_CHROMIUM, browser, emulated, opened_page, write_report
from scored_runs import World, world
from toy_benchmark import LETTERS, guessing, letters

from vlmeval_findit.api.answer_drawing import STROKES, draw_boxes
from vlmeval_findit.core.drawing import (
    Drawing,
    DrawnBox,
    DrawnImage,
    Role,
    outlines_of,
    region,
)
from vlmeval_findit.report.transcripts import drawn_values

__all__ = ["browser", "letters", "world"]

SIZE = (64, 48)


def ring(x: float, y: float, outer: float, inner: float) -> np.ndarray[Any, Any]:
    """Return a mask of a disc with a hole."""
    ys, xs = np.mgrid[: SIZE[1], : SIZE[0]] + 0.5
    far = np.hypot(xs - x, ys - y)
    return (far < outer) & (far >= inner)


MASK = ring(26, 24, 20, 8)
TRUTH = region(Role.TRUTH, outlines_of(MASK), "cat", 0.7)
ANSWERED = {
    role: region(role, outlines_of(ring(32, 26, 18, 6)), "cat", 0.7)
    for role in (Role.HIT, Role.MISS)
}


def test_outlines_enclose_the_mask_they_are_of() -> None:
    image = Image.new("L", SIZE)
    draw_boxes(image.convert("RGB"), [TRUTH])
    outer, inner = sorted(TRUTH.outlines, key=len, reverse=True)
    assert min(outer) >= 0
    for line, radius in ((outer, 20), (inner, 8)):
        points = np.array(line).reshape(-1, 2) - (26, 24)
        assert np.abs(np.hypot(*points.T) - radius).max() < 1
    # A mask up to the picture's edge is closed there.
    (whole,) = outlines_of(np.ones((4, 6)))
    assert (min(whole[::2]), max(whole[::2]), min(whole[1::2]), max(whole[1::2])) == (0, 6, 0, 4)
    assert outlines_of(np.zeros((4, 6))) == ()


def test_an_answer_is_hatched_on_its_pixels_and_an_object_is_not() -> None:
    """In black and white: a hit's lines rise, a miss's fall, and a hole has none."""
    changed = {}
    for box in (TRUTH, *ANSWERED.values()):
        image = Image.new("RGB", SIZE, "#123456")
        draw_boxes(image, [box._replace(label="")])
        pixels = np.asarray(image)
        changed[box.role] = (pixels != (0x12, 0x34, 0x56)).any(axis=2)
        ground = (pixels == list(bytes.fromhex(STROKES[box.role].colour[1:]))).all(axis=2)
        assert ground.any()
    inside = ring(32, 26, 15, 9)
    assert not changed[Role.TRUTH][ring(26, 24, 16, 12)].any()
    for role in ANSWERED:
        assert 0.05 < changed[role][inside].mean() < 0.4
        assert not changed[role][ring(32, 26, 3, 0)].any(), "the hole is empty"
    for role, step in ((Role.HIT, -1), (Role.MISS, 1)):
        lines = np.argwhere(changed[role] & inside)
        along = [changed[role][y + 1, x + step] for y, x in lines if inside[y + 1, x + step]]
        assert np.mean(along) == 1


def test_a_region_is_scaled_with_its_picture() -> None:
    """Drawn on a copy of half the width and twice the height."""
    drawn = [Image.new("RGB", (32, 96)) for _ in range(2)]
    draw_boxes(drawn[0], [region(Role.HIT, [(8, 6, 40, 6, 40, 30)])], SIZE)
    draw_boxes(drawn[1], [region(Role.HIT, [(4, 12, 20, 12, 20, 60)])])
    assert drawn[0] == drawn[1] != Image.new("RGB", (32, 96))


def test_outlines_on_the_page_have_few_vertices() -> None:
    turn = np.linspace(0, 7, 5000)
    many = region(Role.HIT, [tuple(np.column_stack([np.cos(turn), 1e9 * turn]).ravel())])
    plain = DrawnBox(Role.HIT, (1, 2, 3, 4))
    drawing = Drawing((DrawnImage("a.png", *SIZE, boxes=(many, plain)),))
    (frame,) = drawn_values(drawing, Path(), lambda picture: 0)["frames"]
    (*_, outlines), without = frame["boxes"]
    assert len(without) == 7
    assert 800 <= len(outlines[0]) <= 1700
    assert max(outlines[0]) == 1e6


@pytest.mark.slow
@NEEDS_CHROMIUM
def test_the_report_draws_regions(
    browser: Any, letters: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def draw(task: Any, row: Any) -> Drawing:
        query, chosen = task.queries[row.index], row.details["chosen"]
        answered = ANSWERED[Role.HIT if chosen == query.right else Role.MISS]
        return Drawing((DrawnImage(query.images[0], *SIZE, boxes=(TRUTH, answered)),))

    monkeypatch.setattr(LETTERS, "draw", draw)
    letters.predict("M", "Letters_Zoo_plain", guessing(0.5))
    with opened_page(browser, write_report(letters.runs), title="Letters report"):
        check_regions(browser)


def check_regions(browser: Any) -> None:
    assert not browser.execute_script("return document.querySelectorAll('.card svg > rect').length")
    looks = browser.execute_script(
        "return [...document.querySelectorAll('.card svg > g')].map(g => {"
        "  const shape = g.querySelector('path:last-of-type'), style = getComputedStyle(shape);"
        "  const hatch = style.fill.match(/#([\\w-]+)/);"
        "  return [g.dataset.role, style.fillRule, style.strokeDasharray, hatch && "
        "    document.getElementById(hatch[1]).getAttribute('patternTransform')]; })"
    )
    assert {tuple(look) for look in looks} == {
        ("truth", "evenodd", "none", None),
        ("hit", "evenodd", "14px, 5px", "rotate(-45)"),
        ("miss", "evenodd", "5px, 4px", "rotate(45)"),
    }
    inside = browser.execute_script(
        "const g = document.querySelector('.card svg > g[data-role=truth] path:last-of-type');"
        "return arguments[0].map(([x, y]) => g.isPointInFill(new DOMPoint(x, y)))",
        [[26, 24], [26, 10], [2, 2]],
    )
    assert inside == [False, True, False], "the hole does not belong to it"


@pytest.mark.slow
@NEEDS_CHROMIUM
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
