"""The files of a run, in the folder of its predictions: ``<model>_<dataset>`` and a suffix.

The identity is written before the first call, the provenance (what the score rests on) last.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from ..core import read_json

SWEEP_JOURNAL = "calls.jsonl"  # The journal of a sweep, in its folder of results
PROVENANCE = "_provenance.json"  # Of the file that marks a run as scored


@dataclass(frozen=True, slots=True)
class RunFiles:
    """The files of one run, by its prediction file; none need exist.

    A score in another coordinate space than the run recorded, or with reviews of labels, has a
    ``mark`` in its files' names, so that it is not mistaken for the recorded score, and searches
    for scored runs skip it.

    >>> RunFiles(Path("runs/m_FindIt_Pascal_xyxy_json.tsv")).score.name
    'm_FindIt_Pascal_xyxy_json_score.csv'
    >>> RunFiles(Path("m_FindIt_Pascal_xyxy_json.tsv"), ".space-pixels").score.name
    'm_FindIt_Pascal_xyxy_json_score.space-pixels.csv'
    >>> RunFiles(Path("m_FindIt_Pascal_xyxy_json.tsv"), ".reviewed-1a2b3c4d").score.name
    'm_FindIt_Pascal_xyxy_json_score.reviewed-1a2b3c4d.csv'
    """

    predictions: Path
    mark: str = ""

    @property
    def identity(self) -> Path:
        return self._file("identity", ".json")

    @property
    def answered_by(self) -> Path:
        """Who answered a dataset of VLMEvalKit's own, of which there are none of the others."""
        return self._file("answered_by", ".json")

    @property
    def calls(self) -> Path:
        return self._file("calls", ".jsonl")

    @property
    def score(self) -> Path:
        return self._file("score", ".csv")

    @property
    def details(self) -> Path:
        return self._file("details", ".jsonl")

    @property
    def sums(self) -> Path:
        """The sums of the details in columns, which may be missing."""
        return self._file("sums", ".msgpack")

    @property
    def provenance(self) -> Path:
        return self._file("provenance", ".json")

    def _file(self, kind: str, suffix: str) -> Path:
        return self.predictions.with_name(f"{self.predictions.stem}_{kind}{self.mark}{suffix}")


# How the mark of a score in another space than the recorded space begins
OTHER_SPACE = ".space-"
# How the mark of a score with reviews begins, or its part behind the space; their digest follows
REVIEWED = ".reviewed-"

_MARK = rf"(?P<space>{re.escape(OTHER_SPACE)}.+?)?({re.escape(REVIEWED)}[0-9a-f]+)?"
_KIND = "provenance|identity|calls|score|details|sums"
_RESULT = re.compile(rf"(?P<run>.+)_({_KIND})(?P<mark>{_MARK})")


def run_of(path: Path) -> RunFiles:
    """Return the run that a file belongs to.

    >>> run_of(Path("m_FindIt_Pascal_xyxy_json_details.jsonl")).provenance.name
    'm_FindIt_Pascal_xyxy_json_provenance.json'
    >>> run_of(Path("m_FindIt_Pascal_xyxy_json_score.space-pixels.csv")).provenance.name
    'm_FindIt_Pascal_xyxy_json_provenance.space-pixels.json'
    """
    match = _RESULT.fullmatch(path.stem)
    if match is None:
        return RunFiles(path)
    return RunFiles(path.with_name(f"{match['run']}.json"), match["mark"])


def space_mark(mark: str) -> str:
    """Return the part of a mark that is of another space.

    >>> space_mark(".space-pixels.reviewed-1a2b3c4d"), space_mark(".reviewed-1a2b3c4d")
    ('.space-pixels', '')
    """
    match = re.fullmatch(_MARK, mark)
    return (match["space"] or "") if match else ""


def scores_in_other_spaces(folder: Path) -> list[Path]:
    """List the scores below a folder that are in another space than the recorded space."""
    matching = _matching(folder, f"*_provenance{OTHER_SPACE}*.json")
    return [path for path in matching if REVIEWED not in path.name]


def scores_with_reviews(folder: Path) -> list[Path]:
    """List the scores below a folder that are with reviews of labels."""
    return _matching(folder, f"*_provenance*{REVIEWED}*.json")


def _matching(folder: Path, pattern: str) -> list[Path]:
    records = files_below(folder, lambda path: fnmatch(path.name, "*_provenance*.json"))
    return sorted(path for path in records if fnmatch(path.name, pattern))


# Folder for further replies to each query, with a folder for each sample but the first
MORE_SAMPLES = "more_samples"


def sample_path(first: Path, sample: int | str) -> Path:
    """Return the predictions of another sample, by those of the first.

    >>> sample_path(Path("runs/m/m_FindIt_Pascal_xyxy_json.json"), 2).parent
    PosixPath('runs/m/more_samples/2')
    """
    return first.parent / MORE_SAMPLES / str(sample) / first.name


CHECKSUMS = "checksums.json"  # In every folder that ``export`` wrote
WRITTEN_BY = "vlmeval_findit export"  # How :data:`CHECKSUMS` says that ``export`` made a folder

PROBE_FILE = "probe.json"  # In every folder of a probe, which is no run of a benchmark
DEMO_FILE = "demonstration.json"  # In the folder of the demonstration's runs


def _any_file(path: Path) -> bool:
    return True


def files_below(folder: Path, is_wanted: Callable[[Path], bool] = _any_file) -> list[Path]:
    """List wanted files below a folder but those of exports, which copy runs, and further samples.

    Those of a probe or of the demonstration are listed only where nothing else is wanted. A folder
    of all these that is named itself has its files.
    """
    of_runs: list[Path] = []
    of_others: list[Path] = []
    for name, folders, files in os.walk(folder):
        place = Path(name)
        if CHECKSUMS in files and place != folder and _is_exported(place / CHECKSUMS):
            folders.clear()
            continue
        folders[:] = [folder for folder in folders if folder != MORE_SAMPLES]
        inside = filter(is_wanted, (place / file for file in files))
        if _is_marked(place, folder):
            of_others += inside
        else:
            of_runs += inside
    return of_runs or of_others


def _is_marked(place: Path, folder: Path) -> bool:
    """Tell whether a place below a folder is in a probe, or a demonstration, that is, too."""
    while place != folder:
        if (place / PROBE_FILE).is_file() or (place / DEMO_FILE).is_file():
            return True
        place = place.parent
    return False


def demonstrations_below(folder: Path) -> list[Path]:
    """List the folders below a folder that have the runs of a demonstration."""
    marked = []
    for name, _, files in os.walk(folder):
        if DEMO_FILE in files and Path(name) != folder:
            marked.append(Path(name))
    return marked


def _is_exported(checksums: Path) -> bool:
    try:
        values = read_json(checksums)
        return bool(values["written by"].startswith(WRITTEN_BY))
    except (AttributeError, KeyError, OSError, TypeError, ValueError):
        return False


def model_with_mark(model: str, mark: str) -> str:
    """Name a model whose score has a mark; reviews are of the dataset, not of the model.

    >>> model_with_mark("Qwen3-VL", ".space-pixels.reviewed-1a2b3c4d")
    'Qwen3-VL (space-pixels)'
    """
    space = space_mark(mark)
    return f"{model} ({space.removeprefix('.')})" if space else model
