"""The loose contour: an outline scaled up, kept within the picture, and smoothed."""

from __future__ import annotations

import warnings

import numpy as np
import numpy.typing as npt

from .geometry import Points

Floats = npt.NDArray[np.float64]

SCALE = 1.2
SMOOTHING = 0.1
"""Sum of squared distances (pixels) that the spline may keep from the vertices."""
SAMPLES = 10
"""Points on the line for every vertex."""


def loosened(outline: Points, size: tuple[int, int]) -> Points:
    """The closed line to draw around an outline (n x 2), in a picture of (width, height).

    The vertices are scaled about their mean and clipped to the picture.  A closed spline needs
    three of them besides the last, which it replaces with the first; a triangle, and an outline
    whose neighbours fall together, are left unsmoothed.
    """
    centre = outline.mean(axis=0)
    scaled = centre + (outline - centre) * SCALE
    clipped: Floats = np.clip(scaled, 0, np.array(size) - 1)
    if len(clipped) <= 3:
        return clipped.astype(np.int32)
    ring = np.vstack([clipped[:-1], clipped[:1]])
    if (ring[1:] == ring[:-1]).all(axis=1).any():
        return clipped[:-1].astype(np.int32)
    return _smooth(ring).astype(np.int32)


def _smooth(ring: Floats) -> Floats:
    """Points (n x 2) on a periodic cubic spline along a closed ring of vertices."""
    from scipy.interpolate import splev, splprep

    with warnings.catch_warnings():
        # That so little smoothing needs many knots is known.
        warnings.simplefilter("ignore", RuntimeWarning)
        spline, _ = splprep(ring.T, s=SMOOTHING, per=True)
    return np.array(splev(np.linspace(0, 1, SAMPLES * len(ring)), spline)).T
