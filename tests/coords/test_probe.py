"""What forty answers about the scenes of the probe say of a deployment."""

from __future__ import annotations

import numpy as np
import pytest
from every_pair import every_pair
from few_fast import few_fast
from probe_deployments import answers, truths
from simulated_deployments import Fault, convention

from vlmeval_findit.boxes import Space
from vlmeval_findit.coords import (
    ALIKE_DISTANCE,
    ORDERS,
    SPACES,
    AnsweredQuery,
    Convention,
    ProbeVerdict,
    convention_distance,
    group_by_size,
    judge_probe,
    run_arrays,
    space_row_of,
)
from vlmeval_findit.data import probe_scene

GRID = convention("grid1000/xyxy")


def told(truth: Convention, noise: float = 0.05, fault: Fault | None = None) -> list[AnsweredQuery]:
    return answers(np.random.default_rng(0), truth, noise, fault)


@pytest.mark.parametrize("index", [0, 3, 14, 25, 36])
def test_the_box_is_that_of_the_pixels_that_differ(index: int) -> None:
    scene = probe_scene(index)
    # Half of the way from the background to the ink, by the channel that differs most.
    off = np.abs(scene.pixels.astype(int) - scene.pixels[0, 0])
    mask = off.max(-1) >= off.max() / 2
    rows = np.flatnonzero(mask.any(1))
    columns = np.flatnonzero(mask.any(0))
    seen = (columns[0], rows[0], columns[-1] + 1, rows[-1] + 1)
    assert np.abs(np.subtract(seen, scene.box)).max() <= 1
    assert np.array_equal(probe_scene(index).pixels, scene.pixels)


# --- what is named --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", few_fast([name for name in SPACES if name != "grid1000"], 10))
def test_every_space_is_told_from_the_declared_space(name: str) -> None:
    truth = convention(f"{name}/xyxy")
    queries = told(truth)
    result = judge_probe(queries, GRID, GRID)
    assert result.verdict is ProbeVerdict.OTHER
    assert convention_distance(run_arrays(queries), truth, result.named) < ALIKE_DISTANCE


@every_pair(
    "order, space", [name for name in ORDERS if name != "xyxy"], ["grid1000", "pixels"], fast=5
)
def test_an_order_that_was_not_asked_for(space: str, order: str) -> None:
    truth = convention(f"{space}/{order}")
    result = judge_probe(told(truth), convention(f"{space}/xyxy"), GRID)
    assert (result.verdict, result.named) == (ProbeVerdict.OTHER, truth)


@pytest.mark.parametrize("name", ["grid1000", "pixels", "unit", "claude_standard", "letterbox1"])
@pytest.mark.parametrize("noise", few_fast([0.05, 0.1], 1))
def test_a_declared_space_is_confirmed_or_the_right_named(name: str, noise: float) -> None:
    truth = convention(f"{name}/xyxy")
    queries = told(truth, noise)
    result = judge_probe(queries, truth, GRID)
    assert (result.verdict, result.named) == (ProbeVerdict.CONFIRMED, truth)
    result = judge_probe(queries, None, GRID)
    assert (result.verdict, result.named) == (ProbeVerdict.NAMED, truth)
    assert result.declared is None


def test_a_declared_letterbox_is_confirmed_with_its_padding() -> None:
    """Of a side that no row has: what is declared is tried, too."""
    truth = Convention(space_row_of(Space("letterbox", side=640)), ORDERS["xyxy"])
    queries = told(truth)
    result = judge_probe(queries, truth, GRID)
    assert (result.verdict, result.named) == (ProbeVerdict.CONFIRMED, truth)
    assert min(row.iou for row in group_by_size(queries, result, GRID)) > 0.8
    assert judge_probe(queries, convention("longer640/xyxy"), GRID).verdict.is_fault


@pytest.mark.parametrize(
    ("fault", "verdict"),
    [
        (Fault(scale=(1.28, 1.0)), ProbeVerdict.UNLISTED),
        (Fault(offset=(0.01, 0.0)), ProbeVerdict.DRIFT),
        (Fault((1.0126, 1.0126), (-0.0063, -0.0063)), ProbeVerdict.DRIFT),
        (Fault(), ProbeVerdict.CONFIRMED),
    ],
)
def test_a_scale_or_an_offset(fault: Fault, verdict: ProbeVerdict) -> None:
    result = judge_probe(told(GRID, 0.03, fault), GRID, GRID)
    assert result.verdict is verdict
    assert result.verdict.is_fault == (verdict is not ProbeVerdict.CONFIRMED)
    assert result.nearest is not None
    options = result.distortion
    assert (np.abs(options.scale - fault.scale) < 4 * options.scale_error).all()
    assert (np.abs(options.at_origin - fault.offset) < 4 * options.at_origin_error).all()
    assert (options.scale_error < 0.01).all()


def test_two_conventions_by_size() -> None:
    """Large images in pixels of what a provider shrank, small ones in thousandths."""
    small = told(GRID)
    large = told(convention("limit1280/xyxy"))
    mixed = [b if max(b.width, b.height) > 1080 else a for a, b in zip(small, large, strict=True)]
    assert judge_probe(mixed, GRID, GRID).verdict.is_fault


@pytest.mark.parametrize(
    ("stored", "verdict"),
    [(0, ProbeVerdict.NOTHING), (19, ProbeVerdict.NOTHING), (20, ProbeVerdict.CONFIRMED)],
)
def test_too_few_answers(stored: int, verdict: ProbeVerdict) -> None:
    said = told(GRID, 0.03)
    queries = [*said[:stored], *(each._replace(numbers=[]) for each in said[stored:])]
    result = judge_probe(queries, GRID, GRID)
    assert result.verdict is verdict
    assert (result.named is None) == (verdict is ProbeVerdict.NOTHING)
    rows = group_by_size(queries, result, GRID)
    assert sum(row.boxes for row in rows) == stored
    assert all(np.isnan(row.ratio).all() == (row.boxes == 0) for row in rows)


def test_boxes_that_follow_nothing() -> None:
    rng = np.random.default_rng(0)
    queries = [
        AnsweredQuery(*size, f"{place}", [box], [np.sort(rng.integers(0, 1000, 4)).tolist()])
        for place, (size, box) in enumerate(truths())
    ]
    verdict = judge_probe(queries, GRID, GRID).verdict
    assert verdict in (ProbeVerdict.NOTHING, ProbeVerdict.UNDECIDED)
    assert not verdict.is_fault


def test_a_table_by_size_of_the_image() -> None:
    truth = convention("pixels/yxyx")
    queries = told(truth, 0.0)
    result = judge_probe(queries, Convention(SPACES["grid1000"], truth.order), truth)
    assert result.named == truth
    for row in group_by_size(queries, result, truth):
        # 4096 at most on the longer side.
        sent = min(1, 4096 / max(row.width, row.height))
        assert row.ratio == pytest.approx([sent, sent], rel=0.02)
        assert row.named == pytest.approx([sent, sent], rel=1e-3)
        assert row.declared == pytest.approx([1000 / row.width, 1000 / row.height])
        assert row.iou > 0.97
