"""Corrections of labels by models of any quality: what is proposed is what they answered there."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from few_fast import few_fast
from hypothesis import given, settings
from hypothesis import strategies as st
from random_models import GRID, TABLES, Habits, habits

from vlmeval_findit.analysis import (
    ClassedBoxes,
    ClassNumbers,
    LabelProposal,
    LabelProposals,
    classed_boxes,
    count_votes,
)
from vlmeval_findit.data import load_dataset
from vlmeval_findit.protocol import Answer
from vlmeval_findit.statistics import LabelFault, Votes, label_doubts

MODELS = st.lists(habits(), min_size=2, max_size=12)


class Table:
    """The labels of a shipped table, and the answers of models to its queries."""

    def __init__(self, name: str, models: Sequence[Habits], seed: int) -> None:
        self.queries = list(load_dataset(f"FindIt_{name}_xyxy_json").queries.values())
        self.labels = [Answer(query.truth.boxes, query.truth.labels) for query in self.queries]
        self.classes = ClassNumbers(label.labels for label in self.labels)
        self.answers = [
            self._answers(each, np.random.default_rng([seed, at])) for at, each in enumerate(models)
        ]
        given = [self.classes.boxes_of(label) for label in self.labels]
        single = all(len(label.boxes) == 1 for label in self.labels)
        self.votes: Votes = count_votes(given, self.answers, single)

    def _answers(self, model: Habits, chance: np.random.Generator) -> list[ClassedBoxes | None]:
        return [
            None if chance.random() < model.fails + model.raves else self._answer(at, model, chance)
            for at in range(len(self.queries))
        ]

    def _answer(self, at: int, model: Habits, chance: np.random.Generator) -> ClassedBoxes:
        query = self.queries[at]
        to_pixels = np.array([query.width, query.height] * 2) / GRID
        drawn = model.boxes(query, chance)
        boxes = [(np.array(box) * to_pixels).tolist() for box, _ in drawn]
        labels = [label for _, label in drawn] if query.truth.labels else []
        return classed_boxes(boxes, self.classes.numbers(labels, len(boxes)))

    def proposals(self) -> list[LabelProposal | None]:
        """Return the proposal for each label."""
        doubts = label_doubts(self.votes)
        assert np.isfinite(doubts.wrong).all()
        proposals = LabelProposals(self.labels, self.classes, self.votes, doubts)
        return [proposals.of_row(at) for at in range(len(self.labels))]

    def reach(self, at: int) -> np.ndarray:
        """Return the smallest and largest edges, (2, 4), of the boxes that models answered."""
        given = [of_model[at] for of_model in self.answers]
        boxes = np.concatenate([each.boxes for each in given if each is not None])
        return np.stack([boxes.min(0), boxes.max(0)])


@pytest.mark.parametrize("name", few_fast(TABLES, 1))
@settings(max_examples=12)
@given(models=MODELS, seed=st.integers(0, 99))
def test_proposals_come_from_the_answers_to_their_row(
    name: str, models: list[Habits], seed: int
) -> None:
    table = Table(name, models, seed)
    for at, proposal in enumerate(table.proposals()):
        if proposal is None:
            continue
        label = table.labels[at]
        assert proposal.fault in table.votes.faults
        assert 0 <= proposal.agreeing <= table.votes.spoke[at].sum()
        if proposal.answer.boxes:
            assert bool(proposal.answer.labels) == bool(label.labels)
        if table.votes.single:
            assert len(proposal.answer.boxes) == 1
        for box in set(proposal.answer.boxes) - set(label.boxes):
            low, high = table.reach(at)
            assert (low - 0.1 <= box).all()
            assert (box <= high + 0.1).all()


@pytest.mark.parametrize("models", few_fast([2, 3, 4, 12], 2))
@pytest.mark.parametrize("name", few_fast(TABLES[:2], 1))
def test_guesses_elsewhere_are_more_than_the_labels(name: str, models: int) -> None:
    """Each of many boxes is an object that the label lacks."""
    table = Table(name, [Habits(strays=12)] * models, seed=models)
    assert len(table.votes.others.row) > 2 * len(table.labels)
    elsewhere = (LabelFault.WRONG_OBJECT, LabelFault.AMBIGUOUS)
    proposed = [each for each in table.proposals() if each and each.fault in elsewhere]
    assert proposed
    assert all(each.agreeing for each in proposed)
