"""Tables of doubtful labels: a row each, and how many there are of each kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ..analysis.label_audit import AuditedRow, LabelAudit
from ..core.formatting import short
from ..protocol.reviews import Answer
from ..statistics.label_doubts import FAULTS, LabelFault
from .result_table import Field, FieldType, Note, Table, Value, count

_ASKED = 18  # Characters of an expression
_CHANGE = 24  # Characters of a correction

_PROBABILITY = Field("uncalibrated", FieldType.PROBABILITY)

UNCALIBRATED = Note(
    "uncalibrated",
    [
        "the probability that the label is wrong, if models err as is assumed; where they share "
        "mistakes it is too high. Reviews calibrate it"
    ],
)


def doubts_table(audit: LabelAudit, rows: Sequence[AuditedRow]) -> Table:
    """Make a row for each doubtful label, in their order."""
    fields = [count("row"), Field("asked"), Field("kind"), Field("models")]
    if audit.has_probabilities:
        fields.append(_PROBABILITY)
    fields.append(Field("proposal"))
    return Table(
        "Doubtful labels",
        fields,
        [_cells(audit, row) for row in rows],
        (UNCALIBRATED,) if audit.has_probabilities else (),
    )


def _cells(audit: LabelAudit, row: AuditedRow) -> list[Value]:
    asked = audit.dataset.queries[row.index].label
    kind = row.fault.value if row.fault is not None else ""
    cells: list[Value] = [row.index, short(asked, _ASKED), kind, f"{row.agreeing} of {row.models}"]
    if audit.has_probabilities:
        cells.append(row.p)
    return [*cells, short(change_of(row), _CHANGE)]


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
