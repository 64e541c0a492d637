"""The coordinate space of a run whose ``--judge-args`` come only when it is scored.

VLMEvalKit passes them to ``evaluate``; only its package ``ms-vlmeval`` passes them to a dataset,
too, and not with ``--config``.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ..boxes import space_from
from ..protocol import SPACE_SETTING, STATED_SOURCE, Settings
from ..storage import RunFiles, read_identity, write_identity


def recorded_space(predictions: Path, settings: Settings) -> Settings:
    """Return settings with the space that a run recorded, unless they have one."""
    is_stated = settings.space is not None or settings.of_unknown.space is not None
    recorded = None if is_stated else read_identity(predictions)
    return settings if recorded is None else replace(settings, space=recorded.space)


def complete_space(predictions: Path, settings: Settings) -> None:
    """Record the space of scoring for a run that did not know one when it began."""
    recorded = read_identity(predictions)
    if recorded is None or recorded.space is not None:
        return
    space = settings.space
    source = STATED_SOURCE
    if space is None:
        space = settings.of_unknown.space
        source = SPACE_SETTING.variable
    if space is None:
        return
    if not recorded.answering.in_vlmevalkit:
        return  # Every reply records its space
    completed = replace(recorded, space=space_from(space).as_dict(), space_source=source)
    above = predictions.parent.parent / predictions.name
    for path in (predictions, above):
        if RunFiles(path).identity.is_file():
            write_identity(RunFiles(path).identity, completed)
