"""From runs to doubtful rows: proposals, votes, left-out runs, random rows, calibration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

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
from scored_runs import World, failing, query, saying

from vlmeval_findit.analysis import (
    FEWEST_RANDOM,
    AuditedRow,
    LabelAudit,
    ReviewedRows,
    audit_labels,
    audit_record,
    draw_rows,
    family_of,
    known_family,
    why_no_voter,
    with_reviews,
)
from vlmeval_findit.benchmarks import parse
from vlmeval_findit.coords import NotBoxesError
from vlmeval_findit.leaderboard import VotersError, choose_voters
from vlmeval_findit.protocol import (
    FAILED_ANSWER,
    Identity,
    Review,
    Reviews,
    ReviewVerdict,
    RowChoice,
    ScoredRow,
    row_hash,
)
from vlmeval_findit.scoring import UNANSWERED, Run, RunError, ScoreReviews
from vlmeval_findit.statistics import LabelFault

ELSEWHERE = (140.0, 10.0, 180.0, 50.0)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """Return a folder without tables."""
    empty = World(tmp_path)
    empty.at_hand(monkeypatch)
    return empty


def row_of(audit: LabelAudit, index: int) -> AuditedRow:
    (row,) = (row for row in audit.rows if row.index == index)
    return row


def two_models(world: World, name: str, right: dict[int, Right], **more: Any) -> list[Run]:
    """Return runs of two families that answer the truth, and of ``more`` models."""
    runs = [world.run(model, name, answering(name, right)) for model in ("Left", "Right")]
    return [*runs, *(world.run(model, name, answer) for model, answer in more.items())]


# --- proposals ------------------------------------------------------------------------------------


def test_the_proposal_of_one_object_is_where_the_models_are(world: World) -> None:
    right = expressions(world, {7: ELSEWHERE})
    audit = audit_labels(two_models(world, EXPRESSIONS, right))
    row = audit.rows[0]
    assert (row.index, row.fault, row.label.boxes) == (7, LabelFault.WRONG_OBJECT, (ELSEWHERE,))
    (box,) = row.proposal.boxes
    assert box == pytest.approx(right[7].boxes[0], abs=2)
    assert (row.agreeing, row.models) == (2, 2)
    assert row.p is not None
    assert row.p > 0.5
    assert row.voters == tuple(voter.run.provenance.digest for voter in audit.voters)
    assert [each.index for each in audit.listed()] == [7]


def test_models_agree_with_a_box_nearer_than_the_label(world: World) -> None:
    """One of four answers as the label, which is drawn too wide."""
    x1, y1, x2, y2 = pair(9)[0]
    wide = (x1, y1, x2 + 20, y2 + 10)
    right = expressions(world, {9: wide})

    def as_labelled(at: int, answer: Right) -> Right:
        return Right((wide,)) if at == 9 else answer

    third = answering(EXPRESSIONS, right)
    fourth = answering(EXPRESSIONS, right, change=as_labelled)
    audit = audit_labels(two_models(world, EXPRESSIONS, right, Third=third, Fourth=fourth))
    row = row_of(audit, 9)
    assert (row.fault, row.agreeing, row.models) == (LabelFault.BOX, 3, 4)


def test_a_set_is_corrected_in_everything_that_is_likely(world: World) -> None:
    """An object is missing, and another box is on nothing."""
    left, _ = pair(9)
    nothing = (150.0, 60.0, 190.0, 95.0)
    right = objects(world, {9: (left, nothing)})
    third = answering(OBJECTS, right)
    audit = audit_labels(two_models(world, OBJECTS, right, Third=third, Fourth=third))
    row = row_of(audit, 9)
    assert row in audit.listed()
    boxes = sorted(row.proposal.boxes)
    assert boxes[0] == left  # As it is in the table
    assert boxes[1] == pytest.approx(pair(9)[1], abs=2)
    assert len(boxes) == 2


def test_several_faults_of_a_label_are_corrected_together(world: World) -> None:
    """A box is drawn badly, and another one is on nothing."""
    (x1, y1, x2, y2), right_box = pair(9)
    wide = (x1, y1, x2 + 20, y2 + 10)
    right = objects(world, {9: (wide, right_box, (60.0, 60.0, 100.0, 95.0))})
    more = answering(OBJECTS, right)
    audit = audit_labels(two_models(world, OBJECTS, right, Third=more, Fourth=more))
    boxes = row_of(audit, 9).proposal.boxes
    assert len(boxes) == 2
    assert boxes[0] == pytest.approx((x1, y1, x2, y2), abs=2)
    assert boxes[1] == right_box


def test_a_class_is_named_as_the_table_names_it(world: World) -> None:
    right = classes(world, {5: ("dog", "dog")})
    audit = audit_labels(two_models(world, CLASSES, right))
    row = row_of(audit, 5)
    assert row.fault is LabelFault.WRONG_CLASS
    assert row.proposal.labels == ("cat", "dog")
    assert row.proposal.boxes == row.label.boxes


def test_a_class_that_no_label_has_is_not_proposed(world: World) -> None:
    right = classes(world, {})

    def kittens(at: int, answer: Right) -> Right:
        return replace(answer, labels=("kitten", "dog"))

    models = answering(CLASSES, right, change=kittens)
    audit = audit_labels([world.run(model, CLASSES, models) for model in ("A", "B", "C")])
    assert all("kitten" not in row.proposal.labels for row in audit.rows)
    assert not [row for row in audit.listed() if row.fault is LabelFault.WRONG_CLASS]


def test_an_object_of_a_class_without_labels_is_not_missing(world: World) -> None:
    right = classes(world, {})

    def with_bird(at: int, answer: Right) -> Right:
        if at != 5:
            return answer
        return Right((*answer.boxes, (60.0, 60.0, 100.0, 95.0)), (*answer.labels, "bird"))

    models = answering(CLASSES, right, change=with_bird)
    audit = audit_labels([world.run(model, CLASSES, models) for model in ("A", "B", "C")])
    row = row_of(audit, 5)
    assert row not in audit.listed()
    assert len(row.proposal.boxes) == 2


# --- what says something --------------------------------------------------------------------------


def test_failed_and_unreadable_answers_say_nothing(world: World) -> None:
    right = expressions(world, {})

    def sometimes(row: Any, chance: Any) -> str:
        if row.index % 4 == 0:
            return f"{FAILED_ANSWER} via API."
        return "somewhere" if row.index % 4 == 1 else answer(row, chance)

    answer = answering(EXPRESSIONS, right)
    audit = audit_labels(two_models(world, EXPRESSIONS, right, Third=sometimes))
    assert [voter.silent for voter in audit.voters] == [0, 0, ROWS // 2]
    assert {row.index % 4: row.models for row in audit.rows} == {0: 2, 1: 2, 2: 3, 3: 3}
    assert not audit.unjudged


def test_a_run_that_says_hardly_anything_is_left_out(world: World) -> None:
    right = expressions(world, {})
    runs = two_models(world, EXPRESSIONS, right, Third=saying("somewhere"))
    audit = audit_labels(runs)
    assert [voter.run.model for voter in audit.unheard] == ["Third"]
    assert len(audit.voters) == 2
    with pytest.raises(NotBoxesError, match=f"{ROWS} of {ROWS} answers failed or are not readable"):
        audit_labels([runs[-1]])


def test_rows_about_which_nobody_says_anything_are_named(world: World) -> None:
    right = expressions(world, {})

    def failing_on_three(row: Any, chance: Any) -> str:
        return f"{FAILED_ANSWER} via API." if row.index == 3 else answer(row, chance)

    answer = answering(EXPRESSIONS, right)
    runs = [world.run(model, EXPRESSIONS, failing_on_three) for model in ("A", "B")]
    audit = audit_labels(runs)
    assert audit.unjudged == (3,)
    assert 3 not in {row.index for row in audit.rows}


def with_rows(run: Run, change: Callable[[ScoredRow], ScoredRow]) -> Run:
    return replace(run, rows=tuple(map(change, run.rows)))


def test_a_truncated_answer_says_nothing_although_it_has_boxes(world: World) -> None:
    """Objects after its end are not missed."""
    left, other = two_models(world, OBJECTS, objects(world, {}))

    def cut(row: ScoredRow) -> ScoredRow:
        return replace(row, reason="truncated") if row.index < ROWS // 2 else row

    audit = audit_labels([left, with_rows(other, cut)])
    assert [voter.silent for voter in audit.voters] == [0, ROWS // 2]  # Half is enough
    most = with_rows(
        other, lambda row: cut(row) if row.index % 5 else replace(row, reason="truncated")
    )
    assert [voter.run.model for voter in audit_labels([left, most]).unheard] == ["Right"]
    wrong_key = with_rows(other, lambda row: replace(row, reason="wrong key"))
    assert [voter.silent for voter in audit_labels([left, wrong_key]).voters] == [0, 0]


def test_boxes_on_ignored_objects_are_no_answer(world: World) -> None:
    """Both models have a box on something that does not count."""
    right = objects(world, {9: pair(9)[:1]})

    def ignoring(row: ScoredRow) -> ScoredRow:
        ignored = [1] if row.index == 9 else []
        return replace(row, details={**row.details, "ignored": ignored})

    runs = two_models(world, OBJECTS, right)
    assert row_of(audit_labels(runs), 9).fault is LabelFault.MISSING
    audit = audit_labels([with_rows(run, ignoring) for run in runs])
    assert row_of(audit, 9).fault is not LabelFault.MISSING


def test_boxes_that_half_of_the_models_found_are_found(world: World) -> None:
    nothing = (60.0, 60.0, 100.0, 95.0)
    right = objects(world, {9: (*pair(9), nothing), 12: (*pair(12), nothing)})

    def finding(at: int, answer: Right) -> Right:
        return Right((*answer.boxes, nothing)) if at == 9 else answer

    models = {"Left": answering(OBJECTS, right), "Right": answering(OBJECTS, right, change=finding)}
    audit = audit_labels([world.run(model, OBJECTS, answer) for model, answer in models.items()])
    assert {row.index: row.unfound for row in audit.rows if row.unfound} == {12: 1}
    assert [row.index for row in audit.not_found(())] == [12]


def test_one_object_is_asked_for_if_all_labels_have_one(world: World) -> None:
    right = expressions(world, {})
    one = audit_labels(two_models(world, EXPRESSIONS, right))
    world.table("RefCOCO", [query(at, f"{at}.jpg", "x", pair(at)) for at in range(ROWS)])
    several = audit_labels(two_models(world, EXPRESSIONS, right))
    assert (one.asks_for_one, several.asks_for_one) == (True, False)
    assert {row.fault for row in several.rows} <= {LabelFault.BOX, LabelFault.SUPERFLUOUS}


# --- which runs -----------------------------------------------------------------------------------


def like(row: str) -> Any:
    """Return a change of a record: its model is of this row of the model table."""

    def change(run: Identity) -> Identity:
        return replace(run, answering=replace(run.answering, row=row))

    return change


def test_one_family_gives_an_order_and_no_probabilities(world: World) -> None:
    right = expressions(world, {7: ELSEWHERE})
    runs = [
        world.run(model, EXPRESSIONS, answering(EXPRESSIONS, right), change=like("Qwen3-VL"))
        for model in ("Qwen3-VL-2B", "mine")
    ]
    audit = audit_labels(runs)
    assert audit.families == ("Qwen3-VL",)
    assert {row.p for row in audit.rows} == {None}
    assert audit.listed(1)[0].index == 7


def test_a_model_that_reads_like_another_is_of_its_family(world: World) -> None:
    right = expressions(world, {})

    def like_qwen(run: Identity) -> Identity:
        return replace(run, reads_like="Qwen3-VL")

    run = world.run("mine", EXPRESSIONS, answering(EXPRESSIONS, right), change=like_qwen)
    assert family_of(run) == "Qwen3-VL"
    assert family_of(replace(run, model="Qwen3-VL-8B")) == "Qwen3-VL"
    unknown = world.run("other", EXPRESSIONS, answering(EXPRESSIONS, right))
    assert (family_of(unknown), known_family(unknown)) == ("other", None)


def test_the_record_says_the_family_before_the_name(world: World) -> None:
    right = expressions(world, {})
    run = world.run("Qwen3-VL-8B", EXPRESSIONS, answering(EXPRESSIONS, right))
    provenance = run.provenance
    assert provenance.identity is not None
    records = {
        "Qwen3-VL": provenance.identity,
        "InternVL": replace(provenance.identity, reads_like="InternVL"),
        "Molmo": replace(like("Molmo")(provenance.identity), reads_like="InternVL"),
    }
    for family, identity in records.items():
        recorded = replace(run, provenance=replace(provenance, identity=identity))
        assert known_family(recorded) == family_of(recorded) == family
    without = replace(run, provenance=replace(provenance, identity=None))
    assert known_family(without) == "Qwen3-VL"


def test_a_second_model_of_a_family_adds_less(world: World) -> None:
    right = expressions(world, {7: ELSEWHERE})
    left, other, third = two_models(
        world, EXPRESSIONS, right, Third=answering(EXPRESSIONS, right, noise=1.0)
    )
    identity = third.provenance.identity
    assert identity is not None
    row = replace(identity.answering, row="Left")
    known = replace(third.provenance, identity=replace(identity, answering=row))
    apart = audit_labels([left, other, third])
    alike = audit_labels([left, other, replace(third, provenance=known)])
    assert len(alike.families) == 2
    assert (row_of(alike, 7).p or 0) < (row_of(apart, 7).p or 0)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("FindIt_iGround_f8_xyxy_json", "its boxes lie in the frames of a video"),
        ("FindIt_Pascal_point_json", "its answers are points"),
        ("VPBench_Scenes", "the answers of VP-Bench are no boxes"),
        ("SelfRetrieval_Scenes", "the answers of Self-Retrieval are no boxes"),
        ("FindIt_iGround_f1_xyxy_json", ""),
        ("FindIt_RefL4Full_val_xyxy_json", ""),
    ],
)
def test_only_boxes_in_one_image_can_be_audited(world: World, name: str, why: str) -> None:
    run = world.run("A", EXPRESSIONS, answering(EXPRESSIONS, expressions(world, {})))
    assert why_no_voter(replace(run, variant=parse(name))).startswith(why)
    assert bool(why_no_voter(replace(run, variant=parse(name)))) is bool(why)


def test_runs_without_rows_and_scores_with_reviews_do_not_vote(world: World) -> None:
    run = world.run("A", EXPRESSIONS, answering(EXPRESSIONS, expressions(world, {})))
    assert why_no_voter(replace(run, rows=())) == "no row was scored"
    reviews = ScoreReviews("1a2b3c4d", 0, 0, 0, 0, 0, 0)
    reviewed = replace(run, provenance=replace(run.provenance, reviews=reviews))
    assert why_no_voter(reviewed).startswith("a score with reviews")


def test_formats_of_a_model_are_one_voter(world: World) -> None:
    right = expressions(world, {})
    good = answering(EXPRESSIONS, right)
    text = EXPRESSIONS.replace("json", "text")
    runs = [
        world.run("A", EXPRESSIONS, good),
        world.run("A", text, answering(text, right)),
        world.run("B", EXPRESSIONS, good),
    ]
    chosen = choose_voters(runs)
    assert [run.model for run in chosen.runs] == ["A", "B"]
    (left_out,) = chosen.left_out
    assert left_out.reason.startswith("another format of its model is compared: xyxy_")


def test_runs_that_cannot_vote_are_left_out_with_the_reason(world: World) -> None:
    right = expressions(world, {})
    runs = two_models(
        world, EXPRESSIONS, right, Third=lambda row, chance: f"{FAILED_ANSWER} via API."
    )
    doubted = replace(runs[1].provenance, coords_doubt="it answers y first")
    other = replace(runs[0].provenance, spaces=({"kind": "pixels", "source": "given when scored"},))
    point = EXPRESSIONS.replace("xyxy", "point")
    world_runs = [
        *runs,
        replace(runs[1], model="Doubted", provenance=doubted),
        replace(runs[0], model="Other", provenance=other),
        world.run("Pointing", point, saying("[]")),
    ]
    chosen = choose_voters(world_runs)
    assert [run.model for run in chosen.runs] == ["Left", "Right"]
    reasons = {each.run.model: each.reason for each in chosen.left_out}
    assert reasons == {
        "Third": UNANSWERED,
        "Doubted": "its coordinates are in doubt: it answers y first",
        "Other": "scored in another space than the run recorded",
        "Pointing": "its answers are points, which do not show how far an object reaches",
    }


def test_runs_over_other_rows_are_left_out(world: World) -> None:
    right = expressions(world, {})
    runs = two_models(world, EXPRESSIONS, right)
    answer = answering(EXPRESSIONS, right)
    few = world.run("Few", EXPRESSIONS, answer, rows=5)
    chosen = choose_voters([*runs, few])
    assert [run.model for run in chosen.runs] == ["Left", "Right"]
    assert chosen.left_out[0].reason.startswith("other rows: 5 scored, the rest 60")


def test_one_dataset_is_chosen_or_named(world: World) -> None:
    runs = two_models(world, EXPRESSIONS, expressions(world, {}))
    runs += two_models(world, OBJECTS, objects(world, {}))
    with pytest.raises(
        VotersError, match=r"several datasets: Pascal, RefCOCO\. Type --data Pascal"
    ):
        choose_voters(runs)
    with pytest.raises(VotersError, match="--data RefCoco: no run of it: did you mean RefCOCO"):
        choose_voters(runs, "RefCoco")
    for name in ("Pascal", OBJECTS):
        assert {run.variant.table for run in choose_voters(runs, name).runs} == {"Pascal"}


def test_another_table_than_was_scored_is_refused(world: World) -> None:
    runs = two_models(world, EXPRESSIONS, expressions(world, {}))
    expressions(world, {1: ELSEWHERE})
    why = rf"but the run was scored over a table with .* Score it again: .* {runs[0].path}"
    with pytest.raises(RunError, match=why):
        audit_labels(runs)


# --- rows to review -------------------------------------------------------------------------------


@pytest.fixture
def audit(world: World) -> LabelAudit:
    right = expressions(world, {7: ELSEWHERE, 21: ELSEWHERE})
    return audit_labels(two_models(world, EXPRESSIONS, right))


@pytest.mark.parametrize("most", [0, 1, 9, 33, ROWS])
def test_every_fifth_row_is_a_random_one(audit: LabelAudit, most: int) -> None:
    listed = audit.listed(most)
    drawn = draw_rows(audit, listed)
    in_turn = [at for at, each in enumerate(drawn) if each.drawn is RowChoice.RANDOM]
    unlisted = ROWS - len(listed)
    assert [each.row for each in drawn if each.drawn is RowChoice.LISTED] == list(listed)
    assert all(at in in_turn for at in range(4, len(listed), 5)[: len(in_turn)])
    assert len(in_turn) >= min(FEWEST_RANDOM, unlisted)
    indices = [each.row.index for each in drawn]
    assert len(set(indices)) == len(indices)
    assert draw_rows(audit, listed) == drawn


def test_the_record_adds_up_to_the_rows(audit: LabelAudit) -> None:
    record = audit_record(audit, audit.listed())
    assert (record.rows, set(record.listed), record.unlisted) == (ROWS, {7, 21}, ROWS - 2)


def review(audit: LabelAudit, row: AuditedRow, drawn: RowChoice, verdict: ReviewVerdict) -> Review:
    query = audit.dataset.queries[row.index]
    return Review(
        table=audit.table,
        index=row.index,
        row=row_hash(query, row.label),
        verdict=verdict,
        accept=(row.label,) if verdict is ReviewVerdict.LABEL else (row.proposal,),
        kind="",
        reviewer="ab",
        date="2026-01-31",
        drawn=drawn,
    )


def test_fifty_reviews_calibrate_and_fewer_do_not(audit: LabelAudit) -> None:
    """No label was wrong: what seemed likely is so no more, but not impossible either."""
    drawn = draw_rows(audit, audit.listed(30))
    reviews = [review(audit, each.row, each.drawn, ReviewVerdict.LABEL) for each in drawn]
    first = audit.rows[0]
    few = with_reviews(audit, Reviews(tuple(reviews[1:])))
    assert few.calibration == ReviewedRows(listed=29, random=20, fit=None)
    assert few.calibrated(first) is None
    after = with_reviews(audit, Reviews(tuple(reviews)))
    assert after.calibration is not None
    assert (after.calibration.listed, after.calibration.random) == (30, 20)
    p = after.calibrated(first)
    assert p is not None
    assert first.p is not None
    assert 0.001 < p < first.p / 2


def test_published_lists_calibrate_nothing(audit: LabelAudit) -> None:
    drawn = draw_rows(audit, audit.listed(30))
    published = [
        review(audit, each.row, RowChoice.PUBLISHED, ReviewVerdict.LABEL) for each in drawn
    ]
    after = with_reviews(audit, Reviews(tuple(published)))
    assert after.calibration == ReviewedRows(listed=0, random=0, fit=None)
    ours = [review(audit, each.row, each.drawn, ReviewVerdict.LABEL) for each in drawn]
    known = {each.row.index for each in drawn}
    rest = [row for row in audit.rows if row.index not in known]
    theirs = [review(audit, row, RowChoice.PUBLISHED, ReviewVerdict.MODEL) for row in rest]
    with_theirs = with_reviews(audit, Reviews((*ours, *theirs)))
    assert with_theirs.calibration == with_reviews(audit, Reviews(tuple(ours))).calibration


@pytest.mark.parametrize(
    ("verdict", "rises"),
    [(ReviewVerdict.MODEL, True), (ReviewVerdict.LABEL, False), (ReviewVerdict.BOTH, False)],
)
def test_verdicts_decide_which_way_probabilities_move(
    audit: LabelAudit, verdict: ReviewVerdict, rises: bool
) -> None:
    """Where both boxes are right, the label is."""
    drawn = draw_rows(audit, audit.listed(30))
    reviews = [review(audit, each.row, each.drawn, verdict) for each in drawn]
    after = with_reviews(audit, Reviews(tuple(reviews)))
    expected = sum(after.calibrated(row) or 0 for row in audit.rows)
    assert (expected > sum(row.p or 0 for row in audit.rows)) is rises


def test_reviews_change_no_list(world: World) -> None:
    audit = audit_labels(two_models(world, EXPRESSIONS, expressions(world, {7: ELSEWHERE})))
    reviews = Reviews((review(audit, audit.rows[0], RowChoice.LISTED, ReviewVerdict.LABEL),))
    after = with_reviews(audit, reviews)
    assert after.listed() == audit.listed()
    assert set(after.decided) == {7}


def test_reviews_of_another_row_are_refused(audit: LabelAudit) -> None:
    wrong = replace(
        review(audit, audit.rows[0], RowChoice.LISTED, ReviewVerdict.LABEL),
        row=f"sha256:{'0' * 64}",
    )
    with pytest.raises(ValueError, match="has another image, expression or box"):
        with_reviews(audit, Reviews((wrong,)))


def test_a_failing_run_votes_where_it_answers(world: World) -> None:
    right = objects(world, {})
    audit = audit_labels(two_models(world, OBJECTS, right, Failing=failing))
    assert {row.models for row in audit.rows} == {2, 3}
