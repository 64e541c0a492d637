"""Limits on the images that a model on this machine is shown (protocol sections 4 and 7)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from ..boxes.spaces import Space
from ..core.question import Question


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits on an image; None leaves a limit to the checkpoint's own processor.

    ``min_pixels`` and ``max_pixels`` bound the area after the processor's resize, in pixels.
    ``patches`` is the greatest number of tiles (InternVL).  ``two_step``: Qwen's chat interface
    resizes once more, before the processor does.
    """

    min_pixels: int | None = None
    max_pixels: int | None = None
    patches: int | None = None
    two_step: bool = False

    def as_dict(self) -> dict[str, Any]:
        """The limits that are set."""
        return {k: v for k, v in asdict(self).items() if v not in (None, False)}

    def overridden(self, values: Mapping[str, Any]) -> Bounds:
        """These limits with those of a run that are not None.

        Raises:
            ValueError: the least area is above the greatest.
        """
        new = replace(self, **{k: v for k, v in values.items() if v is not None})
        if new.min_pixels and new.max_pixels and new.min_pixels > new.max_pixels:
            raise ValueError(f"min_pixels {new.min_pixels} > max_pixels {new.max_pixels}")
        return new


BoundsRule = Callable[[Question], Bounds]


def processors_own(question: Question) -> Bounds:
    """The checkpoint's own processor decides."""
    return Bounds()


# --- bounds, by question --------------------------------------------------------------------------


def qwen2_5_bounds(question: Question) -> Bounds:
    """The paper's two ways: the simple interface for instance detection, else the chat one."""
    if question.has_references:
        return Bounds(min_pixels=200_704, max_pixels=12_845_056)
    return Bounds(min_pixels=200_704, max_pixels=1_605_632, two_step=True)


def qwen3_bounds(question: Question) -> Bounds:
    """As Qwen2.5-VL without the second resize.

    The protocol states the greatest area for instance detection only; the others are those of
    Qwen2.5-VL.  These models answer in thousandths, so no score is read in wrong pixels by it.
    """
    return replace(qwen2_5_bounds(question), two_step=False)


def internvl3_bounds(question: Question) -> Bounds:
    """Up to 64 tiles for instance detection, else the processor's own twelve."""
    return Bounds(patches=64 if question.has_references else 12)


NANO_FACTOR = 24
"""Pixels of the side of a visual token of the models that ship: two patches of 12."""


def nano_px_bounds(question: Question) -> Bounds:
    """Those of its own processor, in so many words: its numbers are read within them."""
    return Bounds(min_pixels=4 * NANO_FACTOR**2, max_pixels=168 * 168)


def space_within(space: Space, bounds: Bounds) -> Space:
    """A row's coordinate space under the bounds that a run had: they matter where it resizes."""
    if space.kind != "smart_resize":
        return space
    return replace(
        space,
        min_pixels=bounds.min_pixels,
        max_pixels=bounds.max_pixels,
        two_step=bounds.two_step,
    )
