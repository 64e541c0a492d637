"""The report's page: its answers, charts and tables; nothing in it is run."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from html import escape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from few_fast import every_nth_fast
from scored_runs import HEIGHT, WIDTH, World, failing, grid, query, saying, speaking, with_facts

from vlmeval_findit.benchmarks.findit import IOU_THRESHOLDS, box_roles, threshold_curve
from vlmeval_findit.boxes import BoxAnswer
from vlmeval_findit.core import printable, shorten
from vlmeval_findit.data import load_dataset
from vlmeval_findit.leaderboard import group_comparable, learning_curves, make_board
from vlmeval_findit.protocol import Better, Metric, Role
from vlmeval_findit.report import (
    FormatCell,
    chart_script,
    choose_cards,
    gallery_data,
    gather_transcripts,
    heat_maps,
    learning_chart,
    make_page,
    svg,
    thumbnails,
)
from vlmeval_findit.scoring import Run, load_runs
from vlmeval_findit.statistics import Interval

JSON = "FindIt_Pascal_xyxy_json"
TEXT = "FindIt_Pascal_xyxy_text"
LABELS = "FindIt_Pascal_multilabel_xyxy_json"
NOW = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
EVIL = '<script>document.title="run"</script></script><img src=x onerror=alert(1)>&amp;\u2028\ud800'


def page_of(runs: list[Run]) -> str:
    return make_page(make_board(runs), NOW)


def data_of(page: str) -> dict[str, Any]:
    element = re.search(
        r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL
    )
    assert element is not None
    data: dict[str, Any] = json.loads(element[1])
    return data


# --- pictures and plots ---------------------------------------------------------------------------


def test_curves_meet_the_score_at_its_threshold(world: World) -> None:
    run = world.run("Some-Model", LABELS, speaking(LABELS, 0.7, 30))
    at_half = threshold_curve(run.rows)
    half = IOU_THRESHOLDS.index(0.5)
    values = [run.metric_values[name] for name in ("Precision", "Recall", "F1@0.5")]
    assert [at_half.precision[half], at_half.recall[half], at_half.f1[half]] == pytest.approx(
        values
    )
    assert list(at_half.recall) == sorted(at_half.recall, reverse=True)


def test_roles_of_boxes(world: World) -> None:
    cat, dog = load_dataset(LABELS).queries[0].truth.boxes
    hit = {"label": "Cat!", "bbox": grid(cat)}
    wrong = {"label": "cat", "bbox": grid(dog)}
    far = {"label": "dog", "bbox": [1e308, 1e308, 1e308, 1e308]}
    for expected, reply in ((Role.WRONG_LABEL, [hit, wrong]), (Role.MISS, [hit, far])):
        run = world.run("Some-Model", LABELS, saying(json.dumps(reply)))
        assert [role for role, _ in box_roles(BoxAnswer.of(run.rows[0]))] == [Role.HIT, expected]


def test_thumbnails_fit_their_budget(world: World, tmp_path: Path) -> None:
    paths = [tmp_path / "pictures" / "big" / f"{i}.png" for i in range(4)]
    for i in range(4):
        world.picture(f"big/{i}.png", i, (900, 600))
    rich = thumbnails(paths)
    poor = thumbnails(paths, budget=15_000)
    assert {(small.width, small.height) for small in rich.values()} == {(900, 600)}
    size = sum(len(thumbnail.address) for thumbnail in poor.values())
    assert size < 20_000 < sum(len(thumbnail.address) for thumbnail in rich.values())
    assert thumbnails([tmp_path / "nothing.jpg"]) == {}


@pytest.mark.parametrize(
    ("metric", "values", "texts"),
    [
        (Metric("F1@0.5", {}, {}), (12.5, 14.25), ("12.5 %", "14.2 %")),
        (
            Metric("MAE", {"error": 1}, {"asked": 1}, unit="m", better=Better.LOWER),
            (0.0, 0.0),
            ("0.0 m", "0.0 m"),
        ),
    ],
)
def test_a_heat_map_has_a_title_and_cell_texts(
    metric: Metric, values: tuple[float, float], texts: tuple[str, str]
) -> None:
    cells = [
        FormatCell("A <b> & more", name, "text", value, Interval(1.0, 20.0), 1200, reported=not at)
        for at, (name, value) in enumerate(zip(("xyxy", "xywh"), values, strict=True))
    ]
    spec = heat_maps(metric, ("representation", "output"), cells, values)
    assert spec["description"] == (
        f"{metric.title} by representation and output; reported: A <b> & more xyxy text"
    )
    assert [row["text"] for row in spec["data"]["values"]] == [
        f"A <b> & more, xyxy text: {texts[0]} (1.0 to 20.0), 1,200 queries, reported",
        f"A <b> & more, xywh text: {texts[1]} (1.0 to 20.0), 1,200 queries",
    ]
    drawn = svg(spec)
    # Text has the page's colour; a model's name is never markup; a cell has a frame.
    assert "currentColor" in drawn
    assert "<b>" not in drawn
    assert "NaN" not in drawn
    assert drawn.count('stroke="#d9480f"') == 1
    assert drawn.count('aria-label="A &lt;b&gt; &amp; more, ') == 2


def test_a_training_is_drawn_by_step_and_its_best_named(world: World) -> None:
    runs = [world.run(f"ft-step-{n}", JSON, speaking(JSON, c)) for n, c in ((30, 0.9), (4, 0.2))]
    curves = learning_curves(group_comparable(runs)[0])
    spec = learning_chart(curves)
    points = spec["data"]["values"]
    assert [(point["step"], point["best"]) for point in points] == [(4, False), (30, True)]
    assert all(point["low"] <= point["value"] <= point["high"] for point in points)
    assert " ".join(spec["title"]["text"]) == f"ft: {curves[0].verdict}"
    assert all(len(line) <= 52 for line in spec["title"]["text"])
    # A single checkpoint is no curve.
    for some, is_drawn in ((runs, True), (runs[:1], False)):
        assert ("<summary>Checkpoints</summary>" in page_of(some)) == is_drawn


# --- the gallery ----------------------------------------------------------------------------------


def gallery_of(run: Run) -> dict[str, Any]:
    return gallery_data(choose_cards(gather_transcripts([run])[0]), [run])


@pytest.mark.parametrize(
    ("cards", "words"),
    every_nth_fast(
        [
            (1, "1 of 36 answers: the worst of 1 run."),
            (2, "2 of 36 answers: the worst and the best of 1 run."),
            (3, "3 of 36 answers: of 1 run the worst, the best, some"),
            (6, "6 of 36 answers: of 2 runs the worst, the best, some"),
            (9, "9 of 36 answers: of every run the worst, the best, some"),
            (36, "36 of 36 answers. The values"),
        ],
        3,
    ),
)
def test_the_gallery_says_which_answers_it_has(cards: int, words: str, world: World) -> None:
    for rate in (2, 5, 8):
        world.predict(f"M{rate}", JSON, speaking(JSON, rate / 10))
    page = make_page(make_board(load_runs([world.runs])), NOW, cards)
    assert words in " ".join(page.split())


def test_cards_hold_picture_prompt_reply_and_boxes(world: World) -> None:
    data = gallery_of(world.run("Some-Model", LABELS, speaking(LABELS, 1.0)))
    card = data["cards"][0]
    truth = load_dataset(LABELS).queries[0].truth
    assert data["texts"][card["prompt"]].startswith("[image: 0.jpg]\nFind every instance of each")
    assert json.loads(data["texts"][card["reply"]])[0]["label"] == "cat"
    picture = data["images"][card["frames"][0]["image"]]
    assert (picture["w"], picture["h"]) == (WIDTH, HEIGHT)
    assert picture["src"].startswith("data:image/jpeg;base64,")
    boxes = card["frames"][0]["boxes"]
    assert [box[0] for box in boxes] == ["truth", "truth", "hit", "hit"]
    assert boxes[0][1:5] == list(truth.boxes[0])
    assert boxes[2][1:5] == pytest.approx(truth.boxes[0], abs=0.2)
    run = world.run("Some-Model", JSON, speaking(JSON, 0.6, 20))
    for card in gallery_of(run)["cards"]:
        ious = run.rows[card["index"]].details["ious"]
        shown = [box[6] for box in card["frames"][0]["boxes"] if box[0] == "truth"]
        assert shown == pytest.approx(ious, abs=1.1e-3)
        assert card["iou"] == pytest.approx(np.mean(ious), abs=1.1e-3)


def test_missing_files_are_left_out_with_the_reason(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = world.run("A", JSON, speaking(JSON, 1.0))
    other_words = with_facts(run, prompts="release 4d99")
    data = gallery_of(other_words)
    prompt = data["texts"][data["cards"][0]["prompt"]]
    assert prompt.startswith("Asked in release 4d99, whose words are not at hand")
    assert "FINDIT_PROMPTS names a family's prompt, or a clone" in prompt
    (tmp_path / "pictures" / "0.jpg").unlink()
    run.path.unlink()
    data = gallery_of(run)
    assert data["images"][0] == {"name": "0.jpg", "w": WIDTH, "h": HEIGHT, "src": ""}
    reply = data["texts"][data["cards"][0]["reply"]]
    assert reply == "The prediction file does not exist any more."
    world.table("Pascal", [query(i) for i in range(12)])
    transcripts, missing = gather_transcripts([run])
    assert transcripts == []
    assert "but the run was scored over a table with" in missing[0].reason
    assert "Runs without answers here: 1" in page_of([run])
    monkeypatch.setenv("FINDIT_TABLES", str(tmp_path / "nowhere"))
    monkeypatch.setenv("LMUData", str(tmp_path))
    (tmp_path / "Pascal.tsv").unlink()
    assert "no table Pascal.tsv in" in gather_transcripts([run])[1][0].reason


# --- the page -------------------------------------------------------------------------------------


class Outline(HTMLParser):
    """Scripts, addresses and handlers that a browser would run or load."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.scripts: list[str | None] = []
        self.addresses: list[str] = []
        self.handlers: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "script":
            self.scripts.append(dict(attrs).get("type"))
        places = ("src", "href", "xlink:href", "srcset", "action")
        self.addresses += [value or "" for name, value in attrs if name in places]
        self.handlers += [name for name, _ in attrs if name.startswith("on")]


UGLY = (
    "<script>alert(1)</script>",
    "bell\x07escape\x1b[31m",
    "right\u202eto left",
    "half \ud800 pair",
    "name" * 50,
    "{{ 7 * 7 }} {% raw %}",
)


def test_no_two_models_have_one_name_in_a_chart(world: World) -> None:
    """Names that differ in a few characters in the middle, as those of checkpoints do."""
    run = world.run("M", JSON, speaking(JSON, 0.5, 10))
    text = world.run("M", TEXT, speaking(TEXT, 0.5, 10))
    models = [
        f"Qwen3-VL-8B-Instruct-sft-refcoco-lr{rate}e5-step{step}000-merged"
        for rate in (1, 2)
        for step in (1, 2)
    ]
    data = data_of(page_of([replace(each, model=name) for name in models for each in (run, text)]))
    for chart in ("standings", "formats", "thresholds"):
        (spec,) = data["charts"][chart]
        shown = {row["model"] for row in spec["data"]["values"]}
        assert len(shown) == len(models), chart


ALIKE = [f"Qwen3-VL-235B-A22B-Instruct-WAREHOUSE-checkpoint-1{at}500" for at in range(3)]


def test_names_that_are_alike_are_drawn_whole(world: World) -> None:
    """They are shortened so that they differ, and no chart cuts them a second time."""
    run = world.run("M", JSON, speaking(JSON, 0.5, 10))
    data = data_of(page_of([replace(run, model=name) for name in ALIKE]))
    for chart in ("standings", "thresholds"):
        (spec,) = data["charts"][chart]
        shown = {row["model"] for row in spec["data"]["values"]}
        assert len(shown) == len(ALIKE)
        drawn = svg(spec)
        assert all(f">{name}<" in drawn for name in shown), chart


@pytest.mark.parametrize("name", ["m", "org-a__model-chat-v2", "Qwen3-VL-8B-Instruct-sft-step1000"])
def test_maps_in_a_row_fit_the_page_with_their_titles(name: str) -> None:
    models = [f"{name}{letter}" for letter in "abcdefgh"]
    cells = [FormatCell(model, "xyxy", "json", 50.0, None, 9, False) for model in models]
    spec = heat_maps(Metric("F1", {"tp": 1}, {"n": 1}), ("", ""), cells, (0.0, 100.0))
    drawn = svg(spec)
    width = re.search(r'width="([\d.]+)"', drawn)
    assert width is not None
    assert float(width[1]) <= 1200


def test_names_and_replies_are_text_in_page_and_charts(world: World) -> None:
    world.table("Pascal", [query(i, f"{i // 2}.jpg", f"<b>{i}</b>") for i in range(12)])
    run = world.run("M", JSON, speaking(JSON, 0.5, 10))
    text = world.run("M", TEXT, saying(EVIL))
    page = page_of([replace(each, model=name) for name in UGLY for each in (run, text)])
    page.encode("utf-8")
    assert not set(page) & {"\x07", "\x1b", "\u202e", "\ud800"}
    parsed = Outline(page)
    assert parsed.scripts == ["application/json", None, None]
    assert parsed.handlers == []
    data = data_of(page)
    assert {card["run"] for card in data["cards"]} == set(range(2 * len(UGLY)))
    assert sorted({run["model"] for run in data["runs"]}) == sorted(map(printable, UGLY))
    assert any(text.startswith(EVIL[:60]) for text in data["texts"])
    assert data["cards"][0]["label"].startswith("<b>")
    for name in map(printable, UGLY):
        # In tables and in charts; long names there by both ends.
        assert f'<th scope="row"><span>{escape(name)}</span></th>' in page
        for chart, most in (("standings", 22), ("formats", 22), ("thresholds", 34)):
            assert json.dumps(shorten(name, most))[1:-1] in json.dumps(data["charts"][chart])
    # The policy forbids the addresses that the charts' library could load; the page has none.
    assert all(address.startswith(("#", "data:")) for address in parsed.addresses)
    page = page.replace(chart_script(), "")
    assert not re.search(r"url\((?!#)", page)
    assert "@import" not in page
    assert "default-src 'none'" in page


def test_the_script_draws_charts_not_the_command(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[object] = []
    monkeypatch.setattr("vl_convert.vegalite_to_svg", drawn.append)
    runs = [world.run(model, JSON, speaking(JSON, 0.9)) for model in ("Good", "Better")]
    page = page_of(runs)
    assert page.count("<figure") == page.count("The chart needs JavaScript.") > 1
    assert drawn == []


def test_the_page_shows_metrics_reasons_and_excluded_runs(world: World) -> None:
    world.predict("Good", JSON, speaking(JSON, 0.9, 5))
    world.predict("Good", TEXT, speaking(TEXT, 0.9, 5))
    world.predict("Talks", JSON, saying("I see a cat."))
    world.predict("Fails", JSON, failing)
    for name in (JSON, TEXT):
        world.predict("Fewer", name, saying("[]"), rows=2)
    page = page_of(load_runs([world.runs]))
    assert page.count("other rows: 2 scored, the rest 12") == 1  # Of both runs
    for text in (
        "Not compared: 2 runs<",
        "F1@0.5 (failed calls as misses) by representation and output format",
        "calls failed; its F1@0.5 is 0.0 with them as misses",
        "precision, recall and F1 by IoU threshold",
    ):
        assert text in page
    # The reasons of every run, and no row without any.
    table = re.search(r'<table id="reasons">(.*?)</table>', page, re.DOTALL)
    assert table is not None
    assert '<th scope="col">not JSON</th>' in table[1]
    assert re.findall(r"<span>(\w+)</span>", table[1]) == ["Talks"]
    assert page_of(load_runs([world.runs])) == page
    empty = page_of([world.run("Empty", JSON, saying("[]"), rows=0)])
    assert "No run can be compared: " in empty.split("<h2", 2)[1]
    assert "no row was scored" in empty
    assert data_of(empty)["cards"] == []
