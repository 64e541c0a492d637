"""Image folder that accepts only verified files, and nothing outside it."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from ...core import unsafe_name
from ...storage import Size, image_problem

# The folder below an image folder where files lie until they are whole
DOWNLOAD_PARTS = ".findit-parts"


class StoreError(ValueError):
    """A name that does not lead to a place below the folder."""


@dataclass(frozen=True, slots=True)
class ImageStore:
    """The image folder of a dataset."""

    folder: Path
    sizes: Mapping[str, Size | None]  # By name, relative to the folder; None: not known

    @property
    def parts(self) -> Path:
        """The folder of parts."""
        return self.folder / DOWNLOAD_PARTS

    def target(self, name: str) -> Path:
        """Return where an image belongs, or raise a StoreError."""
        why = unsafe_name(name)
        if why:
            raise StoreError(f"{name!r} {why}, so it is not below {self.folder}")
        target = self.folder / name
        if not target.parent.resolve().is_relative_to(self.folder.resolve()):
            raise StoreError(f"{target}: a link on the way leads out of {self.folder}")
        return target

    def part(self, name: str) -> Path:
        """Return where the bytes of an image lie until they are all there."""
        return self.parts / hashlib.sha256(name.encode()).hexdigest()[:24]

    def check(self, name: str, path: Path) -> str | None:
        """Say why a file is not the image of a name, or None."""
        return image_problem(path, self.sizes[name])

    def stage(self, name: str, write: Callable[[Path], object]) -> str | None:
        """Let ``write`` make the file of an image, not in its place yet; say why it is refused."""
        self.target(name)
        part = self._staged(name)
        part.parent.mkdir(parents=True, exist_ok=True)
        part.unlink(missing_ok=True)
        write(part)
        why = self.check(name, part)
        if why:
            part.unlink()
        return why

    def settle(self, name: str) -> None:
        """Move a staged image to its place."""
        target = self.target(name)
        target.parent.mkdir(parents=True, exist_ok=True)
        self._staged(name).replace(target)

    def _staged(self, name: str) -> Path:
        # Not the part of a download, which may be resumed later.
        return self.part(name).with_suffix(".new")

    def problems(self, names: Collection[str] | None = None) -> dict[str, str]:
        """Return those of some images (None: all) that are missing or wrong, and why.

        Every file is decoded.
        """
        looked_at = self.sizes if names is None else names
        with ThreadPoolExecutor(4) as pool:
            whys = pool.map(lambda name: self.check(name, self.folder / name), looked_at)
            return {name: why for name, why in zip(looked_at, whys, strict=True) if why}

    def clean_up(self) -> None:
        """Delete staged files, and the folder of parts if nothing in it can be resumed."""
        for path in self.parts.glob("*.new"):
            path.unlink()
        if self.parts.is_dir() and all(path.name == "lock" for path in self.parts.iterdir()):
            shutil.rmtree(self.parts)
