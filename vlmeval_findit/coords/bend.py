"""Whether boxes are bent: no scale and offset of an axis maps them onto their objects."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .conventions import Convention, Floats
from .likelihood import iou, placed
from .run_arrays import RunArrays

_NEAR = 0.5  # IoU with the object that a box means
_FEWEST = 60  # Edges
# A parabola that is 1 % of the image away from its best line, in the middle of the image
_BENT = 0.08
_SURE = 4.0  # Standard errors; of 120 axes of right setups the most is 2.2


def bent_axes(arrays: RunArrays, convention: Convention) -> tuple[str, ...]:
    """Name the axes ("across", "down") on which errors of edges follow a curve of their places.

    Edges at the outermost numbers or places do not count: they may be cut off.
    """
    corners = placed(arrays, convention).corners[:, arrays.pair_box]
    numbers = (convention.order.corners @ arrays.numbers)[:, arrays.pair_box]
    truths = arrays.truths[:, arrays.pair_truth]
    near = iou(corners, truths) >= _NEAR
    weights = np.tile(arrays.weights[arrays.pair_box][near], 2)
    bent = []
    for axis, name in enumerate(("across", "down")):
        low = truths[axis, near]
        high = truths[axis + 2, near]
        places = np.concatenate([low, high])
        sides = np.concatenate([low - high, high - low])
        edges = _both_ends(corners[:, near], axis)
        inside = _is_inside(edges) & _is_inside(_both_ends(numbers[:, near], axis))
        errors = edges - places
        if _is_curved(places[inside], sides[inside], errors[inside], weights[inside]):
            bent.append(name)
    return tuple(bent)


def _both_ends(corners: Floats, axis: int) -> Floats:
    return np.concatenate([corners[axis], corners[axis + 2]])


def _is_inside(values: Floats) -> NDArray[np.bool_]:
    """Return whether values are neither the least nor the greatest."""
    if not values.size:
        return np.zeros(0, bool)
    return np.asarray((values > values.min()) & (values < values.max()))


def _is_curved(places: Floats, sides: Floats, errors: Floats, weights: Floats) -> bool:
    """Return whether errors follow a parabola of the places, and surely so.

    Models draw boxes too large or too small, so errors may follow the sides, too.
    """
    if len(places) < _FEWEST:
        return False
    terms = np.stack([places**2, places, np.ones_like(places), sides])
    products = np.linalg.pinv(np.einsum("ik,jk,k->ij", terms, terms, weights))
    found = products @ np.einsum("ik,k,k->i", terms, errors, weights)
    left = np.average((errors - found @ terms) ** 2, weights=weights)
    # Both edges of a box err together: they are one piece of evidence.
    error = np.sqrt(2 * left * products[0, 0])
    return bool(abs(found[0]) >= max(_BENT, _SURE * error))
