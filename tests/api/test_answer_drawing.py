"""Answers on their images, in the colours of the report."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from scored_runs import HEIGHT, WIDTH, World, saying

import vlmeval_findit as findit
from vlmeval_findit.api import STROKES
from vlmeval_findit.protocol import Role


def colours_of(picture: Image.Image) -> set[str]:
    return {f"#{r:02x}{g:02x}{b:02x}" for _, (r, g, b) in picture.getcolors(100_000)}  # type: ignore[misc]


@pytest.mark.parametrize(
    ("answer", "roles"),
    [
        ([[10, 10, 60, 60]], {Role.TRUTH, Role.HIT}),
        ([[100, 10, 160, 60]], {Role.TRUTH, Role.MISS}),
        ([], {Role.TRUTH}),
        ([[-1e9, -1e9, 1e9, 1e9]], {Role.TRUTH}),
    ],
)
def test_a_box_has_the_colour_of_its_role(answer: Any, roles: set[Role], tmp_path) -> None:
    picture = Image.new("L", (WIDTH, HEIGHT), 70)
    picture.save(tmp_path / "a.png")
    # An answer that lies on its object would hide it: the object is larger by a pixel or two.
    drawn = findit.draw(picture, [[7, 7, 64, 64]], answer)
    assert {role for role in STROKES if STROKES[role].colour in colours_of(drawn)} == roles
    assert drawn.size == picture.size
    assert findit.draw(tmp_path / "a.png", [[7, 7, 64, 64]], answer) == drawn
    assert findit.draw(np.asarray(picture), [[7, 7, 64, 64]], answer) == drawn
    assert picture.getcolors() == [(WIDTH * HEIGHT, 70)]


def test_labels_and_frames_are_drawn() -> None:
    picture = Image.new("RGB", (WIDTH, HEIGHT))
    true = findit.truth([[10, 10, 60, 60], [10, 10, 60, 60]], ["cat", "cat"], [0, 1])
    dog = {"frame_idx": 1, "label": "dog", "bbox": [60, 120, 290, 580]}
    reply = json.dumps([dog, {"frame_idx": 0, "label": "cat", "bbox": [0, 0, 9, 9]}])
    several: Any = {"frames": 2, "multilabel": True}
    answer = findit.read(reply, "xyxy_json", size=picture.size, space="grid1000", **several)
    second = colours_of(findit.draw(picture, true, answer, frame=1))
    assert STROKES[Role.WRONG_LABEL].colour in second
    assert STROKES[Role.MISS].colour not in second
    first = colours_of(findit.draw(picture, true, answer, frame=0))
    assert STROKES[Role.MISS].colour in first


def test_lines_are_those_of_the_report() -> None:
    css = (Path(findit.__file__).with_name("report") / "templates").glob("*.css")
    text = "\n".join(path.read_text(encoding="utf-8") for path in css)
    names = ("truth", "hit", "miss", "wrong", "ignored", "uncounted")
    for role, name in zip(STROKES, names, strict=True):
        line = STROKES[role]
        assert f"--{name.replace('uncounted', 'ignored')}: {line.colour};" in text
        rule = next(row for row in text.splitlines() if row.startswith(f".picture .{name} "))
        dash = re.search(r"stroke-dasharray: (\d+) (\d+);", rule)
        assert (line.dash, line.gap) == (tuple(map(int, dash.groups())) if dash else (0, 0))


@pytest.mark.parametrize(
    "box", [[90, 80, 20, 10], [10, 80, 90, 20], [50, 50, 50, 50], [-50, 10, 300, 1e9]]
)
def test_predicted_boxes_are_drawn_as_they_are(box: list[float]) -> None:
    image = Image.new("RGB", (100, 100))
    drawn = findit.draw(image, [[10, 10, 20, 20]], [box])
    without = findit.draw(image, [[10, 10, 20, 20]], [])
    assert np.asarray(drawn).tobytes() != np.asarray(without).tobytes()


@pytest.mark.parametrize("box", [[1, 2, 3], [1, 2, 3, float("nan")], [1, 2, 3, "x"], "abcd"])
def test_what_is_no_box_is_not_drawn(box: object) -> None:
    with pytest.raises(ValueError, match=r"boxes should be \[\[x1, y1, x2, y2\], …\] in pixels"):
        findit.draw(Image.new("RGB", (100, 100)), [[10, 10, 20, 20]], [box])


# --- of a row of load_runs ------------------------------------------------------------------------

POINT = "FindIt_Pascal_point_text"
LABELS = "FindIt_Pascal_multilabel_xyxy_json"


@pytest.mark.parametrize(
    ("name", "reply", "roles"),
    [
        # Both in the middle of an object: by the overlap of boxes they would be misses.
        (POINT, "[150, 350] [750, 500]", {Role.TRUTH, Role.HIT}),
        (POINT, "[150, 350] [990, 990]", {Role.TRUTH, Role.HIT, Role.MISS}),
        (
            LABELS,
            '[{"bbox": [60, 110, 240, 590], "label": "cow"}]',
            {Role.TRUTH, Role.WRONG_LABEL},
        ),
        (LABELS, '[{"bbox": [1e999, 110, 240, 590], "label": "cat"}]', {Role.TRUTH}),
        (LABELS, "[]", {Role.TRUTH}),
    ],
)
def test_rows_are_drawn_as_they_were_scored(
    name: str, reply: str, roles: set[Role], world: World
) -> None:
    pytest.importorskip("pandas")
    for number in range(5):
        image = Image.new("RGB", (WIDTH, HEIGHT))
        image.save(world.folder / "pictures" / f"{number}.jpg")
    world.run("M", name, saying(reply))
    rows = findit.load_runs(world.runs)
    drawn = findit.draw_answer(rows.loc[0])
    colours = colours_of(drawn)
    assert {role for role in STROKES if STROKES[role].colour in colours} == roles
    assert findit.draw_answer(next(rows.itertuples())) == drawn


def test_a_frame_that_is_not_there_is_refused(world: World) -> None:
    pytest.importorskip("pandas")
    world.run("M", POINT, saying("[]"))
    row = findit.load_runs(world.runs).loc[0]
    with pytest.raises(ValueError, match=r"frame 1 is out of range 0\.\.0"):
        findit.draw_answer(row, frame=1)
    (world.folder / "Pascal.tsv").unlink()
    with pytest.warns(UserWarning, match="no images, prompts, truths"):
        row = findit.load_runs(world.runs).loc[0]
    with pytest.raises(ValueError, match=f"no image of this row of {POINT}: load_runs warned"):
        findit.draw_answer(row)
