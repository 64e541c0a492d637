"""Which rows of an audit are reviewed, in which order, and among which candidates."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from doubtful_labels import (
    CLASSES,
    EXPRESSIONS,
    OBJECTS,
    ROWS,
    Right,
    answering,
    classes,
    expressions,
    objects,
    pair,
)
from review_pages import LABEL, PROPOSAL, random_row, row_of
from scored_runs import World

from vlmeval_findit.analysis import LabelAudit, audit_labels, audit_record, with_reviews
from vlmeval_findit.protocol import Answer, Box, Review, Reviews, ReviewVerdict, RowChoice
from vlmeval_findit.report import ReviewRow, Source, decoy_answer, mix_rows, rows_to_review
from vlmeval_findit.scoring import load_runs

ELSEWHERE: Box = (140.0, 10.0, 180.0, 50.0)
WRONG = (3, 7, 20, 41)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    world = World(tmp_path)
    world.at_hand(monkeypatch)
    monkeypatch.chdir(tmp_path)
    return world


def audited(world: World, name: str, right: dict[int, Right]) -> LabelAudit:
    """Audit by two models that answer the truth."""
    for model in ("Left", "Right"):
        world.predict(model, name, answering(name, right))
    return audit_labels(load_runs([world.runs]))


@pytest.fixture
def audit(world: World) -> LabelAudit:
    return audited(world, EXPRESSIONS, expressions(world, dict.fromkeys(WRONG, ELSEWHERE)))


def by_drawn(rows: list[ReviewRow], drawn: RowChoice) -> list[ReviewRow]:
    return [row for row in rows if row.drawn is drawn]


# --- the rows -------------------------------------------------------------------------------------


def test_listed_rows_have_what_the_models_say(audit: LabelAudit) -> None:
    listed = by_drawn(rows_to_review(audit, audit.listed()), RowChoice.LISTED)
    assert {row.index for row in listed} == {*WRONG}
    row = next(row for row in listed if row.index == 7)
    assert (row.asked, row.kind, row.votes, len(row.voters)) == ("object 7", "wrong object", 2, 2)
    assert (row.source, row.label) == (Source.MODELS, Answer((ELSEWHERE,)))
    assert row.other is not None
    assert row.other.is_like(Answer(pair(7)[:1]))
    assert row.p is not None
    assert row.p > 0.5
    assert row.single
    assert row.row == audit.voters[0].run.benchmark.row_hashes(audit.dataset)[7]


def test_random_rows_tell_neither_kind_nor_probability(audit: LabelAudit) -> None:
    random = by_drawn(rows_to_review(audit, audit.listed()), RowChoice.RANDOM)
    assert len(random) == 20
    assert not {row.index for row in random} & {*WRONG}
    assert {(row.kind, row.p) for row in random} == {("", None)}


def test_what_is_decided_leaves_the_page(audit: LabelAudit) -> None:
    first = rows_to_review(audit, audit.listed(), 2)
    assert len(by_drawn(first, RowChoice.LISTED)) == 2
    decided = [
        Review(
            audit.table,
            row.index,
            row.row,
            ReviewVerdict.UNSURE,
            (),
            "",
            "ab",
            "2026-01-31",
            row.drawn,
        )
        for row in first
    ]
    record = audit_record(audit, audit.listed())
    later = with_reviews(audit, Reviews(tuple(decided), (record,)))
    second = rows_to_review(later, later.listed())
    assert not {row.index for row in first} & {row.index for row in second}
    assert {row.index for row in (*first, *second) if row.drawn is RowChoice.LISTED} == {*WRONG}
    assert audit_record(later, later.listed()) == record, "both files are of one draw"


def test_an_object_of_a_set_is_all_that_differs(world: World) -> None:
    audit = audited(world, OBJECTS, objects(world, {5: pair(5)[:1]}))
    (row,) = by_drawn(rows_to_review(audit, audit.listed()), RowChoice.LISTED)
    assert row.other is not None
    assert row.other.boxes[:1] == row.label.boxes
    assert (row.kind, len(row.other.boxes), row.single) == ("missing", 2, False)
    assert row.classes == ()


def test_classes_to_choose_from_are_those_asked_for(world: World) -> None:
    audit = audited(world, CLASSES, classes(world, {5: ("cat", "cat")}))
    (row,) = by_drawn(rows_to_review(audit, audit.listed()), RowChoice.LISTED)
    assert (row.kind, row.classes) == ("wrong class", ("cat", "dog"))


# --- their order ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("listed", "random"), [(40, 10), (100, 20), (4, 8), (3, 0), (0, 5)])
def test_random_rows_are_mixed_in(tmp_path: Path, listed: int, random: int) -> None:
    doubted = [row_of(tmp_path, index) for index in range(listed)]
    others = [random_row(tmp_path, 1000 + index) for index in range(random)]
    mixed = mix_rows(doubted, others, 3)
    assert by_drawn(mixed, RowChoice.LISTED) == doubted
    assert by_drawn(mixed, RowChoice.RANDOM) == others
    assert mix_rows(doubted, others, 3) == mixed


def test_random_rows_have_no_regular_place(tmp_path: Path) -> None:
    doubted = [row_of(tmp_path, index) for index in range(80)]
    others = [random_row(tmp_path, 1000 + index) for index in range(20)]
    mixed = mix_rows(doubted, others, 3)
    places = [place for place, row in enumerate(mixed) if row.drawn is RowChoice.RANDOM]
    assert len({place % 5 for place in places}) == 5


# --- decoys ---------------------------------------------------------------------------------------


def test_a_random_row_shows_a_decoy_where_models_agree(world: World) -> None:
    audit = audited(world, OBJECTS, objects(world, {}))
    rows = rows_to_review(audit, audit.listed())
    assert {row.source for row in rows} == {Source.DECOY}
    assert all(row.other is not None and len(row.other.boxes) == 1 for row in rows)


def test_a_random_row_shows_the_models_where_they_differ(world: World) -> None:
    labels = dict.fromkeys(range(0, ROWS, 2), ELSEWHERE)
    audit = audited(world, EXPRESSIONS, expressions(world, labels))
    rows = rows_to_review(audit, ())
    shown = {row.index for row in rows if row.source is Source.MODELS}
    assert shown == {row.index for row in rows} & labels.keys()
    assert len(shown) > 3
    assert all(len(row.voters) == 2 for row in rows if row.source is Source.MODELS)
    others = [row for row in rows if row.source is Source.DECOY]
    assert {(row.other, row.voters) for row in others} == {(None, ())}


@pytest.mark.parametrize(
    ("label", "single", "boxes", "expected"),
    [
        (Answer((LABEL,)), True, (LABEL, PROPOSAL), {Answer((PROPOSAL,))}),
        (Answer((LABEL,)), True, (LABEL,), {None}),
        (Answer((LABEL,)), False, (LABEL, PROPOSAL), {Answer((LABEL, PROPOSAL))}),
        (
            Answer((LABEL,), ("cat",)),
            False,
            (LABEL, PROPOSAL),
            {Answer((LABEL, PROPOSAL), ("cat", "cat"))},
        ),
        (
            Answer((LABEL, PROPOSAL), ("cat", "dog")),
            False,
            (),
            {Answer((LABEL,), ("cat",)), Answer((PROPOSAL,), ("dog",))},
        ),
        (Answer(()), False, (LABEL,), {None}),
    ],
)
def test_a_decoy_looks_like_a_doubt(
    label: Answer, single: bool, boxes: tuple[Box, ...], expected: set[Answer | None]
) -> None:
    assert {decoy_answer(label, single, boxes, Random(seed)) for seed in range(20)} == expected
