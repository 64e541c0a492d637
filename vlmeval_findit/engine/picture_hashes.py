"""The hashes of pictures that did not change since they were read last, without reading them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ..core.file_hashes import FileHashes, Seen
from .calls import ImageHashes


class PictureHashes(ImageHashes):
    """The SHA-256 of pictures, of those that did not change since from memory.

    Args:
        before: what is remembered, by absolute path.
    """

    def __init__(self, before: Mapping[str, Seen] | None = None) -> None:
        super().__init__()
        self._files = FileHashes(before)

    @property
    def seen(self) -> Mapping[str, Seen]:
        """What is remembered, by absolute path."""
        return self._files.seen

    def _sha256(self, path: Path) -> str:
        return self._files(path)
