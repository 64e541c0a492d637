"""A dual encoder that counts words: what a caption shares with the description of a picture."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from vlmeval_findit.benchmarks.selfretrieval import benchmark
from vlmeval_findit.models import Padding, TextFeatures

SIDE = 256
LONGEST = 16


def features(texts: Sequence[str]) -> npt.NDArray[np.float32]:
    """Words counted in places that their letters say; the first place is never 0."""
    counts = np.zeros((len(texts), SIDE), dtype=np.float32)
    for row, text in enumerate(texts):
        counts[row, 0] = 0.5
        for word in text.lower().split():
            counts[row, 1 + zlib.crc32(word.encode()) % (SIDE - 1)] += 1
    return counts


@dataclass
class WordEncoder:
    """Encodes images by the names of their files; what is not described is an error."""

    name: str
    pictures: Mapping[str, str]
    asked: list[str] = field(default_factory=list)

    @property
    def facts(self) -> Mapping[str, str]:
        return {"identifier": self.name, "revision": f"of {self.name}", "torch": "9"}

    def images(self, paths: Sequence[Path]) -> npt.NDArray[np.float32]:
        self.asked += [path.name for path in paths]
        return features([self.pictures[path.name] for path in paths])

    def texts(self, captions: Sequence[str], padding: Padding) -> TextFeatures:
        # Without its padding it is another encoder, which mistakes every caption.
        sign = 1 if padding is Padding.AS_TRAINED else -1
        counts = tuple(len(caption.split()) for caption in captions)
        vectors = features([" ".join(c.split()[:LONGEST]) for c in captions]) * np.float32(sign)
        return TextFeatures(vectors, counts, tuple(count > LONGEST for count in counts))


def install(patch: pytest.MonkeyPatch, pictures: Mapping[str, str]) -> dict[str, WordEncoder]:
    """Replace every encoder by one that counts words; return those in use, by name."""
    loaded_encoders: dict[str, WordEncoder] = {}

    def loaded(name: str) -> WordEncoder:
        return loaded_encoders.setdefault(name, WordEncoder(name, pictures))

    patch.setattr(benchmark, "load_encoder", loaded)
    return loaded_encoders
