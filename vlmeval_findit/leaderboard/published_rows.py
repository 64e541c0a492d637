"""Published figures next to measured values of the same dataset: marked, and never ranked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ..data import published_dataset
from ..protocol import Benchmark, Published
from .comparable import ComparableRuns

# By published metric: ours with its value where each reply has one box or point, and how we say so
_OURS: Mapping[str, tuple[str, str]] = {
    "acc@0.5": ("Recall", "acc@0.5, which is Recall where replies have one box"),
    "point in box": ("Pointing accuracy", "point in box"),
}


def published_rows(
    benchmark: Benchmark, datasets: Sequence[ComparableRuns]
) -> tuple[Published, ...]:
    """Return what is published of datasets, by the benchmark's authors and by others."""
    names = [dataset.name for dataset in datasets]
    of_benchmark = [each for each in benchmark.published() if each.dataset in names]
    whole = [dataset.name for dataset in datasets if _is_as_published(dataset)]
    return (*of_benchmark, *_figures(benchmark, whole)) if whole else tuple(of_benchmark)


def _is_as_published(dataset: ComparableRuns) -> bool:
    """Tell whether a dataset is a published set, and none of its rows is missing from it."""
    published = published_dataset(dataset.name)
    made_of = dataset.runs[0].provenance.made_of
    is_set = published is not None and made_of.get("set") == published[0].name
    return is_set and "unlike published" not in made_of


def _figures(benchmark: Benchmark, datasets: Sequence[str]) -> Iterator[Published]:
    from ..data import published_figures  # Read where they are needed only

    ours = [metric.name for metric in benchmark.metrics]
    for figure in published_figures():
        if figure.attempt:
            continue
        metric, words = _OURS.get(figure.set.metric, ("", ""))
        of = figure.set.datasets
        if metric in ours and len(of) == 1 and of[0] in datasets:
            told = [words, f"measured by {figure.measured_by}", figure.note]
            if figure.unknown:
                told.append(f"not told: {', '.join(figure.unknown)}")
            where = f"{figure.source} ({'; '.join(filter(None, told))})"
            yield Published(figure.model, of[0], {metric: figure.value}, where)
