"""Which difference two runs' images can show, and how many images a difference needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from ..scoring import Run
from ..statistics import (
    ALPHA,
    BestOf,
    Estimate,
    FamilyOfTests,
    Interval,
    Pilot,
    Sized,
    images_needed,
    mean_of_estimates,
    pilot_of,
    smallest_difference,
)
from .run_statistics import estimate_run, is_same_run
from .scored_tables import load_scored_dataset


@dataclass(frozen=True, slots=True)
class Detectable:
    """What can be shown of two runs on a dataset, or of their means; None: nothing can."""

    dataset: str
    images: int  # That both runs count; 0: too few, or one run
    shown: Sized | None  # Smallest difference in points, by these images
    needed: Sized | None  # Number of images that the points in question need
    queries: int | None = None  # Of the whole table, where more than were asked
    shown_by_all: Sized | None = None  # Smallest difference by the whole table


def detectable_differences(
    pairs: Sequence[tuple[Run, Run]], points: float, choices: Sequence[BestOf | None]
) -> list[Detectable]:
    """Return what two models' runs can show on each dataset, and before it for their mean.

    It is about the headline, failed calls as misses.

    Args:
        pairs: of two models, as :func:`.compare_runs` takes them.
        points: the difference in question.
        choices: how each pair is tested.
    """
    metric = pairs[0][0].benchmark.headline_counting_failures
    sides = []
    for at in range(2):
        sides.append([estimate_run(pair[at], (metric,)) for pair in pairs])
    found = []
    if len(pairs) > 1 and not all(is_same_run(*pair) for pair in pairs):
        choice = max(filter(None, choices), key=lambda each: each.count, default=None)
        means = mean_of_estimates(sides[0]), mean_of_estimates(sides[1])
        found.append(_detectable(f"mean of {len(pairs)}", means, points, choice))
    for pair, left, right, choice in zip(pairs, *sides, choices, strict=True):
        if is_same_run(*pair):
            found.append(Detectable(pair[0].board_dataset, 0, None, None))
        else:
            queries = _queries_of_table(pair[0])
            found.append(
                _detectable(
                    pair[0].board_dataset, (left, right), points, choice, len(pair[0].rows), queries
                )
            )
    return found


def _detectable(
    name: str,
    estimates: tuple[Estimate, Estimate],
    points: float,
    choice: BestOf | None,
    asked: int = 0,
    queries: int = 0,
) -> Detectable:
    """Return what two estimates can show, of so many queries of a table that has ``queries``."""
    pilot = pilot_of(*estimates, estimates[0].metrics[0].name)
    if pilot is None:
        return Detectable(name, 0, None, None)
    p_value = choice.p_value if choice else ALPHA
    shown = smallest_difference(pilot, pilot.images, p_value)
    needed = images_needed(pilot, points, p_value)
    if queries <= asked:
        return Detectable(name, pilot.images, shown, needed)
    return Detectable(
        name, pilot.images, shown, needed, queries, _shown_by(pilot, queries / asked, p_value)
    )


def _shown_by(pilot: Pilot, times: float, p_value: float) -> Sized | None:
    """Return the smallest difference that so many times the pilot's images show."""
    return smallest_difference(pilot, pilot.images * times, p_value)


def _queries_of_table(run: Run) -> int:
    """Return how many queries the table of a run has; 0: it is not here any more."""
    try:
        return len(load_scored_dataset(run).queries)
    except (OSError, ValueError):
        return 0


# --- formats of a search --------------------------------------------------------------------------


def format_pilots(runs: Sequence[Run]) -> list[Pilot]:
    """Return what every pair of a model's formats over the same rows of a dataset tells."""
    by_rows: dict[object, list[Estimate]] = {}
    for run in runs:
        if run.rows:
            metric = run.benchmark.headline_counting_failures
            key = run.model, run.board_dataset, frozenset(run.provenance.rows)
            by_rows.setdefault(key, []).append(estimate_run(run, (metric,)))
    pilots = []
    for estimates in by_rows.values():
        for left, right in combinations(estimates, 2):
            pilots.append(pilot_of(left, right, left.metrics[0].name))
    return [pilot for pilot in pilots if pilot is not None]


def shown_by_search(pilots: Sequence[Pilot], images: int, formats: int) -> Sized | None:
    """Return the difference of two formats that a search over so many images shows.

    It is that of the median pair of formats; its range is that of all pairs. None: some show none.

    Args:
        pilots: of pairs of formats.
        images: that are asked.
        formats: number of them, whose pairs share 5 %.
    """
    p_value = BestOf(formats, family=FamilyOfTests.FORMATS).p_value
    sizes = []
    for pilot in pilots:
        size = smallest_difference(pilot, images, p_value)
        if size is None:
            return None
        sizes.append(size.value)
    sizes.sort()
    return Sized(sizes[len(sizes) // 2], Interval(sizes[0], sizes[-1]))
