"""User settings for scoring a run, from flags, host arguments or the environment."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..core.text_files import parse_json
from .thoughts import MarksError, ThoughtMarks, thought_marks


class SettingsError(ValueError):
    """A setting that cannot be read; the message names it."""


class ChosenEncoder(NamedTuple):
    """The dual encoder chosen to score captions, and where it was chosen."""

    name: str
    source: str = "setting"


@dataclass(frozen=True, slots=True)
class Settings:
    """User settings for scoring a run."""

    space: str | Mapping[str, Any] | None = None  # A name or the fields of :class:`.Space`
    reads_like: str | None = None  # Row of a model whose replies to ``unconstrained`` look the same
    force: bool = False  # Overrides what the run recorded
    source: str = "setting"  # Of the space; a variable never overrides a record
    encoder: ChosenEncoder | None = None  # None: the dataset's default
    thought_marks: ThoughtMarks | None = None  # None: those of the table and of the model's row
    separately: bool = False  # Where the run recorded another space: score into separate files


SPACE_VARIABLE = "FINDIT_SPACE"
FORCE_VARIABLE = "FINDIT_FORCE"
LOGPROBS_VARIABLE = "FINDIT_LOGPROBS"
ENCODER_VARIABLE = "FINDIT_ENCODER"
MARKS_VARIABLE = "FINDIT_THOUGHT_MARKS"

# Our keys of ``--judge-args``; others are the host's
NAMES = ("space", "reads_like", "encoder", "force", "thought_marks")


def judge_args(text: str | None) -> dict[str, Any]:
    """Parse ``--judge-args``; a SettingsError says what to type instead."""
    try:
        values = parse_json(text or "{}")
    except ValueError:
        values = None
    if isinstance(values, dict):
        return values
    words = [word.partition("=") for word in (text or "").split(",")]
    meant = {name.strip(): value.strip() for name, _, value in words}
    if not all(name in NAMES and value for name, value in meant.items()):
        meant = {"space": "grid1000"}
    raise SettingsError(
        f"--judge-args {text}: not a JSON object. Type: --judge-args '{json.dumps(meant)}'"
    )


def settings_from(values: Mapping[str, Any]) -> Settings:
    """Make settings from ``--judge-args`` or flags, else from ``FINDIT_…`` variables."""
    space = values.get("space")
    source = "setting"
    if not space and os.environ.get(SPACE_VARIABLE):
        space = os.environ[SPACE_VARIABLE]
        source = SPACE_VARIABLE
    if isinstance(space, str) and space.lstrip().startswith("{"):
        try:
            space = parse_json(space)
        except ValueError as error:
            where = "space" if source == "setting" else source
            raise SettingsError(f"{where}={space}: {error}") from None
    reads_like = values.get("reads_like") or os.environ.get("FINDIT_READS_LIKE") or None
    if not isinstance(reads_like, str | None):
        raise SettingsError(f"--judge-args: reads_like: {reads_like!r} is not a name")
    force = values.get("force") or False
    if not isinstance(force, bool):
        raise SettingsError(f"--judge-args: force: {force!r} should be true or false")
    encoder = values.get("encoder")
    if encoder and not isinstance(encoder, str):
        raise SettingsError(f"--judge-args: encoder: {encoder!r} is not a name")
    named = os.environ.get(ENCODER_VARIABLE)
    chosen = ChosenEncoder(encoder) if encoder else None
    if chosen is None and named:
        chosen = ChosenEncoder(named, ENCODER_VARIABLE)
    named_marks = values.get("thought_marks") or os.environ.get(MARKS_VARIABLE)
    try:
        marks = thought_marks(named_marks) if named_marks else None
    except MarksError as error:
        raise SettingsError(str(error)) from None
    forced = force or _is_on(FORCE_VARIABLE)
    return Settings(space or None, reads_like, forced, source, chosen, marks)


def wants_logprobs() -> bool:
    """Return whether ``FINDIT_LOGPROBS`` asks runs under VLMEvalKit for logprobs."""
    return _is_on(LOGPROBS_VARIABLE)


def skips_missing() -> bool:
    """Return whether ``FINDIT_SKIP_MISSING`` says to leave out rows without a usable image."""
    return _is_on("FINDIT_SKIP_MISSING")


def _is_on(variable: str) -> bool:
    return os.environ.get(variable, "0") not in ("", "0")
