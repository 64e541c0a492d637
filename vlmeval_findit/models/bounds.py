"""Bounds of the images that local models are shown (protocol sections 4 and 7)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from ..boxes.spaces import Space
from ..core.question import Question


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bounds of an image; None leaves one to the checkpoint's own processor."""

    min_pixels: int | None = None  # area after the processor's resize, in pixels
    max_pixels: int | None = None
    patches: int | None = None  # most tiles (InternVL)
    two_step: bool = False  # Qwen's chat interface resizes before the processor does

    def as_dict(self) -> dict[str, Any]:
        return {k: v for k, v in asdict(self).items() if v not in (None, False)}

    def overridden(self, values: Mapping[str, Any]) -> Bounds:
        """Return these bounds with a run's values, if not None; ValueError if they contradict."""
        new = replace(self, **{k: v for k, v in values.items() if v is not None})
        if new.min_pixels and new.max_pixels and new.min_pixels > new.max_pixels:
            raise ValueError(f"min_pixels {new.min_pixels} > max_pixels {new.max_pixels}")
        return new


BoundsRule = Callable[[Question], Bounds]


def processors_own(question: Question) -> Bounds:
    """Leave all bounds to the checkpoint's own processor."""
    return Bounds()


def qwen2_5_bounds(question: Question) -> Bounds:
    """Return the paper's bounds: the simple interface for instance detection, else the chat one."""
    if question.has_references:
        return Bounds(min_pixels=200_704, max_pixels=12_845_056)
    return Bounds(min_pixels=200_704, max_pixels=1_605_632, two_step=True)


def qwen3_bounds(question: Question) -> Bounds:
    """Return the bounds of Qwen2.5-VL without its second resize.

    The protocol states ``max_pixels`` for instance detection only; the rest is taken from
    Qwen2.5-VL. These models answer in thousandths, so it cannot shift boxes.
    """
    return replace(qwen2_5_bounds(question), two_step=False)


def internvl3_bounds(question: Question) -> Bounds:
    """Allow 64 tiles for instance detection, else the processor's default of twelve."""
    return Bounds(patches=64 if question.has_references else 12)


NANO_FACTOR = 24
"""Pixels of the side of a visual token of the models that ship: two patches of 12."""


def nano_px_bounds(question: Question) -> Bounds:
    """Repeat the processor's own bounds, within which its replies are read."""
    return Bounds(min_pixels=4 * NANO_FACTOR**2, max_pixels=168 * 168)


def space_within(space: Space, bounds: Bounds) -> Space:
    """Return a space with a run's bounds, where it depends on them."""
    if space.kind != "smart_resize":
        return space
    return replace(
        space,
        min_pixels=bounds.min_pixels,
        max_pixels=bounds.max_pixels,
        two_step=bounds.two_step,
    )
