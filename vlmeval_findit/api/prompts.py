"""Prompts of custom questions, in the words of runs."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike, fspath

from ..benchmarks.findit.benchmark import BENCHMARK
from ..benchmarks.findit.findit_datasets import Family
from ..benchmarks.findit.findit_query import FindItQuery
from ..benchmarks.findit.variant import Variant, VariantError
from ..boxes.records import Truth
from ..core.messages import Message
from .questions import variant_of

ImagePath = str | PathLike[str]
_NOTHING = Truth((), ())


def prompt(
    label: str | Sequence[str],
    format: str,
    images: ImagePath | Sequence[ImagePath],
    *,
    family: Family | str = Family.OBJDET,
    references: Sequence[ImagePath] = (),
    caption: str = "",
) -> Message:
    """Return the message that asks for boxes.

    >>> for kind, value in prompt("dog", "xyxy_json_bbox_2d", "park.jpg"):
    ...     print(kind.value, value, sep=": ")
    image: park.jpg
    text: Find every instance of "dog" in the image. Return one bounding box for each, as a JSON \
list in this form: [{"bbox_2d": [x_min, y_min, x_max, y_max]}, ...]. Answer with nothing else.

    Args:
        label: what to find: a label, an expression, or several labels.
        format: how boxes are to be written, as in a FindIt name.
        images: the picture, or the frames in their order.
        family: ``objdet`` (every instance of labels), ``refexp`` (the one object that an
            expression describes), ``refexp_all`` (all of them, perhaps none), ``insdet`` (the
            object of the references).
        references: pictures of the object, of ``insdet``.
        caption: what is said of the picture beside the question.

    Returns:
        The parts in the order in which a model sees them: (kind, text or path).

    Raises:
        VariantError: there is no such format or family, or it goes without what was given.
    """
    return BENCHMARK.prompts()[0].message(
        *custom_query(label, format, images, family=family, references=references, caption=caption)
    )


def custom_query(
    label: str | Sequence[str],
    format: str,
    images: ImagePath | Sequence[ImagePath],
    *,
    family: Family | str = Family.OBJDET,
    references: Sequence[ImagePath] = (),
    caption: str = "",
    size: tuple[int, int] = (0, 0),
) -> tuple[FindItQuery, Variant]:
    """Return the query of a custom question, and how it is asked."""
    paths = (images,) if isinstance(images, (str, PathLike)) else tuple(images)
    labels = (label,) if isinstance(label, str) else tuple(label)
    if not paths or not labels:
        raise VariantError(f"no {'label' if paths else 'image'} was given")
    several = not isinstance(label, str)
    variant = variant_of(format, len(paths), several, family, bool(caption))
    if variant.has_references != bool(references):
        raise VariantError(
            f"{variant.family_name} is asked {'with' if variant.has_references else 'without'} "
            "references (pictures of the object)"
        )
    query = FindItQuery(
        0,
        ", ".join(labels),
        *size,
        tuple(fspath(path) for path in paths),
        _NOTHING,
        support=tuple(fspath(shot) for shot in references),
        caption=caption,
    )
    return query, variant
