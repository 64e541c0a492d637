"""User settings of local runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from ...core.config import Config, Count, Name, Number, Values, YesNo


@dataclass(frozen=True, slots=True)
class RunSettings(Config):
    """User settings of a run; None: decided by the row, the checkpoint or the machine."""

    called: ClassVar[str] = "setting"
    revision: Name | None = None
    space: str | Mapping[str, Any] | None = None  # if not the row's
    device: Name | None = None
    dtype: Name | None = None
    attention: Name | None = None
    min_pixels: Count | None = None  # this and the next two: of an image (bounds.Bounds)
    max_pixels: Count | None = None
    patches: Count | None = None
    max_new_tokens: Count | None = None
    batch_size: Count | None = None  # most queries at once
    temperature: Number | None = None  # of sampling; None or 0: greedy
    merge_adapter: YesNo | None = None  # into its base; None: yes
    template: Values = field(default_factory=dict)  # chat template switches
