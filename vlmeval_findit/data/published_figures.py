"""Published figures: who measured what, in which conditions, and how sure we are of it.

They are facts in ``published_figures.yaml``.  Every condition is a row of one of our tables (prompt
sets, formats, coordinate spaces, bounds, programs that serve), or unknown; nothing is filled in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml

from ..benchmarks.findit import (
    BENCHMARK_DATASETS,
    FAMILY_PROMPTS,
    FindItVariant,
    box_prompts,
    parse_format,
)
from ..boxes import SPACE_KINDS
from ..core import (
    Checked,
    Config,
    Count,
    Finite,
    MisplacedError,
    Name,
    Number,
    Text,
    TextError,
    Whole,
    YesNo,
    not_there,
    parse_yaml,
    read_text,
    row_of,
    suggestion,
    validate,
)
from ..models import find_model
from ..serving import PROGRAMS

# Stands for a condition that the publication does not state
NOT_STATED: Literal["unknown"] = "unknown"


# Prompt sets: those of families, and ours
_PROMPTS: Mapping[str, object] = {**FAMILY_PROMPTS, box_prompts.PROMPTS_NAME: box_prompts.message}


def _format(name: str) -> str:
    if name != NOT_STATED:
        _, why = parse_format(name, BENCHMARK_DATASETS["RefCOCO"], FindItVariant)
        if why:
            raise ValueError(f"{name!r}: {why}")
    return name


@dataclass(frozen=True, slots=True)
class ImageBounds(Config):
    """How large images were shown; None: not told."""

    min_pixels: Count | None = None
    max_pixels: Count | None = None
    patches: Count | None = None  # Most tiles


@dataclass(frozen=True, slots=True)
class PublishedDecoding(Config):
    """How replies were sampled; None: not told."""

    temperature: Number | None = None
    top_p: Number | None = None
    top_k: Count | None = None
    repetition_penalty: Number | None = None
    presence_penalty: Finite | None = None
    seed: Whole | None = None
    max_tokens: Count | None = None
    thinking: YesNo | None = None


def told_values(of: ImageBounds | PublishedDecoding | Literal["unknown"]) -> dict[str, Any]:
    """Return what is told of bounds or of decoding, by name.

    >>> told_values(PublishedDecoding(temperature=0, max_tokens=100)), told_values("unknown")
    ({'temperature': 0, 'max_tokens': 100}, {})
    """
    if of == NOT_STATED:
        return {}
    named = {each.name: getattr(of, each.name) for each in fields(of)}
    return {name: value for name, value in named.items() if value is not None}


def values_in_words(values: Mapping[str, Any]) -> str:
    """Return settings in words.

    >>> values_in_words({"temperature": 0.7, "thinking": False})
    'temperature 0.7, no thinking'
    """
    words = []
    for name, value in values.items():
        if isinstance(value, bool):
            words.append(name if value else f"no {name}")
        else:
            words.append(f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}")
    return ", ".join(words)


@dataclass(frozen=True, slots=True)
class Conditions(Config):
    """In which conditions a figure was measured, as far as it is known."""

    prompt: Annotated[Name, row_of(_PROMPTS, "prompt set", NOT_STATED)] = NOT_STATED
    format: Annotated[Name, Checked(_format)] = NOT_STATED  # Of the variant
    space: Annotated[Name, row_of(SPACE_KINDS, "coordinate space", NOT_STATED)] = NOT_STATED
    bounds: ImageBounds | Literal["unknown"] = NOT_STATED
    decoding: PublishedDecoding | Literal["unknown"] = NOT_STATED
    engine: Annotated[Name, row_of(PROGRAMS, "program", NOT_STATED)] = NOT_STATED
    iou: Literal[">=", ">", "unknown"] = NOT_STATED  # A hit has this IoU, or more than it
    note: Text = ""  # What our tables have no row for

    @property
    def unknown(self) -> tuple[str, ...]:
        """The names of what is not known.

        >>> Conditions(prompt="qwen3-vl-1", space="grid1000").unknown
        ('format', 'bounds', 'decoding', 'engine', 'iou')
        """
        return tuple(each.name for each in fields(self) if getattr(self, each.name) == NOT_STATED)


Metric = Literal[
    "acc@0.5",
    "acc@0.75",
    "acc@0.9",
    "mean of acc@0.5 to acc@0.95",
    "mAP",
    "F1@0.5",
    "mIoU",
    "adherence",
    "point in box",
    "points in mask",
]


@dataclass(frozen=True, slots=True)
class FigureSet(Config):
    """What a figure is of."""

    metric: Metric
    datasets: tuple[Name, ...] = ()  # Ours; of several it is the mean; none: not told which
    n: Count | None = None  # Expressions or items


# How we know a figure: we read it, or a table whose cells were damaged, or another who quotes it
Sure = Literal["read", "abstract", "cells run together", "cells re-aligned", "quoted"]


@dataclass(frozen=True, slots=True)
class PublishedFigure:
    """One value, in percent (of mAP: times 100)."""

    model: str
    set_name: str
    set: FigureSet
    value: float
    n: int | None  # Expressions or items that were asked; None: not told
    conditions: Conditions
    measured_by: str
    source: str
    sure: Sure
    date: str = ""
    note: str = ""
    attempt: bool = False  # A repetition that was told in a thread, mostly of a setup that is wrong

    @property
    def unknown(self) -> tuple[str, ...]:
        """The names of the conditions that are not known, as far as its metric has them."""
        return tuple(name for name in self.conditions.unknown if self.has_iou or name != "iou")

    @property
    def told(self) -> str:
        """Its conditions in words, as far as they are known, but for format and note.

        >>> published_figures()[0].told
        'prompt qwen2.5-vl-1, space smart_resize'
        """
        conditions = self.conditions
        rows = {
            "prompt": conditions.prompt,
            "space": conditions.space,
            "engine": conditions.engine,
        }
        known = {name: value for name, value in rows.items() if value != NOT_STATED}
        known |= told_values(conditions.bounds)
        known |= told_values(conditions.decoding)
        words = [values_in_words(known)] if known else []
        if self.has_iou and conditions.iou != NOT_STATED:
            words.append(f"IoU {conditions.iou} the threshold")
        return ", ".join(words)

    @property
    def has_iou(self) -> bool:
        """Whether its metric counts a hit from an IoU on."""
        return self.set.metric.startswith(("acc@", "F1@"))

    @property
    def row(self) -> str:
        """The row of the model table that has the model; "" if none has."""
        row = find_model(self.model)
        return row.name if row is not None else ""


# --- the file -------------------------------------------------------------------------------------

_PERCENT = "a number from 0 to 100"


def _percent(value: float) -> float:
    if not 0 <= value <= 100:
        raise ValueError(f"{value} should be {_PERCENT}")
    return value


@dataclass(frozen=True, slots=True)
class _Figures(Config):
    model: Name
    conditions: Name
    values: Mapping[str, Annotated[Finite, Checked(_percent)]]
    note: Text = ""
    n: Count | None = None


@dataclass(frozen=True, slots=True)
class _Report(Config):
    source: Name
    by: Name
    sure: Sure
    figures: tuple[_Figures, ...]
    date: Text = ""
    attempt: YesNo = False


@dataclass(frozen=True, slots=True)
class _FiguresFile(Config):
    sets: Mapping[str, FigureSet]
    conditions: Mapping[str, Conditions]
    reports: tuple[_Report, ...]


def figures_of(values: Any) -> Sequence[PublishedFigure]:
    """Return the figures of the file's values, or raise a MisplacedError."""
    file = validate(_FiguresFile, values)
    return [
        figure
        for at, report in enumerate(file.reports)
        for figure in _of_report(file, report, ("reports", at, "figures"))
    ]


def _of_report(
    file: _FiguresFile, report: _Report, at: tuple[str | int, ...]
) -> Iterable[PublishedFigure]:
    for number, row in enumerate(report.figures):
        if row.conditions not in file.conditions:
            near = suggestion(row.conditions, file.conditions)
            raise MisplacedError(f"unknown conditions {row.conditions!r}{near}", *at, number)
        for name, value in row.values.items():
            if name not in file.sets:
                near = suggestion(name, file.sets)
                raise MisplacedError(f"unknown set {name!r}{near}", *at, number, "values")
            yield PublishedFigure(
                model=row.model,
                set_name=name,
                set=file.sets[name],
                value=value,
                n=row.n or file.sets[name].n,
                conditions=file.conditions[row.conditions],
                measured_by=report.by,
                source=report.source,
                sure=report.sure,
                date=report.date,
                note=row.note,
                attempt=report.attempt,
            )


@cache
def published_figures() -> Sequence[PublishedFigure]:
    """Return all figures, in the order of the file.

    >>> figure = published_figures()[0]
    >>> figure.model, figure.set_name, figure.value, figure.conditions.prompt, figure.n
    ('Qwen2.5-VL-3B', 'RefCOCO val', 89.1, 'qwen2.5-vl-1', 10834)
    """
    text = Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return tuple(figures_of(yaml.load(text, loader)))


# --- a user's file --------------------------------------------------------------------------------


class FiguresFileError(ValueError):
    """A file of figures that cannot be read; the message names file and key."""


def read_figures(path: Path) -> Sequence[PublishedFigure]:
    """Return the figures of a user's file, which has the form of ours.

    Raises:
        FiguresFileError: it cannot be read, is of another form, or has no figure.
    """
    try:
        values, _ = parse_yaml(read_text(path))
        figures = figures_of(values or {})
    except MisplacedError as error:
        raise FiguresFileError(f"{path}: {error.below()}") from None
    except TextError as error:
        raise FiguresFileError(error.message_for(path)) from None
    except FileNotFoundError:
        why = not_there(path, ": run_findit.py figures --template writes one")
        raise FiguresFileError(f"{path}: the file {why}") from None
    except OSError as error:
        raise FiguresFileError(f"{path}: {error.strerror or error}") from None
    if not figures:
        raise FiguresFileError(
            f"{path}: no report has a value: type what was published, as values: {{Pascal: 51.2}}"
        )
    return tuple(figures)


def figures_template() -> str:
    """Return a file for the figures of FindIt's paper, with their conditions and without values."""
    return Path(__file__).with_name("figures_template.yaml").read_text(encoding="utf-8")


def sources_of(figures: Iterable[PublishedFigure]) -> Mapping[str, int]:
    """Count the figures of each source, in their order.

    >>> next(iter(sources_of(published_figures())))
    'arXiv 2502.13923, tables 6 and 9'
    """
    return Counter(figure.source for figure in figures)
