"""Features on disk, one file a vector, named by what it is the feature of and what made it.

Any number of processes may share a folder: files appear whole or not at all, and two that make the
same feature at once write the same file.  A vector takes 5 KB at most, so nothing is thrown away.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from ...core.files import sha256_of, write_once
from ...core.places import lmu_data_root
from .encoder import Vectors

log = logging.getLogger(__name__)

FOLDER = "findit_features"
"""Below VLMEvalKit's data folder."""


class KeptFeatures:
    """Vectors by what made them and the SHA-256 of what they are features of.

    Args:
        made_by: all that a vector depends on beside the content: other values are other vectors.
        folder: where to keep them (default: ``<LMUData>/findit_features``).
    """

    def __init__(self, made_by: Mapping[str, str], folder: Path | None = None) -> None:
        self._made_by = json.dumps(dict(made_by), sort_keys=True).encode()
        self._folder = lmu_data_root() / FOLDER if folder is None else folder

    def of(self, contents: Sequence[str], make: Callable[[Sequence[int]], Vectors]) -> Vectors:
        """The vectors of contents, named by their SHA-256: n x d.

        ``make`` is given the numbers of those that are not kept, each content once, and gives their
        vectors in that order; it is not called where all are kept.
        """
        found = {content: self._read(content) for content in set(contents)}
        first = {content: i for i, content in reversed([*enumerate(contents)])}
        missing = sorted(first[content] for content, known in found.items() if known is None)
        if missing:
            for i, vector in zip(missing, make(missing), strict=True):
                found[contents[i]] = vector
                self._write(contents[i], vector)
        vectors = [vector for content in contents if (vector := found[content]) is not None]
        return np.stack(vectors) if vectors else np.zeros((0, 0), dtype=np.float32)

    def _path(self, content: str) -> Path:
        key = sha256_of(self._made_by, b"\0", content.encode())
        return self._folder / key[:2] / f"{key}.f32"

    def _read(self, content: str) -> Vectors | None:
        try:
            return np.frombuffer(self._path(content).read_bytes(), dtype="<f4")
        except OSError:
            return None  # not kept, or out of reach: it is made anew

    def _write(self, content: str, vector: Vectors) -> None:
        path = self._path(content)
        try:
            write_once(path, vector.astype("<f4").tobytes())
        except OSError as error:
            log.warning("FindIt: a feature cannot be kept at %s: %s", path, error)
