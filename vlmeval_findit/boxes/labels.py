"""Labels as they are compared (protocol section 5)."""

from __future__ import annotations

import string
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from .records import Reading, Truth

_PUNCTUATION = str.maketrans("", "", string.punctuation)


@lru_cache(maxsize=65536)
def plain_label(label: str) -> str:
    """A label as it is compared: lower case, no ASCII punctuation, single blanks."""
    return " ".join(label.lower().translate(_PUNCTUATION).split())


def label_numbers(
    readings: Sequence[Reading], truths: Sequence[Truth]
) -> tuple[NDArray[np.intp], NDArray[np.intp]] | None:
    """A number for the label of every prediction and every truth; None where there are no labels.

    Labels that agree have the same number.
    """
    if not any(truth.labels for truth in truths) and not any(r.labels for r in readings):
        return None
    # Queries with one label have none on their boxes: those agree with each other.
    said = list(chain.from_iterable(r.labels or [""] * len(r.boxes) for r in readings))
    true = list(chain.from_iterable(t.labels or [""] * len(t.boxes) for t in truths))
    plain: dict[str, int] = {}
    number = {name: plain.setdefault(plain_label(name), len(plain)) for name in {*said, *true}}
    left = np.array([number[name] for name in said], dtype=np.intp)
    right = np.array([number[name] for name in true], dtype=np.intp)
    return left, right
