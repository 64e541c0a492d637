"""Published figures next to measured values of the same dataset: marked, and never ranked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from ..data import published_dataset
from ..protocol import Benchmark, Published
from ..storage import unlike_published
from .comparable import ComparableRuns

if TYPE_CHECKING:
    from ..data import PublishedFigure

# By published metric: ours with its value where each reply has one box or point, and how we say so
_OURS: Mapping[str, tuple[str, str]] = {
    "acc@0.5": ("Recall", "acc@0.5, which is Recall where replies have one box"),
    "point in box": ("Pointing accuracy", "point in box"),
    "F1@0.5": ("F1@0.5", ""),
    "mIoU": ("mIoU", ""),
    "adherence": ("Adherence", ""),
}


def published_rows(
    benchmark: Benchmark,
    datasets: Sequence[ComparableRuns],
    figures: Sequence[PublishedFigure] = (),
) -> tuple[Published, ...]:
    """Return what is published of datasets, by the benchmark's authors and by others.

    ``figures`` are the user's, of any dataset; those of the package are of published sets.
    """
    whole = [dataset for dataset in datasets if _has_the_published_rows(dataset)]
    names = [dataset.name for dataset in whole]
    of_benchmark = [each for each in benchmark.published() if each.dataset in names]
    of_sets = [dataset.name for dataset in whole if _is_published_set(dataset)]
    rows = [*of_benchmark, *_rows_of(figures, benchmark, names)]
    if of_sets:
        from ..data import published_figures  # Read where they are needed only

        rows += _rows_of(published_figures(), benchmark, of_sets)
    return tuple(rows)


def other_annotations(dataset: ComparableRuns) -> str:
    """Say how the annotations of a dataset differ from the published ones; "" if they do not."""
    return unlike_published(dataset.runs[0].provenance.made_of)


def _has_the_published_rows(dataset: ComparableRuns) -> bool:
    """Tell whether runs were asked every row, and the table is not known to be another one."""
    return not dataset.runs[0].provenance.missing and not other_annotations(dataset)


def _is_published_set(dataset: ComparableRuns) -> bool:
    """Tell whether a dataset was imported as a published set."""
    published = published_dataset(dataset.name)
    made_of = dataset.runs[0].provenance.made_of
    return published is not None and made_of.get("set") == published[0].name


def _rows_of(
    figures: Iterable[PublishedFigure], benchmark: Benchmark, datasets: Sequence[str]
) -> Iterator[Published]:
    from ..data import NOT_STATED

    ours = [metric.name for metric in benchmark.metrics]
    for figure in figures:
        if figure.attempt:
            continue
        metric, words = _OURS.get(figure.set.metric, ("", ""))
        of = figure.set.datasets
        if metric in ours and len(of) == 1 and of[0] in datasets:
            told = [words, f"measured by {figure.measured_by}", figure.note, figure.conditions.note]
            if figure.unknown:
                told.append(f"not told: {', '.join(figure.unknown)}")
            where = f"{figure.source} ({'; '.join(filter(None, told))})"
            format_ = figure.conditions.format
            known = "" if format_ == NOT_STATED else format_
            yield Published(figure.model, of[0], {metric: figure.value}, where, known)
