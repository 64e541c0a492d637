"""Resizes an image as torchvision does: bicubic, antialiased, in 16-bit integers.

Pillow's own resize rounds otherwise, so that a pixel may differ by one, and a reply with it.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

_A = -0.5  # Of the cubic that antialiased resizes use
_SUPPORT = 2.0  # Of the cubic, in pixels


def resized(pixels: NDArray[np.uint8], height: int, width: int) -> NDArray[np.uint8]:
    """Return pixels of the shape (height, width, channels) in another size."""
    if pixels.shape[1] != width:
        pixels = _along_rows(pixels, width)
    if pixels.shape[0] != height:
        turned = _along_rows(pixels.transpose(1, 0, 2), height)
        pixels = turned.transpose(1, 0, 2)
    return pixels


def _along_rows(pixels: NDArray[np.uint8], width: int) -> NDArray[np.uint8]:
    first, weights, precision = _weights(pixels.shape[1], width)
    # A start half way to the next number rounds.
    sums = np.full((pixels.shape[0], width, pixels.shape[2]), 1 << (precision - 1), dtype=np.int32)
    last = pixels.shape[1] - 1
    for tap in range(weights.shape[1]):
        # Behind the last pixel weights are zero.
        columns = np.minimum(first + tap, last)
        sums += pixels[:, columns].astype(np.int32) * weights[None, :, tap, None]
    result: NDArray[np.uint8] = np.clip(sums >> precision, 0, 255).astype(np.uint8)
    return result


@lru_cache(maxsize=32)
def _weights(size: int, target: int) -> tuple[NDArray[np.intp], NDArray[np.int32], int]:
    """Return the first pixel of each target pixel, its weights, and their bits behind the point."""
    scale = size / target
    wider = max(scale, 1.0)
    support = _SUPPORT * wider
    taps = math.ceil(support) * 2 + 1
    first = np.zeros(target, dtype=np.intp)
    weights = np.zeros((target, taps))
    for at in range(target):
        center = scale * (at + 0.5)
        begin = max(int(center - support + 0.5), 0)
        count = min(int(center + support + 0.5), size) - begin
        taken = np.arange(min(count, taps), dtype=np.float64)
        distances = (taken + begin - center + 0.5) / wider
        values = _cubic(distances)
        first[at] = begin
        weights[at, : len(values)] = values / values.sum()
    precision = _precision(float(weights.max()))
    whole = np.where(weights < 0, -0.5, 0.5) + weights * (1 << precision)
    return first, whole.astype(np.int32), precision


def _precision(largest: float) -> int:
    """Return the most bits with which the largest weight fits into 16-bit integers."""
    precision = 0
    while precision < 22 and int(0.5 + largest * (1 << (precision + 1))) < 1 << 15:
        precision += 1
    return precision


def _cubic(distances: NDArray[Any]) -> NDArray[Any]:
    x = np.abs(distances)
    near = ((_A + 2) * x - (_A + 3)) * x * x + 1
    far = (((x - 5) * x + 8) * x - 4) * _A
    return np.where(x < 1, near, np.where(x < 2, far, 0.0))
