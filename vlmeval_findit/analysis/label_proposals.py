"""Correct a label by what models answered: the proposal that a person judges."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from ..boxes.matching import plain_label
from ..boxes.representation import Corners
from ..protocol.reviews import Answer
from ..statistics.label_doubts import (
    FAULTS,
    UNKNOWN_CLASS,
    LabelDoubts,
    LabelFault,
    Votes,
    strongest_claim,
)
from .label_votes import ClassedBoxes, classed_boxes


class ClassNumbers:
    """Numbers the classes that labels have; a class that only models name is unknown."""

    def __init__(self, labels: Iterable[Sequence[str]]) -> None:
        self.names: list[str] = []
        self._numbers: dict[str, int] = {}
        for of_row in labels:
            for name in of_row:
                plain = plain_label(name)
                if plain not in self._numbers:
                    self._numbers[plain] = len(self.names)
                    self.names.append(name)

    def numbers(self, labels: Sequence[str], boxes: int) -> list[int]:
        """Return the class of each of so many boxes; 0 where queries have no classes."""
        if not self.names:
            return [0] * boxes
        if not labels:
            return [UNKNOWN_CLASS] * boxes
        return [self._numbers.get(plain_label(label), UNKNOWN_CLASS) for label in labels]

    def boxes_of(self, answer: Answer) -> ClassedBoxes:
        return classed_boxes(answer.boxes, self.numbers(answer.labels, len(answer.boxes)))

    def name(self, number: int) -> str:
        """Return the name of a class; "" where queries have no classes."""
        return self.names[number] if self.names else ""


class Proposal(NamedTuple):
    """What models say instead of a label."""

    fault: LabelFault
    answer: Answer  # The corrected label; of an ambiguous one the other right answer
    agreeing: int  # Models whose answer fits the correction


class _Claim(NamedTuple):
    """A claim about a row: its fault, and its place among the claims of that fault."""

    fault: LabelFault
    place: int


class Proposals:
    """Corrects the labels of a table, given the votes about them and how doubtful they are."""

    def __init__(
        self, labels: Sequence[Answer], classes: ClassNumbers, votes: Votes, doubts: LabelDoubts
    ) -> None:
        self.labels = labels
        self.classes = classes
        self.votes = votes
        self.doubts = doubts
        self.strongest = {fault: strongest_claim(doubts, fault) for fault in FAULTS}
        counts = [len(label.boxes) for label in labels]
        self.first_object = np.cumsum(counts) - counts  # (n,) place of each row's first object

    def of_row(self, place: int) -> Proposal | None:
        """Return what models say instead of the label at a place; None: they do not contradict."""
        fault = FAULTS[int(self.doubts.by_fault[place].argmax())]
        claim = _Claim(fault, int(self.strongest[fault][place]))
        if claim.place < 0:
            return None
        return Proposal(fault, self._answer(place, claim), self._agreeing(place, claim))

    def _agreeing(self, place: int, claim: _Claim) -> int:
        """Count the models whose answer to a row fits a claim."""
        labelled = self.votes.labelled
        at = claim.place
        if claim.fault.of_other_object:
            return int(self.votes.others.seen[at].sum())
        detected = labelled.detected[at]
        if claim.fault is LabelFault.SUPERFLUOUS:
            return int((self.votes.spoke[place] & ~detected).sum())
        if claim.fault is LabelFault.WRONG_CLASS:
            return int((labelled.named[at] == self.doubts.rival[at]).sum())
        to_label = np.abs(labelled.answered[at] - labelled.boxes[at]).sum(1)
        to_middle = np.abs(labelled.answered[at] - self.doubts.middle[at]).sum(1)
        return int((detected & (to_middle < to_label)).sum())

    def _answer(self, place: int, claim: _Claim) -> Answer:
        """Correct a label by a claim, and that of a set by whatever else is likely."""
        label = self.labels[place]
        if self.votes.single:
            box = self.doubts.middle[claim.place]
            if claim.fault.of_other_object:
                box = self.votes.others.boxes[claim.place]
            return Answer((_corners(box),), label.labels)
        names = label.labels or ("",) * len(label.boxes)
        objects = list(zip(label.boxes, names, strict=True))
        corrected = []
        for at, (box, name) in enumerate(objects, start=int(self.first_object[place])):
            match self._fault_of_object(at, claim):
                case LabelFault.SUPERFLUOUS:
                    continue
                case LabelFault.BOX:
                    corrected.append((_corners(self.doubts.middle[at]), name))
                case LabelFault.WRONG_CLASS:
                    corrected.append((box, self.classes.name(int(self.doubts.rival[at]))))
                case _:
                    corrected.append((box, name))
        for at in self._missing_objects(place, claim):
            other = self.votes.others
            corrected.append((_corners(other.boxes[at]), self.classes.name(int(other.classes[at]))))
        boxes = tuple(box for box, _ in corrected)
        return Answer(boxes, tuple(name for _, name in corrected) if self.classes.names else ())

    def _fault_of_object(self, at: int, claim: _Claim) -> LabelFault | None:
        """Return what is to be corrected of a labelled object: by the claim, or likelier than not.

        Of several claims about an object only the likeliest can be true.
        """
        if not claim.fault.of_other_object and claim.place == at:
            return claim.fault
        faults = (LabelFault.SUPERFLUOUS, LabelFault.WRONG_CLASS, LabelFault.BOX)
        odds = {fault: self.doubts.claims[fault].odds[at] for fault in faults}
        likeliest = max(faults, key=odds.__getitem__)
        return likeliest if odds[likeliest] > 1 else None

    def _missing_objects(self, place: int, claim: _Claim) -> list[int]:
        """Return the places of objects that a label lacks: by the claim, or as most models say.

        A label with a box on a wrong object lacks one, too: neither need be likely by itself.
        """
        others = self.votes.others
        first, end = np.searchsorted(others.row, [place, place + 1]).tolist()
        half = self.votes.spoke[place].sum() / 2
        return [
            at
            for at in range(first, end)
            if others.seen[at].sum() > half or claim == (LabelFault.MISSING, at)
        ]


def _corners(box: Sequence[float]) -> Corners:
    """Return a box in tenths of a pixel: models' medians are no more exact."""
    x1, y1, x2, y2 = (round(float(number), 1) for number in box)
    return (x1, y1, x2, y2)
