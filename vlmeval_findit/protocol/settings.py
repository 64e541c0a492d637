"""User settings for scoring a run, from flags, host arguments or the environment."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..core import EqualKeysError, closest, parse_json, quoted_value
from .choices import READS_LIKE, SPACE_SETTING, THOUGHT_MARKS
from .thoughts import MarksError, ThoughtMarks, thought_marks


class SettingsError(ValueError):
    """A setting that cannot be read; the message names it."""


class ChosenEncoder(NamedTuple):
    """The dual encoder chosen to score captions, and where it was chosen."""

    name: str
    source: str = "setting"


@dataclass(frozen=True, slots=True)
class OfUnknown:
    """What environment variables say: of models of which nothing else says it, and no others."""

    space: str | Mapping[str, Any] | None = None
    reads_like: str | None = None
    thought_marks: ThoughtMarks | None = None


@dataclass(frozen=True, slots=True)
class LastScore:
    """What the last score of the same predictions was told, as far as nothing recorded it."""

    space: Mapping[str, Any] | None = None
    reads_like: str | None = None
    thought_marks: ThoughtMarks | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    """User settings for scoring a run."""

    space: str | Mapping[str, Any] | None = None  # A name or the fields of :class:`.Space`
    reads_like: str | None = None  # Row of a model whose replies to ``unconstrained`` look the same
    force: bool = False  # Overrides what the run recorded
    encoder: ChosenEncoder | None = None  # None: the dataset's default
    thought_marks: ThoughtMarks | None = None  # None: those of the table and of the model's row
    separately: bool = False  # Where the run recorded another space: score into separate files
    last: LastScore = LastScore()
    of_unknown: OfUnknown = OfUnknown()


FORCE_VARIABLE = "FINDIT_FORCE"  # Scores in spite of what the run recorded, if it is on
LOGPROBS_VARIABLE = "FINDIT_LOGPROBS"  # Asks runs under VLMEvalKit for logprobs, if it is on
PROMPTS_VARIABLE = "FINDIT_PROMPTS"  # As ``--prompts``, which sets it
ENCODER_VARIABLE = "FINDIT_ENCODER"  # Names the encoder that scores captions

# Our keys of ``--judge-args``; others are the host's
SETTING_NAMES = ("space", "reads_like", "encoder", "force", "thought_marks")


def judge_args(text: str | None) -> dict[str, Any]:
    """Parse ``--judge-args``; a SettingsError says what to type instead."""
    try:
        values = parse_json(text or "{}")
    except EqualKeysError as error:
        raise SettingsError(f"--judge-args {text}: {error}") from None
    except ValueError:
        values = None
    if isinstance(values, dict):
        return values
    words = [word.partition("=") for word in (text or "").split(",")]
    meant = {name.strip(): value.strip() for name, _, value in words}
    if not all(name in SETTING_NAMES and value for name, value in meant.items()):
        meant = {"space": "grid1000"}
    raise SettingsError(
        f"--judge-args {text}: not a JSON object. Type: --judge-args '{json.dumps(meant)}'"
    )


def our_settings(values: Mapping[str, Any]) -> dict[str, Any]:
    """Select FindIt's settings among the host's judge arguments, which have names of their own.

    Raises SettingsError for a name that is probably meant to be one of ours.
    """
    for name in values:
        meant = None if name in SETTING_NAMES else closest(name, SETTING_NAMES)
        if meant is not None:
            raise SettingsError(
                f"--judge-args: unknown setting {quoted_value(name)}: did you mean {meant}?"
            )
    return {name: values[name] for name in SETTING_NAMES if values.get(name)}


def settings_from(values: Mapping[str, Any]) -> Settings:
    """Make settings from ``--judge-args`` or flags, and of what ``FINDIT_…`` variables say."""
    space = _space(values.get("space"), "space")
    reads_like = values.get("reads_like") or None
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
    return Settings(
        space=space,
        reads_like=reads_like,
        force=force or _is_on(FORCE_VARIABLE),
        encoder=chosen,
        thought_marks=_marks(values.get("thought_marks")),
        of_unknown=variables(),
    )


def variables() -> OfUnknown:
    """Return what environment variables say of models of which nothing else says it."""
    return OfUnknown(
        space=_space(os.environ.get(SPACE_SETTING.variable), SPACE_SETTING.variable),
        reads_like=os.environ.get(READS_LIKE.variable) or None,
        thought_marks=_marks(os.environ.get(THOUGHT_MARKS.variable), THOUGHT_MARKS.variable),
    )


def _space(value: Any, where: str) -> str | Mapping[str, Any] | None:
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            value = parse_json(value)
        except ValueError as error:
            raise SettingsError(f"{where}={value}: {error}") from None
    return value or None


def _marks(value: Any, variable: str = "") -> ThoughtMarks | None:
    try:
        return thought_marks(value) if value else None
    except MarksError as error:
        where = f"{variable}: " if variable else ""
        raise SettingsError(f"{where}{error}") from None


def wants_logprobs() -> bool:
    """Return whether ``FINDIT_LOGPROBS`` asks runs under VLMEvalKit for logprobs."""
    return _is_on(LOGPROBS_VARIABLE)


def skips_missing() -> bool:
    """Return whether ``FINDIT_SKIP_MISSING`` says to leave out rows without a usable image."""
    return _is_on("FINDIT_SKIP_MISSING")


def _is_on(variable: str) -> bool:
    return os.environ.get(variable, "0") not in ("", "0")
