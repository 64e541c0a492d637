"""Ablations: the axis is found from the runs, and each value tested against the first."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest
import vl_convert
from grids import grid
from scored_runs import World, query, saying, speaking

from vlmeval_findit.analysis import compare_runs
from vlmeval_findit.benchmarks import parse
from vlmeval_findit.benchmarks.findit import DATASETS, DECODINGS, MARKS
from vlmeval_findit.leaderboard import (
    Ablation,
    ablation_table,
    find_ablations,
    make_board,
    to_csv,
)
from vlmeval_findit.protocol import Answering
from vlmeval_findit.report import ablation_chart, make_page
from vlmeval_findit.scoring import Run
from vlmeval_findit.statistics import FamilyOfTests, correct_by_holm

METRIC = "F1@0.5 (failed calls as misses)"
JSON = "FindIt_Pascal_xyxy_json_bbox_2d"
CENTRE = "Pascal_cxcywh_text"
# Names of variants that differ in one axis, its name, and its values
SWEEPS: dict[str, tuple[tuple[str, ...], tuple[str | int, ...]]] = {
    "representation": (("Pascal_xyxy_json", "Pascal_xywh_json"), ("xyxy", "xywh")),
    "output": (("Pascal_xyxy_text", "Pascal_xyxy_json_bbox_2d"), ("text", "json")),
    "key": (("Pascal_xyxy_json", "Pascal_xyxy_json_bbox_2d"), ("bbox", "bbox_2d")),
    "structure": (
        ("Pascal_xyxy_json_nested", "Pascal_xyxy_json_decomposed"),
        ("nested", "decomposed"),
    ),
    "decoding": (("Pascal_xyxy_json", "Pascal_xyxy_json_constrained"), ("free", "constrained")),
    "centre": (
        (CENTRE, f"{CENTRE}_cx-formula", f"{CENTRE}_cx-definitions"),
        ("none", "formula", "definitions"),
    ),
    "frames": (("iGround_f8_xyxy_text", "iGround_f1_xyxy_text", "iGround_f2_xyxy_text"), (8, 1, 2)),
    "caption": (("iGround_f8_xyxy_text", "iGround_caption_f8_xyxy_text"), ("no", "yes")),
}  # fmt: skip


@pytest.fixture
def tables(world: World) -> World:
    """Return a world with more objects, and with clips of eight frames."""
    world.table("Pascal", [query(at, f"{at}.jpg") for at in range(20)])
    clips = []
    for at in range(20):
        frames = tuple(f"clip{at}/{frame}.jpg" for frame in range(8))
        clip = replace(query(at), images=frames, frame_indices=tuple(range(8)), caption="a")
        clips.append(replace(clip, cluster=f"clip{at}"))
    world.table("iGround", clips)
    return world


def swept(world: World, names: Sequence[str], model: str = "A") -> list[Run]:
    """Return runs in the order of their names; each finds fewer objects than the one before."""
    runs = []
    for at, name in enumerate(names):
        name = f"FindIt_{name}"
        runs.append(world.run(model, name, speaking(name, 0.95 - 0.3 * at)))
    return runs


@pytest.mark.parametrize("axis", SWEEPS)
def test_what_differs_between_runs_is_the_axis(axis: str, tables: World) -> None:
    names, values = SWEEPS[axis]
    runs = swept(tables, names)
    (found,) = find_ablations(runs)
    assert (found.axis, tuple(found.values)) == (axis, values)
    (line,) = found.lines
    assert [point.runs[0] for point in line.points] == runs
    tests = [compare_runs(run, runs[0])[METRIC] for run in runs[1:]]
    expected = correct_by_holm(tests, FamilyOfTests.AXIS)
    assert [point.to_first for point in line.points] == [None, *expected]
    for point, run in zip(line.points, runs, strict=True):
        assert point.result == pytest.approx(run.value(found.metric))
    # The table and the plot have the same.
    rows = list(csv.DictReader(io.StringIO(to_csv(ablation_table(found)))))
    assert [row[axis] for row in rows] == [str(value) for value in values]
    assert [row["at"] for row in ablation_chart(found)["data"]["values"]] == [*map(str, values)]


@pytest.mark.parametrize("tables_drawn", [1, 3, 4, 7])
def test_each_panel_of_the_plot_has_an_axis(tables_drawn: int, tables: World) -> None:
    """Below a place without a panel stands none."""
    names, _ = SWEEPS["output"]
    (found,) = find_ablations(swept(tables, names))
    (line,) = found.lines
    lines = tuple(replace(line, table=f"Set{at}") for at in range(tables_drawn))
    drawn = vl_convert.vegalite_to_svg(dict(ablation_chart(replace(found, lines=lines))))
    assert drawn.count(">output<") == tables_drawn


@pytest.mark.parametrize("axis", SWEEPS)
def test_the_report_has_the_table_and_the_plot(axis: str, tables: World) -> None:
    """Runs on a disk have no order: numbers ascend, other values have the benchmark's."""
    names, values = SWEEPS[axis]
    board = make_board(swept(tables, names))
    page = make_page(board, datetime(2026, 1, 2, tzinfo=UTC))
    section = page.split('<section id="ablation"')[1].split("</section>")[0]
    runs = sorted((row.run for row in board.runs), key=lambda run: run.variant.format_place)
    (found,) = find_ablations(runs, ascending=True)
    assert {*found.values} == {*values}
    assert axis != "frames" or found.values == sorted(values)
    assert ablation_table(found).title in section
    data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])
    assert data["charts"]["ablations"] == [json.loads(json.dumps(ablation_chart(found)))]
    shown = re.findall(r'<th scope="row"><span>(.*?)</span>', section)
    assert [text.replace("<wbr>", "") for text in shown] == [*map(str, found.values)]


def test_the_report_has_no_ablation_of_two_things(tables: World) -> None:
    two = ["Pascal_xyxy_json", "Pascal_xywh_json_bbox_2d"]
    page = make_page(make_board(swept(tables, two)), datetime(2026, 1, 2, tzinfo=UTC))
    assert 'id="ablation"' not in page


def test_axes_tell_all_variants_of_a_table_apart() -> None:
    some = [DATASETS[name] for name in ("Pascal", "iGround", "Flickr30k", "RoboTools", "D3")]
    told: dict[Any, str] = {}
    for variant in grid(some, marks=(None, *MARKS), decodings=(None, *DECODINGS)):
        place = variant.table, *sorted(variant.axes.items())
        assert told.setdefault(place, variant.name) == variant.name
    marked = "VPBench_Stage1", "VPBench_Stage1_plain", "VPBench_Stage1_original"
    for name in (*marked, "VPBench_Stage2_text", "VPBench_Stage2_text_described"):
        variant = parse(name)
        place = variant.table, *sorted(variant.axes.items())
        assert told.setdefault(place, name) == name


def test_models_and_tables_have_lines_and_means(tables: World) -> None:
    tables.table("Pascal_multilabel", [query(at, f"{at}.jpg", "cat, dog") for at in range(8)])
    runs = []
    for model in ("A", "B"):
        for table in ("Pascal", "OpenImages"):
            if table == "OpenImages":
                tables.table(table, [query(at, f"{at}.jpg", "cup") for at in range(12)])
            runs += swept(tables, [f"{table}_xyxy_json", f"{table}_xyxy_json_bbox_2d"], model)
    (found,) = find_ablations(runs)
    places = [(line.model, line.table) for line in found.lines]
    means = ["mean of 2", "Pascal", "OpenImages"]
    assert places == [(model, table) for model in ("A", "B") for table in means]
    for mean, *of_tables in (found.lines[:3], found.lines[3:]):
        for at, point in enumerate(mean.points):
            results = [line.points[at].result or 0.0 for line in of_tables]
            assert point.result == pytest.approx(sum(results) / 2)
    # One family: the smallest p-value of six is multiplied by six.
    tests = [point.to_first for line in found.lines for point in line.points[1:]]
    p_values = sorted((test.p_value, test.corrected) for test in tests if test and test.p_value)
    assert p_values[0][1] == pytest.approx(min(1.0, 6 * (p_values[0][0] or 0)))
    assert all(a[1] <= b[1] for a, b in pairwise(p_values) if a[1] and b[1])


def test_runs_that_differ_in_two_things_are_none(tables: World) -> None:
    two = ["Pascal_xyxy_json", "Pascal_xywh_json_bbox_2d"]
    assert find_ablations(swept(tables, two)) == []
    assert find_ablations(swept(tables, two[:1])) == []
    assert find_ablations([*swept(tables, two[:1]), *swept(tables, two[:1], "B")]) == []


def asked(run: Run, model: str, **facts: Any) -> Run:
    """Return a run of another name, whose model was asked with other settings."""
    assert run.provenance.identity is not None
    who = {"checkpoint": "org/one", **facts.pop("answering", {})}
    answering = Answering(kind="Test", **who, settings=facts.pop("settings", {}))
    identity = replace(run.provenance.identity, model=model, answering=answering, **facts)
    return replace(run, model=model, provenance=replace(run.provenance, identity=identity))


# What two entries of one checkpoint recorded, and the axis and values that this is
SETTINGS: dict[str, tuple[tuple[Mapping[str, Any], ...], str, tuple[object, ...]]] = {
    "picture size": (
        ({"settings": {"bounds": {"max_pixels": 9}}}, {"settings": {"bounds": {"max_pixels": 4}}}),
        "max_pixels",
        (9, 4),
    ),
    "picture size that scales its space": (
        (
            {"settings": {"bounds": {"max_pixels": 9}}, "space": {"kind": "s", "max_pixels": 9}},
            {"settings": {"bounds": {"max_pixels": 4}}, "space": {"kind": "s", "max_pixels": 4}},
        ),
        "max_pixels",
        (9, 4),
    ),
    "scenes as sent": (
        ({"space": {"kind": "pixels"}}, {"space": {"kind": "pixels", "scene_max_size": 64}}),
        "scene_max_size",
        ("first", "second"),
    ),
    "thinking": (
        (
            {"settings": {"template": {}}, "answering": {"row": "Think"}},
            {"settings": {"template": {"enable_thinking": False}}, "answering": {"row": "Not"}},
        ),
        "enable_thinking",
        ("first", "second"),
    ),
    "prompt": (
        ({"prompts": "p1", "prompt_hash": "a"}, {"prompts": "own-12", "prompt_hash": "b"}),
        "prompts",
        ("first", "second"),
    ),
    "temperature": (
        ({"settings": {"temperature": 0.2}}, {"settings": {"temperature": 0.7}}),
        "temperature",
        (0.2, 0.7),
    ),
}


def entries(tables: World, facts: Sequence[Mapping[str, Any]]) -> list[Run]:
    run = tables.run("A", JSON, speaking(JSON, 0.9))
    other = tables.run("B", JSON, speaking(JSON, 0.3))
    first = asked(run, "first", **{**facts[0]})
    return [first, asked(other, "second", **{**facts[1]})]


@pytest.mark.parametrize("what", SETTINGS)
def test_entries_of_one_checkpoint_differ_in_a_setting(what: str, tables: World) -> None:
    facts, axis, values = SETTINGS[what]
    (found,) = find_ablations(entries(tables, facts))
    assert (found.axis, tuple(found.values)) == (axis, values)
    (line,) = found.lines
    assert (line.model, line.table) == ("one", JSON)
    assert line.points[1].to_first is not None


@pytest.mark.parametrize(
    "facts",
    [
        ({}, {"answering": {"checkpoint": "org/two"}}),
        ({"answering": {"checkpoint": None}}, {"answering": {"checkpoint": None}}),
        ({}, {}),
    ],
    ids=["two checkpoints", "unknown checkpoints", "no difference"],
)
def test_other_models_are_no_ablation(facts: Sequence[Any], tables: World) -> None:
    assert find_ablations(entries(tables, facts)) == []


def test_values_that_cannot_be_compared_are_named(tables: World) -> None:
    runs = swept(tables, SWEEPS["key"][0])
    short = tables.run("A", JSON, saying("[]"), rows=9, folder="few")
    (found,) = find_ablations([runs[0], short])
    assert found.lines[0].points[1].to_first is None
    assert "only runs over the same rows can be compared" in found.left_out[0]


def test_a_table_with_one_value_is_named(tables: World) -> None:
    runs = [*swept(tables, SWEEPS["frames"][0]), *swept(tables, ["Pascal_xyxy_text"])]
    (found,) = find_ablations(runs)
    assert found.left_out == ("A on Pascal: one value",)
    (note,) = (note for note in ablation_table(found).notes if note.title == "Not in the table")
    assert list(note.lines) == ["A on Pascal: one value"]


def test_numbers_are_joined_and_names_are_not(tables: World) -> None:
    marks = {}
    for axis in ("frames", "key"):
        (found,) = find_ablations(swept(tables, SWEEPS[axis][0]))
        assert isinstance(found, Ablation)
        layers = ablation_chart(found)["spec"]["layer"]
        marks[axis] = [layer["mark"]["type"] for layer in layers]
    assert marks == {"frames": ["line", "rule", "point"], "key": ["rule", "point"]}
