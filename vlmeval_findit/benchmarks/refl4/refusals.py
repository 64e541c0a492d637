"""What cannot be scored: no figure is better than a figure of something else."""

from __future__ import annotations

from enum import StrEnum


class Code(StrEnum):
    """Why annotations or predictions are refused."""

    DUPLICATE_ID = "duplicate_id"
    NO_ID = "no_id"
    NO_FORMAT = "no_format"
    UNKNOWN_FORMAT = "unknown_format"
    NEGATIVE_TRUTH = "negative_truth"
    EMPTY_SPLIT = "empty_split"
    NO_PREDICTION_ID_MATCHES = "no_prediction_id_matches"
    BAD_ANNOTATION = "bad_annotation"
    """A column or key is missing, or holds what it should not."""
    UNLIKE_RELEASE = "unlike_release"
    """Other annotations than the authors published."""
    UNREADABLE = "unreadable"
    """Not the kind of file that it should be."""


class RefusedError(ValueError):
    """Input that is refused.  ``code`` says why in one word, the message where."""

    def __init__(self, code: Code, where: str, why: str) -> None:
        super().__init__(f"{where}: {why} ({code})")
        self.code = code
