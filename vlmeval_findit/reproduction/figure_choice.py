"""Which published figure a model is compared with: the one whose conditions are known best."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from typing import get_args

from ..benchmarks.findit import BENCHMARK_DATASETS
from ..core import suggestion
from ..data import PublishedFigure, Sure, published_figures
from ..models import ModelEntry, find_model, local_names, same_checkpoint
from .figure_metric import FIGURE_METRICS, figure_metric


class FigureChoiceError(ValueError):
    """A model has no figure that can be reproduced; the message says which there are."""


# FindIt's own paper, whose tables could not be read in any public copy
OWN_PAPER = "arXiv 2606.04282"


def choose_figure(
    entry: ModelEntry, set_name: str = "", own: Sequence[PublishedFigure] = ()
) -> PublishedFigure:
    """Choose the figure of a model, or of a model on a set, whose conditions are known best.

    Those that depend on the order of equal boxes (mAP) come last. Of equal ones what the authors
    measured goes before what others did, then one dataset before a mean, then what is surest, then
    the latest, then the first of the table.

    Args:
        entry: the model, whose name or checkpoint the figure has.
        set_name: a set as figures name it, or a dataset of ours ("": any).
        own: figures of the user's file; with one of the model and set, no other is taken.

    Raises:
        FigureChoiceError: no figure is known, or its metric or its datasets are not known here.
    """
    figures = figures_of_model(entry, own)
    if set_name:
        figures = _figures_of_set(figures, set_name)
    figures = [figure for figure in figures if figure in own] or figures
    reasons = {figure: _why_not(figure) for figure in figures}
    possible = [figure for figure, why in reasons.items() if not why]
    if not possible:
        raise FigureChoiceError(_why_none(entry, reasons))
    by_date = sorted(possible, key=lambda figure: figure.date, reverse=True)
    return min(by_date, key=_preference)


def figures_of_model(
    entry: ModelEntry, own: Sequence[PublishedFigure] = ()
) -> Sequence[PublishedFigure]:
    """Return the figures of a model, the user's first; a FigureChoiceError if none."""
    figures = [figure for figure in (*own, *published_figures()) if not figure.attempt]
    names = _names_of(entry)
    ours = [figure for figure in figures if _plain(figure.model) in names]
    if not ours:
        raise FigureChoiceError(_unknown_model(entry, figures))
    return ours


def _names_of(entry: ModelEntry) -> Collection[str]:
    """Return what a model may be called: as typed, as its checkpoint, as a server calls it."""
    names = [entry.name, entry.checkpoint or "", entry.served or ""]
    _, identifier = local_names().get(entry.name, (None, ""))
    is_here = not entry.base_url and entry.provider is None
    # At a server a name without a size is of a family, and not of the size that is usual here.
    is_one = is_here or entry.name in same_checkpoint(identifier)
    # Figures of models that can think are of their thinking.
    if identifier and is_one and not entry.name.endswith("-nothink"):
        names.append(identifier)
    ours = [other for name in names if name for other in same_checkpoint(name)]
    return {_plain(name) for name in (*names, *ours) if name}


def _plain(name: str) -> str:
    """Return a model's name without its maker, and without the mark of a converted checkpoint."""
    return name.rstrip("/").rpartition("/")[2].casefold().replace(" ", "-").removesuffix("-hf")


def _unknown_model(entry: ModelEntry, figures: Sequence[PublishedFigure]) -> str:
    known = list(dict.fromkeys(figure.model for figure in figures))
    row = find_model(entry.like or entry.name)
    of_row = [name for name in known if row is not None and find_model(name) is row]
    there = suggestion(entry.name, known)
    if row is not None and of_row:
        there = f". Of {row.name} there are: {', '.join(of_row)}"
    elif not there:
        families = dict.fromkeys(figure.row or figure.model for figure in figures)
        there = f". There are figures of {', '.join(families)}"
    is_elsewhere = entry.base_url or entry.provider is not None
    yours = "SERVED" if is_elsewhere else "CHECKPOINT"
    return (
        f"no published figure of {entry.name!r} is known{there}\nTo compare a model of yours with "
        f"a figure, type the name that the figure has: python run_findit.py reproduce NAME={yours}"
        f"\n{_HOW_TO_ADD}"
    )


_HOW_TO_ADD = (
    "To add figures, type those of a paper into a file (python run_findit.py figures --template "
    "FILE) and name it after --figures; whose are known: python run_findit.py figures"
)


# --- sets -----------------------------------------------------------------------------------------


def _figures_of_set(figures: Sequence[PublishedFigure], set_name: str) -> Sequence[PublishedFigure]:
    wanted = _plain_set(set_name)
    chosen = [figure for figure in figures if wanted in _names_of_set(figure)]
    if chosen:
        return chosen
    model = figures[0].model
    sets = list(dict.fromkeys(figure.set_name for figure in figures))
    by_plain = {_plain_set(name): name for name in sets}
    near = suggestion(wanted, by_plain)
    for plain, name in by_plain.items():
        near = near.replace(f" {plain}?", f" {name}?")
    own_paper = ""
    if _plain_set(set_name) in {_plain_set(name) for name in ("FindIt", *BENCHMARK_DATASETS)}:
        own_paper = f"Of FindIt's own paper ({OWN_PAPER}) no figure is known. "
    raise FigureChoiceError(
        f"--set {set_name}: no figure of {model} on it is known{near if '?' in near else ''}\n"
        f"There are: {', '.join(sets)}\n{own_paper}{_HOW_TO_ADD}"
    )


def _names_of_set(figure: PublishedFigure) -> Collection[str]:
    names = [figure.set_name]
    if len(figure.set.datasets) == 1:
        names += figure.set.datasets
    return {_plain_set(name) for name in names}


def _plain_set(name: str) -> str:
    """Return a set's name as it is compared.

    >>> _plain_set("RefCOCO+ testA"), _plain_set("FindIt_RefCOCOplusFull_testA")
    ('refcoco+testa', 'refcoco+testa')
    """
    text = name.casefold().removeprefix("findit_").replace("plus", "+").replace("full_", "_")
    return re.sub(r"[^a-z0-9+@.]", "", text)


# --- which is best --------------------------------------------------------------------------------


def _why_not(figure: PublishedFigure) -> str:
    """Say why a figure cannot be measured here; "" if it can."""
    metric = figure.set.metric
    if metric not in FIGURE_METRICS:
        return f"{metric} is not measured here"
    if not figure.set.datasets:
        return "which datasets it is of is not told"
    return ""


def _why_none(entry: ModelEntry, reasons: Mapping[PublishedFigure, str]) -> str:
    """Say why no figure of some can be reproduced, and which other ones can be."""
    told = dict.fromkeys(f"{figure.set_name}: {why}" for figure, why in reasons.items())
    lines = [f"no figure of {entry.name} can be reproduced: {'; '.join(told)}"]
    others = [figure for figure in figures_of_model(entry) if not _why_not(figure)]
    sets = dict.fromkeys(figure.set_name for figure in others)
    if sets:
        lines.append(f"Type one of these after --set: {', '.join(map(shlex.quote, sets))}")
    else:
        lines.append(f"Metrics that are measured here: {', '.join(FIGURE_METRICS)}")
    return "\n".join(lines)


def _preference(figure: PublishedFigure) -> tuple[bool, int, bool, int, int]:
    by_order = bool(figure_metric(figure).by_rows)
    by_others = "authors" not in figure.measured_by
    sure = get_args(Sure).index(figure.sure)
    return by_order, len(figure.unknown), by_others, len(figure.set.datasets), sure
