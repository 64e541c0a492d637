"""The files of a run: one description, for all that write or read them.

Everything lies beside the predictions and is named after them::

    <model>_<dataset>.json             predictions, in the host's layout (or .tsv, .xlsx)
    <model>_<dataset>_identity.json    what the run is, written before its first call
    <model>_<dataset>_calls.jsonl      its journal, under VLMEvalKit's runner
    <model>_<dataset>_score.csv        the score as one row
    <model>_<dataset>_details.jsonl    every query with its sums
    <model>_<dataset>_provenance.json  what the score rests on; written last

What is in the predictions is said by :mod:`.replies`, in the identity by :mod:`.identity`, in
details and provenance by the modules of those names in ``runs/``.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class RunFiles:
    """The files of one run, by its prediction file; none of them need be there.

    >>> RunFiles(Path("runs/m_FindIt_Pascal_xyxy_json.tsv")).score.name
    'm_FindIt_Pascal_xyxy_json_score.csv'
    """

    predictions: Path

    @property
    def identity(self) -> Path:
        return self._beside("_identity.json")

    @property
    def legacy_identity(self) -> Path:
        """The record of runs before 0.2: what was asked, and nothing of who answered."""
        return self._beside("_asked.json")

    @property
    def calls(self) -> Path:
        return self._beside("_calls.jsonl")

    @property
    def score(self) -> Path:
        return self._beside("_score.csv")

    @property
    def details(self) -> Path:
        return self._beside("_details.jsonl")

    @property
    def provenance(self) -> Path:
        return self._beside(PROVENANCE)

    @property
    def coco_results(self) -> Path:
        return self._beside("_coco_results.json")

    @property
    def coco_truth(self) -> Path:
        return self._beside("_coco_truth.json")

    def _beside(self, ending: str) -> Path:
        return self.predictions.with_name(f"{self.predictions.stem}{ending}")


PROVENANCE = "_provenance.json"
"""How the file ends that says that a run is scored."""

_ENDINGS = ("_provenance", "_identity", "_asked", "_calls", "_score", "_details")


def run_of(path: Path) -> RunFiles:
    """The run that a file is of, whichever of its files it is.

    >>> run_of(Path("m_FindIt_Pascal_xyxy_json_details.jsonl")).provenance.name
    'm_FindIt_Pascal_xyxy_json_provenance.json'
    """
    stem = path.stem
    for ending in _ENDINGS:
        if stem.endswith(ending):
            return RunFiles(path.with_name(f"{stem.removesuffix(ending)}.json"))
    return RunFiles(path)
