"""Choose the pairs of runs that a page compares.

A pair is two runs of one dataset, so they have the same queries. For each dataset a page has the
reported runs of the best models, their other formats against the reported format, and the pairs of
``--compare``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

from ..analysis import is_favoured, scores_by_index
from ..core import suggestion
from ..leaderboard import Board, formats_by_model
from ..scoring import Run

MODELS = 20  # The best models of a board: only these are paired

COMPARE_FLAG = "--compare"  # Flag of ``report`` that names the pairs


class ModelInFormat(NamedTuple):
    """A side of a pair: a model in a format; "" is its reported format."""

    model: str
    format: str


@dataclass(frozen=True, slots=True)
class Pair:
    """Two runs of a dataset."""

    dataset: str
    left: Run
    right: Run


Key = tuple[str, str]


def page_key(run: Run) -> Key:
    """Return the key of a run on a page: a board has each model and variant once.

    A variant that is scored with reviews is another variant.
    """
    return run.model, run.dataset_name


# --- --compare ------------------------------------------------------------------------------------


def sides_of(names: Sequence[str], boards: Sequence[Board]) -> tuple[ModelInFormat, ...]:
    """Resolve ``MODEL`` or ``MODEL=FORMAT``.

    Args:
        names: two, or none.
        boards: of the pages; at least one must have both sides on a dataset.

    Raises:
        ValueError: no run has the name, or no dataset has both.
    """
    runs = [row.run for board in boards for row in board.runs]
    sides = tuple(_side_of(entry, runs) for entry in names)
    if sides and not any(first_pairs(board, sides) for board in boards):
        what = " ".join(names)
        raise ValueError(
            f"{COMPARE_FLAG} {what}: no dataset has two runs of these that can be compared"
        )
    return sides


def _side_of(entry: str, runs: Sequence[Run]) -> ModelInFormat:
    models = {run.model for run in runs}
    if entry in models:
        return ModelInFormat(entry, "")
    if "=" not in entry:
        raise ValueError(
            f"{COMPARE_FLAG} {entry}: unknown model{suggestion(entry, sorted(models))}"
        )
    ((model, format_),) = formats_by_model([entry], runs, COMPARE_FLAG).items()
    return ModelInFormat(model, format_)


# --- the pairs of a page --------------------------------------------------------------------------


def choose_pairs(board: Board, sides: Sequence[ModelInFormat] = ()) -> list[Pair]:
    """Return the pairs of a board, each once: those of ``sides``, then models, then formats."""
    unique: dict[frozenset[Key], Pair] = {}
    for pair in (*first_pairs(board, sides), *_of_models(board), *_of_formats(board)):
        unique.setdefault(frozenset(map(page_key, (pair.left, pair.right))), pair)
    return list(unique.values())


def first_pairs(board: Board, sides: Sequence[ModelInFormat]) -> list[Pair]:
    """Return the pairs that ``sides`` name, one for each dataset."""
    pairs = []
    for dataset in board.datasets if sides else ():
        by_format = {(run.model, run.variant.format): run for run in dataset.runs}
        reported = {(model, ""): board.run(model, dataset.name) for model in board.models}
        left, right = ((reported | by_format).get(side) for side in sides)
        if left is None or right is None or left is right:
            continue
        if _can_be_compared(left, right):
            pairs.append(Pair(dataset.name, left, right))
    return pairs


def _of_models(board: Board) -> Iterator[Pair]:
    for dataset in board.datasets:
        runs = (board.run(model, dataset.name) for model in board.models[:MODELS])
        for left, right in combinations(filter(None, runs), 2):
            if _can_be_compared(left, right):
                yield Pair(dataset.name, left, right)


def _of_formats(board: Board) -> Iterator[Pair]:
    for dataset in board.datasets:
        for run in dataset.runs:
            reported = board.run(run.model, dataset.name)
            if run.model not in board.models[:MODELS] or reported is None or run is reported:
                continue
            if _can_be_compared(reported, run):
                yield Pair(dataset.name, reported, run)


def _can_be_compared(left: Run, right: Run) -> bool:
    """Return whether reviews favour neither run: that would make the difference."""
    return is_favoured(left) == is_favoured(right)


def pairs_note(board: Board) -> str:
    """Return a sentence about the pairs that are left out."""
    left_out = []
    if len(board.models) > MODELS:
        left_out.append(f"models below the first {MODELS}")
    several = any(len(dataset.runs) > len(board.models) for dataset in board.datasets)
    if several and len(board.models) > 1:
        left_out.append("two models in formats that they are not reported in")
    if not left_out:
        return ""
    return f"Not among the pairs: {', '.join(left_out)}; {COMPARE_FLAG} adds two of them."


def most_different(pair: Pair, most: int) -> list[int]:
    """Return the indices of at most ``most`` queries on which a pair differs most."""
    left = scores_by_index(pair.left)
    right = scores_by_index(pair.right)
    apart = {index: abs(left[index] - right[index]) for index in left if index in right}
    order = sorted((index for index in apart if apart[index]), key=lambda at: (-apart[at], at))
    return order[:most]
