"""Cases of three kinds: features and what is right, replies and their captions, caption files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

from ...core.conformance import Agreement, Protocols, tried
from ...core.spelling import nearest
from . import PROTOCOL
from .caption_files import Found, found_in
from .captions import read_unrecorded, why_of
from .retrieval import ZeroLengthError, is_right, similarities

CaseRow = Mapping[str, Any]


def agreement(path: Path, subsets: Path | None = None) -> Agreement:
    """Try the cases of a file, which need no annotations; see :func:`.tried` for errors."""
    return tried(path, difference)


def difference(case: CaseRow) -> str | None:
    """How ours differs from what a case says; None where it does not."""
    kind = str(case["kind"])
    if kind not in KINDS:
        raise ValueError(f"no kind of case {kind!r}{nearest(kind, KINDS)}")
    return KINDS[kind](case)


PROTOCOLS: Protocols = {PROTOCOL: agreement}


def _features(case: CaseRow) -> str | None:
    refused = isinstance(case.get("better"), str) and case["better"].startswith("refuse")
    try:
        right = {str(pair["uid"]): _right(pair) for pair in case["pairs"]}
    except ZeroLengthError as error:
        return None if refused else f"refused: {error}"
    if refused:
        return "scored, should be refused"
    both = [min(marks) for marks in right.values()]
    ours = {
        "right": right,
        "pair_share": {uid: mean(marks) for uid, marks in right.items()},
        "pair_both": {uid: int(min(marks)) for uid, marks in right.items()},
        "both_percent": round(100 * mean(both), 2),
        "captions_percent": round(100 * mean(mean(marks) for marks in right.values()), 2),
    }
    return _unlike(ours, case["authors"])


def _right(pair: CaseRow) -> list[float]:
    """1.0 for a right caption, 0.0 for a wrong one: left, right."""
    texts, pictures = (np.asarray(pair[key], dtype=np.float32) for key in ("text", "image"))
    return [float(mark) for mark in is_right(similarities(texts, pictures, pictures[::-1]))]


def _reply(case: CaseRow) -> str | None:
    found = read_unrecorded(case["reply"])
    why = why_of(found)
    ours = {
        "left": found.left.caption,
        "right": found.right.caption,
        "why": None if why is None else why.value,
    }
    return _unlike(ours, case["sensible"])


def _file(case: CaseRow) -> str | None:
    found: Found = found_in(case["captions"], case["uids"])
    ours = {
        "missing": [[uid, side.value] for uid, side in found.missing],
        "unknown": list(found.unknown),
    }
    return _unlike(ours, case["better"])


def _unlike(ours: CaseRow, expected: CaseRow) -> str | None:
    for name, value in expected.items():
        if name not in ours:
            return f"no {name} here, should be {value!r:.60}"
        if ours[name] != value:
            return f"{name} is {ours[name]!r:.60}, should be {value!r:.60}"
    return None


KINDS: Mapping[str, Callable[[CaseRow], str | None]] = {
    "features": _features,
    "reply": _reply,
    "file": _file,
}
"""By the kind of a case how it differs from what it should be; None where it agrees."""
