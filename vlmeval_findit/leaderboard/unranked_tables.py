"""Tables of average precision without confidences, as papers have it of detection sets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from math import ceil

from ..analysis import UnrankedPrecision, UnrankedValues, mean_unranked
from ..core import counted, first_few
from .columns import Column, count_column, plain_value_column, table_of
from .result_table import Note, Table


@dataclass(frozen=True, slots=True)
class UnrankedRun:
    """A run with its average precision without confidences."""

    model: str
    format: str
    dataset: str
    precision: UnrankedPrecision


@dataclass(frozen=True, slots=True)
class _Row:
    name: str
    images: int
    values: UnrankedValues


_COLUMNS: Sequence[Column[_Row]] = (
    Column("dataset", lambda row: row.name),
    count_column("images", lambda row: row.images),
    plain_value_column("mAP", lambda row: row.values.ap),
    plain_value_column("AP50", lambda row: row.values.ap50),
    plain_value_column("AP75", lambda row: row.values.ap75),
    plain_value_column("lowest", lambda row: row.values.low),
    plain_value_column("expected", lambda row: row.values.expected),
    plain_value_column("highest", lambda row: row.values.high),
)

_MEANINGS = (
    "mAP, AP50, AP75: COCO's, by pycocotools, all confidences equal: boxes of images with smaller "
    "numbers first, within an image in the order of the reply",
    "lowest, expected, highest: over all orders of the boxes of each class, in which they are "
    "matched and ranked; one order holds for all IoU thresholds. expected: all orders equally "
    "likely; lowest and highest: an order reaches them",
)


def unranked_table(runs: Sequence[UnrankedRun]) -> Table:
    """Make a row for each dataset of a model in a format, and of several one for their mean.

    Where a dataset has several runs there is no mean.
    """
    rows = [_Row(run.dataset, run.precision.images, run.precision.values) for run in runs]
    if len({row.name for row in rows}) == len(rows) > 1:
        mean = mean_unranked([row.values for row in rows])
        images = sum(row.images for row in rows)
        rows.append(_Row(f"mean of {len(rows)}", images, mean))
    return table_of(f"Average precision: {runs[0].model}, {runs[0].format}", _COLUMNS, rows)


def explain_unranked(runs: Sequence[UnrankedRun]) -> Note:
    """Explain the columns, and say what does not count, or not as papers have it."""
    lines = list(_MEANINGS)
    within = max(run.precision.values.within for run in runs)
    if any(run.precision.values.simulated for run in runs):
        lines.append(
            f"expected: exact, or within {_at_most(within)} points where many boxes compete for "
            "objects, or an image has more than count (three standard errors over drawn orders)"
        )
    elif within:
        lines.append(f"expected: exact, or within {_at_most(within)} points where boxes are many")
    lines += _ends_in_doubt(runs)
    lines += _not_counted(runs)
    cut = [run for run in runs if run.precision.beyond]
    if cut:
        boxes = sum(run.precision.beyond for run in cut)
        images = counted(sum(run.precision.images_cut for run in cut), "image")
        lines.append(
            f"{counted(boxes, 'box')} beyond the 100 of a class that count in an image, in {images}"
            f": mAP, AP50 and AP75 leave out the last ones of the reply, each order its own last "
            f"ones ({_names(cut)})"
        )
    missing = [run for run in runs if run.precision.missing]
    if missing:
        queries = counted(sum(run.precision.missing for run in missing), "query", "queries")
        lines.append(
            f"not of the whole set ({_names(missing)}): {queries} without a row in the prediction "
            "file, whose objects are not counted; pycocotools counts them as missed. Type the "
            "run's command again without --limit; a file of another program needs a row for each"
        )
    partly = [run for run in runs if run.precision.unasked and not run.precision.asks_for_all]
    if partly:
        lines.append(
            f"not as papers ask ({_names(partly)}): some images are not asked about all "
            "classes, so boxes of what is not there are missing. Those of ODinW13_papers are, and "
            "yours after data import --all-classes"
        )
    left_out = [run for run in runs if run.precision.unasked and run.precision.asks_for_all]
    if left_out:
        count = sum(run.precision.unasked for run in left_out)
        lines.append(
            f"not as papers ask ({_names(left_out)}): the import left out "
            f"{counted(count, 'query', 'queries')} about a class of an image"
        )
    lines += _unlike_others(runs)
    return Note("", lines)


def _unlike_others(runs: Sequence[UnrankedRun]) -> list[str]:
    """Say by what sets differ from the user's file as pycocotools reads it, and as published."""
    lines = []
    for run in runs:
        name = _names([run])
        changes = run.precision.unlike_file
        if changes:
            by = "; ".join(f"{what} ({count:,})" for what, count in changes.items())
            lines.append(f"differs from pycocotools of your file by ({name}): {by}")
        if run.precision.unlike_published:
            why = run.precision.unlike_published
            lines.append(f"differs from the published set ({name}): {why}")
    return list(dict.fromkeys(lines))


def _not_counted(runs: Sequence[UnrankedRun]) -> list[str]:
    """Say what does not count as a box, and in which runs."""
    counts: dict[str, Callable[[UnrankedPrecision], int]] = {
        "failed calls, as answers without a box (export --to coco leaves them and their objects "
        "out, so pycocotools' mAP of its files is higher)": lambda found: found.failed,
        "boxes not counted, of a label that is no class of the set": (
            lambda found: found.unknown_labels
        ),
        "boxes not counted, with numbers that are not finite": lambda found: found.not_numbers,
    }
    lines = []
    for what, count_of in counts.items():
        some = [run for run in runs if count_of(run.precision)]
        if some:
            count = sum(count_of(run.precision) for run in some)
            lines.append(f"{what}: {count:,} ({_names(some)})")
    return lines


def _at_most(value: float) -> str:
    """Round a bound up to one digit.

    >>> [_at_most(value) for value in (0.0144, 0.02, 0.0951, 3)]
    ['0.02', '0.02', '0.1', '3']
    """
    nearest = Decimal(f"{value:.12g}")
    step = Decimal(1).scaleb(nearest.adjusted())
    return f"{float((nearest / step).to_integral_value(ROUND_CEILING) * step):g}"


def _names(runs: Sequence[UnrankedRun]) -> str:
    """Name the models and datasets of some runs."""
    return first_few(list(dict.fromkeys(f"{run.model} {run.dataset}" for run in runs)))


def _ends_in_doubt(runs: Sequence[UnrankedRun]) -> list[str]:
    """Say where an order that was not found may be worse or better, by a hundredth or more."""
    doubtful = [run for run in runs if run.precision.values.beyond >= 0.005]
    if not doubtful:
        return []
    most = ceil(100 * max(run.precision.values.beyond for run in doubtful)) / 100
    return [
        f"another order may be worse than lowest, or better than highest, by {most:.2f} points at "
        f"most ({_names(doubtful)}): boxes compete for objects. JSON has the bounds"
    ]
