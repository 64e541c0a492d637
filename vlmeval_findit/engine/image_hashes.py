"""The hashes of images that did not change since they were read last, without reading them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from ..core.file_hashes import FileHashes, Seen
from ..core.files import remove_left_behind, sha256_of, write_once
from .calls import ImageHashes


class RememberedHashes(ImageHashes):
    """The SHA-256 of images; those that did not change since are not read again.

    Args:
        path: where they are remembered; the file may be deleted.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        self._files = FileHashes(_remembered(path))

    def save(self) -> None:
        """Remember what was read.  What cannot be written is read again by the next run."""
        body = json.dumps(self._files.seen).encode()
        with suppress(OSError):
            remove_left_behind(self._path)
            if self._files.seen or self._path.exists():
                write_once(self._path, b"%s\n%s\n" % (sha256_of(body).encode(), body))

    def _sha256(self, path: Path) -> str:
        return self._files(path)


def _remembered(path: Path) -> Mapping[str, Seen]:
    """What a file of ours says; nothing where it is not there or damaged."""
    with suppress(OSError, ValueError):
        said, _, body = path.read_bytes().partition(b"\n")
        if said.decode() == sha256_of(body.removesuffix(b"\n")):
            return {name: Seen(*one) for name, one in json.loads(body).items()}
    return {}
