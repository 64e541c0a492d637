"""The score of a caption file of others, as one record to print or to write."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ...core.benchmark import Scorer
from ...core.evidence import clustered, evidence_of
from ...core.metric import figures
from ...core.places import image_folder
from ...core.scored_row import ScoredRow, totals
from ...core.statistics import Interval, figure_intervals
from . import PREFIX
from .caption_files import Found, found_in, read_values, refuse_foreign
from .encoders import EncoderInForce
from .judging import judge
from .metrics import COUNTS, METRICS
from .pairs import SETS, Pair, Side, load_task
from .release import read_release
from .scoring import scored_row

DIGITS = 2
"""To which figures are rounded, as the authors' are."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """Pairs that captions are of: the file, the folder of their pictures, and the table whose
    encoder scores them by default."""

    file: Path
    folder: Path
    table: str
    pairs: tuple[Pair, ...]


def pairs_of(data: str) -> Pairs:
    """The pairs of a dataset's name, or of a file like the authors'.

    The pictures of such a file lie where those of ``SelfRetrieval`` do.

    Raises:
        QuestionError: there is no such dataset, and no such file.
        FileNotFoundError: its table is nowhere.
        TableError: table or file cannot be read.
    """
    path = Path(data)
    if data not in SETS and path.is_file():
        return Pairs(path, image_folder(PREFIX).path, PREFIX, read_release(path).pairs)
    task = load_task(data)
    folder = image_folder(task.question.images).path
    return Pairs(task.table, folder, task.question.table, tuple(task.queries.values()))


@dataclass(frozen=True, slots=True)
class Rescored:
    """A caption file's score.  Captions that are not there are wrong; ``found`` says which."""

    figures: Mapping[str, float | None]
    intervals: Mapping[str, Interval | None]
    sums: Mapping[str, float]
    found: Found
    rows: tuple[ScoredRow, ...]
    scorer: Scorer


def of_file(path: Path, given: Pairs, chosen: EncoderInForce) -> Rescored:
    """The score of a caption file.

    Raises:
        CaptionFileError: it holds no captions, or none of these pairs.
        ZeroLengthError: a feature has no direction.
        OSError: a picture cannot be read.
    """
    values = read_values(path)
    found = found_in(values, [pair.uid for pair in given.pairs])
    refuse_foreign(path, values, found)
    captions = list(found.captions.values())
    judged = judge(given.pairs, captions, given.folder, chosen.encoder)
    rows = tuple(map(scored_row, given.pairs, judged))
    sums = totals(rows)
    evidence = evidence_of(METRICS, clustered(rows, given.table))
    return Rescored(
        figures=figures(METRICS, sums),
        intervals=figure_intervals(evidence),
        sums=sums,
        found=found,
        rows=rows,
        scorer=chosen.scorer,
    )


def as_values(score: Rescored) -> dict[str, Any]:
    """All of a score, as JSON has it; ``pairs`` are by uid."""
    missing = score.found.missing
    return {
        "of": len(score.rows),
        "scorer": asdict(score.scorer),
        "figures": dict(score.figures),
        "rounded": {
            name: None if value is None else round(value, DIGITS)
            for name, value in score.figures.items()
        },
        "intervals": {
            name: [one.low, one.high] if one else None for name, one in score.intervals.items()
        },
        "counts": {name: int(score.sums.get(key, 0)) for name, key in COUNTS.items()},
        "missing": [[uid, side.value] for uid, side in missing],
        "reasons": reasons(score),
        "unknown": list(score.found.unknown),
        "pairs": {
            row.source: {side.value: row.details[side.value] for side in Side} for row in score.rows
        },
    }


def reasons(score: Rescored) -> dict[str, int]:
    """How many captions are missing, by reason."""
    said: Sequence[Any] = [both.of(side) for both in score.found.captions.values() for side in Side]
    return dict(Counter(one.why.value for one in said if one.why is not None))
