"""What a user may say about a run of a model on this machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from ...core.config import Config, Count, Name, Values


@dataclass(frozen=True, slots=True)
class RunSettings(Config):
    """What a user may say about a run; None leaves it to the row, the checkpoint or the machine."""

    called: ClassVar[str] = "setting"
    revision: Name | None = None
    space: str | Mapping[str, Any] | None = None
    """Of a checkpoint that was trained to answer in another coordinate space than its row's."""
    device: Name | None = None
    dtype: Name | None = None
    attention: Name | None = None
    min_pixels: Count | None = None
    """With ``max_pixels`` and ``patches`` the bounds of an image (:class:`..families.Bounds`)."""
    max_pixels: Count | None = None
    patches: Count | None = None
    max_new_tokens: Count | None = None
    batch_size: Count | None = None
    """The most queries at once."""
    template: Values = field(default_factory=dict)
    """Switches of the chat template."""
