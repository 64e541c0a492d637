"""Whether one scorer scored runs, and what to type where two did.

Scores are compared only if one scorer made them: every reader of several runs asks
:func:`other_scorer`. Scoring again takes seconds, and no model.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path

from ..core import as_called
from .recorded_scorer import other_parts, part_in_words, scorer_now, scorer_parts
from .stored_runs import Run


def is_present(run: Run) -> bool:
    """Return whether the scorer that is here scored a run."""
    parts = scorer_parts(run.provenance.scored_with)
    return parts == scorer_now(parts)


def other_scorer(run: Run, other: Run) -> str:
    """Say that two runs were scored by other code, and what to type; "" if one scorer made both."""
    its = run.provenance.scored_with
    others = other.provenance.scored_with
    names = other_parts(its, others)
    if not names:
        return ""
    pairs = [f"{part_in_words(its, name)} and {part_in_words(others, name)}" for name in names]
    return (
        f"{run.path} and {other.path} were scored by two scorers: {'; '.join(pairs)}. Score both "
        f"again: {score_again((run, other))}"
    )


# Between what is wrong with scores and the command of :func:`score_again`
SCORE_AGAIN = "; score again: "


def score_again(runs: Sequence[Run]) -> str:
    """Return the command that scores runs again: their folder, or what several folders are in."""
    marked = [run for run in runs if run.mark]
    folders = {str(run.path.parent) for run in runs if not run.mark}
    words = ["score", *_above(folders), *(str(run.files.score) for run in marked)]
    if any(run.provenance.reviews for run in marked):
        words += ["--reviews", "FILE"]
    return as_called(f"python run_findit.py {shlex.join(words)}")


def _above(folders: Iterable[str]) -> list[str]:
    """Return the folder that all are in; all of them, where that is nearly the whole disk."""
    folders = sorted(folders)
    if len(folders) < 2:
        return folders
    try:
        common = Path(os.path.commonpath(folders))
    except ValueError:  # Relative and absolute, or of two drives
        return folders
    return folders if common in (Path(), Path(common.anchor), Path.home()) else [str(common)]
