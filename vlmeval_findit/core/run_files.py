"""The files of a run, all beside its predictions: ``<model>_<dataset>`` and a suffix.

The identity is written before the first call, the provenance (what the score rests on) last.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROVENANCE = "_provenance.json"  # Of the file that marks a run as scored


class _Beside:
    def __init__(self, ending: str) -> None:
        self._ending = ending

    def __get__(self, run: RunFiles, kind: type[RunFiles]) -> Path:
        return run.predictions.with_name(f"{run.predictions.stem}{self._ending}")


@dataclass(frozen=True, slots=True)
class RunFiles:
    """The files of one run, by its prediction file; none need exist.

    >>> RunFiles(Path("runs/m_FindIt_Pascal_xyxy_json.tsv")).score.name
    'm_FindIt_Pascal_xyxy_json_score.csv'
    """

    predictions: Path
    identity = _Beside("_identity.json")
    calls = _Beside("_calls.jsonl")
    score = _Beside("_score.csv")
    details = _Beside("_details.jsonl")
    provenance = _Beside(PROVENANCE)


_ENDINGS = ("_provenance", "_identity", "_calls", "_score", "_details")


def run_of(path: Path) -> RunFiles:
    """Return the run that a file belongs to.

    >>> run_of(Path("m_FindIt_Pascal_xyxy_json_details.jsonl")).provenance.name
    'm_FindIt_Pascal_xyxy_json_provenance.json'
    """
    stem = path.stem
    for ending in _ENDINGS:
        if stem.endswith(ending):
            return RunFiles(path.with_name(f"{stem.removesuffix(ending)}.json"))
    return RunFiles(path)


# --- values of files that others may have written or damaged --------------------------------------

Shape = Any  # A type, a union, ``[shape of items]`` or ``{key: shape}``, whose keys are optional


def read_json(text: str) -> Any:
    """Parse JSON without NaN and infinity."""
    return json.loads(text, parse_constant=_no_number)


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no figure")


def checked(value: Any, shape: Shape, at: str = "") -> Any:
    """Return a value if it has a shape; keys beside those of the shape are allowed.

    >>> checked({"tp": True}, {"tp": int})
    Traceback (most recent call last):
    TypeError: tp should not be True

    Raises:
        TypeError: it has not; the message says where.
    """
    if isinstance(shape, (dict, list)):
        if not isinstance(value, type(shape)):
            raise _other_shape(value, at)
        inner = ((key, shape[key]) for key in shape if key in value)
        if isinstance(shape, list):
            inner = ((place, shape[0]) for place in range(len(value)))
        for key, one in inner:
            checked(value[key], one, f"{at}.{key}" if at else f"{key}")
    # Python's bool is an int.
    elif not isinstance(value, shape) or (isinstance(value, bool) and shape is not bool):
        raise _other_shape(value, at)
    return value


def _other_shape(value: Any, at: str) -> TypeError:
    said = repr(value)
    return TypeError(f"{at or 'it'} should not be {said[:40]}{'…' * (len(said) > 40)}")
