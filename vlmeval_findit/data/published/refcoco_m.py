"""RefCOCO-M: the validation split of RefCOCO with new masks, without harmful expressions.

Published at huggingface.co/datasets/moondream/refcoco-m.  Established from its card: the columns,
1,190 images, 2,080 objects, 5,598 expressions, ``bbox`` as [x, y, width, height] in pixels,
masks as COCO's run lengths of [height, width], the licence.  Not established: whether ``bbox`` is
RefCOCO's or that of the new mask.  Every expression of an object is a query of its own, as in the
authors' evaluation, which is of masks; here boxes are asked, or points, which lie in the mask.

It is another cleaning than that of Ref-L4's authors, who mark wrong expressions: theirs is joined
with results in :mod:`vlmeval_findit.benchmarks.refl4.reviews`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ...benchmarks.findit.findit_datasets import Family
from ...core.image_files import Size
from ..custom.masks import mask_of
from ..custom.text import SIDES, numbers, state_size
from ..samples import AnnotationError, Box, Sample, Samples, expressions
from ..sources import PublishedPart
from .shards import Packed, Row, Shards, shards_of

COLUMNS = ("file_name", "samples")


def read(folder: Path) -> Sequence[PublishedPart]:
    """Return the one part, or raise an AnnotationError."""
    return (PublishedPart("", partial(_read, shards_of(folder, "validation"))),)


def _read(shards: Shards) -> Samples:
    folder = shards.files[0].parent
    queries: list[Sample] = []
    names: list[str] = []
    sizes: dict[str, Size] = {}
    for row in shards.rows(COLUMNS):
        name = row.line("file_name")
        names.append(name)
        for at, sample in enumerate(_samples(row)):
            where = f"{row.where}, samples[{at}]"
            size = _size(sample, where)
            queries += _queries(sample, name, folder, where)
            if size is not None:
                state_size(sizes, name, size, where)
    images = Packed(shards, "image", tuple(names))
    return expressions(shards.files[0], images, Family.REFEXP, queries, sizes)


def _samples(row: Row) -> Sequence[Mapping[str, Any]]:
    samples = row.cells["samples"]
    if not isinstance(samples, list) or not all(isinstance(one, dict) for one in samples):
        raise AnnotationError(f"{row.where}, column samples: is no list of objects")
    return samples


def _queries(sample: Mapping[str, Any], image: str, folder: Path, where: str) -> list[Sample]:
    """One query an expression of an object."""
    x, y, w, h = numbers(sample.get("bbox"), f"{where}, bbox", SIDES)
    mask = sample.get("mask")
    known = mask_of(mask, folder, f"{where}, mask") if mask else None
    box = Box((x, y, x + w, y + h), f"{where}, bbox", mask=known)
    kinds = ("category", "supercategory")
    tags = {kind: str(sample[kind]) for kind in kinds if sample.get(kind)}
    sentences = sample.get("sentences")
    if not isinstance(sentences, list) or not all(
        isinstance(one, str) and one.strip() for one in sentences
    ):
        raise AnnotationError(f"{where}, sentences: {sentences!r} is no list of expressions")
    return [
        Sample((image,), " ".join(one.split()), (box,), f"{where}, sentences[{at}]", tags=tags)
        for at, one in enumerate(sentences)
    ]


def _size(sample: Mapping[str, Any], where: str) -> Size | None:
    """The size of the image, which its masks state as [height, width]."""
    said = (sample.get("mask") or {}).get("size")
    if said is None:
        return None
    if not isinstance(said, list) or len(said) != 2:
        raise AnnotationError(f"{where}, mask, size: {said!r} is not [height, width]")
    return (said[1], said[0])
