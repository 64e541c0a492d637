"""What an image processor is told about sizes, and how it lays out what it makes of an image.

A family names the :class:`ImageLayout` of its processor.  The tensors that a processor returned are
read by that alone, never by what else is in them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from ..bounds import Bounds
    from .pictures import Picture

Features = Mapping[str, Any]
"""What a processor returns."""

Size = tuple[int, int]
"""Width and height in pixels."""


class LayoutError(ValueError):
    """Features that are not laid out as a family says."""


class ImageLayout:
    """What a processor does to images of which nothing else is known.

    A subclass that says :meth:`processed` has the sizes that a model is shown in every record.

    Args:
        image_processor: of transformers.
        bounds: those of a run.
        counted: how often its own areas count a pixel (:class:`..row.LocalFamily`).
    """

    takes: ClassVar[frozenset[str]] = frozenset()
    """The bounds (:class:`..bounds.Bounds`) that a run may set."""

    def __init__(self, image_processor: Any, bounds: Bounds, counted: int = 1) -> None:
        self.image_processor = image_processor
        self.bounds = bounds
        self.counted = counted

    def as_arguments(self) -> dict[str, Any]:
        """The bounds in the processor's own words; nothing where they are left to it."""
        return {}

    def records(
        self, shown: Sequence[Picture], features: Features
    ) -> tuple[Mapping[str, Any], ...]:
        """Of every image the original size, the size as sent, as processed, and the bounds."""
        if not shown:
            return ()
        in_force, processed = self.in_force(), self.processed(shown, features)
        records: list[dict[str, Any]] = [
            {"original": list(one.original), "sent": list(one.sent)} for one in shown
        ]
        for record, size in zip(records, processed, strict=True) if processed else ():
            record["processed"] = list(size)
        return tuple({**record, "bounds": in_force} for record in records)

    def in_force(self) -> dict[str, Any]:
        """The bounds with what the run left to the processor."""
        return {}

    def processed(self, shown: Sequence[Picture], features: Features) -> Sequence[Size] | None:
        """The size of every image after the processor; None where it is not known."""
        return None

    def put_together(self, features: Features, sent: Size) -> tuple[Any, Any]:
        """Pixels (rows, columns, 3) of one picture as resized, and those of its thumbnail or None.

        Raises:
            LayoutError, RuntimeError: the features are not laid out so.
        """
        raise LayoutError(f"{type(self).__name__} does not say how features become pixels")

    def with_thumbnails(
        self, features: Features, shown: Sequence[Picture], more: Mapping[str, Any]
    ) -> Features:
        """Features with what is made of kept thumbnails; ``more`` goes to the processor."""
        return features


def _of(features: Features, name: str) -> Any:
    """A tensor of a processor's features.

    Raises:
        LayoutError: they have none of this name.
    """
    if name not in features:
        raise LayoutError(f"the processor returned no {name}, by which its family lays out images")
    return features[name]


class Grid(ImageLayout):
    """Qwen and GLM: patches by blocks that are merged, each as often as a video has frames."""

    takes = frozenset({"min_pixels", "max_pixels"})

    def as_arguments(self) -> dict[str, Any]:
        if self.bounds.min_pixels is None and self.bounds.max_pixels is None:
            return {}
        least, greatest = (edge * self.counted for edge in self._area.values())
        return {"size": {"shortest_edge": least, "longest_edge": greatest}}

    @property
    def _area(self) -> dict[str, int]:
        """The least and the greatest area, in pixels."""
        own = self.image_processor.size
        return {
            "min_pixels": self.bounds.min_pixels or own["shortest_edge"] // self.counted,
            "max_pixels": self.bounds.max_pixels or own["longest_edge"] // self.counted,
        }

    def in_force(self) -> dict[str, Any]:
        return self.bounds.overridden(self._area).as_dict()

    def processed(self, shown: Sequence[Picture], features: Features) -> Sequence[Size]:
        side = self.image_processor.patch_size
        return [(w * side, h * side) for _, h, w in _of(features, "image_grid_thw").tolist()]

    def put_together(self, features: Features, sent: Size) -> tuple[Any, Any]:
        side, merged = self.image_processor.patch_size, self.image_processor.merge_size
        _, rows, columns = _of(features, "image_grid_thw")[0].tolist()
        blocks = (rows // merged, columns // merged, merged, merged)
        patches = features["pixel_values"].reshape(*blocks, 3, -1, side, side)[:, :, :, :, :, 0]
        pixels = patches.permute(0, 2, 5, 1, 3, 6, 4)
        return pixels.reshape(rows * side, columns * side, 3), None


class Positions(ImageLayout):
    """Gemma 4: patches row by row with their positions, then padding."""

    def in_force(self) -> dict[str, Any]:
        return {"soft_tokens": self.image_processor.max_soft_tokens}

    def processed(self, shown: Sequence[Picture], features: Features) -> Sequence[Size]:
        side = self.image_processor.patch_size
        last = _of(features, "image_position_ids").amax(dim=1).tolist()
        return [((x + 1) * side, (y + 1) * side) for x, y in last]

    def put_together(self, features: Features, sent: Size) -> tuple[Any, Any]:
        side = self.image_processor.patch_size
        columns, rows = (_of(features, "image_position_ids")[0].amax(dim=0) + 1).tolist()
        patches = features["pixel_values"][0, : rows * columns]
        pixels = patches.reshape(rows, columns, side, side, 3).permute(0, 2, 1, 3, 4)
        return pixels.reshape(rows * side, columns * side, 3), None


class Tiles(ImageLayout):
    """InternVL: tiles row by row, and a thumbnail of the whole where there are several."""

    takes = frozenset({"patches"})

    def as_arguments(self) -> dict[str, Any]:
        if self.bounds.patches is None:
            return {}
        return {"crop_to_patches": True, "max_patches": self.bounds.patches}

    def in_force(self) -> dict[str, Any]:
        return self.bounds.overridden({"patches": self._patches}).as_dict()

    def processed(self, shown: Sequence[Picture], features: Features) -> Sequence[Size]:
        """That of the canvas which is cut into tiles; the features do not say it."""
        height, width = self._tile
        grids = [self._canvas(picture.sent) for picture in shown]
        return [(columns * width, rows * height) for columns, rows in grids]

    def put_together(self, features: Features, sent: Size) -> tuple[Any, Any]:
        values = features["pixel_values"]
        columns, rows = self._canvas(sent)
        height, width = values.shape[-2:]
        tiles = values[: columns * rows].reshape(rows, columns, 3, height, width)
        pixels = tiles.permute(0, 3, 1, 4, 2).reshape(rows * height, columns * width, 3)
        return pixels, values[-1].permute(1, 2, 0) if len(values) > columns * rows else None

    def with_thumbnails(
        self, features: Features, shown: Sequence[Picture], more: Mapping[str, Any]
    ) -> Features:
        """A thumbnail is made of the whole picture; from one that is resized already it would
        differ.  So the kept ones go to the places of those made of kept pictures.
        """
        grids = [columns * rows for columns, rows in (self._canvas(one.sent) for one in shown)]
        # A thumbnail comes behind its tiles, where these are several.
        ends = accumulate(tiles + (tiles > 1) for tiles in grids)
        for picture, end in zip(shown, ends, strict=True):
            if picture.thumbnail is not None:
                made = self.image_processor(
                    images=[picture.thumbnail], crop_to_patches=False, return_tensors="pt", **more
                )
                features["pixel_values"][end - 1] = made["pixel_values"][0]
        return features

    def _canvas(self, sent: Size) -> Size:
        """Columns and rows of the tiles that an image of a size is cut into."""
        from transformers.models.got_ocr2 import image_processing_got_ocr2 as tiles

        width, height = sent
        least = self.image_processor.min_patches
        columns, rows = tiles.get_optimal_tiled_canvas(
            (height, width), self._tile, least, self._patches
        )
        return columns, rows

    @property
    def _patches(self) -> int:
        """The greatest number of tiles."""
        return int(self.bounds.patches or self.image_processor.max_patches)

    @property
    def _tile(self) -> Size:
        """Height and width of a tile in pixels."""
        return self.image_processor.size["height"], self.image_processor.size["width"]
