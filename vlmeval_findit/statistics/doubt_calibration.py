"""Calibrate probabilities that labels are wrong by what reviewers decided."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..protocol import Array

_SURE = 1e-4  # Probabilities beyond this, and beyond 1 minus this, count as this
# Shift and slope without reviews, and how firmly that is believed (an inverse variance)
_BELIEVED = np.array([0.0, 1.0])
_FIRMNESS = np.array([0.25, 4.0])
_STEPS = 20
_LOWEST = np.array([-5.0, 0.2])
_HIGHEST = np.array([5.0, 2.0])


@dataclass(frozen=True, slots=True)
class DoubtCalibration:
    """Log odds of calibrated probabilities are ``shift + slope`` times the log odds before."""

    shift: float
    slope: float

    def apply(self, p: Array) -> Array:
        """Calibrate probabilities; their order stays."""
        calibrated: Array = 1 / (1 + np.exp(-(self.shift + self.slope * _log_odds(p))))
        return calibrated


def calibrate_doubts(p: Array, wrong: NDArray[np.bool_]) -> DoubtCalibration:
    """Fit a calibration to reviewed rows, by their probabilities and whether they were wrong.

    Doubtful rows may be reviewed more often than others: of rows with equal probabilities, those
    that were reviewed are like those that were not.

    Of labels called wrong with 0.9 only half were:

    >>> p = np.array([0.9] * 30 + [0.05] * 20)
    >>> wrong = np.array([True] * 15 + [False] * 35)
    >>> calibrate_doubts(p, wrong).apply(np.array([0.9, 0.05])).round(2).tolist()
    [0.51, 0.01]
    """
    known = np.column_stack([np.ones(len(p)), _log_odds(p)])
    weights = _BELIEVED.copy()
    for _ in range(_STEPS):
        expected = 1 / (1 + np.exp(-known @ weights))
        gradient = known.T @ (wrong - expected) - (weights - _BELIEVED) * _FIRMNESS
        spread = expected * (1 - expected)
        curvature = known.T @ (known * spread[:, None]) + np.diag(_FIRMNESS)
        # Half a step of Newton's method does not overshoot.
        weights = weights + 0.5 * np.linalg.solve(curvature, gradient)
        weights = np.clip(weights, _LOWEST, _HIGHEST)
    return DoubtCalibration(float(weights[0]), float(weights[1]))


def _log_odds(p: Array) -> Array:
    bounded = np.clip(p, _SURE, 1 - _SURE)
    odds: Array = np.log(bounded / (1 - bounded))
    return odds
