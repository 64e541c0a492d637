"""Student's t with an effective number of images, and with datasets of different variance."""

from __future__ import annotations

import numpy as np

from ..protocol import Array, divide

CONFIDENCE_LEVEL = 0.95  # Of intervals


# Imported late: SciPy takes half a second, and most commands need no interval.
def quantile(freedom: Array | float, level: float = CONFIDENCE_LEVEL) -> Array:
    """Return how many standard errors Student's two-sided interval reaches to either side.

    >>> float(quantile(9.0).round(3))
    2.262
    """
    from scipy.special import stdtrit

    return np.asarray(stdtrit(freedom, (1 + level) / 2), dtype=float)


def tail(freedom: Array | float, value: Array | float) -> Array:
    """Return the probability of a smaller value of Student's t.

    >>> float(tail(9.0, -2.262).round(3))
    0.025
    """
    from scipy.special import stdtr

    return np.asarray(stdtr(freedom, value), dtype=float)


def total_freedom(variances: Array, images: Array, overlap: Array | float) -> Array:
    """Return the degrees of freedom of a sum over datasets, after Welch and Satterthwaite.

    Args:
        variances: (datasets, metrics), in any unit.
        images: (datasets, metrics) effective numbers of images.
        overlap: in how many datasets an image is, by metric.

    >>> variances, images = np.array([[1.0], [1.0], [0.0]]), np.array([[10.0], [10.0], [99.0]])
    >>> total_freedom(variances, images, 1.0)
    array([18.])
    """
    by_dataset = np.maximum(images - 1, 1.0)
    total = variances.sum(axis=0)
    parts = (variances**2 / by_dataset).sum(axis=0)
    # Where nothing varies: as if all had the same variance.
    of_equal_variances = len(images) ** 2 / (1 / by_dataset).sum(axis=0)
    freedom = np.where(parts > 0, divide(total**2, parts), of_equal_variances)
    return np.maximum(freedom / overlap, 1.0)
