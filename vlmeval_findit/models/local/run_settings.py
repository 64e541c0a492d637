"""What a user sets of a run on this machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from ...core import Count, Name, Values, YesNo, no_effect, validate
from ..shared_settings import OnThisMachine, Sampling, sampling_of
from ..token_limits import with_one_limit


@dataclass(frozen=True, slots=True)
class RunSettings(OnThisMachine, Sampling):
    """User settings of a run; None: decided by the row, the checkpoint or the machine."""

    called: ClassVar[str] = "setting"
    revision: Name | None = None
    space: str | Mapping[str, Any] | None = None  # if not the row's
    engine: Name | None = None  # what computes it: transformers or numpy
    attention: Name | None = None
    min_pixels: Count | None = None  # this and the next two: of an image (bounds.Bounds)
    max_pixels: Count | None = None
    patches: Count | None = None
    max_new_tokens: Count | None = None
    merge_adapter: YesNo | None = None  # into its base; None: yes
    template: Values = field(default_factory=dict)  # chat template switches


def run_settings(given: Mapping[str, Any]) -> RunSettings:
    """Read the settings of a run here, the token limit by any of its names.

    Raises ValueError for an unknown setting, an invalid value, or what replies are not drawn by.
    """
    settings = validate(RunSettings, with_one_limit(given))
    for name in sampling_of(settings):
        if name not in _DRAWN_BY:
            why = f"a model on this machine draws replies by {', '.join(_DRAWN_BY)} alone"
            raise ValueError(no_effect(name, why, "Leave it out, or serve the model: --serve vllm"))
    return settings


# Of :class:`.Sampling`, what :class:`.LocalRunner` heeds
_DRAWN_BY = ("temperature",)
