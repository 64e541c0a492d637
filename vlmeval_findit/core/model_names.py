"""Names of models, after which files and folders are named."""

from __future__ import annotations

from .prediction_reader import PredictionError


def check_model_name(name: str) -> str:
    """A model's name, which files and folders are named after.

    Raises:
        PredictionError: no file below the work folder can have it.
    """
    why = None
    if name in ("", ".", ".."):
        why = "is none"
    elif any(sign in name for sign in "/\\"):
        why = "names files: no slash in it"
    elif not name.isprintable():
        why = "names files: no line ends or control characters in it"
    elif len(name.encode()) > _LONGEST_NAME:
        why = f"names files: at most {_LONGEST_NAME} bytes"
    if why is not None:
        raise PredictionError(f"the model's name {name!r} {why}")
    return name


_LONGEST_NAME = 100
"""Bytes; file systems take 255, and a variant's name stands behind it."""
