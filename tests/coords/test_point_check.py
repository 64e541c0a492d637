"""In which coordinates points are, and whether x or y comes first."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from few_fast import few_fast
from simulated_deployments import PROFILES, objects

from vlmeval_findit.benchmarks.findit import FindItQuery, write_table
from vlmeval_findit.boxes import Space, Truth
from vlmeval_findit.cli import main
from vlmeval_findit.coords import (
    SPACES,
    X_FIRST,
    Y_FIRST,
    AnsweredQuery,
    Convention,
    CoordinateVerdict,
    Order,
    PointDiagnosis,
    diagnose_points,
    run_arrays,
    space_row_of,
    to_numbers,
)
from vlmeval_findit.protocol import Settings
from vlmeval_findit.scoring import score_file

SIZES = [(640, 480), (500, 375), (480, 640), (1280, 720), (333, 500), (2560, 1440)]
GRID = Convention(SPACES["grid1000"], X_FIRST)


def answered(
    space: str = "grid1000",
    order: Order = X_FIRST,
    seed: int = 0,
    queries: int = 60,
    right: float = 0.9,
    spread: float = 0.15,
    labels: Sequence[str] = (),
) -> list[AnsweredQuery]:
    """Return points about an object each, or one of each label.

    Args:
        space: of the numbers.
        order: of the numbers.
        seed: of the random numbers.
        queries: how many.
        right: the share of points that mean their object; others lie anywhere.
        spread: standard deviation of points, in shares of the object's side.
        labels: of the objects of every query; by default one without a label.
    """
    rng = np.random.default_rng(seed)
    result = []
    for at in range(queries):
        width, height = SIZES[at % len(SIZES)]
        shares = objects(rng, PROFILES["phrases"], max(1, len(labels)))
        meant = (shares[:, :2] + shares[:, 2:]) / 2
        meant = meant + rng.normal(0, spread, meant.shape) * (shares[:, 2:] - shares[:, :2])
        lost = rng.random(len(meant)) >= right
        meant[lost] = rng.random((int(lost.sum()), 2))
        frame = SPACES[space].map_of(np.array([[width], [height]], float))
        frames = frame.of(np.zeros(len(meant), np.intp))
        numbers = to_numbers(np.tile(meant.clip(0, 1), 2).T, frames, order.numbers).T
        digits = 3 if np.abs(frame.scale).min() <= 2 else 0
        truths = shares * np.tile([width, height], 2)
        result.append(
            AnsweredQuery(
                width, height, f"{at}.png", truths.tolist(), numbers.round(digits).tolist(),
                labels, labels,
            )
        )  # fmt: skip
    return result


def told(queries: Sequence[AnsweredQuery], declared: Convention = GRID) -> PointDiagnosis:
    return diagnose_points(run_arrays(queries), declared)


FOUND = ["grid1000", "unit", "pixels", "percent", "smart_200704_1605632", "square640", "limit1280"]


@pytest.mark.parametrize("space", FOUND)
@pytest.mark.parametrize("order", [X_FIRST, Y_FIRST], ids=lambda order: order.name)
@pytest.mark.parametrize("labels", few_fast([[], ["cat", "dog"]], 1), ids=["one", "labels"])
def test_another_convention_is_named(space: str, order: Order, labels: Sequence[str]) -> None:
    found = told(answered(space, order, queries=80, labels=labels))
    truth = Convention(SPACES[space], order)
    if truth.name == GRID.name:
        assert (found.verdict, found.fit.best.name) == (CoordinateVerdict.FITS, GRID.name)
    else:
        assert (found.verdict, found.fit.best.order.name) == (CoordinateVerdict.OTHER, order.name)
        assert found.fit.best.name == truth.name


@pytest.mark.parametrize("space", ["grid1000", "pixels", "unit", "square640"])
@pytest.mark.parametrize("right", few_fast([0.3, 0.6, 1.0], 1))
@pytest.mark.parametrize("spread", [0.05, 0.3])
@pytest.mark.parametrize("seeds", [range(3), pytest.param(range(3, 10), marks=pytest.mark.slow)])
def test_the_declared_convention_raises_no_alarm(
    space: str, right: float, spread: float, seeds: range
) -> None:
    for seed in seeds:
        queries = answered(space, seed=seed, queries=40, right=right, spread=spread)
        assert not told(queries, Convention(SPACES[space], X_FIRST)).verdict.alarms


def test_points_anywhere_follow_nothing() -> None:
    for seed in range(10):
        assert told(answered(seed=seed, right=0.0)).verdict in (
            CoordinateVerdict.NONE,
            CoordinateVerdict.UNDECIDED,
        )


def test_objects_on_the_diagonal_tell_no_order() -> None:
    """x and y are the same there."""
    boxes = [(at * 10, at * 10, at * 10 + 80, at * 10 + 80) for at in range(40)]
    queries = [
        AnsweredQuery(500, 500, f"{at}.png", [box], [[(box[1] + 40) * 2, (box[0] + 40) * 2] * 2])
        for at, box in enumerate(boxes)
    ]
    assert told(queries).verdict is CoordinateVerdict.FITS


def test_few_points_are_too_few() -> None:
    assert told(answered(order=Y_FIRST, queries=7)).verdict is CoordinateVerdict.TOO_FEW
    assert told([]).verdict is CoordinateVerdict.TOO_FEW


def test_a_declared_space_with_settings_is_a_hypothesis() -> None:
    space = space_row_of(Space("smart_resize", min_pixels=100352, max_pixels=802816))
    assert told(answered(), Convention(space, X_FIRST)).verdict is CoordinateVerdict.OTHER


# --- on disk --------------------------------------------------------------------------------------

NAME = "FindIt_Pascal_point_json_point_2d"


@pytest.fixture
def predicted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A prediction file of points with y first, in thousandths."""
    monkeypatch.setenv("FINDIT_TABLES", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    queries = answered(order=Y_FIRST, queries=60)
    rows = []
    for at, each in enumerate(queries):
        truth = Truth(tuple(map(tuple, each.truths)), (0,))  # type: ignore[arg-type]
        rows.append(FindItQuery(at, "thing", each.width, each.height, (each.image,), truth))
    write_table(tmp_path, "Pascal", rows, {})
    path = tmp_path / f"Model_{NAME}.json"
    replies = [
        json.dumps([{"point_2d": numbers[:2]} for numbers in each.numbers]) for each in queries
    ]
    path.write_text(json.dumps([{"index": i, "prediction": r} for i, r in enumerate(replies)]))
    return path


def test_score_coords_and_the_report_say_it(
    predicted: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = score_file(predicted, Settings(space="grid1000", force=True))
    assert "the answers follow thousandths of width and height, yx (" in str(run.coords_doubt)
    assert main(["score", "--space", "grid1000", str(predicted)]) == 0
    printed = "".join(capsys.readouterr())
    assert "but the answers follow thousandths of width and height, yx" in " ".join(printed.split())
    assert main(["coords", "--space", "grid1000", str(predicted), "--json", "told.json"]) == 1
    printed = " ".join(capsys.readouterr().out.split())
    assert "the run's convention is wrong" in printed
    assert "no format reads y before x" in printed
    (values,) = json.loads(Path("told.json").read_text())
    assert (values["verdict"], values["fit"]["best"]) == ("other", "grid1000/yx")
    table = {row["convention"]: row["Pointing accuracy"] for row in values["read_as"]["rows"]}
    assert table["grid1000/yx"] > table["grid1000/xy"] + 20
    assert main(["report", str(predicted), "--out", "report.html"]) == 0
    assert (
        "the answers follow thousandths of width and height, yx" in Path("report.html").read_text()
    )


def test_points_in_the_right_space_are_told_so(
    predicted: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = json.loads(predicted.read_text())
    for row in rows:
        (entry,) = json.loads(row["prediction"])
        row["prediction"] = json.dumps([{"point_2d": entry["point_2d"][::-1]}])
    predicted.write_text(json.dumps(rows))
    assert main(["coords", "--space", "grid1000", str(predicted)]) == 0
    assert ": it fits" in capsys.readouterr().out
    assert score_file(predicted, Settings(space="grid1000", force=True)).coords_doubt is None
