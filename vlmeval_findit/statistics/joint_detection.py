"""How often several models miss one real object together, learnt from objects that some found.

A label that no model answers is an object that all missed, or a box on nothing. Counting such
labels cannot tell which: their number says as much of the labels as of the models. So the number is
not used. What is used are objects that at least one model found, where misses that models share
show as well, and a model of shared misses that reaches from there to those that nobody found:
model k finds an object if :math:`√ρ·z + √(1-ρ)·e_k` is below a threshold of its own, where z is how
hard the object is for all (a one-factor probit). Each ρ is as credible as it explains the objects
that some model found, times what is believed beforehand. Two models explain them by any ρ: for
these, joint misses rest on what is believed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..protocol import Array

_CORRELATIONS = np.linspace(0.05, 0.95, 10)  # Values of ρ that are tried
_FIRMNESS = 6.0  # How many draws what is believed of ρ is worth: a beta distribution's sum
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(24)
_LOG_WEIGHTS = np.log(_WEIGHTS / _WEIGHTS.sum())
_PASSES = 15


@dataclass(frozen=True, slots=True)
class JointDetection:
    """How K models detect real objects."""

    recall: Array  # (K,) share of all real objects that each finds, also of those that none found
    log_likelihood: Array  # (g,) of the detections of each object, were it real
    correlation: float  # Of the ease with which two models find an object


def joint_detection(
    detected: NDArray[np.bool_],
    heard: NDArray[np.bool_],
    believed: tuple[float, float],
    correlation: float,
) -> JointDetection:
    """Estimate how models detect real objects from those that at least one of them found.

    Args:
        detected: (g, K) whether each model found each labelled object.
        heard: (g, K) whether it answered at all.
        believed: objects found, of objects shown: believed of every model beforehand.
        correlation: of the ease with which two models find an object, as believed beforehand.

    Four models find 97 % of the objects, each for itself. That none finds one is rare, however many
    labels are on nothing:

    >>> chance = np.random.default_rng(0)
    >>> found = chance.random((1000, 4)) < 0.97
    >>> found[800:] = False
    >>> joint = joint_detection(found, np.ones_like(found), (8, 10), 0.3)
    >>> bool(abs(joint.recall - 0.97).max() < 0.02)
    True
    >>> bool(joint.log_likelihood[900] < np.log(0.002))
    True
    """
    from scipy.special import logsumexp

    patterns, inverse = np.unique(
        np.where(heard, detected, -1).astype(np.int8), axis=0, return_inverse=True
    )
    inverse = inverse.reshape(-1)
    found = patterns == 1  # (u, K)
    missed = patterns == 0
    weight = np.bincount(inverse, minlength=len(patterns)) * found.any(1)  # (u,)
    fits = [_fit(found, missed, weight, believed, rho) for rho in _CORRELATIONS]
    log_credible = np.array([fit.log_likelihood for fit in fits])
    log_credible += _FIRMNESS * correlation * np.log(_CORRELATIONS)
    log_credible += _FIRMNESS * (1 - correlation) * np.log1p(-_CORRELATIONS)
    log_credible -= logsumexp(log_credible)
    of_patterns = np.array([fit.of_patterns for fit in fits])  # (ρ, u)
    averaged = logsumexp(of_patterns + log_credible[:, None], axis=0)
    credible = np.exp(log_credible)
    return JointDetection(
        recall=credible @ np.array([fit.recall for fit in fits]),
        log_likelihood=averaged[inverse],
        correlation=float(credible @ _CORRELATIONS),
    )


@dataclass(frozen=True, slots=True)
class _Fit:
    """How models detect real objects, given the correlation."""

    recall: Array  # (K,)
    of_patterns: Array  # (u,) log probability of each pattern of detections
    log_likelihood: float  # Of all patterns in which some model found the object


def _fit(
    found: NDArray[np.bool_],
    missed: NDArray[np.bool_],
    weight: Array,
    believed: tuple[float, float],
    rho: float,
) -> _Fit:
    """Fit recalls; ``weight`` (u,) are objects by pattern, 0 of those that no model found.

    The objects that none found are as many as these recalls leave unfound of those that were shown.
    """
    heard = (found | missed).astype(float)
    hits = weight @ found
    nobody = np.zeros_like(found)
    recall = np.full(found.shape[1], believed[0] / believed[1])
    for _ in range(_PASSES):
        unfound = np.exp(_log_patterns(nobody, heard > 0, recall, rho))
        unseen = weight * unfound / (1 - unfound)
        recall = (hits + believed[0]) / ((weight + unseen) @ heard + believed[1])
    of_patterns = _log_patterns(found, missed, recall, rho)
    log_unfound = _log_patterns(nobody, heard > 0, recall, rho)
    log_seen = np.log(-np.expm1(np.minimum(log_unfound, -1e-12)))
    return _Fit(recall, of_patterns, float(weight @ (of_patterns - log_seen)))


def _log_patterns(
    found: NDArray[np.bool_], missed: NDArray[np.bool_], recall: Array, rho: float
) -> Array:
    """Return the log probability, (u,), that some models find an object and others miss it."""
    from scipy.special import log_ndtr, logsumexp, ndtri

    ease = (ndtri(recall) - np.sqrt(rho) * _NODES[:, None]) / np.sqrt(1 - rho)  # (nodes, K)
    by_node = log_ndtr(ease) @ found.T + log_ndtr(-ease) @ missed.T  # (nodes, u)
    log_probability: Array = logsumexp(by_node + _LOG_WEIGHTS[:, None], axis=0)
    return log_probability
