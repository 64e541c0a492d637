"""The file of the marks that models see best in stage 1 (``leaderboard --best-marks``)."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product, starmap
from pathlib import Path
from random import Random
from typing import Annotated, Any, NamedTuple

from ...core import (
    Checked,
    Config,
    Expected,
    MisplacedError,
    Name,
    TextError,
    parse_json,
    quoted_value,
    read_text,
    row_of,
    suggestion,
    validate,
    write_text_once,
)
from ...marks import COLOURS, Shape
from ...protocol import VP_MARK, Known, choose_value, say_once
from ...storage import lmu_data_root, make_lmu_data_root

BY_HAND = VP_MARK.variable  # the mark of models of which the file has none
SEED = 0  # for choosing a good mark for each row


class BestMarkError(ValueError):
    """A mark that is unknown."""


class MarkChoice(NamedTuple):
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
    def from_name(cls, name: str) -> MarkChoice:
        """
        >>> MarkChoice.from_name("tag-blue").shape
        <Shape.TAG: 'tag'>

        Raises:
            BestMarkError: an unknown shape or colour.
        """
        known = {mark.name: mark for mark in starmap(cls, product(Shape, COLOURS))}
        if name not in known:
            near = suggestion(name, known)
            raise BestMarkError(f"unknown mark {name!r}, write it as in {BY_HAND}=oval-red{near}")
        return known[name]

    def drawn_for(self, index: int) -> MarkChoice:
        """Return itself: every row is asked by it."""
        return self


class GoodMarks(NamedTuple):
    """Shapes and colours that all models see well."""

    shapes: tuple[Shape, ...]
    colours: tuple[str, ...]

    @property
    def name(self) -> str:
        """
        >>> GoodMarks((Shape.BOX, Shape.OVAL), ("red",)).name
        'box oval, red'
        """
        return f"{' '.join(shape.value for shape in self.shapes)}, {' '.join(self.colours)}"

    @classmethod
    def from_name(cls, name: str) -> GoodMarks:
        """Parse a :attr:`name`; raise ValueError for others."""
        shapes, _, colours = name.partition(", ")
        return cls(tuple(map(Shape, shapes.split())), tuple(colours.split()))

    def drawn_for(self, index: int) -> MarkChoice:
        """Choose a row's mark at random, the same for every model and every set of rows."""
        lot = Random(f"{SEED}:{index}")
        return MarkChoice(lot.choice(self.shapes), lot.choice(self.colours))


# Without a file: the shapes above the mean of the paper's models, in every colour. The paper finds
# the contrasting colour best for most models; it is not drawn here, because the colour that the
# released code calls so is nearly always red, so that no published figure is of another one.
PUBLISHED_GOOD = GoodMarks((Shape.BOX, Shape.OVAL, Shape.TAG), tuple(COLOURS))


SHAPES = tuple(shape.value for shape in Shape)
_AT_LEAST_ONE = Expected("a list of at least one", min_length=1)


def _mark_called(name: Any) -> MarkChoice:
    if not isinstance(name, str):
        raise ValueError(f"{quoted_value(name)} should be a mark, as 'oval-red'")
    return MarkChoice.from_name(name)


def marks_path() -> Path:
    """Return where the file is."""
    return lmu_data_root() / "VPBench_best_marks.json"


def write_marks(values: Mapping[str, Any]) -> Path:
    """Write the file atomically."""
    make_lmu_data_root()
    write_text_once(marks_path(), json.dumps(values, indent=1, ensure_ascii=False) + "\n")
    return marks_path()


@dataclass(frozen=True, slots=True, kw_only=True)
class MarksOfModel(Config):
    """What the file says of a model: its best mark, and for people what decided it."""

    best: Annotated[MarkChoice, Checked(_mark_called, before=True)]
    shapes: Any = None
    colours: Any = None
    runs: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MarksOfAll(Config):
    """The marks that all models see well."""

    shapes: Annotated[tuple[Annotated[Name, row_of(SHAPES, "shape")], ...], _AT_LEAST_ONE]
    colours: Annotated[tuple[Annotated[Name, row_of(COLOURS, "colour")], ...], _AT_LEAST_ONE]


@dataclass(frozen=True, slots=True, kw_only=True)
class MarksFile(Config):
    """The content of the file; what is not read is for people."""

    models: dict[Name, MarksOfModel]
    good: MarksOfAll
    rule: Any = None
    at_least: Any = None
    vlmeval_findit: Any = None


def read_marks() -> tuple[dict[str, MarkChoice], GoodMarks] | None:
    """Read each model's best mark and the good marks; None where there is no file.

    Raises BestMarkError, naming file and key, if it cannot be used.
    """
    path = marks_path()
    if not path.is_file():
        return None
    try:
        file = validate(MarksFile, parse_json(read_text(path)))
    except MisplacedError as error:
        raise BestMarkError(f"{path}: {error.below()}") from None
    except TextError as error:
        raise BestMarkError(error.message_for(path)) from None
    models = {name: row.best for name, row in file.models.items()}
    return models, GoodMarks(tuple(map(Shape, file.good.shapes)), file.good.colours)


def best_mark(model: str, dataset: str) -> tuple[MarkChoice, str]:
    """Return a model's best mark and its source: the file, else the environment variable.

    Raises:
        BestMarkError: the mark is unknown, or the file is missing or has none for this model; the
            message names ``dataset``, which needs it.
    """
    named = os.environ.get(BY_HAND)
    by_hand = MarkChoice.from_name(named).name if named else None
    stored = read_marks()
    models = {} if stored is None else stored[0]
    known = Known(models[model].name, marks_path().name) if model in models else None
    choice = choose_value(VP_MARK, model, known=known, variable=by_hand)
    say_once(choice.remark)
    if choice.value is not None:
        return MarkChoice.from_name(choice.value), choice.source
    why = (
        f"{marks_path()} has none of it{suggestion(model, models)}"
        if models
        else f"there is no {marks_path()}"
    )
    raise BestMarkError(
        f"{dataset}: the best mark of {model!r} is not known: {why}. Run stage 1 first, "
        "then find the best marks:\n"
        f"  python run_findit.py run --data VPBench_Stage1 --model {model}\n"
        "  python run_findit.py leaderboard --best-marks RUNS\n"
        f"or choose a mark yourself (the run records it): {BY_HAND}=oval-red"
    )


def good_marks() -> tuple[GoodMarks, str]:
    """Return the marks that all models see well, and their source."""
    result = read_marks()
    return (PUBLISHED_GOOD, "published") if result is None else (result[1], marks_path().name)
