"""Choose the split that is read: training images are never scored without being asked for."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path

from ...core import nearest
from ..annotated_samples import AnnotationError

_VALIDATION = re.compile(r"(val|valid|validation|dev|eval)[-_]?(\d{4})?", re.IGNORECASE)
_TRAINING = re.compile(r"(train|training|trainval|trainvaltest)[-_]?(\d{4})?", re.IGNORECASE)
_TEST = re.compile(r"(test|testing)[-_]?(\d{4})?", re.IGNORECASE)


def names_a_split(name: str) -> bool:
    """Return whether a folder or list is called as splits are: train, val2017, Validation.

    >>> [names_a_split(name) for name in ("Train", "val2017", "dev", "cam1")]
    [True, True, True, False]
    """
    patterns = (_VALIDATION, _TRAINING, _TEST)
    return any(pattern.fullmatch(name) for pattern in patterns)


def chosen_split(where: Path, there: Collection[str], stated: str | None) -> str:
    """Return the name of the split to read: the stated one, else the only one for validation.

    Args:
        where: what has the splits, for messages.
        there: their names, at least one.
        stated: what the user says; letter case does not matter.

    Raises:
        AnnotationError: the stated one is not there; or none is stated, and not just one split is
            for validation, or the only one is for training.
    """
    if stated is not None:
        same = [name for name in there if name.lower() == stated.lower()]
        if stated in there:
            return stated
        if len(same) == 1:
            return same[0]
        raise AnnotationError(f"{where}: unknown split {stated!r}{nearest(stated, sorted(there))}")
    validation = [name for name in there if _VALIDATION.fullmatch(name)]
    if len(validation) == 1:
        return validation[0]
    if len(there) == 1:
        (only,) = there
        if not _TRAINING.fullmatch(only):
            return only
        raise AnnotationError(
            f"{where}: its only split is {only}, which models are trained on; to score these "
            f"images, type --split {only}"
        )
    flags = " or ".join(f"--split {name}" for name in sorted(there))
    raise AnnotationError(f"{where}: which of its splits is meant? Type {flags}")
