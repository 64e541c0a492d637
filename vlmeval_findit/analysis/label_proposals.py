"""Correct a label by what models answered: the proposal that a person judges."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..boxes import Corners, plain_label
from ..protocol import Answer, Array
from ..statistics import (
    UNKNOWN_CLASS,
    UNNAMED,
    Flags,
    Indices,
    LabelDoubts,
    LabelFault,
    Votes,
)
from .label_votes import ClassedBoxes, classed_boxes

_NO_CLAIM = 1e-6  # Odds up to which nothing is proposed


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


class LabelProposal(NamedTuple):
    """What models say instead of a label."""

    fault: LabelFault
    answer: Answer  # The corrected label; of an ambiguous one the other right answer
    agreeing: int  # Models whose answer fits the correction


# What is claimed of an object travels with it. A place would not do: those of labelled objects and
# of others count different lists, and one looks like the other.


@dataclass(frozen=True, slots=True, eq=False)
class _LabelledObject:
    """An object of a label, and what K models say about it."""

    box: Corners  # The label's
    name: str  # Of its class; "" where queries have no classes
    odds: Mapping[LabelFault, float]  # Of the claims about it
    answered: Array  # (K, 4) box of each model; NaN: it did not find the object
    named: Indices  # (K,) class that each model named; UNNAMED: it did not find the object
    middle: Array  # (4,) median of the models' boxes
    rival: int  # Class that most models named instead

    def agreeing(self, fault: LabelFault, spoke: Flags) -> int:
        """Count the models whose answer fits a claim; ``spoke`` (K,): that answered at all."""
        detected = self.named != UNNAMED
        if fault is LabelFault.SUPERFLUOUS:
            return int((spoke & ~detected).sum())
        if fault is LabelFault.WRONG_CLASS:
            return int((self.named == self.rival).sum())
        to_label = np.abs(self.answered - self.box).sum(1)
        to_middle = np.abs(self.answered - self.middle).sum(1)
        return int((detected & (to_middle < to_label)).sum())


@dataclass(frozen=True, slots=True, eq=False)
class _OtherObject:
    """An object that models answered and a label lacks."""

    box: Corners
    name: str  # Of its class; "" where queries have no classes
    odds: Mapping[LabelFault, float]  # Of the claims about it
    seen: int  # Models that have it


class _Claim(NamedTuple):
    """The likeliest claim about a label."""

    fault: LabelFault
    about: _LabelledObject | _OtherObject


class LabelProposals:
    """Corrects the labels of a table, given the votes about them and how doubtful they are."""

    def __init__(
        self, labels: Sequence[Answer], classes: ClassNumbers, votes: Votes, doubts: LabelDoubts
    ) -> None:
        self.labels = labels
        self.classes = classes
        self.votes = votes
        self.doubts = doubts

    def of_row(self, place: int) -> LabelProposal | None:
        """Return what models say instead of the label at a place; None: they do not contradict."""
        labelled = self._labelled_objects(place)
        others = self._other_objects(place)
        fault = self.doubts.likeliest_fault(place)
        claim = _likeliest_claim(fault, others if fault.of_other_object else labelled)
        if claim is None:
            return None
        spoke = self.votes.spoke[place]
        match claim.about:
            case _OtherObject() as other:
                agreeing = other.seen
            case _LabelledObject() as doubted:
                agreeing = doubted.agreeing(fault, spoke)
        if self.votes.single:
            answer = _one_object(claim, self.labels[place])
        else:
            answer = self._set(claim, labelled, others, most=int(spoke.sum()) / 2)
        return LabelProposal(fault, answer, agreeing)

    def _labelled_objects(self, place: int) -> list[_LabelledObject]:
        """Return the objects of a label."""
        label = self.labels[place]
        names = label.labels or ("",) * len(label.boxes)
        labelled = self.votes.labelled
        first = int(np.searchsorted(labelled.row, place))
        return [
            _LabelledObject(
                box=box,
                name=name,
                odds=self._odds(at, of_other_object=False),
                answered=labelled.answered[at],
                named=labelled.named[at],
                middle=self.doubts.middle[at],
                rival=int(self.doubts.rival[at]),
            )
            for at, (box, name) in enumerate(zip(label.boxes, names, strict=True), first)
        ]

    def _other_objects(self, place: int) -> list[_OtherObject]:
        """Return the objects that models answered and a label lacks."""
        others = self.votes.others
        first, end = np.searchsorted(others.row, [place, place + 1]).tolist()
        return [
            _OtherObject(
                box=_corners(others.boxes[at]),
                name=self.classes.name(int(others.classes[at])),
                odds=self._odds(at, of_other_object=True),
                seen=int(others.seen[at].sum()),
            )
            for at in range(first, end)
        ]

    def _odds(self, at: int, of_other_object: bool) -> dict[LabelFault, float]:
        """Return the odds of the claims about a labelled object, or another, at its place."""
        return {
            fault: float(claims.odds[at])
            for fault, claims in self.doubts.claims.items()
            if fault.of_other_object == of_other_object
        }

    def _set(
        self,
        claim: _Claim,
        labelled: Sequence[_LabelledObject],
        others: Sequence[_OtherObject],
        most: float,
    ) -> Answer:
        """Correct the label of a set by a claim, and by whatever else is likely.

        An object is missing by the claim, or if more than ``most`` models have it: a label with a
        box on a wrong object lacks one, too, and neither need be likely by itself.
        """
        corrected = []
        for each in labelled:
            match _fault_of_object(each, claim):
                case LabelFault.SUPERFLUOUS:
                    continue
                case LabelFault.BOX:
                    corrected.append((_corners(each.middle), each.name))
                case LabelFault.WRONG_CLASS:
                    corrected.append((each.box, self.classes.name(each.rival)))
                case _:
                    corrected.append((each.box, each.name))
        for other in others:
            if other is claim.about or other.seen > most:
                corrected.append((other.box, other.name))
        boxes = tuple(box for box, _ in corrected)
        return Answer(boxes, tuple(name for _, name in corrected) if self.classes.names else ())


def _likeliest_claim(
    fault: LabelFault, objects: Sequence[_LabelledObject | _OtherObject]
) -> _Claim | None:
    """Return the claim of a fault with the highest odds; None where there is none worth a word."""
    about = max(objects, key=lambda each: each.odds[fault], default=None)
    if about is None or about.odds[fault] <= _NO_CLAIM:
        return None
    return _Claim(fault, about)


def _one_object(claim: _Claim, label: Answer) -> Answer:
    """Correct the label of a query that asks for one object."""
    match claim.about:
        case _OtherObject() as other:
            box = other.box
        case _LabelledObject() as doubted:
            box = _corners(doubted.middle)
    return Answer((box,), label.labels)


def _fault_of_object(labelled: _LabelledObject, claim: _Claim) -> LabelFault | None:
    """Return what is to be corrected of a labelled object: by the claim, or likelier than not.

    Of several claims about an object only the likeliest can be true.
    """
    if claim.about is labelled:
        return claim.fault
    likeliest = max(labelled.odds, key=labelled.odds.__getitem__)
    return likeliest if labelled.odds[likeliest] > 1 else None


def _corners(box: Array) -> Corners:
    """Return a box (4,) in tenths of a pixel: models' medians are no more exact."""
    x1, y1, x2, y2 = (round(float(number), 1) for number in box)
    return (x1, y1, x2, y2)
