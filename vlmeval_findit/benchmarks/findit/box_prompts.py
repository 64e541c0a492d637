"""Our prompts for the protocol's content (section 1).

Frames are numbered from 1: replies without a frame 0 are read as counting from 1 (section 3), so
numbering from 0 would shift a reply that leaves out the first frame.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from ...boxes import CLASS_KEY, PLURAL_KEYS, MatchRule
from ...protocol import Message, Part, image, reference, text
from .findit_datasets import Dataset, Family
from .findit_query import FindItQuery
from .marked_references import words
from .variant import FindItVariant

VERSION = 1  # Increase it when the wording changes
PROMPTS_NAME = f"findit-own-{VERSION}"  # Name of our prompt set, as runs record it

MessageMaker = Callable[[FindItQuery, FindItVariant], Message]


def message(query: FindItQuery, variant: FindItVariant) -> Message:
    """Compose the message for a query (already thinned to the variant's frames)."""
    parts: list[Part] = []
    if variant.has_references:
        for number, shot in enumerate(query.support, 1):
            marked = f", marked with a {words(variant.mark)}" if variant.mark else ""
            parts += [text(f"Reference image {number} of the object{marked}:"), reference(shot)]
        if variant.frames == 1:
            parts.append(text("Scene:"))
    if variant.frames > 1:
        for number, frame in enumerate(query.images, 1):
            parts += [text(f"Frame {number}:"), image(frame)]
    else:
        parts.append(image(query.images[0]))
    return (*parts, text(request(query, variant)))


def request(query: FindItQuery, variant: FindItVariant) -> str:
    """Compose the text that ends a message: what to find and what to return."""
    caption = f'Caption: "{query.caption}"\n' if variant.caption else ""
    return caption + query.label.join(_around_label(variant, variant.data))


@lru_cache(maxsize=1024)
def _around_label(v: FindItVariant, row: Dataset) -> tuple[str, ...]:
    """Return what stands before and after the label, equal for all queries of a variant.

    With references there is no label and one text. ``row`` is the variant's dataset, which another
    import may replace under the same name.
    """
    *before, find = _find(v)
    after = " ".join([find, *_return(v), *_if_nothing(v), "Answer with nothing else."])
    return *before, after


def _if_nothing(v: FindItVariant) -> list[str]:
    if not v.data.has_negatives:
        return []
    place = "video frames" if v.frames > 1 else "image"
    return [f"If nothing in the {place} matches, answer with an empty list: []."]


TEMPLATE_NAMES = (
    "label",
    "expression",
    "caption",
    "request",
    "find",
    "format_sentence",
    "if_nothing",
    "example",
    "format",
    "width",
    "height",
    "frames",
)
"""Variables of a user's prompt template."""


def template_values(query: FindItQuery, v: FindItVariant) -> dict[str, str | int]:
    """Return the parts of a request, by :data:`TEMPLATE_NAMES`."""
    is_expression = v.family in (Family.REFEXP, Family.REFEXP_ALL)
    return {
        "label": query.label,  # The names, or the expression
        "expression": query.label if is_expression else "",
        "caption": query.caption if v.caption else "",
        "request": request(query, v),  # The whole standard text
        "find": query.label.join(_find(v)),
        "format_sentence": " ".join(_return(v)),
        "if_nothing": " ".join(_if_nothing(v)),
        "example": json_example(v) if v.output == "json" else _text_example(v),
        **{"format": v.format, "width": query.width, "height": query.height, "frames": v.frames},
    }


def _find(v: FindItVariant) -> tuple[str, ...]:
    place = f"the {v.frames} video frames" if v.frames > 1 else "the image"
    if v.family.has_references:
        where = place if v.frames > 1 else "the scene"
        return (f"Find every instance of the object of the reference images in {where}.",)
    if v.multilabel:
        return f"Find every instance of each of these labels in {place}: ", "."
    if v.family is Family.REFEXP:
        return f'Find the one object in {place} that this expression describes: "', '".'
    if v.family is Family.REFEXP_ALL:
        return f'Find every object in {place} that this expression describes: "', '".'
    return 'Find every instance of "', f'" in {place}.'


class _Requested(NamedTuple):
    """What a prompt asks for."""

    single: str  # For a single object
    several: str


_REQUESTED = {
    MatchRule.BOX_OVERLAP: _Requested("its bounding box", "one bounding box for each"),
    MatchRule.POINT_IN_OBJECT: _Requested(
        "one point that lies on it", "one point that lies on each"
    ),
}


def _return(v: FindItVariant) -> tuple[str, ...]:
    requested = _REQUESTED[v.match_rule]
    what = requested.single if v.family is Family.REFEXP else requested.several
    if v.frames > 1:
        what += " in each frame where it is seen"
    how = _as_text(v)
    if v.output == "json":
        how = f"as a JSON list in this form: {json_example(v)}."
    sentences = [f"Return {what}, {how}"]
    if v.frames > 1:
        sentences.append(f"Frames are numbered from 1 to {v.frames}.")
    return (*sentences, *_fields(v))


def _as_text(v: FindItVariant) -> str:
    """Describe a text reply; for ``unconstrained`` only what belongs to a box."""
    example = _text_example(v)
    if example:
        lines = "" if v.family is Family.REFEXP else "each on a line of its own, "
        return f"{lines}written as: {example}."
    belongs: list[str] = []
    if v.frames > 1:
        belongs.append("frame number")
    if v.multilabel:
        belongs.append("label")
    return f"each with its {' and '.join(belongs)}." if belongs else "as plain text."


def _text_example(v: FindItVariant) -> str:
    fields = v.reply.numbers.fields
    if not fields:
        return ""
    frame = "<frame>: " if v.frames > 1 else ""
    label = "<label>: " if v.multilabel else ""
    return f"{frame}{label}[{', '.join(fields)}]"


def json_example(v: FindItVariant) -> str:
    """Return the example in a JSON prompt."""
    fields = v.reply.numbers.fields
    box = f"[{', '.join(fields)}]" if fields else "[...]"
    entry = []
    if v.frames > 1:
        entry.append('"frame_idx": <frame>')
    if v.multilabel and v.key != CLASS_KEY:
        entry.append('"label": "<label>"')
    if v.structure == "decomposed":
        for key, field in zip(v.reply.numbers.keys, fields, strict=True):
            entry.append(f'"{key}": {field}')
    else:
        key = "<label>" if v.key == CLASS_KEY else v.key
        if v.structure == "nested":
            key = PLURAL_KEYS.get(key, key)
            box = f"[{box}, ...]"
        entry.append(f'"{key}": {box}')
    # A nested list has an entry per class or frame: a single entry for a label in an image.
    is_single_entry = v.structure == "nested" and not v.multilabel and v.frames == 1
    more = "" if is_single_entry or v.family is Family.REFEXP else ", ..."
    return f"[{{{', '.join(entry)}}}{more}]"


def _fields(v: FindItVariant) -> list[str]:
    if v.representation == "all":
        return ["(x1, y1), (x2, y2), (x3, y3) and (x4, y4) are the four corners of the box."]
    if v.centre == "definitions":
        return [
            "cx and cy are the x and y coordinates of the centre of the box, "
            "width and height its size along x and y."
        ]
    if v.centre == "formula":
        return [
            "For a box with the corners (x_min, y_min) and (x_max, y_max): "
            "cx = (x_min + x_max) / 2, cy = (y_min + y_max) / 2, "
            "width = x_max - x_min, height = y_max - y_min."
        ]
    return []
