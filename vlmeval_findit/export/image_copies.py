"""Copies of images for programs that would show other pixels than those that were asked about."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from PIL import Image

from ..storage import Size, decode_image, orientation

IMAGES = "images"  # The folder of copies


def is_turned(path: Path) -> bool:
    """Return whether EXIF turns an image, so that programs see two pictures in it.

    False for an image that is not there or cannot be read.
    """
    try:
        return orientation(path).of_decoded != 1
    except OSError:
        return False


@dataclass(slots=True)
class ImageCopies:
    """Copies that are named now and written later: stored pixels, on white where transparent."""

    out: Path  # The folder of the export
    _sources: dict[str, tuple[Path, Size]] = field(default_factory=dict)  # By name

    def __len__(self) -> int:
        """Return the number of copies."""
        return len(self._sources)

    def add(self, path: Path, size: Size) -> str:
        """Return the path of a copy of an image in a size."""
        width, height = size
        digest = sha256(str(path).encode("utf-8", "surrogateescape")).hexdigest()[:12]
        name = f"{path.stem}-{digest}-{width}x{height}.png"
        self._sources[name] = (path, size)
        return str((self.out / IMAGES / name).absolute())

    def write(self, folder: Path) -> None:
        """Write the copies below the folder that will be the export's."""
        if self._sources:
            (folder / IMAGES).mkdir()
        for name, (path, size) in self._sources.items():
            image = decode_image(path)
            if image.size != size:
                image = image.resize(size, Image.Resampling.BICUBIC)
            image.info.clear()
            image.save(folder / IMAGES / name, "PNG")
