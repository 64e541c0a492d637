"""Bounds of images, size options of image processors, and the layout of their output.

A family names the :class:`ImageLayout` of its processor; outputs are interpreted by that alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from ...storage import HASH_DIGITS

if TYPE_CHECKING:
    from PIL import Image

Features = Mapping[str, Any]  # what a processor returns

Size = tuple[int, int]  # width and height in pixels


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bounds of an image; None leaves it to the checkpoint's processor."""

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


class ModelImage(NamedTuple):
    """An image as the processor gets it."""

    pixels: Image.Image
    original: Size  # of the file
    sent: Size  # after the run's limits
    sha256: str = ""  # of the file


class ImageLayout:
    """An image processor of which nothing is known.

    Subclasses implement :meth:`processed`, so that records have the sizes that a model sees.

    Args:
        image_processor: of transformers.
        bounds: of a run.
        counted: times its areas count a pixel (:class:`..model_row.LocalFamily`).
    """

    # The bounds (:class:`Bounds`) that a run may set.
    takes: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, image_processor: Any, bounds: Bounds, counted: int = 1) -> None:
        self.image_processor = image_processor
        self.bounds = bounds
        self.counted = counted

    def as_arguments(self) -> dict[str, Any]:
        """Return the bounds as the processor's options, if they are set."""
        return {}

    def records(
        self, shown: Sequence[ModelImage], features: Features
    ) -> tuple[Mapping[str, Any], ...]:
        """Return each image's size as stored, as sent and as processed, its bounds and hash."""
        if not shown:
            return ()
        bounds = self.in_force()
        processed = self.processed(shown, features)
        records = []
        for number, image in enumerate(shown):
            sizes = {"original": image.original, "sent": image.sent}
            if processed is not None:
                sizes["processed"] = processed[number]
            record: dict[str, Any] = {name: list(size) for name, size in sizes.items()}
            record["bounds"] = bounds
            if image.sha256:
                record["sha256"] = image.sha256[:HASH_DIGITS]
            records.append(record)
        return tuple(records)

    def in_force(self) -> dict[str, Any]:
        """Return the bounds, completed with the processor's defaults."""
        return {}

    def processed(self, shown: Sequence[ModelImage], features: Features) -> Sequence[Size] | None:
        """Return the size of every image after the processor; None if unknown."""
        return None


class Grid(ImageLayout):
    """Qwen and GLM: patches in merged blocks, repeated for each frame."""

    takes = frozenset({"min_pixels", "max_pixels"})

    def as_arguments(self) -> dict[str, Any]:
        if self.bounds.min_pixels is None and self.bounds.max_pixels is None:
            return {}
        least, greatest = (edge * self.counted for edge in self._area.values())
        return {"size": {"shortest_edge": least, "longest_edge": greatest}}

    @property
    def _area(self) -> dict[str, int]:
        size = self.image_processor.size
        return {
            "min_pixels": self.bounds.min_pixels or size["shortest_edge"] // self.counted,
            "max_pixels": self.bounds.max_pixels or size["longest_edge"] // self.counted,
        }

    def in_force(self) -> dict[str, Any]:
        return self.bounds.overridden(self._area).as_dict()

    def processed(self, shown: Sequence[ModelImage], features: Features) -> Sequence[Size]:
        side = self.image_processor.patch_size
        return [(w * side, h * side) for _, h, w in features["image_grid_thw"].tolist()]


class Positions(ImageLayout):
    """Gemma 4: patches row by row with their positions, then padding."""

    def in_force(self) -> dict[str, Any]:
        return {"soft_tokens": self.image_processor.max_soft_tokens}

    def processed(self, shown: Sequence[ModelImage], features: Features) -> Sequence[Size]:
        side = self.image_processor.patch_size
        last = features["image_position_ids"].amax(dim=1).tolist()
        return [((x + 1) * side, (y + 1) * side) for x, y in last]


class Tiles(ImageLayout):
    """InternVL: tiles row by row, and a thumbnail if there are several."""

    takes = frozenset({"patches"})

    def as_arguments(self) -> dict[str, Any]:
        if self.bounds.patches is None:
            return {}
        return {"crop_to_patches": True, "max_patches": self.bounds.patches}

    def in_force(self) -> dict[str, Any]:
        patches = int(self.bounds.patches or self.image_processor.max_patches)
        return self.bounds.overridden({"patches": patches}).as_dict()

    def processed(self, shown: Sequence[ModelImage], features: Features) -> Sequence[Size]:
        """Return the sizes of the tiled canvases, which features do not have."""
        from transformers.models.got_ocr2 import image_processing_got_ocr2 as tiles

        processor = self.image_processor
        sizes = []
        tile = processor.size["height"], processor.size["width"]
        limits = processor.min_patches, self.in_force()["patches"]
        for image in shown:
            columns, rows = tiles.get_optimal_tiled_canvas(image.sent[::-1], tile, *limits)
            sizes.append((columns * tile[1], rows * tile[0]))
        return sizes
