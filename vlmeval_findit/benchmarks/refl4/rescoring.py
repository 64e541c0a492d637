"""The score of a prediction file by Ref-L4's protocol, as one record to print or to write.

The file may be anybody's, in the authors' layout, or one of our runs over any dataset whose answers
are one box each.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ...core.evidence import clustered, evidence_of
from ...core.question import AnyTask
from ...core.scored_row import ScoredRow
from ...core.statistics import Interval, figure_intervals
from .annotations import Annotation, Split, unlike_release
from .figures import DIGITS, NAMES, ClassFigures, Figures, corrected_figures, figures
from .judging import Judged
from .metrics import CORRECTED, TWELVE, row_slices, row_sums
from .predictions import read_predictions
from .replies import JudgedReply, answered, scored_row
from .scoring import score
from .slices import Slice, slices
from .sums import By, Sums, sums
from .table import unlike_release_of
from .variant import IMAGES, RefL4Variant

TABLES = (By.SPLIT, By.SIZE, By.SOURCE, By.WORDS, By.WORDING, By.CLASS, By.CORRECTED)


@dataclass(frozen=True, slots=True)
class Rescored:
    """A prediction file's score.

    ``asked`` is how many expressions there are, ``failed`` how many calls failed: those are in none
    of the figures, and as misses in ``with_failures`` (acc_0.5).  ``misses`` counts by reason what
    has no box, ``unused`` predictions that are of no annotation.  ``unlike`` says how annotations
    of Ref-L4 are unlike those that were published.
    """

    of: str
    asked: int
    failed: int
    figures: Figures
    corrected: ClassFigures
    with_failures: float | None
    sums: Sums
    misses: Mapping[str, int]
    unused: int
    intervals: Mapping[str, Interval | None]
    """95 % over pictures, by the names of metrics; none where pictures are not known."""
    unlike: tuple[str, ...] = ()

    @property
    def answered(self) -> int:
        """How many expressions the figures count."""
        total = self.sums.get(By.TOTAL)
        return 0 if total is None else total.count

    @property
    def tables(self) -> dict[By, tuple[Slice, ...]]:
        """The slices that there are."""
        return {by: found for by in TABLES if (found := slices(self.sums, by))}


def of_file(path: Path, annotations: Sequence[Annotation], split: Split, where: str) -> Rescored:
    """The score of a file in the authors' layout; ``where`` names the annotations.

    Raises:
        RefusedError: it cannot be scored; its code says why.
    """
    found = score(annotations, read_predictions(path), split, (where, path.name))
    rows = [_row(one) for one in found.judged] if _pictures(annotations) else []
    return Rescored(
        of=f"Ref-L4 {split.value}",
        asked=len(found.judged),
        failed=0,
        figures=found.figures,
        corrected=found.corrected,
        with_failures=found.figures.acc_050,
        sums=found.sums,
        misses={reason.value: count for reason, count in found.sums.misses.items()},
        unused=found.unused,
        intervals=_intervals(rows, IMAGES),
        unlike=tuple(unlike_release(annotations, split)),
    )


def of_replies(task: AnyTask, found: Sequence[JudgedReply]) -> Rescored:
    """The score of replies to a task."""
    question = task.question
    queries: Mapping[int, Any] = task.queries
    unlike: list[str] = []
    if isinstance(question, RefL4Variant):
        unlike = unlike_release_of(list(queries.values()), question.split)
    judged = answered(found)
    added = sums(judged)
    figured = figures(added)
    failed = len(found) - len(judged)
    hits = sum(one.hits[0] for one in judged)
    reasons = Counter(
        one.matched.reading.reason.value if one.matched.reading.reason else "no box, as it may be"
        for one in found
        if one.judged.reason is not None and not one.matched.reply.failed
    )
    return Rescored(
        of=question.name,
        asked=len(queries),
        failed=failed,
        figures=figured,
        corrected=corrected_figures(added),
        with_failures=hits / len(found) * 100 if found else None,
        sums=added,
        misses=dict(reasons),
        unused=0,
        intervals=_intervals([scored_row(one) for one in found], question.images),
        unlike=tuple(unlike),
    )


def _pictures(annotations: Sequence[Annotation]) -> bool:
    return all(_picture(one) is not None for one in annotations)


def _picture(one: Annotation) -> str | None:
    """What tells the picture from others; case files have neither."""
    known = one.file_name if one.file_name is not None else one.image_id
    return None if known is None else str(known)


def _row(judged: Judged) -> ScoredRow:
    source = _picture(judged.annotation) or ""
    return ScoredRow(0, source, row_sums(judged), slices=row_slices(judged))


def _intervals(rows: Sequence[ScoredRow], images: str) -> dict[str, Interval | None]:
    if not rows:
        return {}
    return figure_intervals(evidence_of((*TWELVE, *CORRECTED), clustered(rows, images)))


# --- as text and as values ------------------------------------------------------------------------


def shown(value: float | None) -> str:
    """A figure as it is printed.

    >>> shown(52.4), shown(None)
    ('52.40', '–')
    """
    return "–" if value is None else f"{round(value, DIGITS):.{DIGITS}f}"


def lines(score: Rescored) -> list[tuple[str, str, str, str]]:
    """Name, figure, the same by the corrected classes ("": it has none) and interval."""
    other = asdict(score.corrected)
    said = []
    for name in NAMES:
        found = score.intervals.get(name)
        between = f"{shown(found.low)} to {shown(found.high)}" if found else ""
        corrected = shown(other[name]) if name in other else ""
        said.append((name, shown(score.figures.named[name]), corrected, between))
    return said


def as_values(score: Rescored) -> dict[str, Any]:
    """All of a score, as JSON has it."""
    named = score.figures.named
    corrected = asdict(score.corrected)
    return {
        "of": score.of,
        "expressions": score.asked,
        "answered": score.answered,
        "failed calls": score.failed,
        "figures": named,
        "rounded": dict(zip(NAMES, score.figures.rounded, strict=True)),
        "corrected": corrected,
        "corrected rounded": {
            name: None if value is None else round(value, DIGITS)
            for name, value in corrected.items()
        },
        "acc_0.5 with failed calls as misses": score.with_failures,
        "misses": dict(score.misses),
        "predictions of no annotation": score.unused,
        "intervals": {
            name: [one.low, one.high] if one else None for name, one in score.intervals.items()
        },
        "unlike the release": list(score.unlike),
        "slices": {
            by.value: [{**asdict(one), "by": by.value} for one in found]
            for by, found in score.tables.items()
        },
    }


def is_of_others(path: Path) -> bool:
    """Whether a file is in the authors' layout and not in that of a host's run.

    It is where an item has ``pred_bbox`` or ``format`` and none has ``prediction``; what can be
    neither is taken for one, and refused by its reader with what is wrong.
    """
    if path.suffix != ".json":
        return False
    try:
        items = json.loads(path.read_bytes().decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return True
    if not isinstance(items, list):
        return True
    return not any(isinstance(item, dict) and "prediction" in item for item in items)
