"""Models of any quality over the tables that ship, down to one that only guesses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st
from scored_runs import CallResult

from vlmeval_findit.benchmarks.findit import FindItQuery
from vlmeval_findit.boxes import BoxToWrite, Corners, write
from vlmeval_findit.data import load_dataset
from vlmeval_findit.protocol import FAILED_ANSWER

GRID = 1000.0  # Models answer in thousandths of an image.

# One object a query; every object of a class; every object of several classes
TABLES = ("Scenes_mini_refexp", "Scenes_mini_insdet", "Scenes_mini", "Scenes_mini_multilabel")

Boxes = list[tuple[Corners, str]]  # Corners in thousandths, with their labels


@dataclass(frozen=True)
class Habits:
    """How a model answers; shares from 0 to 1."""

    finds: float = 0.0  # Of the objects, in their place
    loose: float = 0.0  # Thousandths by which its boxes of objects are shifted, at most
    strays: int = 0  # Boxes anywhere in a reply, at most
    raves: float = 0.0  # Of the replies, that nobody can read
    fails: float = 0.0  # Of the calls

    def boxes(self, query: FindItQuery, chance: np.random.Generator) -> Boxes:
        """Draw the boxes of a reply."""
        labels = query.truth.labels or ("",) * len(query.truth.boxes)
        to_grid = GRID / np.array([query.width, query.height] * 2)
        boxes: Boxes = []
        for box, label in zip(query.truth.boxes, labels, strict=True):
            if chance.random() < self.finds:
                moved = np.array(box) * to_grid + chance.uniform(0, self.loose or 1e-9)
                boxes.append((tuple(moved.tolist()), label))
        for _ in range(int(chance.integers(0, self.strays + 1))):
            corner = chance.uniform(0, 0.9 * GRID, 2)
            far = corner + chance.uniform(20, 0.3 * GRID, 2)
            boxes.append(((*corner.tolist(), *far.tolist()), str(chance.choice(labels or [""]))))
        return boxes

    def answering(self, name: str, seed: int = 0) -> CallResult:
        """Return a model with these habits, for runs over a dataset."""
        reply = load_dataset(name).variant.reply  # type: ignore[attr-defined]
        chance = np.random.default_rng(seed)

        def answer(query: FindItQuery, _: np.random.Generator) -> str:
            if chance.random() < self.fails:
                return f"{FAILED_ANSWER} via API."
            if chance.random() < self.raves:
                return "There is a lovely scene here."
            return write([BoxToWrite(*box, 0) for box in self.boxes(query, chance)], reply)

        return answer


def habits() -> st.SearchStrategy[Habits]:
    """Draw habits, with the ends of each range often."""
    share = st.sampled_from([0.0, 1.0]) | st.floats(0, 1)
    return st.builds(
        Habits,
        finds=share,
        loose=st.sampled_from([0.0, 30.0, 200.0]),
        strays=st.sampled_from([0, 1, 2, 12]),
        raves=st.sampled_from([0.0, 0.0, 0.3]),
        fails=st.sampled_from([0.0, 0.0, 0.3]),
    )
