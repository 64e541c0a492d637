"""Scores with reviews of labels: what each verdict does to a row, and what is recorded of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from review_files import Reviewer
from scored_runs import HEIGHT, WIDTH, World, failing, grid, query, speaking

from vlmeval_findit.benchmarks.findit import parse
from vlmeval_findit.boxes import BoxToWrite
from vlmeval_findit.boxes import write as write_boxes
from vlmeval_findit.protocol import (
    Answer,
    Review,
    Reviews,
    ReviewsError,
    ReviewVerdict,
    RowChoice,
    ScoredRow,
    settings_from,
)
from vlmeval_findit.scoring import RunScore, load_run, score_file, score_file_reviewed, write_score
from vlmeval_findit.storage import RunFiles

NAME = "FindIt_Pascal_xyxy_json"
ELSEWHERE = (5.0, 65.0, 45.0, 95.0)  # Where no label is

Box = tuple[float, float, float, float]


def boxing(box_of: Callable[[Any], list[Box]]) -> Callable[[Any, np.random.Generator], str]:
    """Return a model that answers boxes, given the query."""

    def answer(asked: Any, generator: np.random.Generator) -> str:
        boxes = [BoxToWrite(grid(box), "cat", 0) for box in box_of(asked)]
        return write_boxes(boxes, parse(NAME).reply)

    return answer


truthful = boxing(lambda asked: list(asked.truth.boxes))
misplaced = boxing(lambda asked: [ELSEWHERE])


def row_of(run: RunScore, index: int) -> ScoredRow:
    (row,) = (row for row in run.rows if row.index == index)
    return row


def found(run: RunScore, index: int) -> tuple[float, float]:
    """Return hits and objects of a row."""
    sums = row_of(run, index).sums
    return sums["tp"], sums["n_gt"]


def scored(path: Path, *reviews: Review) -> RunScore:
    return score_file_reviewed(path, settings_from({}), None, Reviews(reviews))


@pytest.mark.parametrize(
    ("verdict", "accept_label", "truthful_finds", "misplaced_finds"),
    [
        (ReviewVerdict.LABEL, True, (2, 2), (0, 2)),
        (ReviewVerdict.MODEL, False, (0, 1), (1, 1)),
        (ReviewVerdict.EDITED, False, (0, 1), (1, 1)),
        (ReviewVerdict.BOTH, True, (2, 2), (1, 1)),
    ],
)
def test_the_best_accepted_answer_counts_for_every_model(
    verdict: ReviewVerdict,
    accept_label: bool,
    truthful_finds: tuple[int, int],
    misplaced_finds: tuple[int, int],
    world: World,
) -> None:
    reviewer = Reviewer(NAME)
    accept = [reviewer.label(3)] if accept_label else []
    if verdict is not ReviewVerdict.LABEL:
        accept.append(Answer((ELSEWHERE,)))
    review = reviewer.review(3, verdict, *accept)
    for model, answer, expected in (
        ("Truthful", truthful, truthful_finds),
        ("Misplaced", misplaced, misplaced_finds),
    ):
        path = world.predict(model, NAME, answer)
        run = scored(path, review)
        assert found(run, 3) == expected
        plain = score_file(path)
        others = [row for row in run.rows if row.index != 3]
        assert others == [row for row in plain.rows if row.index != 3]


def test_details_say_which_accepted_answer_counted(world: World) -> None:
    reviewer = Reviewer(NAME)
    label = reviewer.label(3)
    review = reviewer.review(3, ReviewVerdict.BOTH, label, Answer((ELSEWHERE,)))
    truthful_row = row_of(scored(world.predict("Truthful", NAME, truthful), review), 3)
    misplaced_row = row_of(scored(world.predict("Misplaced", NAME, misplaced), review), 3)
    decided = {tuple(map(tuple, row.details["review"]["boxes"])) for row in (truthful_row,)}
    assert decided == {label.boxes}
    assert misplaced_row.details["review"] == {
        "verdict": "both",
        "accepted": misplaced_row.details["review"]["accepted"],
        "of": 2,
        "boxes": [list(ELSEWHERE)],
    }
    assert (
        truthful_row.details["review"]["accepted"] != (misplaced_row.details["review"]["accepted"])
    )
    # Error types and IoUs are those of the answer that counted.
    assert misplaced_row.details["ious"] == [pytest.approx(1.0, abs=0.05)]
    assert "errors" not in misplaced_row.details


@pytest.mark.parametrize("tight_first", [True, False])
def test_of_equal_query_scores_the_other_metrics_decide(tight_first: bool, world: World) -> None:
    """Both accepted boxes are found at an IoU of 0.5; the one that fits better counts."""
    x1, y1, x2, y2 = ELSEWHERE
    accept = [Answer((ELSEWHERE,)), Answer(((x1, y1, x2, y2 - 5),))]
    review = Reviewer(NAME).review(3, ReviewVerdict.EDITED, *accept[:: 1 if tight_first else -1])
    run = scored(world.predict("Misplaced", NAME, misplaced), review)
    assert row_of(run, 3).details["review"]["boxes"] == [list(ELSEWHERE)]


def test_excluded_rows_are_left_out_and_unsure_ones_stay(world: World) -> None:
    reviewer = Reviewer(NAME)
    other = Answer((ELSEWHERE,))
    run = scored(
        world.predict("Truthful", NAME, truthful),
        reviewer.review(0, ReviewVerdict.EXCLUDE),
        reviewer.review(1, ReviewVerdict.UNSURE),
        reviewer.review(2, ReviewVerdict.MODEL, other, reviewer="ab"),
        reviewer.review(2, ReviewVerdict.LABEL, reviewer="cd"),
        reviewer.review(3, ReviewVerdict.MODEL, other),
        # Taken back: the last line of a reviewer counts.
        reviewer.review(4, ReviewVerdict.EXCLUDE),
        reviewer.review(4, ReviewVerdict.LABEL),
    )
    assert [row.index for row in run.rows] == list(range(1, 12))
    assert [found(run, index) for index in (1, 2, 3, 4)] == [(2, 2), (2, 2), (0, 1), (2, 2)]
    assert run.counted["replies"] == 11
    assert run.reviews is not None
    assert run.reviews.counts == (
        "5 of 12 rows reviewed: 1 changed, 1 excluded, 2 unsure, whose label stays"
    )


def test_failed_calls_stay_failed_whatever_is_accepted(world: World) -> None:
    reviewer = Reviewer(NAME)
    review = reviewer.review(0, ReviewVerdict.MODEL, Answer((ELSEWHERE,)))
    row = row_of(scored(world.predict("Down", NAME, failing), review), 0)
    assert row.failed
    assert row.sums["n_gt"] == 0
    assert row.sums["n_gt_failed"] == 1


def test_classes_of_an_accepted_answer_count(world: World) -> None:
    """The label has the classes the wrong way round; slices follow the answer, too."""
    name = "FindIt_Pascal_multilabel_xyxy_json"
    reviewer = Reviewer(name)
    label = reviewer.label(2)
    swapped = Answer(label.boxes, label.labels[::-1])
    path = world.predict("Truthful", name, speaking(name, 1.0))
    run = scored(path, reviewer.review(2, ReviewVerdict.MODEL, swapped))
    plain = score_file(path)
    assert row_of(plain, 2).details["labels_agree"] == [True, True]
    assert row_of(run, 2).details["labels_agree"] == [False, False]
    assert row_of(run, 2).details["review"]["labels"] == ["dog", "cat"]


# --- random rows ----------------------------------------------------------------------------------


def test_random_rows_stand_for_the_rows_that_were_not_listed(world: World) -> None:
    """Two of ten unlisted rows were drawn; one of them was wrong, and the model found it."""
    reviewer = Reviewer(NAME, voters=("ab12",))
    other = Answer((ELSEWHERE,))
    reviews = Reviews(
        (
            reviewer.review(0, ReviewVerdict.MODEL, other),
            reviewer.review(5, ReviewVerdict.MODEL, other, drawn=RowChoice.RANDOM),
            reviewer.review(6, ReviewVerdict.LABEL, drawn=RowChoice.RANDOM),
        ),
        (reviewer.audit(listed=[0, 1]),),
    )
    path = world.predict("Misplaced", NAME, misplaced)
    run = score_file_reviewed(path, settings_from({}), None, reviews)
    assert run.reviews is not None
    assert (run.reviews.random, run.reviews.unlisted, run.reviews.not_reviewed) == (2, 10, 1)
    # As labelled it finds nothing; as reviewed, one listed row, and half of ten.
    assert run.sums["tp"] == 1 + 5
    loaded = load_run(write_score(run, path).provenance)
    assert loaded.sums == run.sums
    assert loaded.sums["n_gt"] == 1 + 2 + 5 * 1 + 5 * 2
    assert loaded.metric_values == run.metric_values
    assert run.metric_values["Recall"] == pytest.approx(100 * 6 / 18)
    assert loaded.provenance.reviews == run.reviews


def test_excluded_random_rows_stand_for_others(world: World) -> None:
    reviewer = Reviewer(NAME)
    reviews = Reviews(
        (
            reviewer.review(5, ReviewVerdict.EXCLUDE, drawn=RowChoice.RANDOM),
            reviewer.review(6, ReviewVerdict.LABEL, drawn=RowChoice.RANDOM),
        ),
        (reviewer.audit(listed=[]),),
    )
    path = world.predict("Truthful", NAME, truthful)
    run = score_file_reviewed(path, settings_from({}), None, reviews)
    assert len(run.rows) == 11
    assert run.metric_values["F1@0.5"] == 100
    loaded = load_run(write_score(run, path).provenance)
    assert loaded.sums["n_gt"] == 12


def test_random_rows_have_one_order_in_all_runs(world: World) -> None:
    """Their changes are paired between runs, whatever the order of the replies."""
    reviewer = Reviewer(NAME)
    reviews = Reviews(
        tuple(
            reviewer.review(
                index, ReviewVerdict.MODEL, Answer((ELSEWHERE,)), drawn=RowChoice.RANDOM
            )
            for index in (5, 3, 8)
        ),
        (reviewer.audit(listed=[]),),
    )
    path = world.predict("Truthful", NAME, truthful)
    straight = score_file_reviewed(path, settings_from({}), None, reviews).reviews
    path.write_text(json.dumps(json.loads(path.read_text())[::-1]))
    reverse = score_file_reviewed(path, settings_from({}), None, reviews).reviews
    assert straight is not None
    assert [row.index for row in straight.labelled] == [3, 5, 8]
    assert reverse == straight


def test_runs_that_an_audit_compared_are_voters_too(world: World) -> None:
    """Reviews of random rows may name no run: nobody's answers were shown."""
    audit = Reviewer(NAME, voters=("ab12",)).audit(listed=[0])
    shown = Reviewer(NAME, voters=("cd34",)).review(0, ReviewVerdict.LABEL)
    path = world.predict("Truthful", NAME, truthful)
    run = score_file_reviewed(path, settings_from({}), None, Reviews((shown,), (audit,)))
    assert run.reviews is not None
    assert run.reviews.voters == ("ab12", "cd34")


def test_all_rows_reviewed_favour_nobody(world: World) -> None:
    reviewer = Reviewer(NAME, voters=("ab12",))
    path = world.predict("Truthful", NAME, truthful)
    for known, favours in ((12, False), (11, True)):
        reviews = tuple(reviewer.review(index, ReviewVerdict.LABEL) for index in range(known))
        audit = reviewer.audit(listed=range(12))
        run = score_file_reviewed(path, settings_from({}), None, Reviews(reviews, (audit,)))
        assert run.reviews is not None
        assert run.reviews.favours_voters == favours


def test_random_rows_of_an_unknown_list_stand_for_themselves(world: World) -> None:
    reviewer = Reviewer(NAME)
    review = reviewer.review(5, ReviewVerdict.MODEL, Answer((ELSEWHERE,)), drawn=RowChoice.RANDOM)
    run = scored(world.predict("Misplaced", NAME, misplaced), review)
    assert run.reviews is not None
    assert run.reviews.random_rows(run.rows, run.benchmark.errors) is None
    why = "as no record of an audit says from which rows"
    assert f"1 random row, standing for no others, {why}" in run.reviews.counts


# --- which rows -----------------------------------------------------------------------------------


def test_reviews_of_another_table_are_refused(world: World) -> None:
    world.table("PhraseCut", [query(i, f"{i}.jpg", label="red dog") for i in range(6)])
    other = Reviewer("FindIt_PhraseCut_xyxy_json").review(3, ReviewVerdict.EXCLUDE)
    path = world.predict("Truthful", NAME, truthful)
    with pytest.raises(ReviewsError, match=r"no review is of a row of .*Pascal\.tsv") as raised:
        scored(path, other)
    assert other.table[:19] in str(raised.value)


@pytest.mark.parametrize(
    ("number", "they"),
    [
        (0, "there are none"),
        (1, "they are of sha256:000000000000…"),
        (2, "they are of sha256:000000000000…, sha256:111111111111…"),
        (3, "they are of sha256:000000000000…, sha256:111111111111… and 1 more"),
        (5, "they are of sha256:000000000000…, sha256:111111111111… and 3 more"),
    ],
)
def test_two_tables_of_other_reviews_are_named(number: int, they: str, world: World) -> None:
    review = Reviewer(NAME).review(3, ReviewVerdict.EXCLUDE)
    others = [
        replace(review, table=f"sha256:{64 * str(at)}", row=f"sha256:{64 * 'f'}")
        for at in range(number)
    ]
    path = world.predict("Truthful", NAME, truthful)
    with pytest.raises(ReviewsError) as refused:
        scored(path, *others[::-1])
    assert f": {they}. Name" in str(refused.value)


def test_a_row_that_changed_after_its_review_is_refused(world: World) -> None:
    reviewer = Reviewer(NAME)
    reviews = [reviewer.review(index, ReviewVerdict.LABEL) for index in (3, 4)]
    moved = [query(i, picture=f"{i // 2}.jpg") for i in range(12)]
    moved[4] = query(4, picture="2.jpg", boxes=[(0.0, 0.0, WIDTH / 2, HEIGHT / 2)])
    world.table("Pascal", moved)
    path = world.predict("Truthful", NAME, truthful)
    with pytest.raises(ReviewsError, match="row 4 of Pascal has another image"):
        scored(path, *reviews)
    assert scored(path, reviews[0]).reviews is not None, "a table that shares the reviewed row"


# --- files ----------------------------------------------------------------------------------------


def test_files_with_reviews_lie_beside_the_others(world: World) -> None:
    path = world.predict("Truthful", NAME, truthful)
    before = {file: file.read_bytes() for file in world.runs.iterdir()}
    run = scored(path, Reviewer(NAME).review(3, ReviewVerdict.MODEL, Answer((ELSEWHERE,))))
    assert run.reviews is not None
    files = write_score(run, path)
    assert files == RunFiles(path, f".reviewed-{run.reviews.digest}")
    assert {file: file.read_bytes() for file in before} == before
    stored = json.loads(files.provenance.read_text())
    assert stored["reviews"]["changed"] == 1
    assert f"F1@0.5 [reviewed {run.reviews.digest}]" in files.score.read_text()
    loaded = load_run(files.provenance)
    assert loaded.model == "Truthful"
    assert loaded.board_dataset == f"Pascal [reviewed {run.reviews.digest}]"
