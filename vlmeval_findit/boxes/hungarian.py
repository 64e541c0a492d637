"""Minimum-cost assignment, with a table of all costs or, for very many boxes, without it.

Nearly all pairs of 20,000 boxes x 2,000 objects do not overlap: :func:`assign_sparse` takes a few
rows at a time and stores only the cells that a minimum-cost assignment can need.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.intp]
Costs = NDArray[np.float32]

CELLS_AT_ONCE = 1 << 18  # Cells whose costs are computed at a time


class _Cells(NamedTuple):
    """Some cells of a table of costs."""

    rows: NDArray[np.int32]
    columns: NDArray[np.int32]
    gains: NDArray[np.float64]  # By how much less than the row's dearest cell each costs


def assign(cost: Costs) -> tuple[Sequence[int], Sequence[int]]:
    """Return rows and columns of a minimum-cost assignment (Hungarian) of (predictions, truths)."""
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(cost)
    return rows.tolist(), columns.tolist()


def assign_sparse(
    left: Indices, right: Indices, cost: Callable[[Indices, Indices], Costs]
) -> tuple[Indices, Indices]:
    """Return the pairs of a minimum-cost assignment of maximum size.

    ``left`` (N,) and ``right`` (M,) are not empty; ``cost`` of pairs is (K,) from -1 to 1. Ties may
    be broken differently than by :func:`assign`. At most min(N, M)² cells are stored.
    """
    if len(left) > len(right):
        right, left = assign_sparse(right, left, lambda some, of: cost(of, some))
        return left, right
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import min_weight_full_bipartite_matching

    rows = len(left)
    columns = len(right)
    cells = list(_cells(left, right, cost))
    # Column `columns + i` is row i's alone: it stands for any column that is left over.
    every_row = np.arange(rows, dtype=np.int32)
    row = np.concatenate([*(part.rows for part in cells), every_row])
    column = np.concatenate([*(part.columns for part in cells), columns + every_row])
    # scipy ignores cells of weight 0; no gain is above 2.
    weight = np.concatenate([*(3 - part.gains for part in cells), np.full(rows, 3.0)])
    table = csr_array((weight, (row, column)), shape=(rows, columns + rows))
    assigned = min_weight_full_bipartite_matching(table)[1]
    unassigned = assigned >= columns
    spare = np.setdiff1d(np.arange(columns), assigned)
    assigned[unassigned] = spare[: unassigned.sum()]
    return left, right[assigned]


def _cells(
    left: Indices, right: Indices, cost: Callable[[Indices, Indices], Costs]
) -> Iterator[_Cells]:
    """Yield the needed cells.

    There are no more rows than columns. A row's dearest cells are not needed, as every row is
    assigned, nor more than its ``rows`` cheapest, as the other rows cannot take them all.
    """
    rows = len(left)
    columns = len(right)
    part_size = max(1, CELLS_AT_ONCE // columns)
    for first in range(0, rows, part_size):
        some = left[first : first + part_size]
        table = cost(np.repeat(some, columns), np.tile(right, len(some))).reshape(-1, columns)
        dearest = table.max(axis=1, keepdims=True)
        needed = table < dearest
        if (needed.sum(axis=1) > rows).any():
            cheapest = np.zeros_like(needed)
            places = np.argpartition(table, rows - 1, axis=1)[:, :rows]
            np.put_along_axis(cheapest, places, True, axis=1)
            needed &= cheapest
        row, column = np.nonzero(needed)
        gain = dearest[row, 0].astype(np.float64) - table[row, column]
        yield _Cells((first + row).astype(np.int32), column.astype(np.int32), gain)
