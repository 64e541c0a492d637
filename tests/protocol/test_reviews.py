"""Reviews of labels: whose review of a row counts, and which rows and files they belong to."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmeval_findit.core import MisplacedError, validate
from vlmeval_findit.protocol import (
    Answer,
    AuditRecord,
    Review,
    Reviews,
    ReviewsError,
    ReviewVerdict,
    RowChoice,
    as_ranges,
    box_iou,
    in_ranges,
    row_hash,
    rows_drawn_from,
)
from vlmeval_findit.storage import PlainQuery

TABLE = f"sha256:{64 * 'a'}"
OTHER_TABLE = f"sha256:{64 * 'b'}"
LABEL = Answer(((10.0, 20.0, 50.0, 80.0),))
NEAR = Answer(((11.0, 20.0, 50.0, 80.0),))
FAR = Answer(((60.0, 20.0, 90.0, 80.0),))


def row(index: int) -> str:
    return f"sha256:{index:064}"


def review(number: int = 17, verdict: ReviewVerdict = ReviewVerdict.LABEL, **others: Any) -> Review:
    accept = {
        ReviewVerdict.LABEL: (LABEL,),
        ReviewVerdict.MODEL: (FAR,),
        ReviewVerdict.BOTH: (LABEL, FAR),
        ReviewVerdict.EDITED: (NEAR,),
    }
    defaults: dict[str, Any] = {
        "table": TABLE,
        "index": number,
        "row": row(number),
        "accept": accept.get(verdict, ()),
        "kind": "box",
        "reviewer": "ab",
        "date": "2026-01-31",
        "drawn": RowChoice.LISTED,
    }
    return Review(verdict=verdict, **(defaults | others))


VALUES = {
    "table": TABLE,
    "index": 17,
    "row": row(17),
    "verdict": "model",
    "accept": [{"boxes": [[10, 20, 50, 80]], "labels": ["dog"]}],
    "kind": "wrong object",
    "reviewer": "ab",
    "date": "2026-01-31T12:30:00Z",
    "drawn": "listed",
    "p": 0.93,
    "voters": ["1a2b"],
}


def test_values_of_a_line_become_a_review() -> None:
    actual = validate(Review, VALUES)
    assert actual.verdict is ReviewVerdict.MODEL
    assert actual.drawn is RowChoice.LISTED
    assert actual.accept == (Answer(((10.0, 20.0, 50.0, 80.0),), ("dog",)),)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"verdict": "modle"}, "verdict: unknown verdict 'modle': did you mean model?"),
        ({"drawn": "randomly"}, "drawn: unknown way to draw a row 'randomly': did you mean random"),
        ({"index": -1}, "index: -1 is out of range: rows are numbered from 0"),
        ({"index": "17"}, "index: '17' should be a whole number"),
        ({"row": "17"}, "row: '17' should be 'sha256:' and 64 digits"),
        ({"date": "31.1.2026"}, "date: '31.1.2026' should be a date, as 2026-01-31"),
        ({"reviewer": ""}, "reviewer: '' should be a name"),
        ({"p": 1.5}, "p: 1.5 should be a number from 0 to 1"),
        ({"verdict": "exclude"}, "accept: should be empty: the verdict is exclude"),
        ({"accept": []}, "accept: names no answer, but the verdict is model"),
        ({"p": float("nan")}, "p: nan should be a number from 0 to 1"),
        ({"accept": [{"boxes": [[1, 2, 3]]}]}, "accept.0.boxes.0: [1, 2, 3] should be a box: four"),
        ({"accept": [{"boxes": [[1, 2, 3, None]]}]}, "[1, 2, 3, None] should be a box: four"),
        ({"accept": [{"boxes": [], "labels": ["a"]}]}, "accept.0.labels: 1 label for 0 boxes"),
        ({"verdct": "model"}, "unknown key 'verdct': did you mean verdict?"),
    ],
)
def test_damaged_lines_say_key_and_nearest_value(change: dict[str, Any], says: str) -> None:
    with pytest.raises(MisplacedError) as refused:
        validate(Review, VALUES | change)
    assert says in refused.value.below()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"unlisted": 9}, "unlisted: 2 listed and 9 unlisted are not 10 rows"),
        ({"listed": [3, 3]}, "listed: duplicate 3"),
        ({"rows": 0}, "rows: 0 should be a whole number, at least 1"),
        ({"judged": "0-8"}, "judged: has 9 rows, not 10"),
        ({"judged": "0-4, 6-10"}, "judged: lacks row 5, which is listed"),
        ({"judged": "0-"}, "judged: '0-' should be rows and ranges of rows, as '0-23, 30'"),
    ],
)
def test_counts_of_an_audit_add_up(change: dict[str, Any], says: str) -> None:
    audit = {"table": TABLE, "rows": 10, "listed": [3, 5], "unlisted": 8, "seed": 0, "voters": []}
    assert validate(AuditRecord, audit).listed == (3, 5)
    with pytest.raises(MisplacedError) as refused:
        validate(AuditRecord, audit | change)
    assert says in refused.value.below()


def test_a_new_line_takes_the_old_one_back() -> None:
    lines = (review(verdict=ReviewVerdict.MODEL), review(verdict=ReviewVerdict.EXCLUDE), review())
    actual = Reviews(lines)
    assert actual.decisions()[17].verdict is ReviewVerdict.LABEL
    assert actual.digest == Reviews(lines[2:]).digest
    assert actual.digest != Reviews(lines[:2]).digest


def test_reviewers_who_disagree_leave_the_label() -> None:
    both = Reviews((review(verdict=ReviewVerdict.MODEL), review(reviewer="cd")))
    decision = both.decisions()[17]
    assert decision.is_disputed
    assert (decision.verdict, decision.accept) == (ReviewVerdict.UNSURE, ())
    assert [each.reviewer for each in decision.reviews] == ["ab", "cd"]


def test_two_edits_agree_where_their_boxes_nearly_do() -> None:
    mine = review(verdict=ReviewVerdict.EDITED, accept=(LABEL,), voters=("m2",))
    near = replace(mine, reviewer="cd", accept=(NEAR,), voters=("m1", "m2"))
    far = replace(near, accept=(FAR,))
    decision = Reviews((mine, near)).decisions()[17]
    assert decision.verdict is ReviewVerdict.EDITED
    assert set(decision.accept) == {LABEL, NEAR}
    assert decision.voters == ("m1", "m2")
    assert Reviews((mine, far)).decisions()[17].is_disputed


@pytest.mark.parametrize(
    ("ways", "counts"),
    [
        ("random listed", "listed"),
        ("listed random", "listed"),
        ("published listed", "listed"),
        ("published random", "random"),
        ("published", "published"),
    ],
)
def test_a_row_met_in_two_ways_counts_as_doubted(ways: str, counts: str) -> None:
    reviews = [
        review(drawn=RowChoice(way), reviewer=f"r{at}") for at, way in enumerate(ways.split())
    ]
    assert Reviews(tuple(reviews)).decisions()[17].drawn is RowChoice(counts)


@given(st.frozensets(st.integers(0, 30)))
def test_ranges_are_read_as_written(rows: frozenset[int]) -> None:
    written = as_ranges(rows)
    assert in_ranges(written) == rows
    assert written.count(",") == max(sum(row - 1 not in rows for row in rows) - 1, 0)


def audit_of(rows: int, listed: tuple[int, ...], judged: str = "") -> AuditRecord:
    unlisted = rows - len(listed)
    return AuditRecord(TABLE, rows, listed, unlisted, seed=0, voters=(), judged=judged)


@pytest.mark.parametrize(
    ("audits", "rows", "expected"),
    [
        ([audit_of(10, (1, 2), "0-9")], range(10), 8),
        ([audit_of(10, (1, 2), "0-9")], range(20), 8),  # Ten rows were never judged
        ([audit_of(10, (1, 2), "0-9")], range(5), 3),
        ([audit_of(10, (1, 2))], range(20), 8),
        ([audit_of(10, (1, 2))], range(5), 3),
        ([audit_of(10, (1, 2), "0-9"), audit_of(10, (3,), "0-9")], range(20), 7),
        ([audit_of(10, (1,)), audit_of(12, (1,))], range(20), None),
        ([audit_of(10, (1,), "0-9"), audit_of(10, (6,), "5-14")], range(20), None),
        ([], range(20), None),
    ],
)
def test_random_rows_stand_for_rows_that_an_audit_judged(
    audits: list[AuditRecord], rows: range, expected: int | None
) -> None:
    assert rows_drawn_from(audits).number_in(rows) == expected


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (LABEL, LABEL, True),
        (LABEL, NEAR, True),
        (LABEL, FAR, False),
        (Answer(()), Answer(()), True),
        (Answer(()), LABEL, False),
        (Answer(LABEL.boxes * 2), LABEL, False),
        (Answer(LABEL.boxes + FAR.boxes), Answer(FAR.boxes + NEAR.boxes), True),
        (Answer(LABEL.boxes, ("dog",)), Answer(LABEL.boxes, ("cat",)), False),
        (Answer(((5.0, 5.0, 5.0, 5.0),)), Answer(((5.0, 5.0, 5.0, 5.0),)), True),
    ],
)
def test_answers_of_two_hands(one: Answer, other: Answer, expected: bool) -> None:
    assert one.is_like(other) is other.is_like(one) is expected


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ((0, 0, 2, 4), (0, 0, 2, 4), 1.0),
        ((0, 0, 2, 4), (0, 2, 2, 4), 0.5),
        ((0, 0, 2, 4), (0, 3, 2, 7), 1 / 7),
        ((0, 0, 2, 4), (1, 2, 5, 5), 2 / 18),
        ((0, 0, 2, 4), (2, 0, 4, 4), 0.0),
        ((0, 0, 2, 4), (5, 6, 8, 9), 0.0),
        ((5, 5, 5, 5), (5, 5, 5, 5), 1.0),
        ((5, 5, 5, 5), (6, 6, 6, 6), 0.0),
    ],
)
def test_overlaps(one: tuple[int, ...], other: tuple[int, ...], expected: float) -> None:
    assert box_iou(one, other) == box_iou(other, one) == pytest.approx(expected)


# --- properties ---------------------------------------------------------------------------------

lines = st.lists(
    st.builds(
        review,
        number=st.integers(0, 4),
        verdict=st.sampled_from(ReviewVerdict),
        reviewer=st.sampled_from(["ab", "cd"]),
        date=st.sampled_from(["2026-01-31", "2026-02-01"]),
        drawn=st.sampled_from(RowChoice),
        p=st.none() | st.floats(0, 1),
    ),
    max_size=8,
)


@given(lines, st.randoms())
def test_order_and_dates_do_not_change_the_digest(written: list[Review], random: Any) -> None:
    """But for the last line of a row and reviewer, which has to stay the last."""
    last = {(each.index, each.reviewer): each for each in written}
    others = [replace(each, date="2027-01-01", p=None) for each in last.values()]
    random.shuffle(others)
    before = [replace(each, verdict=ReviewVerdict.UNSURE, accept=()) for each in others]
    random.shuffle(before)
    assert Reviews(tuple(written)).digest == Reviews((*before, *others)).digest


@given(lines)
def test_whoever_reviews_first_the_decisions_are_the_same(written: list[Review]) -> None:
    ab = Reviews(tuple(each for each in written if each.reviewer == "ab"))
    cd = Reviews(tuple(each for each in written if each.reviewer == "cd"))
    assert ab.joined(cd).digest == cd.joined(ab).digest == Reviews(tuple(written)).digest


@given(lines, lines)
def test_joining_again_changes_nothing(one: list[Review], other: list[Review]) -> None:
    first = Reviews(tuple(one))
    second = Reviews(tuple(other))
    both = first.joined(second)
    assert first.joined(first) == first
    assert both.joined(second) == both.joined(first) == both
    assert both.reviews[: len(one)] == tuple(one)


def test_an_old_copy_takes_nothing_back() -> None:
    old = Reviews((review(verdict=ReviewVerdict.MODEL),))
    new = old.joined(Reviews((review(),)))
    again = Reviews((*new.reviews, review(verdict=ReviewVerdict.MODEL)))
    assert new.joined(old) == new
    assert new.joined(again) == again


@given(lines)
def test_what_changes_a_score_changes_the_digest(written: list[Review]) -> None:
    before = Reviews(tuple(written))
    if not written:
        return
    last = written[-1]
    verdict = (
        ReviewVerdict.EXCLUDE if last.verdict is not ReviewVerdict.EXCLUDE else ReviewVerdict.UNSURE
    )
    after = before.joined(Reviews((replace(last, verdict=verdict, accept=()),)))
    now = after.decisions()[last.index].verdict
    was = before.decisions()[last.index].verdict
    assert (before.digest == after.digest) is (now is was)


# --- tables -------------------------------------------------------------------------------------


def test_reviews_survive_a_subset_of_their_table() -> None:
    both = Reviews((review(1), review(2)))
    actual = both.of_table(OTHER_TABLE, {1: row(1), 5: row(5)}, "T")
    assert actual.reviews.reviews == (review(1),)
    assert (actual.absent, actual.elsewhere) == ((review(2),), ())


def test_a_subset_may_number_its_rows_anew() -> None:
    both = Reviews((review(1), review(2), review(3)), places=("a", "b", "c"))
    actual = both.of_table(OTHER_TABLE, {0: row(2), 3: row(3)}, "T")
    assert actual.reviews.reviews == (review(2, index=0, row=row(2)), review(3))
    assert actual.reviews.places == ("b", "c")
    assert actual.absent == (review(1),)


def test_a_row_that_a_subset_has_twice_needs_its_index() -> None:
    both = Reviews((review(1), review(2), review(9)))
    actual = both.match_table(OTHER_TABLE, {1: row(1), 2: row(9), 3: row(9)}, "T")
    assert actual.reviews.reviews == (review(1),)
    assert (len(actual.changed), actual.absent) == (1, (review(9),))


def test_rows_drawn_of_another_table_say_nothing_of_this_one() -> None:
    audit = AuditRecord(TABLE, rows=2, listed=(1,), unlisted=1, seed=0, voters=())
    both = Reviews((review(1),), (audit,))
    assert both.of_table(TABLE, {1: row(1)}, "T").reviews.audits == (audit,)
    assert both.of_table(OTHER_TABLE, {1: row(1)}, "T").reviews.audits == ()


def test_reviews_of_several_tables_are_told_apart() -> None:
    elsewhere = review(1, table=OTHER_TABLE, row=row(99))
    both = Reviews((elsewhere, review(1)))
    actual = both.of_table(TABLE, {1: row(1)}, "T")
    assert actual.reviews.reviews == (review(1),)
    assert (actual.absent, actual.elsewhere) == ((), (elsewhere,))
    with pytest.raises(ReviewsError, match="review 2: row 1 has changed"):
        both.decisions()


def test_a_row_that_changed_is_refused_with_its_line() -> None:
    places = ("reviews.jsonl, line 2", "reviews.jsonl, line 3")
    both = Reviews((review(1), review(2)), places=places)
    with pytest.raises(ReviewsError, match=r"^reviews.jsonl, line 3: row 2 of T has"):
        both.of_table(OTHER_TABLE, {1: row(1), 2: row(99)}, "T")


GONE = f"sha256:{64 * 'c'}"


@pytest.mark.parametrize(
    ("named", "hash_", "sorted_as"),
    [
        (TABLE, row(2), "reviews"),
        (TABLE, row(99), "changed"),
        (OTHER_TABLE, row(2), "reviews"),
        (OTHER_TABLE, row(99), "of_others"),
        (GONE, row(2), "reviews"),
        (GONE, row(99), "changed"),
    ],
)
def test_reviews_belong_to_the_table_that_they_name(named: str, hash_: str, sorted_as: str) -> None:
    """Of this table, another at hand, or one that is gone; each shares row 1 with this one."""
    both = Reviews((review(1, table=named), review(2, table=named, row=hash_)))
    actual = both.match_table(TABLE, {1: row(1), 2: row(2)}, "T", {TABLE, OTHER_TABLE})
    found = {
        "reviews": len(actual.reviews.reviews) - 1,
        "changed": len(actual.changed),
        "of_others": len(actual.of_others),
    }
    assert {name for name, number in found.items() if number} == {sorted_as}


def test_a_corrected_copy_takes_reviews_of_its_own_alone() -> None:
    foreign = (review(1, table=OTHER_TABLE), review(2, table=OTHER_TABLE, row=row(99)))
    rows = {1: row(1), 2: row(2), 3: row(3)}
    copied = Reviews(foreign).of_table(TABLE, rows, "parts_v2", {OTHER_TABLE})
    assert copied.why_none("parts_v2") == ("parts_v2 is another table: 1 of 2 reviewed rows differ")
    both = Reviews((*foreign, review(3))).of_table(TABLE, rows, "parts_v2", {OTHER_TABLE})
    assert both.why_none("parts_v2") == ""
    assert [each.index for each in both.reviews.reviews] == [1, 3]
    subset = Reviews(foreign[:1]).of_table(TABLE, rows, "parts_v2", {OTHER_TABLE})
    assert subset.why_none("parts_v2") == ""


def query(**others: Any) -> PlainQuery:
    return PlainQuery(**({"index": 3, "images": ("1.jpg",), "cluster": "1", "label": "a"} | others))


def test_a_row_is_its_images_expression_and_boxes() -> None:
    box, other = (1.0, 2.0, 3.0, 4.0), (5.0, 6.0, 7.0, 8.0)
    expected = row_hash(query(), Answer((box, other)))
    assert expected == row_hash(query(index=4, support=("r.jpg",)), Answer((other, box)))
    others = [
        row_hash(query(images=("2.jpg",)), Answer((box, other))),
        row_hash(query(label="b"), Answer((box, other))),
        row_hash(query(), Answer((box,))),
        row_hash(query(), Answer((box, other), ("cat", "dog"))),
    ]
    assert len({expected, *others}) == 5
