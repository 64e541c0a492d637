"""The bounds of images as fields of requests to servers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ...serving import BOUNDS_FIELD
from ..local.layout import Bounds

# What the original checkpoints of InternVL call the most tiles of an image
ORIGINAL_TILES = "max_dynamic_patch"


def bounds_in_request(bounds: Bounds, counted: int, *, original: bool = False) -> dict[str, Any]:
    """Return the field of a request that bounds its images, for programs that take it.

    Args:
        bounds: in force; those that are None are the server's.
        counted: times the processor's areas count a pixel (:class:`.LocalFamily`).
        original: of a checkpoint that was not converted for transformers: its processor calls tiles
            otherwise, and programs drop in silence what a processor does not take.

    >>> bounds_in_request(Bounds(3136, 12544, two_step=True), 2)
    {'mm_processor_kwargs': {'min_pixels': 6272, 'max_pixels': 25088}}
    >>> bounds_in_request(Bounds(patches=6), 1, original=True)
    {'mm_processor_kwargs': {'max_dynamic_patch': 6}}
    """
    if bounds.patches is not None and original:
        arguments: dict[str, Any] = {ORIGINAL_TILES: bounds.patches}
    elif bounds.patches is not None:
        arguments = {"crop_to_patches": True, "max_patches": bounds.patches}
    else:
        areas = replace(bounds, two_step=False).as_dict()
        arguments = {name: area * counted for name, area in areas.items()}
    return {BOUNDS_FIELD: arguments} if arguments else {}
