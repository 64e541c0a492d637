"""The seal of a score: by hashes, what the score rests on and what its files hold.

A sweep whose calls are finished uses a sealed score as it is, where nothing changed. The seal is
the last value of the provenance, and hashes the others too, so that an edited file has none.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ..core import file_sha256, read_json, sha256_of
from ..protocol import SumKey, SumName
from ..storage import RunFiles
from .provenance import Provenance, provenance_from
from .row_scoring import RunScore

SEAL = "seal"  # Key of a provenance


class ScoreBasis(NamedTuple):
    """What a score rests on, as SHA-256."""

    rows: str  # Of all that makes the rows of the prediction file
    score: str  # Of all else that decides their score


@dataclass(frozen=True, slots=True)
class SealedScore:
    """A provenance that nobody edited since it was sealed."""

    files: RunFiles
    provenance: Provenance
    seal: Mapping[str, Any]

    @property
    def basis(self) -> ScoreBasis:
        return ScoreBasis(*self.seal["basis"])

    @property
    def sums(self) -> dict[SumName, float]:
        """The sums of the run, in their order."""
        return {_key(*words): total for *words, total in self.seal["sums"]}

    @property
    def failed(self) -> int:
        """Number of rows without an answer, or without log-probabilities that were requested."""
        return int(self.seal["failed"])

    def has_its_predictions(self) -> bool:
        """Return whether the prediction file is the one that was scored."""
        path = self.files.predictions
        return path.is_file() and file_sha256(path) == self.provenance.predictions_sha256

    def has_its_results(self) -> bool:
        """Return whether score and details are as they were written."""
        paths = (self.files.score, self.files.details)
        return all(path.is_file() for path in paths) and self.seal["files"] == _hashes(self.files)


def seal_of(
    values: Mapping[str, Any], run: RunScore, files: RunFiles, basis: ScoreBasis, failed: int
) -> dict[str, Any]:
    """Return the seal of a provenance whose score and details are written.

    ``failed`` is the number of calls to be made again.
    """
    seal = {
        "basis": list(basis),
        "files": _hashes(files),
        "sums": [[*_words(key), total] for key, total in run.sums.items()],
        "failed": failed,
    }
    return {**seal, "sha256": _sha256({**values, SEAL: seal})}


def read_sealed(files: RunFiles) -> SealedScore | None:
    """Read a sealed score; None if there is none, or if its provenance was edited or damaged."""
    try:
        values = read_json(files.provenance)
        seal = dict(values[SEAL])
        sealed_as = seal.pop("sha256")
        actual = _sha256({**values, SEAL: seal})
        provenance = provenance_from(values)
    except (KeyError, OSError, RecursionError, TypeError, ValueError):
        return None
    return SealedScore(files, provenance, seal) if actual == sealed_as else None


def alike_but_for_time(one: Path, other: Path) -> bool:
    """Return whether two provenances say the same, whenever their scores were made."""
    return _without_time(one) == _without_time(other)


def _without_time(path: Path) -> object:
    """Return the values of a provenance without its time, and without the hash over that."""
    try:
        values = dict(read_json(path))
    except (OSError, RecursionError, TypeError, ValueError):
        return path  # Damaged: it is like no other
    values.pop("scored_at", None)
    seal = values.get(SEAL)
    if isinstance(seal, dict):
        values[SEAL] = {name: value for name, value in seal.items() if name != "sha256"}
    return values


def _hashes(files: RunFiles) -> list[str]:
    return [file_sha256(files.score), file_sha256(files.details)]


def _sha256(values: Mapping[str, Any]) -> str:
    return sha256_of(json.dumps(values).encode())


def _words(key: SumName) -> tuple[str, ...]:
    """Return a key as its name, or as name, kind and value of a slice."""
    return tuple(key) if isinstance(key, SumKey) else (key,)


def _key(*words: str) -> SumName:
    return SumKey(*words) if len(words) > 1 else words[0]
