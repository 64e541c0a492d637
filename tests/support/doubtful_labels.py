"""A small table with known label errors, and runs of models that answer the truth."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from scored_runs import CallResult, World, grid, query

from vlmeval_findit.benchmarks.findit import FindItQuery
from vlmeval_findit.boxes import BoxToWrite, Corners, write
from vlmeval_findit.data import load_dataset

ROWS = 60
OBJECTS = "FindIt_Pascal_xyxy_json"
CLASSES = "FindIt_Pascal_multilabel_xyxy_json"
EXPRESSIONS = "FindIt_RefCOCO_xyxy_json"

Boxes = tuple[Corners, ...]


@dataclass(frozen=True)
class Right:
    """The right answer to a row."""

    boxes: Boxes
    labels: tuple[str, ...] = ()


def expressions(world: World, wrong: Mapping[int, Corners]) -> dict[int, Right]:
    """Write a table of one object a row; return the right answers. ``wrong`` are labels by row."""
    right = {at: Right(pair(at)[:1]) for at in range(ROWS)}
    rows = [
        query(at, f"{at}.jpg", f"object {at}", (wrong.get(at, answer.boxes[0]),))
        for at, answer in right.items()
    ]
    world.table("RefCOCO", rows)
    return right


def objects(world: World, wrong: Mapping[int, Boxes]) -> dict[int, Right]:
    """Write a table of two objects a row; return the right answers. ``wrong`` are labels by row."""
    right = {at: Right(pair(at)) for at in range(ROWS)}
    rows = [
        query(at, f"{at}.jpg", "cat", wrong.get(at, answer.boxes)) for at, answer in right.items()
    ]
    world.table("Pascal", rows)
    return right


def classes(world: World, wrong: Mapping[int, tuple[str, str]]) -> dict[int, Right]:
    """Write a table of a cat and a dog a row; return the right answers. ``wrong`` are by row."""
    right = {at: Right(pair(at), ("cat", "dog")) for at in range(ROWS)}
    rows = []
    for at, answer in right.items():
        row = query(at, f"{at}.jpg", "cat, dog", answer.boxes)
        labels = wrong.get(at, answer.labels)
        rows.append(replace(row, truth=replace(row.truth, labels=labels)))
    world.table("Pascal_multilabel", rows)
    return right


def pair(at: int) -> Boxes:
    """Return the boxes of the two objects of a row; expressions are about the first."""
    x = float(at % 40)
    return ((10 + x, 10.0, 50 + x, 50.0), (110 + x, 20.0, 150 + x, 90.0))


def answering(
    name: str,
    right: Mapping[int, Right],
    noise: float = 0.5,
    change: Callable[[int, Right], Right] = lambda at, answer: answer,
) -> CallResult:
    """Return a model that answers the truth, as ``change`` has it, within some pixels."""
    reply = load_dataset(name).variant.reply  # type: ignore[attr-defined]

    def answer(row: FindItQuery, chance: np.random.Generator) -> str:
        said = change(row.index, right[row.index])
        labels = said.labels or ("",) * len(said.boxes)
        boxes = []
        for box, label in zip(said.boxes, labels, strict=True):
            moved = np.array(box) + chance.normal(0, noise, 4)
            boxes.append(BoxToWrite(grid(moved.tolist()), label, 0))
        return write(boxes, reply)

    return answer
