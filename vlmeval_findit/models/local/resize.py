"""What an image processor is told about sizes, and what it does to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..families import Bounds
from .pictures import Picture


@dataclass(frozen=True, slots=True)
class Resize:
    """What an image processor is told, and what it does to sizes.

    ``counted`` is how often the processor's own areas count a pixel (:class:`..LocalFamily`).
    """

    image_processor: Any
    bounds: Bounds
    counted: int

    @property
    def area(self) -> dict[str, int]:
        """The least and the greatest area, in pixels."""
        own = self.image_processor.size
        return {
            "min_pixels": self.bounds.min_pixels or own["shortest_edge"] // self.counted,
            "max_pixels": self.bounds.max_pixels or own["longest_edge"] // self.counted,
        }

    @property
    def patches(self) -> int:
        """The greatest number of tiles."""
        return int(self.bounds.patches or self.image_processor.max_patches)

    def as_arguments(self) -> dict[str, Any]:
        """The bounds in the processor's own words; nothing where they are left to it."""
        if self.bounds.patches is not None:
            return {"crop_to_patches": True, "max_patches": self.bounds.patches}
        if self.bounds.min_pixels is None and self.bounds.max_pixels is None:
            return {}
        least, greatest = (edge * self.counted for edge in self.area.values())
        return {"size": {"shortest_edge": least, "longest_edge": greatest}}

    def records(
        self, shown: Sequence[Picture], inputs: Mapping[str, Any]
    ) -> tuple[Mapping[str, Any], ...]:
        """Of every image the original size, the size as sent, as processed, and the bounds."""
        in_force = self._in_force(inputs)
        return tuple(
            {
                "original": list(picture.original),
                "sent": list(picture.sent),
                "processed": list(size),
                "bounds": in_force,
            }
            for picture, size in zip(shown, self._processed(shown, inputs), strict=True)
        )

    def canvas(self, sent: tuple[int, int]) -> tuple[int, int]:
        """Columns and rows of the tiles that an image of a size (w, h) is cut into."""
        from transformers.models.got_ocr2 import image_processing_got_ocr2 as tiles

        width, height = sent
        least = self.image_processor.min_patches
        columns, rows = tiles.get_optimal_tiled_canvas(
            (height, width), self._tile, least, self.patches
        )
        return columns, rows

    @property
    def _tile(self) -> tuple[int, int]:
        """Height and width of a tile in pixels."""
        return self.image_processor.size["height"], self.image_processor.size["width"]

    def _in_force(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """The bounds with what the run left to the processor."""
        if "image_grid_thw" in inputs:
            return self.bounds.overridden(self.area).as_dict()
        if "image_position_ids" in inputs:
            return {"soft_tokens": self.image_processor.max_soft_tokens}
        return self.bounds.overridden({"patches": self.patches}).as_dict()

    def _processed(
        self, shown: Sequence[Picture], inputs: Mapping[str, Any]
    ) -> list[tuple[int, int]]:
        """The size (w, h) in pixels of every image after the processor.

        Read off what the processor returned where that says it (grids of patches: Qwen, GLM;
        positions of patches: Gemma 4); for InternVL the canvas that was cut into tiles.
        """
        if "image_grid_thw" in inputs:
            patch = self.image_processor.patch_size
            return [(w * patch, h * patch) for _, h, w in inputs["image_grid_thw"].tolist()]
        if "image_position_ids" in inputs:
            patch = self.image_processor.patch_size
            last = inputs["image_position_ids"].amax(dim=1).tolist()
            return [((x + 1) * patch, (y + 1) * patch) for x, y in last]
        height, width = self._tile
        grids = [self.canvas(picture.sent) for picture in shown]
        return [(columns * width, rows * height) for columns, rows in grids]
