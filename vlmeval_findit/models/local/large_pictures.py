"""Large pictures as a checkpoint's processor resizes them, kept on disk (:mod:`..scene_cache`).

The processor's own resize must not be replaced: another filter or another rounding is another
picture, and perhaps another reply.  So the processor itself resizes a large picture, once, and its
pixels are kept as they are (8 bits, nothing lost).  What it is handed from then on is a picture of
the size that it would choose, which its resize leaves alone.

That it does is not assumed: before pixels are kept, the processor is shown them, and must make of
them what it made of the file, to the last bit.  Where it does not, that is remembered, and the
picture is decoded and resized anew for every group of queries.
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
from .layout import Features, ImageLayout, LayoutError
from .pictures import Picture, limited, stored_size

log = logging.getLogger(__name__)

RAW: Mapping[str, Any] = MappingProxyType({"do_rescale": False, "do_normalize": False})
"""Tells an image processor to stop after its resize, so that pixels keep their 8 bits."""

_LAYOUT = 1
"""Goes up when what is kept is laid out otherwise."""


class LargePictures:
    """The pictures of one group of queries that have so many pixels that they are kept.

    Args:
        layout: how the image processor lays out images.
        raw: what the processor makes of a picture when it is told :data:`RAW`.
        processor: its class, which may tell the image processor more.

    Nothing is looked for on disk before a picture is large.
    """

    def __init__(
        self, layout: ImageLayout, raw: Callable[[Picture], Features], processor: type[Any]
    ) -> None:
        self._layout = layout
        self._raw = raw
        self._processor = processor

    def get(self, path: str) -> Picture | None:
        """A large picture as the processor resizes it; None for one that is not large or kept.

        Raises:
            OSError: the file is missing or broken.
        """
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
        """All that decides on the pixels besides the file."""
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
    """Versions of what resizes; and what the processor can do, on which its kernels depend."""
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


# --- from a processor's features back to pixels ---------------------------------------------------


def resized(whole: Picture, features: Features, layout: ImageLayout) -> Picture | None:
    """A picture as the processor has resized it, put together from what it made of it.

    Args:
        whole: the picture that it was handed.
        features: what it returned for this one picture, told :data:`RAW`.
        layout: how its features are laid out.

    Returns:
        None where features are not 8 bits a number, or not laid out as the family says.
    """
    if features["pixel_values"].dtype != torch.uint8:
        return None
    try:
        pixels, thumbnail = layout.put_together(features, whole.sent)
    except (LayoutError, RuntimeError):  # or numbers that do not add up to such a layout
        return None
    small = None if thumbnail is None else _image(thumbnail)
    return Picture(_image(pixels), whole.original, whole.sent, small)


def _image(pixels: Any) -> Image.Image:
    return Image.fromarray(pixels.contiguous().numpy())


# --- on disk --------------------------------------------------------------------------------------


def _packed(picture: Picture | None) -> bytes:
    """A picture as a file's bytes; None says that this one cannot be kept."""
    arrays = {}
    if picture is not None:
        arrays = {"pixels": np.asarray(picture.pixels), "original": np.array(picture.original)}
        arrays["sent"] = np.array(picture.sent)
        if picture.thumbnail is not None:
            arrays["thumbnail"] = np.asarray(picture.thumbnail)
    buffer = io.BytesIO()
    # Not compressed: reading it back would take as long as decoding the file.
    np.savez(buffer, **arrays)  # type: ignore[arg-type]
    return buffer.getvalue()


def _unpacked(data: bytes) -> Picture | None:
    with np.load(io.BytesIO(data)) as arrays:
        if "pixels" not in arrays:
            return None
        return Picture(
            pixels=Image.fromarray(arrays["pixels"]),
            original=_size(arrays["original"]),
            sent=_size(arrays["sent"]),
            thumbnail=Image.fromarray(arrays["thumbnail"]) if "thumbnail" in arrays else None,
        )


def _size(pair: Any) -> tuple[int, int]:
    width, height = pair.tolist()
    return width, height
