"""Disk cache of large images as a checkpoint's processor resizes them (:mod:`..scene_cache`).

Another resize would give other pixels, perhaps another reply, so the processor itself resizes a
large image once. Its 8-bit pixels are stored losslessly, and are handed to the processor from then
on, which leaves that size alone.

This is verified: the stored pixels must give the same features as the file, to the last bit. If
not, that is remembered, and the image is decoded and resized for every group of queries.
"""

from __future__ import annotations

import io
import json
import logging
import zipfile
from collections.abc import Callable, Mapping
from functools import cache, cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from PIL import Image

from ...core.image_files import decode
from ..scene_cache import SceneCache, is_large, key_of, limit_of_runs
from .images import ModelImage, limited, stored_size
from .layout import Features, ImageLayout, LayoutError

log = logging.getLogger(__name__)

RAW: Mapping[str, Any] = MappingProxyType({"do_rescale": False, "do_normalize": False})
"""Stops an image processor after its resize, so that pixels keep their 8 bits."""

_LAYOUT = 1
"""Version of the stored format."""


class LargeImages:
    """The large images of one group of queries; the disk is used only if there are any.

    Args:
        layout: of the image processor.
        raw: what the processor makes of an image with :data:`RAW`.
        processor: its class, which may pass more options to the image processor.
    """

    def __init__(
        self, layout: ImageLayout, raw: Callable[[ModelImage], Features], processor: type[Any]
    ) -> None:
        self._layout = layout
        self._raw = raw
        self._processor = processor

    def get(self, path: str) -> ModelImage | None:
        """Return a large image as the processor resizes it; None if not large or not cacheable."""
        if not is_large(stored_size(path)) or self._cache is None:
            return None
        key = key_of(Path(path), self._identity)
        try:
            return _unpacked(self._cache.kept(key, lambda: self._make(path)))
        except (zipfile.BadZipFile, EOFError):
            log.warning("FindIt: what was kept of %s is damaged, and made anew", path)
            self._cache.drop(key)
            return _unpacked(self._cache.kept(key, lambda: self._make(path)))

    @cached_property
    def _cache(self) -> SceneCache | None:
        limit = limit_of_runs()
        return SceneCache(limit=limit) if limit else None

    @cached_property
    def _identity(self) -> str:
        says = {
            "layout": _LAYOUT,
            "processors": [str(self._processor), str(type(self._layout.image_processor))],
            "settings": self._layout.image_processor.to_dict(),
            "arguments": self._layout.as_arguments(),
            "two_step": self._layout.bounds.two_step,
            "software": _software(),
        }
        return json.dumps(says, sort_keys=True, default=str)

    def _make(self, path: str) -> bytes:
        whole = limited(decode(path), self._layout.bounds)
        features = self._raw(whole)
        small = resized(whole, features, self._layout)
        if small is None or not _same(features, self._raw(small)):
            log.warning(
                "FindIt: %s cannot be kept as the processor resizes it, and is decoded and resized "
                "again when it is asked for again",
                path,
            )
            return _packed(None)
        return _packed(small)


@cache
def _software() -> dict[str, str]:
    """Return versions of the resizing software, and the CPU capability that selects its kernels."""
    found = {"cpu": str(torch.backends.cpu.get_cpu_capability())}
    for name in ("torch", "torchvision", "transformers", "pillow"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _same(first: Features, second: Features) -> bool:
    return first.keys() == second.keys() and all(
        torch.equal(torch.as_tensor(first[key]), torch.as_tensor(second[key])) for key in first
    )


def resized(whole: ModelImage, features: Features, layout: ImageLayout) -> ModelImage | None:
    """Rebuild an image from its RAW ``features``, as the processor has resized it.

    None if the features are not 8-bit, or not in the family's layout.
    """
    if features["pixel_values"].dtype != torch.uint8:
        return None
    try:
        pixels, thumbnail = layout.put_together(features, whole.sent)
    except (LayoutError, RuntimeError):  # or sizes that do not fit the layout
        return None
    small = None if thumbnail is None else _image(thumbnail)
    return ModelImage(_image(pixels), whole.original, whole.sent, small)


def _image(pixels: Any) -> Image.Image:
    return Image.fromarray(pixels.contiguous().numpy())


def _packed(image: ModelImage | None) -> bytes:
    arrays = {}
    if image is not None:
        arrays = {"pixels": np.asarray(image.pixels), "original": np.array(image.original)}
        arrays["sent"] = np.array(image.sent)
        if image.thumbnail is not None:
            arrays["thumbnail"] = np.asarray(image.thumbnail)
    buffer = io.BytesIO()
    # Uncompressed: decompression would take as long as decoding the file.
    np.savez(buffer, **arrays)  # type: ignore[arg-type]
    return buffer.getvalue()


def _unpacked(data: bytes) -> ModelImage | None:
    with np.load(io.BytesIO(data)) as arrays:
        if "pixels" not in arrays:
            return None
        return ModelImage(
            pixels=Image.fromarray(arrays["pixels"]),
            original=_size(arrays["original"]),
            sent=_size(arrays["sent"]),
            thumbnail=Image.fromarray(arrays["thumbnail"]) if "thumbnail" in arrays else None,
        )


def _size(pair: Any) -> tuple[int, int]:
    width, height = pair.tolist()
    return width, height
