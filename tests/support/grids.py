"""The grid of FindIt's formats, written out: what lists of axes must come to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import product

from vlmeval_findit.benchmarks.findit import (
    CENTRES,
    DATASETS,
    Dataset,
    FindItVariant,
    format_problem,
)
from vlmeval_findit.boxes import JSON_KEYS, OUTPUTS, PAPER_REPRESENTATIONS, STRUCTURES


def grid(
    datasets: Iterable[Dataset] | None = None,
    marks: Sequence[str | None] = (None,),
    decodings: Sequence[str | None] = (None,),
) -> Iterator[FindItVariant]:
    """Yield every valid variant of the datasets (default: all), with every frame count.

    The default is the paper's grid: no ``marks`` on reference images, free decoding.
    """
    for row in DATASETS.values() if datasets is None else datasets:
        for representation in PAPER_REPRESENTATIONS:
            for output in OUTPUTS:
                first = FindItVariant(row.name, representation, output)
                for v in _dressings(first, row):
                    for mark, decoding in product(marks, decodings):
                        variant = replace(v, mark=mark, decoding=decoding)
                        if format_problem(variant) is None:
                            yield variant


def _dressings(first: FindItVariant, row: Dataset) -> Iterator[FindItVariant]:
    """Yield all values of the remaining axes; some combinations are not in the grid."""
    for multilabel in (False, True)[: 1 + row.has_multilabel]:
        for caption in (False, True)[: 1 + row.has_caption]:
            for frames in range(1, row.frames + 1):
                for key in JSON_KEYS:
                    for structure in STRUCTURES:
                        for centre in (None, *CENTRES):
                            yield replace(
                                first,
                                multilabel=multilabel,
                                caption=caption,
                                frames=frames,
                                key=key,
                                structure=structure,
                                centre=centre,
                            )
