"""IoU and hits as the authors' evaluator has them: in 32-bit floats, and strictly above.

FindIt's own figures count an IoU of exactly the threshold as a hit, and lie in their own module:
the two must not meet.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]

THRESHOLDS = (0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)
"""IoU above which a box is a hit."""

# An IoU of "0.6" is float32(0.6), which is more than the 64-bit 0.6 and would pass it.
_LIMITS = np.array(THRESHOLDS, dtype=np.float32)

_LEAST_UNION = np.float32(1e-6)


def iou(truths: Array, predictions: Array) -> Array:
    """IoU of ``truths[i]`` with ``predictions[i]``.

    Sides are signed and nothing is added to them, so that boxes without area, with swapped corners
    or with values that are not finite come out at 0 or NaN.  A union is at least 1e-6, which
    makes tiny boxes miss: those of normalised coordinates.

    Args:
        truths: (N, 4) corners x1, y1, x2, y2 in pixels.
        predictions: (N, 4) likewise.

    Returns:
        (N,) values, NaN where the boxes have none.

    Raises:
        ValueError: the arrays are not both (N, 4).
    """
    if truths.shape != predictions.shape or truths.ndim != 2 or truths.shape[1] != 4:
        raise ValueError(f"{truths.shape} and {predictions.shape} should both be (N, 4)")
    l1, t1, r1, b1 = truths.astype(np.float32, copy=False).T
    l2, t2, r2, b2 = predictions.astype(np.float32, copy=False).T
    zero = np.float32(0)
    with np.errstate(all="ignore"):
        width = np.maximum(np.minimum(r1, r2) - np.maximum(l1, l2), zero)
        height = np.maximum(np.minimum(b1, b2) - np.maximum(t1, t2), zero)
        both = width * height
        # The order of the sum decides about the last bit, and that about hits.
        union = ((r1 - l1) * (b1 - t1) + (r2 - l2) * (b2 - t2)) - both
        values: Array = both / np.maximum(union, _LEAST_UNION)
    return values


def hits(ious: Array) -> NDArray[np.bool_]:
    """(N, 10) which :data:`THRESHOLDS` each IoU is above; NaN is above none."""
    found: NDArray[np.bool_] = ious.astype(np.float32, copy=False)[:, None] > _LIMITS
    return found
