"""Published figures next to measured values of the same dataset: marked, and never ranked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

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


class PublishedRows(NamedTuple):
    """What is published of the datasets of a board."""

    rows: tuple[Published, ...]
    in_part: frozenset[str]  # Datasets without these rows, as not all that was published was asked


def published_rows(
    benchmark: Benchmark,
    datasets: Sequence[ComparableRuns],
    figures: Sequence[PublishedFigure] = (),
) -> PublishedRows:
    """Return what is published of datasets, by the benchmark's authors and by others.

    ``figures`` are the user's, of any dataset; those of the package are of published sets.
    """
    alike = [dataset for dataset in datasets if not other_annotations(dataset)]
    names = [dataset.name for dataset in alike]
    of_benchmark = [each for each in benchmark.published() if each.dataset in names]
    of_sets = [dataset.name for dataset in alike if _is_published_set(dataset)]
    rows = [*of_benchmark, *_rows_of(figures, benchmark, names)]
    if of_sets:
        from ..data import published_figures  # Read where they are needed only

        rows += _rows_of(published_figures(), benchmark, of_sets)
    in_part = {dataset.name for dataset in alike if dataset.runs[0].provenance.missing}
    return PublishedRows(
        tuple(row for row in rows if row.dataset not in in_part),
        frozenset(row.dataset for row in rows if row.dataset in in_part),
    )


def other_annotations(dataset: ComparableRuns) -> str:
    """Say how the annotations of a dataset differ from the published ones; "" if they do not."""
    return unlike_published(dataset.runs[0].provenance.made_of)


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
            told = [words, f"measured by {figure.measured_by}", figure.note]
            told += [figure.told, figure.conditions.note]
            if figure.unknown:
                told.append(f"not told: {', '.join(figure.unknown)}")
            where = f"{figure.source} ({'; '.join(filter(None, told))})"
            format_ = figure.conditions.format
            known = "" if format_ == NOT_STATED else format_
            yield Published(figure.model, of[0], {metric: figure.value}, where, known)
