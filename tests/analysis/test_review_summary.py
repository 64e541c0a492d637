"""Summaries of reviews: agreement of reviewers, and how many labels are wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmeval_findit.analysis import estimate_wrong, reviews_by_table, summarise_reviews
from vlmeval_findit.protocol import (
    Answer,
    AuditRecord,
    Review,
    Reviews,
    ReviewVerdict,
    RowChoice,
    rows_drawn_from,
)
from vlmeval_findit.statistics import cohens_kappa

TABLE = f"sha256:{64 * 'a'}"
AUDIT = AuditRecord(
    TABLE, 1000, tuple(range(100)), unlisted=900, seed=0, voters=("m",), judged="0-999"
)


def review(index: int, verdict: str, drawn: str = "listed", **others: Any) -> Review:
    has_answer = verdict in ("label", "model", "both", "edited")
    fields: dict[str, Any] = {
        "table": TABLE,
        "row": f"sha256:{index:064}",
        "accept": (Answer(((1.0, 2.0, 30.0, 40.0),)),) if has_answer else (),
        "kind": "box" if drawn == "listed" else "",
        "reviewer": "ab",
        "date": "2026-01-31",
    }
    fields |= others
    return Review(index=index, verdict=ReviewVerdict(verdict), drawn=RowChoice(drawn), **fields)


def judged(wrong: int, right: int, drawn: str, first: int) -> list[Review]:
    verdicts = ["model"] * wrong + ["label"] * right
    return [review(first + at, verdict, drawn) for at, verdict in enumerate(verdicts)]


# --- counts and agreement -------------------------------------------------------------------------


def test_counts_are_of_rows_not_of_lines() -> None:
    lines = (
        review(1, "model"),
        review(1, "label"),
        review(2, "exclude", kind="ambiguous"),
        review(3, "label", "random"),
        review(3, "label", "random", reviewer="cd"),
    )
    actual = summarise_reviews(TABLE, Reviews(lines))
    assert (actual.lines, actual.superseded, len(actual.decisions)) == (5, 1, 3)
    assert actual.counts == [
        ("verdict", "label", 2),
        ("verdict", "exclude", 1),
        ("drawn", "listed", 2),
        ("drawn", "random", 1),
        ("kind", "box", 1),
        ("kind", "ambiguous", 1),
        ("reviewer", "ab", 3),
        ("reviewer", "cd", 1),
    ]


def test_reviewers_are_compared_where_both_reviewed() -> None:
    mine = [review(at, verdict) for at, verdict in enumerate(["label", "model", "model", "label"])]
    theirs = [review(at, verdict, reviewer="cd") for at, verdict in ((1, "model"), (2, "label"))]
    alone = review(9, "label", reviewer="ef")
    actual = summarise_reviews(TABLE, Reviews((*mine, *theirs, alone)))
    (agreement,) = actual.agreements
    assert (agreement.one, agreement.other) == ("ab", "cd")
    assert (agreement.rows, agreement.agreed, agreement.kappa) == (2, 1, 0.0)
    assert [decision.index for decision in actual.disputed] == [2]


def test_tables_are_summarised_apart() -> None:
    other = f"sha256:{64 * 'b'}"
    both = Reviews((review(1, "label"), review(1, "model", table=other, row=other)), (AUDIT,))
    actual = reviews_by_table(both)
    assert list(actual) == [TABLE, other]
    assert [each.reviews[0].table for each in actual.values()] == [TABLE, other]
    assert [len(each.reviews) for each in actual.values()] == [1, 1]
    assert [len(each.audits) for each in actual.values()] == [1, 0]


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        # Rows: how often both said yes, only one did, only the other did, neither
        ((20, 5, 10, 15), 0.4),
        ((45, 15, 25, 15), 0.1304),
        ((25, 35, 5, 35), 0.2593),
        ((0, 5, 5, 0), -1.0),
    ],
)
def test_kappa_of_textbooks(table: Sequence[int], expected: float) -> None:
    pairs = zip(table, ("yy", "yn", "ny", "nn"), strict=True)
    verdicts = [pair for count, pair in pairs for _ in range(count)]
    one, other = ([pair[at] for pair in verdicts] for at in (0, 1))
    assert cohens_kappa(one, other) == pytest.approx(expected, abs=1e-4)


verdict_pairs = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc")), min_size=1)


@given(verdict_pairs)
def test_kappa_is_1_only_where_all_agree(pairs: list[tuple[str, str]]) -> None:
    one, other = [list(column) for column in zip(*pairs, strict=True)]
    kappa = cohens_kappa(one, other)
    mirrored = cohens_kappa(other, one)
    if kappa is None or mirrored is None:
        assert kappa is mirrored is None
        assert {*one, *other} == {one[0]}
        return
    assert kappa == pytest.approx(mirrored)
    assert -1 <= kappa <= 1
    assert (kappa == 1) is (one == other)


# --- wrong labels ---------------------------------------------------------------------------------


def test_random_rows_stand_for_the_rows_not_listed() -> None:
    listed = judged(60, 40, "listed", first=0)
    random = judged(4, 96, "random", first=500)
    wrong = estimate_wrong(Reviews((*listed, *random), (AUDIT,)))
    assert wrong is not None
    assert wrong.total is not None
    assert (wrong.random, wrong.random_wrong, wrong.listed_wrong) == (100, 4, 60)
    assert wrong.total.value == 60 + 9 * 4
    assert wrong.total.low < 96 < wrong.total.high
    assert wrong.share_low < 0.04 < wrong.share_high


def test_only_wrong_labels_count() -> None:
    """An answer beside the label makes it no error; a row of which nobody is sure says nothing."""
    verdicts = ("label", "model", "both", "edited", "exclude", "unsure")
    rows = tuple(review(500 + at, verdict, "random") for at, verdict in enumerate(verdicts))
    wrong = estimate_wrong(Reviews(rows, (AUDIT,)))
    assert wrong is not None
    assert (wrong.random, wrong.random_wrong, wrong.unsure) == (5, 3, 1)


def test_rows_of_the_list_that_nobody_judged_are_told() -> None:
    rows = (review(0, "model"), review(1, "unsure"), review(500, "label", "random"))
    wrong = estimate_wrong(Reviews(rows, (AUDIT,)))
    assert wrong is not None
    assert (wrong.listed, wrong.listed_judged, wrong.listed_wrong) == (100, 1, 1)


def test_probabilities_and_listed_rows_say_nothing_of_the_rest() -> None:
    listed = [review(at, "model", p=0.99) for at in range(50)]
    assert estimate_wrong(Reviews(tuple(listed), (AUDIT,))) is None
    random = tuple(judged(1, 9, "random", first=500))
    with_list = estimate_wrong(Reviews((*listed, *random), (AUDIT,)))
    without = estimate_wrong(Reviews(random, (AUDIT,)))
    assert with_list is not None
    assert without is not None
    assert with_list.share_high == without.share_high


def test_without_an_audit_there_is_only_a_share() -> None:
    random = tuple(judged(1, 9, "random", first=500))
    wrong = estimate_wrong(Reviews(random))
    assert wrong is not None
    assert wrong.total is None
    assert wrong.why_no_total == "no record of an audit says from which rows"


def test_rows_that_any_audit_listed_are_listed() -> None:
    """A second page, made with the reviews of the first, may list other rows."""
    second = AuditRecord(TABLE, 1000, (*range(50), 500, 501), 948, 1, ("m",), judged="0-999")
    random = judged(2, 8, "random", first=500)  # 500 and 501 are wrong
    wrong = estimate_wrong(Reviews(tuple(random), (AUDIT, second)))
    assert wrong is not None
    assert wrong.total is not None
    assert (wrong.random, wrong.random_wrong) == (8, 0)
    assert (wrong.listed, wrong.listed_judged, wrong.listed_wrong) == (102, 2, 2)
    assert (wrong.total.value, wrong.total.low) == (2, 2)
    # None of eight: 1 - 0.025 ** (1 / 8)
    assert wrong.share_low == 0
    assert wrong.share_high == pytest.approx(0.3694, abs=1e-4)


# A second audit, and how the reason begins that nothing follows for all rows
OTHER_ROWS = {
    "fewer": (
        AuditRecord(TABLE, 100, (1,), 99, 1, ("m",), judged="0-99"),
        "the audits drew random rows from different rows (100 and 1,000)",
    ),
    "as many, without a common one": (
        AuditRecord(TABLE, 1000, (1000,), 999, 1, ("m",), judged="1000-1999"),
        "the audits drew random rows from different rows (1,000 each)",
    ),
    "as many, all but one the same": (
        AuditRecord(TABLE, 1000, (1,), 999, 1, ("m",), judged="1-1000"),
        "the audits drew random rows from different rows (1,000 each)",
    ),
    "as many, not recorded which": (
        AuditRecord(TABLE, 1000, (1,), 999, 1, ("m",)),
        "of several audits it is not recorded whether they judged the same rows",
    ),
}


@pytest.mark.parametrize("second", OTHER_ROWS)
def test_audits_of_other_rows_are_not_put_together(second: str) -> None:
    random = tuple(judged(1, 9, "random", first=500))
    audit, why = OTHER_ROWS[second]
    for audits in ((AUDIT, audit), (audit, AUDIT)):
        wrong = estimate_wrong(Reviews(random, audits))
        assert wrong is not None
        assert wrong.total is None
        assert wrong.why_no_total.startswith(why)
        assert wrong.share_low is wrong.share_high is None, "rows of no one sample"
        drawn_from = rows_drawn_from(audits)
        assert (drawn_from.number, drawn_from.number_in(range(1000))) == (None, None)


def test_random_rows_of_a_run_stand_for_its_unlisted_rows() -> None:
    """Whether an audit records its rows or not; a run of other rows has none of them."""
    for audit in (AUDIT, replace(AUDIT, judged="")):
        drawn_from = rows_drawn_from((audit,))
        assert drawn_from.number == 900
        assert drawn_from.number_in(range(1000)) == 900
        assert drawn_from.number_in(range(50, 150)) == 50
    assert rows_drawn_from((AUDIT,)).number_in(range(1500, 1600)) == 0
