"""Tables of doubtful labels: a row each, and how many there are of each kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from ..analysis import FEWEST_LISTED, FEWEST_RANDOM, AuditedRow, LabelAudit
from ..core import counted, shorten
from ..protocol import Answer
from ..statistics import FAULTS, DoubtCalibration, LabelFault
from .columns import Column, count_column, table_of
from .result_table import NONE, Note, Table, TableCell

_ASKED = 18  # Characters of an expression
_CHANGE = 24  # Characters of a correction

REVIEWED = "✓"  # Sign of a row that is reviewed

_CALIBRATED = "calibrated"
_ORDER = Note(
    "order",
    [
        "first what models contradict, then boxes that they should have found; without reviews "
        "nobody knows how probably a label is wrong, as models share mistakes"
    ],
)


def doubts_table(audit: LabelAudit, rows: Sequence[AuditedRow]) -> Table:
    """Make a row for each doubtful label, in their order."""
    queries = audit.dataset.queries
    columns: list[Column[AuditedRow]] = [
        count_column(
            "row",
            lambda row: TableCell(row.index, sign=REVIEWED if row.index in audit.decided else ""),
        ),
        Column("asked", lambda row: shorten(queries[row.index].label, _ASKED)),
        Column("kind", lambda row: row.fault.value if row.fault is not None else ""),
        Column("models", lambda row: f"{row.agreeing} of {row.models}"),
    ]
    if _fit(audit) is not None:
        columns.append(Column(_CALIBRATED, lambda row: probability_text(audit.calibrated(row))))
    columns.append(Column("proposal", lambda row: shorten(change_of(row), _CHANGE)))
    return table_of("Doubtful labels", columns, rows, tuple(_notes(audit)))


def _fit(audit: LabelAudit) -> DoubtCalibration | None:
    return audit.calibration.fit if audit.calibration is not None else None


def _notes(audit: LabelAudit) -> Iterator[Note]:
    if audit.has_probabilities and _fit(audit) is None:
        yield _ORDER
    if audit.has_probabilities:
        yield Note("calibration", [calibration_text(audit)])
    if audit.decided:
        yield Note(REVIEWED, [f"reviewed: {counted(len(audit.decided), 'row')} of the table"])


def calibration_text(audit: LabelAudit) -> str:
    """Say by how many reviewed rows probabilities are calibrated, or how many that needs."""
    needed = f"{FEWEST_LISTED} listed and {FEWEST_RANDOM} random rows"
    calibration = audit.calibration
    if calibration is None:
        return f"needs reviews of {needed}"
    reviewed = f"{calibration.listed} listed and {calibration.random} random rows"
    if calibration.fit is None:
        return f"needs reviews of {needed}; there are {reviewed}"
    return f"by the reviews of {reviewed}; the list is as without them"


def probability_text(p: float | None) -> str:
    """Write a probability with two digits; never 1, which it never is.

    >>> probability_text(0.532), probability_text(0.998), probability_text(0.002)
    ('0.53', '>0.99', '<0.01')
    """
    if p is None:
        return NONE
    if p > 0.99:
        return ">0.99"
    return f"{p:.2f}" if p >= 0.01 else "<0.01"


def change_of(row: AuditedRow) -> str:
    """Write a correction: boxes that it adds or moves (+), that it leaves out (-), or a class.

    >>> label = Answer(((0.0, 0.0, 9.0, 9.0),), ("cat",))
    >>> proposal = Answer(((0.0, 0.0, 9.0, 9.0),), ("dog",))
    >>> change_of(AuditedRow(3, 0.9, LabelFault.WRONG_CLASS, label, proposal, 2, 3, ()))
    'cat: dog'
    """
    before = _objects(row.label)
    after = _objects(row.proposal)
    added = [each for each in after if each not in before]
    removed = [each for each in before if each not in after]
    if row.fault is LabelFault.WRONG_CLASS:
        names = {box: name for name, box in added}
        pairs = [f"{name}: {names[box]}" for name, box in removed if box in names]
        if pairs:
            return ", ".join(pairs)
    if added:
        return ", ".join(f"+{_numbers(box)}" for _, box in added)
    return ", ".join(f"-{_numbers(box)}" for _, box in removed)


def _objects(answer: Answer) -> list[tuple[str, tuple[float, ...]]]:
    names = answer.labels or ("",) * len(answer.boxes)
    return list(zip(names, answer.boxes, strict=True))


def _numbers(box: Sequence[float]) -> str:
    return " ".join(f"{number:.0f}" for number in box)


def kinds_line(rows: Sequence[AuditedRow]) -> str:
    """Count doubtful labels by kind: ``wrong object 12, box 7``."""
    counts = Counter(row.fault for row in rows)
    named = [f"{fault.value} {counts[fault]}" for fault in FAULTS if counts[fault]]
    return ", ".join(named)
