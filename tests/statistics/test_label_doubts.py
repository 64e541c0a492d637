"""Which labels are doubtful: expected claims, properties, and the figures of the study."""

from __future__ import annotations

import importlib
from dataclasses import replace
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from vlmeval_findit.analysis import ClassedBoxes, classed_boxes, count_votes
from vlmeval_findit.statistics import (
    FAMILY_CORRELATION,
    LIKELY,
    UNNAMED,
    Flags,
    LabelDoubts,
    LabelFault,
    LabelledObjects,
    OtherObjects,
    Votes,
    calibrate_doubts,
    label_doubts,
)

ROWS = 60
ODD = 17  # The row whose label or answers differ
HERE = (10.0, 10.0, 50.0, 50.0)
THERE = (100.0, 20.0, 160.0, 90.0)
ELSEWHERE = (200.0, 100.0, 260.0, 160.0)
WIDE = (10.0, 10.0, 70.0, 60.0)

Objects = dict[tuple[float, float, float, float], int]  # Class by box


def boxes_of(objects: Objects, noise: float = 0.0, seed: int = 0) -> ClassedBoxes:
    made = classed_boxes(list(objects), list(objects.values()))
    moved = np.random.default_rng(seed).normal(0, noise, made.boxes.shape)
    return made._replace(boxes=made.boxes + moved)


def votes_of(usual: Objects, label: Objects, *answers: Objects | None, single: bool) -> Votes:
    """Return votes where all agree with the label, but for one row."""
    labels = [boxes_of(label if row == ODD else usual) for row in range(ROWS)]
    said = []
    for model, odd in enumerate(answers):
        of_model: list[ClassedBoxes | None] = []
        for row in range(ROWS):
            objects = odd if row == ODD else usual
            seed = row + ROWS * model
            of_model.append(None if objects is None else boxes_of(objects, 1.0, seed))
        said.append(of_model)
    return count_votes(labels, said, single)


def likeliest(doubts: LabelDoubts, row: int = ODD) -> LabelFault:
    return doubts.likeliest_fault(row)


ONE = {HERE: 0}
TWO = {HERE: 0, THERE: 0}
NAMED = {HERE: 0, THERE: 1}


@pytest.mark.parametrize(
    ("fault", "usual", "label", "answers"),
    [
        (LabelFault.WRONG_OBJECT, ONE, {THERE: 0}, [ONE, ONE, ONE]),
        (LabelFault.AMBIGUOUS, ONE, ONE, [ONE, ONE, {THERE: 0}, {THERE: 0}]),
        (LabelFault.BOX, ONE, {WIDE: 0}, [ONE, ONE, ONE]),
        (LabelFault.BOX, TWO, {WIDE: 0, THERE: 0}, [TWO, TWO, TWO]),
        (LabelFault.MISSING, TWO, ONE, [TWO, TWO, TWO]),
        (LabelFault.MISSING, TWO, {}, [TWO, ONE, TWO]),
        (LabelFault.SUPERFLUOUS, TWO, {**TWO, ELSEWHERE: 0}, [TWO, TWO, TWO]),
        (LabelFault.WRONG_CLASS, NAMED, {HERE: 0, THERE: 0}, [NAMED, NAMED, NAMED]),
    ],
)
def test_each_fault_is_named(
    fault: LabelFault, usual: Objects, label: Objects, answers: list[Objects]
) -> None:
    doubts = label_doubts(votes_of(usual, label, *answers, single=len(usual) == 1))
    others = np.delete(doubts.wrong, ODD)
    assert likeliest(doubts) is fault
    assert doubts.wrong[ODD] > 0.3
    assert others.max() < 0.1
    claims = doubts.claims[fault]
    assert claims.row[claims.odds.argmax()] == ODD


@pytest.mark.parametrize(
    ("answers", "least", "most"),
    [
        ([ONE, ONE, ONE], 0.0, 0.05),  # All as the label
        ([ONE, ONE, {THERE: 0}], 0.0, 0.2),  # One of three elsewhere
        ([{THERE: 0}, {ELSEWHERE: 0}, ONE], 0.0, 0.3),  # All in different places
        ([{THERE: 0}, {THERE: 0}, ONE], 0.3, 1.0),  # Two of three elsewhere
        ([{THERE: 0}, {THERE: 0}, {THERE: 0}], 0.9, 1.0),
        ([{}, {}, {}], 0.0, 0.2),  # Nobody found anything: it is a hard query
        ([None, {THERE: 0}, {THERE: 0}], 0.3, 1.0),
        ([None, None, None], 0.0, 0.2),  # No call succeeded
    ],
)
def test_doubt_grows_with_the_models_that_agree(
    answers: list[Objects | None], least: float, most: float
) -> None:
    doubts = label_doubts(votes_of(ONE, ONE, *answers, single=True))
    assert least <= doubts.wrong[ODD] <= most


def test_a_failed_call_is_not_an_empty_answer() -> None:
    failed = label_doubts(votes_of(TWO, TWO, TWO, None, None, single=False))
    empty = label_doubts(votes_of(TWO, TWO, TWO, {}, {}, single=False))
    assert failed.wrong[ODD] < empty.wrong[ODD]


@pytest.mark.parametrize("label", [THERE, WIDE])
def test_models_of_one_family_say_less_together(label: tuple[float, float, float, float]) -> None:
    votes = votes_of(ONE, {label: 0}, ONE, ONE, single=True)
    apart, alike = label_doubts(votes), label_doubts(votes, FAMILY_CORRELATION)
    assert alike.wrong[ODD] < apart.wrong[ODD]


def test_one_model_estimates_nothing() -> None:
    """It cannot tell its errors from those of the labels."""
    doubts = label_doubts(votes_of(ONE, {THERE: 0}, ONE, single=True))
    assert set(doubts.shares.values()) == {0.02}
    assert int(doubts.wrong.argmax()) == ODD


def test_one_model_strays_in_one_box_of_twenty() -> None:
    """However far its box is from the label, it may be the model's fault."""
    doubts = label_doubts(votes_of(ONE, {WIDE: 0}, ONE, single=True))
    odds = doubts.claims[LabelFault.BOX].odds[ODD]
    assert odds == pytest.approx(0.02 / 0.98 * 20, rel=0.1)


@pytest.mark.parametrize("models", [1, 3])
def test_labels_that_nobody_judged_are_as_doubtful_as_any(models: int) -> None:
    """No call of a row succeeded: its odds are those of the share of labels with the fault."""
    of_one_size: Objects = {HERE: 0, (100.0, 10.0, 140.0, 50.0): 0}
    votes = votes_of(of_one_size, of_one_size, *[None] * models, single=False)
    doubts = label_doubts(votes)
    claims = doubts.claims[LabelFault.SUPERFLUOUS]
    share = doubts.shares[LabelFault.SUPERFLUOUS]
    assert claims.odds[claims.row == ODD] == pytest.approx(share / (1 - share), rel=0.01)


def found_of_real(rows: int, models: int, recall: float, correlation: float) -> Flags:
    """Draw who finds real objects, whose ease all models share in part."""
    chance = np.random.default_rng(0)
    shared = np.sqrt(correlation) * chance.normal(size=(rows, 1))
    ease = shared + np.sqrt(1 - correlation) * chance.normal(size=(rows, models))
    found: Flags = ease < NormalDist().inv_cdf(recall)
    return found


def with_boxes_on_nothing(found: Flags, share: float) -> Votes:
    """Return votes on a real object a row; a share of rows have a box that no model answers."""
    rows, models = found.shape
    on_nothing = np.arange(round(share * rows))
    boxes = np.concatenate([np.tile(HERE, (rows, 1)), np.tile(THERE, (len(on_nothing), 1))])
    detected = np.concatenate([found, np.zeros((len(on_nothing), models), bool)])
    labelled = LabelledObjects(
        row=np.concatenate([np.arange(rows), on_nothing]),
        boxes=boxes,
        classes=np.zeros(len(boxes), int),
        answered=np.where(detected[:, :, None], boxes[:, None], np.nan),
        named=np.where(detected, 0, UNNAMED),
    )
    none = OtherObjects(
        np.zeros(0, int), np.zeros((0, 4)), np.zeros(0, int), np.zeros((0, models), bool)
    )
    return Votes(np.ones((rows, models), bool), labelled, none, single=False)


@pytest.mark.parametrize("models", [3, 4, 5])
@pytest.mark.parametrize("recall", [0.9, 0.97])
def test_boxes_on_nothing_are_as_doubtful_however_many(models: int, recall: float) -> None:
    """The labels that nobody answers do not vouch for each other."""
    found = found_of_real(1000, models, recall, correlation=0.0)
    found[~found.any(1), 0] = True  # No real object is missed by all
    doubted = []
    for share in (0.01, 0.03, 0.1, 0.3):
        doubts = label_doubts(with_boxes_on_nothing(found, share))
        doubted.append(doubts.on_nothing[: round(share * 1000)].min())
        assert doubts.on_nothing[round(share * 1000) :].max() < 0.5
    assert doubted == pytest.approx([doubted[0]] * 4, abs=0.05)
    assert doubted[0] > LIKELY


@pytest.mark.parametrize("models", [2, 3, 5])
@pytest.mark.parametrize("correlation", [0.0, 0.7])
def test_what_no_model_finds_contradicts_no_label(models: int, correlation: float) -> None:
    """Boxes on nothing and objects that are hard for all look alike: they have their own order."""
    found = found_of_real(1000, models, 0.85, correlation)
    without, with_some = (
        label_doubts(with_boxes_on_nothing(found, share)) for share in (0.0, 0.15)
    )
    assert without.contradicted.max() < 0.05
    assert with_some.contradicted == pytest.approx(without.contradicted, abs=0.02)


@pytest.mark.parametrize("models", [2, 3, 5])
def test_boxes_of_which_more_models_say_nothing_come_first(models: int) -> None:
    found = found_of_real(1000, models, 0.9, correlation=0.3)
    doubts = label_doubts(with_boxes_on_nothing(found, 0.0))
    means = []
    for count in np.unique(found.sum(1)):
        means.append(doubts.on_nothing[found.sum(1) == count].mean())
    assert means == sorted(means, reverse=True)


def test_small_boxes_that_nobody_found_come_last() -> None:
    """Models miss small objects more often."""
    found = found_of_real(200, 3, 0.95, correlation=0.0)
    votes = with_boxes_on_nothing(found, 0.1)
    sides = np.linspace(4, 40, 20)
    boxes = votes.labelled.boxes.copy()
    boxes[200:, 2:] = boxes[200:, :2] + sides[:, None]
    doubts = label_doubts(replace(votes, labelled=replace(votes.labelled, boxes=boxes)))
    assert doubts.on_nothing[:20].tolist() == sorted(doubts.on_nothing[:20])


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_boxes_on_nothing_lower_no_recall(share: float) -> None:
    found = found_of_real(5000, 3, 0.9, correlation=0.0)
    doubts = label_doubts(with_boxes_on_nothing(found, share))
    assert doubts.recall == pytest.approx([0.9] * 3, abs=0.02)


def test_failed_calls_are_no_misses() -> None:
    found = found_of_real(2000, 3, 0.9, correlation=0.0)
    votes = with_boxes_on_nothing(found, 0.0)
    spoke = np.random.default_rng(1).random(found.shape) < 0.6
    named = np.where(spoke, votes.labelled.named, UNNAMED)
    labelled = replace(votes.labelled, named=named)
    doubts = label_doubts(replace(votes, spoke=spoke, labelled=labelled))
    assert doubts.recall == pytest.approx([0.9] * 3, abs=0.03)
    assert doubts.on_nothing[~spoke.any(1)].max() < 0.1


@pytest.mark.parametrize("share", [0.05, 0.15, 0.3])
def test_lacking_objects_are_doubtful_however_many(share: float) -> None:
    """Two models box them; what their wrong boxes have in common is not learnt from these."""
    rows, objects, wrong_boxes = 400, 8, 80
    chance = np.random.default_rng(1)
    votes = with_boxes_on_nothing(found_of_real(rows * objects, 2, 0.9, correlation=0.0), 0.0)
    labelled = replace(votes.labelled, row=np.repeat(np.arange(rows), objects))
    lacking = np.arange(round(share * rows))
    row = np.concatenate([lacking, chance.integers(0, rows, wrong_boxes)])
    alone = np.eye(2, dtype=bool)[chance.integers(0, 2, wrong_boxes)]
    seen = np.concatenate([np.ones((len(lacking), 2), bool), alone])
    order = np.argsort(row, kind="stable")
    others = OtherObjects(
        row[order], np.tile(THERE, (len(row), 1)), np.zeros(len(row), int), seen[order]
    )
    spoke = np.ones((rows, 2), bool)
    doubts = label_doubts(Votes(spoke, labelled, others, single=False))
    assert doubts.wrong[: len(lacking)].min() > 0.5


def test_the_share_of_ambiguous_labels_is_not_estimated() -> None:
    """Else it grows from pass to pass, as hard objects look like two right answers."""
    doubts = label_doubts(votes_of(ONE, ONE, ONE, {THERE: 0}, ONE, {THERE: 0}, single=True))
    assert doubts.shares[LabelFault.AMBIGUOUS] == 0.02
    assert doubts.shares[LabelFault.BOX] != 0.02


def test_no_answer_and_no_label_are_no_doubt() -> None:
    nothing = [boxes_of({})]
    doubts = label_doubts(count_votes(nothing, [nothing, nothing], single=False))
    assert doubts.wrong.tolist() == [0.0]
    assert doubts.claims[LabelFault.MISSING].odds.tolist() == []


@settings(max_examples=25, deadline=None)
@given(st.permutations(range(4)), st.floats(0.1, 50))
def test_order_of_models_and_size_of_pixels_do_not_matter(order: list[int], scale: float) -> None:
    answers = [ONE, {THERE: 0}, {THERE: 0}, {ELSEWHERE: 0}]
    votes = votes_of(ONE, ONE, *answers, single=True)
    labelled = votes.labelled
    others = votes.others
    turned = replace(
        votes,
        spoke=votes.spoke[:, order],
        labelled=replace(
            labelled,
            boxes=labelled.boxes * scale,
            answered=labelled.answered[:, order] * scale,
            named=labelled.named[:, order],
        ),
        others=replace(others, boxes=others.boxes * scale, seen=others.seen[:, order]),
    )
    # Sides count as at least one pixel, so boxes may not shrink to less.
    np.testing.assert_allclose(label_doubts(turned).wrong, label_doubts(votes).wrong, rtol=1e-6)


# --- calibration ----------------------------------------------------------------------------------


def test_calibration_keeps_the_order_and_learns_the_rate() -> None:
    chance = np.random.default_rng(3)
    p = chance.uniform(0.01, 0.99, 400)
    wrong = chance.random(400) < p**2
    fit = calibrate_doubts(p[:200], wrong[:200])
    after = fit.apply(p)
    assert (np.argsort(after, kind="stable") == np.argsort(p, kind="stable")).all()
    assert abs(after[200:].mean() - wrong[200:].mean()) < abs(p[200:].mean() - wrong[200:].mean())


@pytest.mark.parametrize("verdict", [True, False])
def test_reviews_of_one_kind_do_not_make_certain(verdict: bool) -> None:
    fit = calibrate_doubts(np.full(50, 0.6), np.full(50, verdict))
    (after,) = fit.apply(np.array([0.6])).tolist()
    assert 0.01 < after < 0.999
    assert (after > 0.6) is verdict


@pytest.mark.parametrize("certain", [0.0, 1.0])
def test_certain_doubts_calibrate_like_nearly_certain_ones(certain: float) -> None:
    """Rounding makes them certain: where models agree the odds are beyond all digits."""
    p = np.array([certain] * 30 + [0.5] * 20)
    wrong = np.arange(50) % 2 == 0
    fit = calibrate_doubts(p, wrong)
    assert fit == calibrate_doubts(np.clip(p, 1e-4, 1 - 1e-4), wrong)
    (after,) = fit.apply(np.array([certain])).tolist()
    assert min(certain, 0.5) < after < max(certain, 0.5)


def average_precision(scores: NDArray[np.float64], wrong: Flags) -> float:
    hits = wrong[np.argsort(-scores, kind="stable")]
    return float((np.cumsum(hits) / np.arange(1, len(hits) + 1))[hits].mean())


# --- the study ------------------------------------------------------------------------------------


@pytest.fixture
def study(shared: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the study's script with what it measures with."""
    folder = shared / "studies" / "audit"
    if not folder.is_dir():
        pytest.skip(f"no {folder}")
    monkeypatch.syspath_prepend(str(folder))
    return importlib.import_module("measure")


@pytest.mark.shared
@pytest.mark.parametrize(
    ("table", "least"),
    [
        ("refcoco_test", -0.01),
        pytest.param("pascal", -0.05, marks=pytest.mark.slow),
        pytest.param("pascal_multilabel", -0.05, marks=pytest.mark.slow),
    ],
)
def test_the_order_is_about_that_of_the_study(
    study: Any, shared: Path, table: str, least: float
) -> None:
    """The study put boxes on nothing below all others, as objects that are hard to find."""
    cell = {**study.BASE, "table": table, "K": 3}
    _, labels, answers, _, single = study.world(shared / "findit-subsets", cell, seed=0)
    wrong = np.array([bool(label.kind) for label in labels])
    given_labels = [(label.boxes, label.classes) for label in labels]
    expected = study.au.audit(given_labels, answers, single)
    votes = count_votes(
        [classed_boxes(*label) for label in given_labels],
        [[classed_boxes(*answer) for answer in of_model] for of_model in answers],
        single,
    )
    order = label_doubts(votes).order
    places = np.empty(len(order))
    places[order] = np.arange(len(order))
    assert average_precision(-places, wrong) - average_precision(expected.wrong, wrong) > least


@pytest.mark.shared
def test_calibration_is_that_of_the_study(study: Any) -> None:
    chance = np.random.default_rng(1)
    p = chance.random(300)
    wrong = chance.random(300) < p / 2
    expected = study.recalibrated(p, wrong, np.arange(50))
    np.testing.assert_allclose(calibrate_doubts(p[:50], wrong[:50]).apply(p), expected)
