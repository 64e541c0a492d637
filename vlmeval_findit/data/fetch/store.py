"""A folder of images that only whole and right files get into, and nothing outside it."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from ...core.files import unsafe
from ...core.image_files import Size, problem

PARTS = ".findit-parts"
"""The folder below an image folder where files lie until they are whole."""


class StoreError(ValueError):
    """A name that does not lead to a place below the folder."""


@dataclass(frozen=True, slots=True)
class Store:
    """The image folder of a dataset, and the size that every image should have.

    ``sizes`` has every wanted name, relative to the folder; None where the size is not known.
    """

    folder: Path
    sizes: Mapping[str, Size | None]

    def target(self, name: str) -> Path:
        """Return where an image belongs, or raise a StoreError."""
        why = unsafe(name)
        if why:
            raise StoreError(f"{name!r} {why}, so it leads to no place below {self.folder}")
        target = self.folder / name
        if not target.parent.resolve().is_relative_to(self.folder.resolve()):
            raise StoreError(f"{target}: a link on the way leads out of {self.folder}")
        if target.is_dir():
            raise StoreError(f"{target} is a folder: move it away")
        return target

    def part(self, name: str) -> Path:
        """Where the bytes of an image lie until they are all there."""
        return self.parts() / hashlib.sha256(name.encode()).hexdigest()[:24]

    def parts(self) -> Path:
        """Return the folder of parts, or raise a StoreError."""
        parts = self.folder / PARTS
        if parts.is_symlink():
            raise StoreError(f"{parts} is a link: remove it")
        return parts

    def check(self, name: str, path: Path) -> str | None:
        """Why a file is not the image of a name, or None."""
        return problem(path, self.sizes[name])

    def stage(self, name: str, content: IO[bytes]) -> str | None:
        """Take an image from an archive, not to its place yet; returns why it was not taken."""
        return self._stage(name, lambda part: _copy(content, part))

    def fill(self, name: str, write: Callable[[Path], None]) -> str | None:
        """Let ``write`` make the file of an image; returns why it was not taken."""
        why = self._stage(name, write)
        if not why:
            self.settle(name)
        return why

    def _stage(self, name: str, write: Callable[[Path], None]) -> str | None:
        self.target(name)
        part = self._staged(name)
        part.parent.mkdir(parents=True, exist_ok=True)
        # A file of our own: what lies there may be a link that somebody else put there.
        part.unlink(missing_ok=True)
        write(part)
        why = self.check(name, part)
        if why:
            part.unlink()
        return why

    def settle(self, name: str) -> None:
        """Bring an image that was staged to its place."""
        target = self.target(name)
        target.parent.mkdir(parents=True, exist_ok=True)
        self._staged(name).replace(target)

    def _staged(self, name: str) -> Path:
        # Not the part of a download: that one may be gone on with later.
        return self.part(name).with_suffix(".new")

    def discard_staged(self) -> None:
        """Remove what was staged and never settled, now or by a run that was killed."""
        for path in (self.folder / PARTS).glob("*.new"):
            path.unlink()

    def look(self) -> dict[str, str]:
        """Every image that is not there or not right, and why.  Every file is decoded."""
        with ThreadPoolExecutor(4) as pool:
            whys = pool.map(lambda name: self.check(name, self.folder / name), self.sizes)
            return {name: why for name, why in zip(self.sizes, whys, strict=True) if why}

    def tidy(self) -> None:
        """Take the folder of parts away if nothing is left in it to go on from."""
        parts = self.folder / PARTS
        if parts.is_dir() and all(path.name == "lock" for path in parts.iterdir()):
            shutil.rmtree(parts)


def _copy(content: IO[bytes], part: Path) -> None:
    with part.open("xb") as f:
        shutil.copyfileobj(content, f)
