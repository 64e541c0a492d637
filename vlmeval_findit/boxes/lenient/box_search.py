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
from .values import List, Object, Value

# Representations made of points, whose numbers may come in pairs
POINTS = ("xyxy", "yxyx", "unconstrained", "all", "all-labelled")


class Context(NamedTuple):
    """What holds for everything inside an object or list."""

    label: str | None = None
    frame: int | None = None
    repairs: Repairs = NO_REPAIRS

    def after(self, *repairs: Repair) -> Context:
        return self._replace(repairs=self.repairs.union(repairs))


def _odd(place: Context) -> Context:
    return place.after(Repair.STRUCTURE)


class _Numbers(NamedTuple):
    numbers: tuple[Any, ...]
    repairs: Repairs = NO_REPAIRS


class Entries:
    """Finds the boxes in the values of a reply; ``indices`` are all frame numbers."""

    def __init__(self, fmt: ReplyFormat) -> None:
        self._how = fmt
        self._labelled = fmt.multilabel
        plural = PLURAL_KEYS.get(fmt.key, fmt.key)
        self._keys = {fmt.key, plural} - {CLASS_KEY}
        self._right_key = plural if fmt.structure == "nested" else fmt.key
        keys = {*fmt.numbers.json_keys} - {CLASS_KEY}
        plurals = {PLURAL_KEYS.get(key, key) for key in keys}
        self._known = BOXES | set(map(plain, keys | plurals))
        self.indices: list[int] = []

    def of(self, root: List | Object) -> Iterator[Candidate]:
        """Yield the boxes of an outermost value."""
        odd = _odd(Context())
        if isinstance(root, Object):
            yield from self._object(root, Context() if self._how.structure == "nested" else odd)
        elif self._numbers(root) is not None:
            yield from self._inside(root, odd)
        else:
            for item in root.items:
                yield from self._inside(item, Context() if isinstance(item, Object) else odd)

    def _inside(self, value: Value, place: Context) -> Iterator[Candidate]:
        if isinstance(value, Object):
            yield from self._object(value, place)
        elif isinstance(value, List):
            box = self._numbers(value)
            if box is None:
                for item in value.items:
                    yield from self._inside(item, place)
            elif not self._labelled or place.label is not None:
                yield _candidate(box, place, bare=True)

    # --- one object -------------------------------------------------------------------------------

    def _object(self, value: Object, place: Context) -> Iterator[Candidate]:
        fields = dict(value.pairs)
        if self._how.frames > 1:
            place = self._in_frame(fields, place)
        stated = _stated_labels(fields) if self._labelled else None
        if stated is None:
            yield from self._boxes_of(value, fields, place)
            return
        place = place.after(*stated.repairs)
        if len(stated.labels) == 1:
            yield from self._boxes_of(value, fields, place._replace(label=stated.labels[0]))
            return
        # Lists side by side, as Florence-2 writes them; other counts leave open whose label it is.
        boxes = list(self._boxes_of(value, fields, place._replace(label="")))
        if len(boxes) == len(stated.labels):
            for box, label in zip(boxes, stated.labels, strict=True):
                yield box._replace(label=label)

    def _in_frame(self, fields: Mapping[str, Value], place: Context) -> Context:
        key = "frame_idx" if "frame_idx" in fields else first_of(fields, FRAMES)
        index = None if key is None else _index(fields[key])
        if key is None or index is None:
            return place
        self.indices.append(index)
        as_asked = key == "frame_idx" and as_index(fields[key]) is not None
        place = place._replace(frame=index)
        return place if as_asked else place.after(Repair.KEY)

    def _boxes_of(
        self, value: Object, fields: Mapping[str, Value], place: Context
    ) -> Iterator[Candidate]:
        """Yield the box whose numbers an object names, else the boxes under its likeliest keys."""
        named = numbers_by_name(fields, self._how.numbers)
        if named is not None and _are_numbers(named[1]):
            yield from self._decomposed(_Numbers(tuple(named[1])), value, place)
            return
        corners = self._corners(fields)
        if corners is not None and (not self._labelled or place.label is not None):
            yield _candidate(corners, _odd(place))
            return
        for keys in self._keys_by_likelihood(fields):
            boxes = [box for key in keys for box in self._under(key, fields[key], value, place)]
            if boxes:
                yield from boxes
                return

    def _decomposed(self, box: _Numbers, value: Object, place: Context) -> Iterator[Candidate]:
        """Yield a box whose numbers the object names, unless it was cut off before a label."""
        if self._how.structure != "decomposed":
            place = _odd(place)
        elif not {key for key, _ in value.pairs}.issuperset(self._how.numbers.keys):
            place = place.after(Repair.KEY)
        if not self._labelled or place.label is not None or value.whole:
            yield _candidate(box, place)

    def _keys_by_likelihood(self, fields: Mapping[str, Value]) -> Iterator[list[str]]:
        """Yield the keys that may hold boxes: those asked for, known words, all others."""
        asked: list[str] = []
        known: list[str] = []
        others: list[str] = []
        for key in fields:
            if names_another_order(key, self._how.numbers):
                continue
            if key in self._keys:
                asked.append(key)
            elif plain(key) in self._known:
                known.append(key)
            else:
                others.append(key)
        yield asked
        yield known
        yield others

    # --- what stands under a key ------------------------------------------------------------------

    def _under(self, key: str, value: Value, owner: Object, place: Context) -> Iterator[Candidate]:
        """Yield the boxes under a key of an object: one box, an object or a list of either."""
        if not isinstance(value, (List, Object, str)):
            return
        if self._how.frames > 1 and place.frame is None and (index := _index(key)) is not None:
            self.indices.append(index)
            yield from self._inside(value, _odd(place._replace(frame=index)))
            return
        there = self._place_under(key, owner, place)
        if there is None:
            return
        if self._labelled and there.label is None:
            yield from self._inside(value, there)
            return
        box = self._numbers(value)
        if box is not None:
            yield _candidate(box, there if self._how.structure == "per_box" else _odd(there))
        elif isinstance(value, Object):
            yield from self._object(value, _odd(there))
        elif isinstance(value, List):
            yield from self._listed(value, there)

    def _listed(self, value: List, place: Context) -> Iterator[Candidate]:
        for item in value.items:
            box = self._numbers(item)
            if box is None:
                yield from self._inside(item, _odd(place))
            else:
                yield _candidate(box, place if self._how.structure == "nested" else _odd(place))

    def _place_under(self, key: str, owner: Object, place: Context) -> Context | None:
        """Return what holds under a key; None if the object was cut off before a label."""
        by_class = self._how.key == CLASS_KEY
        is_box = key in self._keys or plain(key) in self._known
        if self._labelled and place.label is None:
            if by_class and self._only_key(owner) == key and not _marked(key):
                return place._replace(label=key.strip())
            if not is_box:
                return self._place_under_other(key, place)
            if not owner.whole:
                return None
            place = place._replace(label="")
        if by_class:
            return _odd(place)
        if key == self._right_key:
            return place
        return _odd(place) if key in self._keys else place.after(Repair.KEY)

    def _place_under_other(self, key: str, place: Context) -> Context:
        """Take a key that is none of a box for a label, unless it only says that boxes follow."""
        label = without_tags(key)
        if not label or plain(label) in CONTAINERS:
            return _odd(place)
        place = place.after(Repair.LABEL) if _marked(key) else place
        return _odd(place._replace(label=label))

    def _only_key(self, owner: Object) -> str | None:
        keys = [key for key, _ in owner.pairs if key != "frame_idx" or self._how.frames == 1]
        return keys[0] if len(keys) == 1 else None

    # --- numbers ----------------------------------------------------------------------------------

    def _numbers(self, value: Value) -> _Numbers | None:
        """Return the numbers of a box; None if a value is none."""
        if isinstance(value, str):
            return self._in_string(value)
        if not isinstance(value, List) or not value.whole:
            return None
        items, width = value.items, self._how.numbers.width
        if len(items) == width and _are_numbers(items):
            return _Numbers(tuple(items))
        if is_confidence(items, width):
            return _Numbers(tuple(items[:width]), frozenset({Repair.CONFIDENCE}))
        return self._in_pairs(items)

    def _in_string(self, value: str) -> _Numbers | None:
        match = _IN_QUOTES.fullmatch(in_ascii(value).strip())
        numbers = _SEPARATOR.split(match[1]) if match else []
        if len(numbers) != self._how.numbers.width or not _are_numbers(numbers):
            return None
        return _Numbers(tuple(numbers), frozenset({Repair.NUMBERS}))

    def _corners(self, fields: Mapping[str, Value]) -> _Numbers | None:
        """Return the numbers of a box whose corners are keys, such as ``top_left``."""
        row = self._how.numbers
        points: list[tuple[str, float, float]] = []
        for key, value in fields.items():
            corner = corner_of(key)
            point = _point(value, y_first=row.name == "yxyx")
            if corner is not None and point is not None:
                points.append((corner, *point))
        box = box_of_corners(points) if row.name in POINTS else None
        return None if box is None else _Numbers(tuple(row.from_corners(box)))

    def _in_pairs(self, items: Sequence[Value]) -> _Numbers | None:
        row = self._how.numbers
        if row.name not in POINTS or 2 * len(items) != row.width:
            return None
        flat: list[Value] = []
        for pair in items:
            if not isinstance(pair, List) or not pair.whole or len(pair.items) != 2:
                return None
            flat += pair.items
        return _Numbers(tuple(flat), frozenset({Repair.NUMBERS})) if _are_numbers(flat) else None


def _candidate(box: _Numbers, place: Context, bare: bool = False) -> Candidate:
    repairs = place.repairs | box.repairs
    return Candidate(place.label or "", place.frame, box.numbers, repairs, bare)


def _point(value: Value, y_first: bool) -> tuple[float, float] | None:
    """Return x and y of a point: an object with these keys, or a pair in the format's order."""
    if isinstance(value, Object):
        named = {plain(key): each for key, each in value.pairs}
        pair = [named.get("x"), named.get("y")]
    elif isinstance(value, List) and len(value.items) == 2 and value.whole:
        pair = [*reversed(value.items)] if y_first else value.items
    else:
        return None
    return (float(pair[0]), float(pair[1])) if _are_numbers(pair) else None  # type: ignore[arg-type]


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
    """Return the frame number in a value, as a number or in words such as "frame 2"."""
    index = as_index(value)
    if index is None and isinstance(value, str):
        match = _DIGITS.fullmatch(value.strip())
        index = int(match[1]) if match else None
    return index


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
    while (key := first_of(rest, LABELS)) is not None:
        value = rest.pop(key)
        repairs: Repairs = NO_REPAIRS if key == "label" else frozenset({Repair.KEY})
        if isinstance(value, List):
            texts = [item.strip() for item in value.items if isinstance(item, str)]
            if texts and all(texts) and len(texts) == len(value.items):
                return _Labels(list(map(without_tags, texts)), repairs | {Repair.STRUCTURE})
        elif value is not None and str(value).strip():
            return _one_label(str(value).strip(), repairs)
    return _Labels([""], NO_REPAIRS) if fields.get("label") == "" else None


def _one_label(label: str, repairs: Repairs) -> _Labels:
    if not _marked(label):
        return _Labels([label], repairs)
    return _Labels([without_tags(label)], repairs | {Repair.LABEL})


def _marked(label: str) -> bool:
    return without_tags(label) != label.strip()
