"""The file of the marks that models see best in stage 1 (``leaderboard --best-marks``)."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from ...core.files import write_text_once
from ...core.folders import lmu_data_root
from ...core.formatting import nearest
from ...marks.style import COLOURS, Shape

BY_HAND = "FINDIT_VP_MARK"  # environment variable: the mark of every model, as ``oval-red``
SEED = 0  # for choosing a good mark for each row
HOW_TO_MAKE = "python run_findit.py leaderboard --best-marks RUNS"


class BestMarkError(ValueError):
    """A mark that is unknown."""


@dataclass(frozen=True, slots=True)
class MarkChoice:
    """A mark in its shape's default style."""

    shape: Shape
    colour: str

    @property
    def name(self) -> str:
        """
        >>> MarkChoice(Shape.OVAL, "red").name
        'oval-red'
        """
        return f"{self.shape.value}-{self.colour}"

    @classmethod
    def named(cls, name: str) -> MarkChoice:
        """
        >>> MarkChoice.named("tag-blue").shape
        <Shape.TAG: 'tag'>

        Raises:
            BestMarkError: an unknown shape or colour.
        """
        shape, _, colour = name.partition("-")
        shapes = {item.value: item for item in Shape}
        if shape not in shapes or colour not in COLOURS:
            known = [f"{shape}-{other}" for shape in shapes for other in COLOURS]
            raise BestMarkError(f"{name!r} is no mark (shape-colour){nearest(name, known)}")
        return cls(shapes[shape], colour)

    def drawn_for(self, index: int) -> MarkChoice:
        """Return itself: every row is asked by it."""
        return self


@dataclass(frozen=True, slots=True)
class GoodMarks:
    """Shapes and colours that all models see well."""

    shapes: tuple[Shape, ...]
    colours: tuple[str, ...]

    def drawn_for(self, index: int) -> MarkChoice:
        """Choose a row's mark at random, the same for every model and every set of rows."""
        lot = Random(f"{SEED}:{index}")
        return MarkChoice(lot.choice(self.shapes), lot.choice(self.colours))

    @property
    def name(self) -> str:
        """
        >>> GoodMarks((Shape.BOX, Shape.OVAL), ("red",)).name
        'box oval, red'
        """
        return f"{' '.join(shape.value for shape in self.shapes)}, {' '.join(self.colours)}"

    @classmethod
    def named(cls, name: str) -> GoodMarks:
        """Parse a :attr:`name`; raise ValueError for others."""
        shapes, _, colours = name.partition(", ")
        return cls(tuple(map(Shape, shapes.split())), tuple(colours.split()))


# Without a file: the shapes above the mean of the paper's models, which reports nothing by colour.
PUBLISHED_GOOD = GoodMarks((Shape.BOX, Shape.OVAL, Shape.TAG), tuple(COLOURS))


def path() -> Path:
    """Return where the file is."""
    return lmu_data_root() / "VPBench_best_marks.json"


def write(values: Mapping[str, Any]) -> Path:
    """Write the file atomically."""
    where = path()
    write_text_once(where, json.dumps(values, indent=1, ensure_ascii=False) + "\n")
    return where


def read() -> tuple[dict[str, MarkChoice], GoodMarks] | None:
    """Read each model's best mark and the good marks; None where there is no file."""
    where = path()
    if not where.is_file():
        return None
    result = json.loads(where.read_text(encoding="utf-8"))
    models = {name: MarkChoice.named(row["best"]) for name, row in result["models"].items()}
    good_marks = result["good"]
    shapes = tuple(map(Shape, good_marks["shapes"]))
    return models, GoodMarks(shapes, tuple(good_marks["colours"]))


def best_of(model: str, dataset: str) -> tuple[MarkChoice, str]:
    """Return a model's best mark and its source: the environment variable, else the file.

    The message names ``dataset``, which needs it.

    Raises:
        BestMarkError: no such mark, or the file is missing or has none for this model.
    """
    if named := os.environ.get(BY_HAND):
        try:
            return MarkChoice.named(named), BY_HAND
        except BestMarkError as error:
            raise BestMarkError(f"{BY_HAND}: {error}") from None
    result = read()
    if result is not None and model in result[0]:
        return result[0][model], path().name
    why = f"there is no {path()}"
    if result is not None:
        why = f"{path()} has none of it{nearest(model, list(result[0]))}"
    raise BestMarkError(
        f"{dataset}: the best mark of {model!r} is not known: {why}. Run stage 1 first, "
        "then find the best marks:\n"
        f"  python run_findit.py --data VPBench_Stage1 --model {model}\n"
        f"  {HOW_TO_MAKE}\n"
        f"or choose a mark yourself (the run records it): {BY_HAND}=oval-red"
    )


def good() -> tuple[GoodMarks, str]:
    """Return the marks that all models see well, and their source."""
    result = read()
    return (PUBLISHED_GOOD, "published") if result is None else (result[1], path().name)
