"""Which format is the best: search, sweep, leaderboard and report name the same one."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from scored_runs import Answer, World, query, speaking, world

from vlmeval_findit.benchmarks.findit.formats import Format, format_of
from vlmeval_findit.benchmarks.findit.names import parse
from vlmeval_findit.benchmarks.findit.query import Query
from vlmeval_findit.benchmarks.findit.variant import grid
from vlmeval_findit.benchmarks.refl4.figures import Figures
from vlmeval_findit.cli.sweep import report_formats
from vlmeval_findit.core.replies import FAILED
from vlmeval_findit.leaderboard.board import make_board
from vlmeval_findit.leaderboard.columns import format_name
from vlmeval_findit.report.page import make_page
from vlmeval_findit.runs.best_format import ranked
from vlmeval_findit.runs.scored_run import Run, load_runs
from vlmeval_findit.sweep.run import Result
from vlmeval_findit.sweep.search import best_format, read_formats

__all__ = ["world"]


def failing_on(share: int, answer: Answer) -> Answer:
    """A model whose call fails on so many of every hundred rows."""

    def says(one: Query, generator: np.random.Generator) -> str:
        said = answer(one, generator)
        return f"{FAILED} via API." if one.index % 10 < share // 10 else said

    return says


def missing_every(nth: int, answer: Answer) -> Answer:
    """A model that says nothing on every nth row."""
    return lambda one, generator: "[]" if one.index % nth == 0 else answer(one, generator)


def shifted(name: str, loose: float) -> Answer:
    return speaking(name, 1.0, loose)


Making = Callable[[str], Answer]
CASES: dict[str, tuple[dict[str, Making], str]] = {
    # Of 100 calls 40 failed; the rest is perfect: 100 % of what was answered, but 75 % of all.
    "failures": (
        {
            "xyxy_text": lambda name: failing_on(40, shifted(name, 0)),
            "xywh_json": lambda name: missing_every(10, shifted(name, 0)),
        },
        "xywh json",
    ),
    # F1 is equal; the boxes of the one lie closer.
    "mIoU decides": (
        {
            "xyxy_text": lambda name: shifted(name, 8),
            "yxhw_json": lambda name: shifted(name, 2),
        },
        "yxhw json",
    ),
    # All is equal; by name cxcywh would be first, in the grid xyxy is.
    "the grid decides": (
        {
            "cxcywh_json": lambda name: shifted(name, 0),
            "xyxy_json_bbox_2d": lambda name: shifted(name, 0),
            "yxyx_text": lambda name: shifted(name, 0),
        },
        "xyxy json bbox_2d",
    ),
}


@pytest.fixture(params=CASES)
def scored(request: pytest.FixtureRequest, world: World) -> tuple[list[Run], str]:
    made, expected = CASES[request.param]
    world.table("Pascal", [query(i, picture=f"{i // 2}.jpg") for i in range(100)])
    for written, answer in made.items():
        name = f"FindIt_Pascal_{written}"
        world.predict("M", name, answer(name))
    return load_runs([world.runs]), expected


def test_everything_names_the_same_format(
    scored: tuple[list[Run], str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs, expected = scored
    results = [Result("M", r.variant, r.figures, r.totals, len(r.answers), r.path) for r in runs]
    assert str(best_format(results)) == expected
    report_formats(results, tmp_path / "formats.yaml")
    assert f"M: best format {expected} (" in capsys.readouterr().out
    assert str(read_formats(tmp_path / "formats.yaml")["M"]) == expected
    board = make_board(runs)
    reported = board.cells["M", "Pascal"].run
    assert reported is not None
    assert str(format_of(reported.variant)) == expected
    page = make_page(board, datetime(2026, 1, 2, tzinfo=UTC))
    assert f"<b>M</b>: <code>{format_name(reported.variant)}</code> on Pascal" in page
    [label] = re.findall(r'aria-label="M: F1@0.5 by rep[^"]*; reported ([^"]+?) with', page)
    assert label.removesuffix(" bbox") == expected


def test_failures_would_have_named_another(world: World) -> None:
    """The first case tests something: by the figure without failures the other one is better."""
    world.table("Pascal", [query(i, picture=f"{i // 2}.jpg") for i in range(100)])
    made, _ = CASES["failures"]
    names = {written: f"FindIt_Pascal_{written}" for written in made}
    found = {w: world.run("M", names[w], made[w](names[w])).figures for w in made}
    assert found["xyxy_text"].f1 > found["xywh_json"].f1 + 5
    assert found["xyxy_text"].f1_failed_missed < found["xywh_json"].f1_failed_missed - 5


# --- the rule -------------------------------------------------------------------------------------


def made_of(f1: float, miou: float = 40, adherence: float = 100) -> Figures:
    return Figures(f1 + 1, miou, adherence, 50, 50, f1)


def test_formats_of_the_most_views_go_first() -> None:
    scored = [
        (parse("FindIt_Pascal_xyxy_text"), made_of(10)),
        (parse("FindIt_SVG_xyxy_text"), made_of(20)),
        (parse("FindIt_Pascal_yxyx_text"), made_of(99)),
        (parse("FindIt_iGround_f8_xywh_text"), made_of(30)),
        (parse("FindIt_iGround_f1_xywh_text"), made_of(10)),
        (parse("FindIt_iGround_caption_f1_xywh_text"), made_of(20)),
    ]
    found = [(str(one.format), one.views, one.f1) for one in ranked(scored)]
    assert found == [("xywh text", 3, 20), ("xyxy text", 2, 15), ("yxyx text", 1, 99)]


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        (made_of(50.1), made_of(50.0, miou=99, adherence=100)),
        (made_of(50.04, miou=40.1), made_of(50.0, miou=40.0)),
        (made_of(50, 40, 90.1), made_of(50, 40.04, 90.0)),
    ],
)
def test_ties_are_broken_in_order(better: Figures, worse: Figures) -> None:
    late, early = parse("FindIt_Pascal_yxhw_json"), parse("FindIt_Pascal_xyxy_text")
    assert ranked([(early, worse), (late, better)])[0].format == format_of(late)
    assert ranked([(early, better), (late, worse)])[0].format == format_of(early)


def test_the_grids_order_decides_last() -> None:
    variants = [v for v in grid() if v.table == "Pascal_multilabel"]
    found = ranked((v, made_of(50 + at % 2 / 25)) for at, v in enumerate(reversed(variants)))
    assert [one.format.place for one in found] == sorted({format_of(v).place for v in variants})
    assert found[0].format == Format("xyxy", "text")


def test_a_format_says_what_differs_from_the_plain_one() -> None:
    found = {str(format_of(variant)) for variant in grid()}
    assert {"xyxy text", "cxcywh text cx-formula", "yxhw json bbox_2d nested"} <= found
    assert len(found) == len({format_of(variant) for variant in grid()})
