"""What a user says about the scoring of a run, by flags, host arguments or the environment."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple


class SettingsError(ValueError):
    """A setting that cannot be read; the message names it."""


class ChosenEncoder(NamedTuple):
    """The dual encoder that a user says scores captions, and where it was said."""

    name: str
    source: str = "setting"


@dataclass(frozen=True, slots=True)
class Settings:
    """What a user says about the scoring of a run.

    ``space`` is a name or the fields of :class:`.Space`; ``reads_like`` a row of the model table
    whose way of answering ``unconstrained`` prompts the model shares; ``force`` overrules what the
    run recorded.  ``source`` says where the space comes from: an environment variable never goes
    before a record.  ``encoder`` is what scores where a score needs one (None: the dataset's own).
    """

    space: str | Mapping[str, Any] | None = None
    reads_like: str | None = None
    force: bool = False
    source: str = "setting"
    encoder: ChosenEncoder | None = None


SPACE_VARIABLE = "FINDIT_SPACE"


FORCE_VARIABLE = "FINDIT_FORCE"


CONFIDENCES_VARIABLE = "FINDIT_CONFIDENCES"


ENCODER_VARIABLE = "FINDIT_ENCODER"


NAMES = ("space", "reads_like", "encoder", "force")
"""What ``--judge-args`` says of our datasets; other keys are the host's."""


def judge_args(text: str | None) -> dict[str, Any]:
    """The values of ``--judge-args``.

    Raises:
        SettingsError: it is no JSON object; the message says what to type.
    """
    try:
        values = json.loads(text or "{}")
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
    """Settings from ``--judge-args`` or a command's flags or, where they say none, from
    ``FINDIT_SPACE`` (a name or a JSON object), ``FINDIT_READS_LIKE``, ``FINDIT_FORCE`` and
    ``FINDIT_ENCODER``.

    Raises:
        SettingsError: a value cannot be read.
    """
    space, source = values.get("space"), "setting"
    if not space and os.environ.get(SPACE_VARIABLE):
        space, source = os.environ[SPACE_VARIABLE], SPACE_VARIABLE
    if isinstance(space, str) and space.lstrip().startswith("{"):
        try:
            space = json.loads(space)
        except ValueError as error:
            where = SPACE_VARIABLE if source == SPACE_VARIABLE else "space"
            raise SettingsError(f"{where}={space}: not JSON: {error}") from None
    reads_like = values.get("reads_like") or os.environ.get("FINDIT_READS_LIKE") or None
    if not isinstance(reads_like, str | None):
        raise SettingsError(f"reads_like: {reads_like!r} is no name")
    if not isinstance(forced := values.get("force") or False, bool):
        raise SettingsError(f"force: {forced!r} should be true or false")
    encoder = _encoder(values.get("encoder"))
    return Settings(space or None, reads_like, forced or is_forced(), source, encoder)


def _encoder(said: object) -> ChosenEncoder | None:
    if said and not isinstance(said, str):
        raise SettingsError(f"encoder: {said!r} is no name")
    if isinstance(said, str) and said:
        return ChosenEncoder(said)
    named = os.environ.get(ENCODER_VARIABLE)
    return ChosenEncoder(named, ENCODER_VARIABLE) if named else None


def is_forced() -> bool:
    """Whether ``FINDIT_FORCE`` says to overrule what runs recorded."""
    return _is_on(FORCE_VARIABLE)


def wants_confidences() -> bool:
    """Whether ``FINDIT_CONFIDENCES`` says that runs under VLMEvalKit record log-probabilities."""
    return _is_on(CONFIDENCES_VARIABLE)


def _is_on(variable: str) -> bool:
    return os.environ.get(variable, "0") not in ("", "0")
