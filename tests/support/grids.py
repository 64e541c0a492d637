"""The grid of FindIt's formats, written out: what lists of axes must come to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import product

from vlmeval_findit.benchmarks.findit import (
    CENTRES,
    DATASETS,
    DECODINGS,
    Dataset,
    FindItVariant,
    format_problem,
)
from vlmeval_findit.boxes import (
    JSON_KEYS,
    OUTPUTS,
    PAPER_REPRESENTATIONS,
    STRUCTURES,
    ReplyFormat,
)
from vlmeval_findit.models import MODELS


def grid(
    datasets: Iterable[Dataset] | None = None,
    marks: Sequence[str | None] = (None,),
    decodings: Sequence[str | None] = (None,),
) -> Iterator[FindItVariant]:
    """Yield every valid variant of the datasets (default: all), with every frame count.

    The default is the paper's grid: no ``marks`` on reference images, free decoding.
    """
    for row in DATASETS.values() if datasets is None else datasets:
        questions = list(_questions(row))
        for representation, output in product(PAPER_REPRESENTATIONS, OUTPUTS):
            for multilabel, caption in questions:
                first = FindItVariant(
                    row.name, representation, output, multilabel=multilabel, caption=caption
                )
                # A format is valid for every number of frames, or for none.
                cells = list(_valid_cells(first, marks, decodings))
                for frames, cell in product(range(1, row.frames + 1), cells):
                    yield replace(cell, frames=frames)


def _questions(row: Dataset) -> Iterator[tuple[bool, bool]]:
    """Yield whether labels are asked, and whether a caption is shown."""
    return product((False, True)[: 1 + row.has_multilabel], (False, True)[: 1 + row.has_caption])


def _valid_cells(
    first: FindItVariant, marks: Sequence[str | None], decodings: Sequence[str | None]
) -> Iterator[FindItVariant]:
    """Yield the values of the remaining axes that go together."""
    centres = (None, *CENTRES)
    for axes in product(JSON_KEYS, STRUCTURES, centres, marks, decodings):
        key, structure, centre, mark, decoding = axes
        variant = replace(
            first, key=key, structure=structure, centre=centre, mark=mark, decoding=decoding
        )
        if format_problem(variant) is None:
            yield variant


@cache
def grid_formats() -> list[ReplyFormat]:
    """Return every format of the grid's replies, of 1 and of 8 frames."""
    return sorted({v.reply for v in grid() if v.frames in (1, 8)}, key=repr)


@cache
def constrained_formats() -> list[ReplyFormat]:
    """Return every format that decoding can be held to, of 1 and of 8 frames."""
    held = grid(decodings=DECODINGS)
    return sorted({v.reply for v in held if v.frames in (1, 8)}, key=repr)


@cache
def all_formats() -> list[ReplyFormat]:
    """Return every format that is read: the grid's, and those of models that choose their own."""
    free = [form for form in grid_formats() if form.representation == "unconstrained"]
    own = {row.reads(form) for row in MODELS.values() for form in free}
    return sorted({*grid_formats(), *own}, key=repr)
