"""Conventions that are read together have the likelihoods that each has alone."""

from __future__ import annotations

import numpy as np
import pytest
from few_fast import every_nth_fast

from vlmeval_findit.coords import (
    AnsweredQuery,
    RunArrays,
    conventions,
    run_arrays,
    screen_conventions,
)


def made_run(seed: int, queries: int, boxes: int) -> RunArrays:
    """Make a run over images of random sizes; each first box is on an object."""
    rng = np.random.default_rng(seed)
    answered = []
    for number in range(queries):
        width, height = rng.integers(50, 2000, 2).tolist()
        corners = rng.random((boxes + 2, 2, 2)).cumsum(1) / 2 * (width, height)
        places = corners.reshape(-1, 4)
        truths = places[:2].tolist()
        numbers = [places[0].round().tolist(), *places[2:].round(1).tolist()][:boxes]
        answered.append(AnsweredQuery(width, height, f"{number % 3}", truths, numbers))
    return run_arrays(answered)


@pytest.mark.parametrize(
    ("queries", "boxes"),
    every_nth_fast([(1, 0), (5, 0), (1, 1), (6, 2), (9, 7), (50, 2), (120, 5)], 3),
)
@pytest.mark.parametrize("width", [0.03, 0.2])
def test_conventions_read_together_are_as_likely_as_alone(
    queries: int, boxes: int, width: float
) -> None:
    arrays = made_run(queries + boxes, queries, boxes)
    known = conventions()
    # As callers do: all, and any others in any order, of spaces with one order or several
    rng = np.random.default_rng(queries)
    for chosen in (known, [known[i] for i in rng.permutation(len(known))[:60]], known[:1]):
        together = screen_conventions(arrays, chosen, width)
        for i in range(0, len(chosen), 7):
            alone = screen_conventions(arrays, chosen[i : i + 1], width)
            for all_rows, row in zip(together, alone, strict=True):
                np.testing.assert_array_equal(all_rows[i], row[0])
