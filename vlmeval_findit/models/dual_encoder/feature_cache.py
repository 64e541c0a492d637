"""Disk cache of features: one file per vector, named by content and encoder.

Processes may share it: files are written atomically, and equal features are equal files. A vector
takes at most 5 KB, so nothing is evicted.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from ...core.files import sha256_of, write_once
from ...core.folders import lmu_data_root
from .encoder import Vectors

log = logging.getLogger(__name__)

FOLDER = "findit_features"
"""In VLMEvalKit's data folder."""


class FeatureCache:
    """Vectors by ``made_by``, all that they depend on besides the content, and its SHA-256."""

    def __init__(self, made_by: Mapping[str, str], folder: Path | None = None) -> None:
        self._made_by = json.dumps(dict(made_by), sort_keys=True).encode()
        self._folder = lmu_data_root() / FOLDER if folder is None else folder

    def of(self, contents: Sequence[str], make: Callable[[Sequence[int]], Vectors]) -> Vectors:
        """Return the vectors of contents given by SHA-256: n x d.

        ``make`` gets the indices of contents that are not stored, each content once, and returns
        their vectors in that order.
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
            return None  # not stored or unreadable: it is computed

    def _write(self, content: str, vector: Vectors) -> None:
        path = self._path(content)
        try:
            write_once(path, vector.astype("<f4").tobytes())
        except OSError as error:
            log.warning("FindIt: a feature cannot be kept at %s: %s", path, error)
