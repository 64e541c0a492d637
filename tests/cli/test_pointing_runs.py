"""Models that point in tags of their own are run at a server and scored: Molmo, Molmo 2."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest
from chat_server import Answer, Asked, ChatServer, completion
from every_pair import every_pair
from PIL import Image

from vlmeval_findit.cli import main
from vlmeval_findit.scoring import load_runs

SIZES = [(640, 480), (480, 640), (500, 375)]
# By label: the middle of its only object, as shares of width and height
MIDDLES = {"dog": (0.25, 0.5), "red cup": (0.625, 0.125), "left chair": (0.875, 0.75)}


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Imports a table of three pictures, each with one object; returns its name."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LMUData", str(tmp_path / "lmu"))
    rows: list[str] = []
    for number, (label, (x, y)) in enumerate(MIDDLES.items()):
        width, height = SIZES[number]
        Image.new("RGB", (width, height), (90 * number, 90, 50)).save(f"{number}.png")
        box = [x * width - 20, y * height - 20, x * width + 20, y * height + 20]
        rows.append(json.dumps({"image": f"{number}.png", "label": label, "boxes": [box]}))
    Path("mine.jsonl").write_text("\n".join(rows), "utf-8")
    assert main(["data", "import", "mine.jsonl", "--name", "Pointed"]) == 0
    return "Pointed"


def molmo(label: str, x: float, y: float) -> str:
    return f'<point x="{100 * x:.1f}" y="{100 * y:.1f}" alt="{label}">{label}</point>'


def molmo_twice(label: str, x: float, y: float) -> str:
    """Write the point, and one at the other end of the picture."""
    numbers = f'x1="{100 * x:.1f}" y1="{100 * y:.1f}" x2="{100 - 100 * x:.1f}" y2="99.0"'
    return f' <points {numbers} alt="{label}">{label}</points>'


def molmo_2(label: str, x: float, y: float) -> str:
    return f'<points coords="1 1 {1000 * x:.0f} {1000 * y:.0f}">{label}</points>'


def molmo_2_twice(label: str, x: float, y: float) -> str:
    numbers = f"1 1 {1000 * x:.0f} {1000 * y:.0f} 2 {1000 - 1000 * x:.0f} 990"
    return f'<points coords="{numbers}">{label}</points>'


def in_percent(label: str, x: float, y: float) -> str:
    return f"[{100 * x:.1f}, {100 * y:.1f}]"


Writer = Callable[[str, float, float], str]


def scores(table: str, write: Writer, space: str, form: str = "point_text") -> dict[str, float]:
    """Run a model that points at the middle of each object, and return its scores."""

    def answer(asked: Asked, number: int) -> Answer:
        prompt = json.dumps(asked.body["messages"])
        label = next(each for each in MIDDLES if re.search(rf"\b{each}\b", prompt))
        return completion(write(label, *MIDDLES[label]))

    data = f"FindIt_{table}_{form}"
    with ChatServer(answer) as server:
        words = ["run", "--data", data, "--base-url", server.url, "--model", "mine=pointer"]
        assert main([*words, "--space", space, "--work-dir", "out"]) == 0
        assert len(server.asked) == len(MIDDLES)
    [run] = load_runs([Path("out")])
    return {name: value for name, value in run.metric_values.items() if value is not None}


@every_pair(
    "space, form, write",
    ["percent", "grid1000", "pixels"],
    product(["point_text", "point_json"], [molmo, molmo_2]),
)
def test_tags_are_scored_in_any_space(write: Writer, space: str, form: str, table: str) -> None:
    values = scores(table, write, space, form)
    assert values["Pointing accuracy (lenient)"] == 100
    assert values["Pointing accuracy"] == values["Adherence"] == 0


@pytest.mark.parametrize("write", [molmo_twice, molmo_2_twice])
def test_each_point_of_a_tag_is_a_place(write: Writer, table: str) -> None:
    assert scores(table, write, "percent")["Pointing accuracy (lenient)"] == 50


def test_points_in_percent_have_a_space(table: str) -> None:
    values = scores(table, in_percent, "percent")
    assert values["Pointing accuracy"] == values["Adherence"] == 100
