"""Find boxes in lists and objects, under any keys and in any structure.

Numbers are in the format's order; boxes that name another order are left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..reading import as_index
from ..representation import CLASS_KEY, PLURAL_KEYS, ReplyFormat
from .labels import without_tags
from .named_corners import box_of_corners, corner_of
from .names import (
    BOXES,
    CONTAINERS,
    FRAMES,
    LABELS,
    first_of,
    names_another_order,
    numbers_by_name,
    plain,
)
from .punctuation import in_ascii
from .records import NO_REPAIRS, Candidate, Repair, Repairs
from .repaired_values import List, Object, Value

# Representations made of points, whose numbers may come in pairs
POINTS = ("xyxy", "yxyx", "unconstrained", "all", "all-labelled")


class Context(NamedTuple):
    """What holds for every box inside an object or list."""

    label: str | None = None  # None: not stated so far
    frame: int | None = None  # None: not stated so far
    repairs: Repairs = NO_REPAIRS

    def repaired(self, *repairs: Repair) -> Context:
        return self._replace(repairs=self.repairs.union(repairs))

    def restructured(self) -> Context:
        """Return what holds where a box is in another structure than was asked for."""
        return self.repaired(Repair.STRUCTURE)


class _Numbers(NamedTuple):
    numbers: tuple[Any, ...]
    repairs: Repairs = NO_REPAIRS


class BoxSearch:
    """Finds the boxes in the values of a reply; ``indices`` are all frame numbers."""

    def __init__(self, fmt: ReplyFormat) -> None:
        self._format = fmt
        self._row = fmt.numbers
        self._is_video = fmt.frames > 1
        self._needs_labels = fmt.multilabel
        plural = PLURAL_KEYS.get(fmt.key, fmt.key)
        self._right_key = plural if fmt.structure == "nested" else fmt.key
        self._requested_keys = {fmt.key, plural} - {CLASS_KEY}
        keys = {*fmt.numbers.json_keys} - {CLASS_KEY}
        plurals = {PLURAL_KEYS.get(key, key) for key in keys}
        self._plain_box_keys = BOXES | set(map(plain, keys | plurals))
        self.indices: list[int] = []

    def boxes_of(self, root: List | Object) -> Iterator[Candidate]:
        """Yield the boxes of an outermost value."""
        as_asked = Context()
        if isinstance(root, Object):
            is_nested = self._format.structure == "nested"
            yield from self._boxes_of_object(
                root, as_asked if is_nested else as_asked.restructured()
            )
        elif self._numbers_of(root) is not None:
            yield from self._boxes_inside(root, as_asked.restructured())
        else:
            for item in root.items:
                is_object = isinstance(item, Object)
                yield from self._boxes_inside(
                    item, as_asked if is_object else as_asked.restructured()
                )

    def _boxes_inside(self, value: Value, context: Context) -> Iterator[Candidate]:
        """Yield the boxes of an object, of a list of numbers, or of a list of these."""
        if isinstance(value, Object):
            yield from self._boxes_of_object(value, context)
        elif isinstance(value, List):
            box = self._numbers_of(value)
            if box is None:
                for item in value.items:
                    yield from self._boxes_inside(item, context)
            elif not self._lacks_label(context):
                yield _candidate(box, context, bare=True)

    def _lacks_label(self, context: Context) -> bool:
        return self._needs_labels and context.label is None

    # --- an object --------------------------------------------------------------------------------

    def _boxes_of_object(self, value: Object, context: Context) -> Iterator[Candidate]:
        """Yield the boxes of an object, in the frame and with the labels that it states."""
        fields = dict(value.pairs)
        if self._is_video:
            context = self._in_stated_frame(fields, context)
        stated = _stated_labels(fields) if self._needs_labels else None
        if stated is None:
            yield from self._boxes_of_fields(value, fields, context)
            return
        context = context.repaired(*stated.repairs)
        if len(stated.labels) == 1:
            labelled = context._replace(label=stated.labels[0])
            yield from self._boxes_of_fields(value, fields, labelled)
            return
        # Lists side by side, as Florence-2 writes them; other counts leave open whose label it is.
        boxes = list(self._boxes_of_fields(value, fields, context._replace(label="")))
        if len(boxes) == len(stated.labels):
            for box, label in zip(boxes, stated.labels, strict=True):
                yield box._replace(label=label)

    def _in_stated_frame(self, fields: Mapping[str, Value], context: Context) -> Context:
        key = "frame_idx" if "frame_idx" in fields else first_of(fields, FRAMES)
        if key is None:
            return context
        index = _index(fields[key])
        if index is None:
            return context
        self.indices.append(index)
        context = context._replace(frame=index)
        as_asked = key == "frame_idx" and as_index(fields[key]) is not None
        return context if as_asked else context.repaired(Repair.KEY)

    def _boxes_of_fields(
        self, value: Object, fields: Mapping[str, Value], context: Context
    ) -> Iterator[Candidate]:
        """Yield the box whose numbers an object names, else the boxes under its likeliest keys."""
        named = numbers_by_name(fields, self._row)
        if named is not None and _are_numbers(named[1]):
            yield from self._decomposed_box(_Numbers(tuple(named[1])), value, context)
            return
        corners = self._numbers_of_corners(fields)
        if corners is not None and not self._lacks_label(context):
            yield _candidate(corners, context.restructured())
            return
        for keys in self._keys_by_likelihood(fields):
            boxes: list[Candidate] = []
            for key in keys:
                boxes += self._boxes_under(key, fields[key], value, context)
            if boxes:
                yield from boxes
                return

    def _decomposed_box(
        self, box: _Numbers, value: Object, context: Context
    ) -> Iterator[Candidate]:
        """Yield a box whose numbers the object names, unless it was cut off before a label."""
        if self._format.structure != "decomposed":
            context = context.restructured()
        elif not {key for key, _ in value.pairs}.issuperset(self._row.keys):
            context = context.repaired(Repair.KEY)
        if value.whole or not self._lacks_label(context):
            yield _candidate(box, context)

    def _keys_by_likelihood(self, fields: Mapping[str, Value]) -> Iterator[list[str]]:
        """Yield the keys that may hold boxes: those asked for, known words, all others."""
        requested: list[str] = []
        known: list[str] = []
        others: list[str] = []
        for key in fields:
            if names_another_order(key, self._row):
                continue
            if key in self._requested_keys:
                requested.append(key)
            elif plain(key) in self._plain_box_keys:
                known.append(key)
            else:
                others.append(key)
        yield requested
        yield known
        yield others

    # --- what stands under a key ------------------------------------------------------------------

    def _boxes_under(
        self, key: str, value: Value, owner: Object, context: Context
    ) -> Iterator[Candidate]:
        """Yield the boxes under a key of an object: a box, an object or a list of either."""
        if not isinstance(value, (List, Object, str)):
            return
        if self._is_video and context.frame is None:
            index = _index(key)
            if index is not None:
                self.indices.append(index)
                in_frame = context._replace(frame=index).restructured()
                yield from self._boxes_inside(value, in_frame)
                return
        below = self._context_under(key, owner, context)
        if below is None:
            return
        if self._lacks_label(below):
            yield from self._boxes_inside(value, below)
            return
        box = self._numbers_of(value)
        if box is not None:
            yield _candidate(box, self._as_structured(below, "per_box"))
        elif isinstance(value, Object):
            yield from self._boxes_of_object(value, below.restructured())
        elif isinstance(value, List):
            yield from self._boxes_of_list(value, below)

    def _boxes_of_list(self, value: List, context: Context) -> Iterator[Candidate]:
        for item in value.items:
            box = self._numbers_of(item)
            if box is None:
                yield from self._boxes_inside(item, context.restructured())
            else:
                yield _candidate(box, self._as_structured(context, "nested"))

    def _as_structured(self, context: Context, structure: str) -> Context:
        """Return what holds for a box that a structure places here."""
        return context if self._format.structure == structure else context.restructured()

    def _context_under(self, key: str, owner: Object, context: Context) -> Context | None:
        """Return what holds under a key; None if the object was cut off before a label."""
        by_class = self._format.key == CLASS_KEY
        if self._lacks_label(context):
            if by_class and self._only_key(owner) == key and not _is_marked(key):
                return context._replace(label=key.strip())
            if key not in self._requested_keys and plain(key) not in self._plain_box_keys:
                return _context_under_label(key, context)
            if not owner.whole:
                return None
            context = context._replace(label="")
        if by_class:
            return context.restructured()
        if key == self._right_key:
            return context
        if key in self._requested_keys:
            return context.restructured()
        return context.repaired(Repair.KEY)

    def _only_key(self, owner: Object) -> str | None:
        keys = [key for key, _ in owner.pairs if key != "frame_idx" or not self._is_video]
        return keys[0] if len(keys) == 1 else None

    # --- numbers ----------------------------------------------------------------------------------

    def _numbers_of(self, value: Value) -> _Numbers | None:
        """Return the numbers of a box; None if a value is none."""
        if isinstance(value, str):
            return self._numbers_in_string(value)
        if not isinstance(value, List) or not value.whole:
            return None
        items = value.items
        width = self._row.width
        if len(items) == width and _are_numbers(items):
            return _Numbers(tuple(items))
        if is_confidence(items, width):
            return _Numbers(tuple(items[:width]), frozenset({Repair.CONFIDENCE}))
        return self._numbers_in_pairs(items)

    def _numbers_in_string(self, value: str) -> _Numbers | None:
        match = _IN_QUOTES.fullmatch(in_ascii(value).strip())
        numbers = _SEPARATOR.split(match[1]) if match else []
        if len(numbers) != self._row.width or not _are_numbers(numbers):
            return None
        return _Numbers(tuple(numbers), frozenset({Repair.NUMBERS}))

    def _numbers_in_pairs(self, items: Sequence[Value]) -> _Numbers | None:
        if self._row.name not in POINTS or 2 * len(items) != self._row.width:
            return None
        flat: list[Value] = []
        for pair in items:
            if not isinstance(pair, List) or not pair.whole or len(pair.items) != 2:
                return None
            flat += pair.items
        return _Numbers(tuple(flat), frozenset({Repair.NUMBERS})) if _are_numbers(flat) else None

    def _numbers_of_corners(self, fields: Mapping[str, Value]) -> _Numbers | None:
        """Return the numbers of a box whose corners are keys, as in ``top_left``."""
        if self._row.name not in POINTS:
            return None
        points: list[tuple[str, float, float]] = []
        for key, value in fields.items():
            corner = corner_of(key)
            point = _point(value, y_first=self._row.name == "yxyx")
            if corner is not None and point is not None:
                points.append((corner, *point))
        box = box_of_corners(points)
        return None if box is None else _Numbers(tuple(self._row.from_corners(box)))


def _context_under_label(key: str, context: Context) -> Context:
    """Return what holds under a key that is a label, unless it only says that boxes follow."""
    label = without_tags(key)
    if not label or plain(label) in CONTAINERS:
        return context.restructured()
    if _is_marked(key):
        context = context.repaired(Repair.LABEL)
    return context._replace(label=label).restructured()


def _candidate(box: _Numbers, context: Context, bare: bool = False) -> Candidate:
    repairs = context.repairs | box.repairs
    return Candidate(context.label or "", context.frame, box.numbers, repairs, bare)


def _point(value: Value, y_first: bool) -> tuple[float, float] | None:
    """Return x and y of a point: an object with these keys, or a pair in the format's order."""
    if isinstance(value, Object):
        named = {plain(key): each for key, each in value.pairs}
        pair = [named.get("x"), named.get("y")]
    elif isinstance(value, List) and len(value.items) == 2 and value.whole:
        pair = [*reversed(value.items)] if y_first else value.items
    else:
        return None
    if not _are_numbers(pair):
        return None
    x, y = pair
    return float(x), float(y)  # type: ignore[arg-type]


_SEPARATOR = re.compile(r"\s*+,\s*+|\s++")
_IN_QUOTES = re.compile(r"[\[(]?\s*+([-+.\deE]++(?:[\s,]++[-+.\deE]++)*+)\s*+[\])]?")
_DIGITS = re.compile(r"(?:frame|image|img)?[\s_#<]*+(\d{1,9})[\s>]*+", re.IGNORECASE)


def _are_numbers(values: Sequence[object]) -> bool:
    try:
        for value in values:
            float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def is_confidence(values: Sequence[Any], width: int) -> bool:
    """Return whether one more number than a box has is a confidence.

    A number from 0 to 1 is none where the others may be a class and fractions, as YOLO writes.

    >>> is_confidence([100, 200, 300, 400, 0.98], 4), is_confidence([0, 0.5, 0.5, 0.2, 0.1], 4)
    (True, False)
    """
    if len(values) != width + 1 or not _are_numbers(values):
        return False
    *box, last = map(float, values)
    if not 0 <= last <= 1 or (last.is_integer() and "." not in str(values[-1])):
        return False
    return max(box) > 1 or not box[0].is_integer()


def _index(value: object) -> int | None:
    """Return the frame number in a value, as a number or in words like "frame 2"."""
    index = as_index(value)
    if index is not None or not isinstance(value, str):
        return index
    match = _DIGITS.fullmatch(value.strip())
    return int(match[1]) if match else None


# --- labels ---------------------------------------------------------------------------------------


class _Labels(NamedTuple):
    labels: Sequence[str]  # One for all boxes, or one for each
    repairs: Repairs


def _stated_labels(fields: Mapping[str, Value]) -> _Labels | None:
    """Return the labels that an object states; None if it has none."""
    if "label" in fields and not isinstance(fields["label"], (List, Object)):
        label = str(fields["label"]).strip()
        if label:
            return _one_label(label, NO_REPAIRS)
    keys = sorted(fields, key=lambda key: key != "label")  # The right key goes before "Label"
    rest = {key: fields[key] for key in keys if not isinstance(fields[key], Object)}
    key = first_of(rest, LABELS)
    while key is not None:
        labels = _labels_under(key, rest.pop(key))
        if labels is not None:
            return labels
        key = first_of(rest, LABELS)
    return _Labels([""], NO_REPAIRS) if fields.get("label") == "" else None


def _labels_under(key: str, value: Value) -> _Labels | None:
    """Return the label, or the list of labels, under a key of labels."""
    repairs: Repairs = NO_REPAIRS if key == "label" else frozenset({Repair.KEY})
    if isinstance(value, List):
        texts = [item.strip() for item in value.items if isinstance(item, str)]
        if not texts or not all(texts) or len(texts) < len(value.items):
            return None
        return _Labels(list(map(without_tags, texts)), repairs | {Repair.STRUCTURE})
    label = "" if value is None else str(value).strip()
    return _one_label(label, repairs) if label else None


def _one_label(label: str, repairs: Repairs) -> _Labels:
    if not _is_marked(label):
        return _Labels([label], repairs)
    return _Labels([without_tags(label)], repairs | {Repair.LABEL})


def _is_marked(label: str) -> bool:
    return without_tags(label) != label.strip()
