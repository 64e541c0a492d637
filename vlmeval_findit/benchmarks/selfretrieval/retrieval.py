"""The score itself: features in, similarities and what is right out.

A caption is right when its own picture is at least as near to it as the other, by the cosine of
their features.  Features are of 32-bit floats, as the authors' are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float32]
Marks = NDArray[np.bool_]


class ZeroLengthError(ValueError):
    """A feature without length has no direction, and is near to nothing.

    ``row`` is its place, ``what`` says whose it is.
    """

    def __init__(self, row: int, what: str) -> None:
        super().__init__(f"the embedding of {what} has length zero: it has no direction")
        self.row = row
        self.what = what


def similarities(captions: ArrayLike, own: ArrayLike, other: ArrayLike) -> Floats:
    """Cosines of captions with their own and with the other picture.

    Args:
        captions: features, n x d, of any length but zero.
        own: features of the pictures that they are of, n x d.
        other: features of the other pictures of their pairs, n x d.

    Returns:
        n x 2: own, other; NaN where a feature has a number that is not finite.

    Raises:
        ZeroLengthError: a feature has no length.
        ValueError: they are not of one shape.

    >>> similarities([[0, 2]], [[0, 1]], [[3, 0]])
    array([[1., 0.]], dtype=float32)
    """
    named = {"a caption": captions, "its own picture": own, "the other picture": other}
    text, *pictures = (_directions(values, what) for what, values in named.items())
    if not text.shape == pictures[0].shape == pictures[1].shape:
        shapes = [one.shape for one in (text, *pictures)]
        raise ValueError(f"features of captions, own and other pictures are of shapes {shapes}")
    found: Floats = np.stack([np.einsum("nd,nd->n", text, one) for one in pictures], axis=-1)
    return found


def _directions(values: ArrayLike, what: str) -> Floats:
    vectors: NDArray[Any] = np.asarray(values, dtype=np.float32)
    if vectors.ndim != 2:
        raise ValueError(f"features of {what} are of shape {vectors.shape}, not n x d")
    # In 64 bits: a very short feature is not one of length zero.
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1)
    for row in np.flatnonzero(lengths == 0):
        raise ZeroLengthError(int(row), what)
    with np.errstate(invalid="ignore"):
        found: Floats = (vectors / lengths[:, None]).astype(np.float32)
    return found


def is_right(cosines: Floats) -> Marks:
    """Which captions are right, of cosines n x 2 (own, other).

    A tie is right.  NaN counts as the largest number, and of two equal ones the own is taken: an
    own NaN is right, and only the other's NaN is wrong.

    >>> is_right(np.float32([[0.3, 0.3], [np.nan, 1], [1, np.nan]]))
    array([ True,  True, False])
    """
    own, other = cosines[:, 0], cosines[:, 1]
    found: Marks = np.isnan(own) | (own >= other)
    return found


def is_tie(cosines: Floats) -> Marks:
    """Which captions are exactly as near to the one picture as to the other."""
    found: Marks = cosines[:, 0] == cosines[:, 1]
    return found
