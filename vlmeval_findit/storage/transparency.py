"""Transparent images are laid on white, as the models' processors do.

What colours lie below full transparency is arbitrary: viewers do not show them, and neither an
annotator nor a model should see them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from PIL import Image

_WITH_ALPHA = ("LA", "La", "PA", "RGBA", "RGBa")
_WITH_KEY = ("1", "L", "P", "RGB")  # Pillow's modes that ``transparency`` can belong to
_WHITE = (255, 255, 255)
_OPAQUE = 255

_SCALES = {"L;2": 85, "L;4": 17}  # From a PNG's 2 or 4 bits to 8, by Pillow's raw mode
_OF_16_BITS = "RGB;16B"


def may_be_transparent(image: Image.Image) -> bool:
    """Tell from an image's header whether its pixels may be transparent."""
    return image.mode in _WITH_ALPHA or (image.mode in _WITH_KEY and "transparency" in image.info)


def is_transparent(image: Image.Image) -> bool:
    """Return whether any pixel is transparent, at least partly; decodes it only if it may be."""
    return may_be_transparent(image) and not _is_opaque(_with_alpha(image))


def as_rgb(image: Image.Image) -> Image.Image:
    """Convert an image to RGB; what is transparent is laid on white."""
    from PIL import Image

    if not may_be_transparent(image):
        return image.convert("RGB")
    layer = _with_alpha(image)
    if _is_opaque(layer):
        return image.convert("RGB")
    white = Image.new("RGB", layer.size, _WHITE)
    white.paste(layer, mask=layer.getchannel("A"))
    return white


def _is_opaque(layer: Image.Image) -> bool:
    least: Any = layer.getchannel("A").getextrema()[0]
    return bool(least == _OPAQUE)


def _with_alpha(image: Image.Image) -> Image.Image:
    if image.mode == "La":
        image = image.convert("LA")
    key = image.info.get("transparency")
    if image.mode in ("L", "RGB") and key is not None:
        image.info["transparency"] = _key_in_8_bits(key, _raw_mode(image))
    return image.convert("RGBA")


def _raw_mode(image: Image.Image) -> str:
    """Return how the file stores pixels, as long as they are not decoded; else ""."""
    tiles: Any = getattr(image, "tile", None)
    return str(tiles[0][3]) if tiles else ""


def _key_in_8_bits(key: Any, raw_mode: str) -> Any:
    """Convert the transparent colour of a PNG, which Pillow leaves in the file's bits."""
    if isinstance(key, int):
        return key * _SCALES.get(raw_mode, 1)
    if raw_mode == _OF_16_BITS:
        return tuple(value >> 8 for value in key)
    return key
