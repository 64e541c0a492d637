"""Masks in the text of replies: each becomes its tight box, which no score counts.

A lenient reading says what could be read if form did not matter, and a mask is no box in another
form: its box is computed. So this is a reading of its own, of replies that have no box at all: each
mask is replaced by its box, as if the reply had stated that, and the rest (labels, frames, denials)
is read as ever.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..boxes import (
    CLASS_KEY,
    DEFAULT_KEY,
    LONGEST_REPLY,
    FormatFailure,
    ImageExtent,
    List,
    MatchRule,
    Object,
    ParsedReply,
    ReplyFormat,
    parse_leniently,
    values_in,
)
from ..core import late_pattern
from ..storage import Size
from .predicted_masks import MASK_KEYS, BoxOfMask, MaskError, box_of_mask


@dataclass(frozen=True, slots=True)
class MaskReading:
    """What a reply says if its masks are boxes."""

    reading: ParsedReply  # The boxes around masks; none: all masks are empty
    empty: int  # Masks without a pixel or a point


def read_masks(
    reply: str,
    fmt: ReplyFormat,
    size: Size,
    extent: ImageExtent,
    asked: Sequence[str] = (),
    unit: str = "",
) -> MaskReading | None:
    """Read a reply without a box by its masks; None if it has none that can be read.

    Polygons count in the numbers of the run, run lengths and images in pixels of the image; those
    of another size are not read, nor is anything that is cut off. Where y comes first, a polygon
    whose numbers have no names is not read.

    Args:
        reply: the text without its thought, in which neither reading finds a box.
        fmt: the format asked for.
        size: of the image (width, height) in pixels.
        extent: where the image lies in the numbers of the run.
        asked: the labels that the query asks for.
        unit: what the numbers of the run count (``SpaceKind.unit``).

    >>> how = ReplyFormat("json", "xyxy", key="bbox_2d")
    >>> read = read_masks('{"mask": [[1, 2, 5, 2, 5, 9]]}', how, (10, 10), ImageExtent(10, 10))
    >>> read.reading.boxes, read.empty
    (((1.0, 2.0, 5.0, 9.0),), 0)
    """
    text = reply[:LONGEST_REPLY]
    if not _MAY_HAVE_MASK.search(text) or fmt.numbers.match_rule is not MatchRule.BOX_OVERLAP:
        return None
    masks = _Masks(fmt, size, extent)
    with_boxes = masks.replaced(text)
    if not masks.boxes:
        return MaskReading(_NOTHING, masks.empty) if masks.empty else None
    found = parse_leniently(with_boxes, fmt, _NOTHING, extent, asked, unit)
    if found is None or not found.reading.boxes:
        return None
    return MaskReading(found.reading, masks.empty)


_NOTHING = ParsedReply((), (), (), FormatFailure.NO_BOX)
_RUNS = frozenset(("size", "counts"))
_KEYS = frozenset(MASK_KEYS)
_MAY_HAVE_MASK = late_pattern(r"mask|segm|<seg\b|polygon|[\"']counts", 2)  # 2: re.IGNORECASE
_TAG = late_pattern(r"<(mask|seg|segmentation|polygon)\b([^<>]{0,200})>([^<>]{1,100000})</\1>", 2)
_LABEL = late_pattern(r"""\b(?:label|mention|ref|class|name)\s?=\s?["']([^"'<>]{1,100})["']""")
_NUMBERS = late_pattern(r"\A[\[({\d.+-]")  # At the beginning; base64 of an image has none


@dataclass(slots=True)
class _Masks:
    """Replaces the masks of a reply by boxes, and counts them."""

    fmt: ReplyFormat
    size: Size
    extent: ImageExtent
    boxes: int = 0
    empty: int = 0
    key: str = field(init=False)

    def __post_init__(self) -> None:
        self.key = DEFAULT_KEY if self.fmt.key == CLASS_KEY else self.fmt.key

    def replaced(self, text: str) -> str:
        """Return a text with boxes in place of masks, in the order and numbers of the run."""
        text = _TAG.sub(lambda tag: self._of_tag(tag[2], tag[3]) or tag[0], text)
        pieces = []
        end = 0
        for value in values_in(text):
            pieces.append(text[end : value.start])
            end = value.end
            before = self.boxes + self.empty
            written = self._written(value.value)
            is_changed = self.boxes + self.empty > before
            pieces.append(written if is_changed else text[value.start : value.end])
        return "".join([*pieces, text[end:]])

    def _of_tag(self, attributes: str, content: str) -> str | None:
        """Return what stands between tags of a mask as an object with a box; None: no mask."""
        mask: Any = content.strip()
        if _NUMBERS.match(mask):
            if ";" in mask:
                return None  # Rows of a grid, as GeoGround writes them
            mask = _inmost([_plain(value.value) for value in values_in(f"[{mask}]")])
        found = self._box(mask)
        if found is None:
            return None
        label = _LABEL.search(attributes)
        stated = [f'"label": {json.dumps(label[1])}'] if label is not None else []
        return f"{{{', '.join([*stated, self._pair(found)])}}}"

    # --- values -----------------------------------------------------------------------------------

    def _written(self, value: Any) -> str:
        """Write a value as JSON, with boxes in place of its masks."""
        if isinstance(value, List):
            return f"[{', '.join(map(self._written, value.items))}]"
        if isinstance(value, Object):
            return f"{{{', '.join(self._pairs(value))}}}"
        return json.dumps(value)

    def _pairs(self, value: Object) -> Iterator[str]:
        """Yield the pairs of an object; run lengths may be an entry themselves."""
        own = {key: each for key, each in value.pairs if key in _RUNS}
        found = self._box(_plain(Object([*own.items()], value.whole))) if len(own) == 2 else None
        if found is not None:
            yield self._pair(found)
        for key, each in value.pairs:
            if found is not None and key in _RUNS:
                continue
            if key.lower() not in _KEYS:
                yield f"{json.dumps(key)}: {self._written(each)}"
                continue
            boxes = [self._box(mask) for mask in _masks_in(_plain(each))]
            yield from (self._pair(box) for box in boxes if box is not None)

    def _pair(self, found: BoxOfMask) -> str:
        """Return the pair of an object that states a box; an empty mask has none."""
        if found.box is None:
            return f"{json.dumps(self.key)}: []"
        corners = found.box
        if found.size is not None:
            width, height = found.size
            across = self.extent.width / width
            down = self.extent.height / height
            x1, y1, x2, y2 = corners
            corners = (
                self.extent.left + x1 * across,
                self.extent.top + y1 * down,
                self.extent.left + x2 * across,
                self.extent.top + y2 * down,
            )
        return f"{json.dumps(self.key)}: {json.dumps([*self.fmt.numbers.from_corners(corners)])}"

    def _box(self, mask: Any) -> BoxOfMask | None:
        """Return the box of a mask, and count it; None if it cannot be read."""
        if mask is None or mask == "":
            return None
        try:
            found = box_of_mask(mask, self.size)
        except MaskError:
            return None
        if found.size is None and found.box is not None and self._has_y_first(mask):
            return None
        if found.box is None:
            self.empty += 1
        else:
            self.boxes += 1
        return found

    def _has_y_first(self, polygons: Any) -> bool:
        """Return whether the numbers of polygons have no names, in a format where y comes first."""
        if self.fmt.representation not in ("yxyx", "yxhw"):
            return False
        return not any(isinstance(each, Mapping) for each in _flat(polygons))


def _masks_in(value: Any) -> Sequence[Any]:
    """Return the masks under a key: one, or a list of run lengths, images or lists of polygons."""
    if not isinstance(value, list) or not value:
        return [value]
    are_runs = all(isinstance(each, dict) and each.keys() == _RUNS for each in value)
    are_texts = all(isinstance(each, str) for each in value)
    return value if are_runs or are_texts or all(map(_is_list_of_polygons, value)) else [value]


def _is_list_of_polygons(value: Any) -> bool:
    """Return whether a value is polygons as Florence-2 has an object's, and no list of points."""
    if not isinstance(value, list) or not value:
        return False
    return all(isinstance(each, list) and len(each) > _OF_POINT for each in value)


_OF_POINT = 2  # Numbers


def _inmost(value: Any) -> Any:
    """Return what a list of one holds, however many are around it.

    >>> _inmost([[[1, 2, 3]]]), _inmost([[1, 2], [3, 4]])
    ([1, 2, 3], [[1, 2], [3, 4]])
    """
    while isinstance(value, list) and len(value) == 1:
        value = value[0]
    return value


def _flat(value: Any) -> Iterator[Any]:
    for each in value:
        if isinstance(each, list):
            yield from _flat(each)
        else:
            yield each


_CUT_OFF = object()  # Is no mask


def _plain(value: Any) -> Any:
    """Return a value as JSON's; what is cut off is none of these."""
    if isinstance(value, List):
        return [_plain(each) for each in value.items] if value.whole else _CUT_OFF
    if isinstance(value, Object):
        return {key: _plain(each) for key, each in value.pairs} if value.whole else _CUT_OFF
    return value
