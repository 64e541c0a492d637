"""Find boxes in lists and objects, under any keys and in any structure.

Numbers are in the format's order; boxes that name another order are left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ...core import late_pattern
from ..reading import as_index
from ..representation import (
    CLASS_KEY,
    NO_RECTANGLE,
    PLURAL_KEYS,
    REPRESENTATIONS,
    MatchRule,
    ReplyFormat,
)
from .conventions import (
    RunNumbers,
    key_states_another_order,
    key_states_another_unit,
    key_without_unit,
)
from .labels import TAG, TOKEN_WITHOUT_UNIT, without_tags
from .labels_in_values import Labels, is_marked, stated_labels
from .named_corners import box_of_corners, corner_of
from .number_names import numbers_by_name
from .objects import (
    IS_VALUE,
    has_objects,
    is_absent,
    is_look,
    is_rectangle,
    records_of,
    rows_of_columns,
    with_ends,
)
from .punctuation import in_ascii
from .records import NO_REPAIRS, Candidate, Repair, Repairs
from .repaired_values import List, Object, Value, values_in
from .words import (
    CONTAINERS,
    FRAMES,
    KeySays,
    first_of,
    is_asked,
    is_one_letter_off,
    plain,
    what_key_says,
    words_of,
)
from .words import POINTS as POINT_WORDS

# Representations made of points, whose numbers may come in pairs
POINTS = ("xyxy", "yxyx", "unconstrained", "all", "all-labelled")


class Context(NamedTuple):
    """What holds for every box inside an object or list."""

    label: str | None = None  # None: not stated so far
    frame: int | None = None  # None: not stated so far
    repairs: Repairs = NO_REPAIRS
    label_key: str | None = None  # The key that is the label
    in_box: bool = False  # A key around says that these are boxes
    in_other: bool = False  # A key around is of another thing: a label below it is of that

    def repaired(self, *repairs: Repair) -> Context:
        return self._replace(repairs=self.repairs.union(repairs))

    def restructured(self) -> Context:
        """Return what holds where a box is in another structure than was asked for."""
        return self.repaired(Repair.STRUCTURE)


class _Numbers(NamedTuple):
    numbers: tuple[Any, ...]
    repairs: Repairs = NO_REPAIRS


class BoxSearch:
    """Finds the boxes in the values of a reply; ``indices`` are all frame numbers.

    ``run`` says what the numbers of a reply count, ``asked`` are the labels asked for. A box is
    only what a key says to be one, or a list of numbers without a key.
    """

    def __init__(self, fmt: ReplyFormat, run: RunNumbers, asked: Sequence[str] = ()) -> None:
        self._format = fmt
        self._run = run
        self._asked = asked
        self._row = fmt.numbers
        self._is_video = fmt.frames > 1
        self._needs_labels = fmt.multilabel
        plural = PLURAL_KEYS.get(fmt.key, fmt.key)
        self._right_key = plural if fmt.structure == "nested" else fmt.key
        self._requested_keys = {fmt.key, plural} - {CLASS_KEY}
        self._of_points = fmt.numbers.match_rule is MatchRule.POINT_IN_OBJECT
        self._quoted = 0  # Texts within texts that are read as values
        self.indices: list[int] = []

    def boxes_of(self, root: List | Object) -> Iterator[Candidate]:
        """Yield the boxes of an outermost value."""
        as_asked = Context()
        if isinstance(root, Object) and not any(key for key, _ in root.pairs):
            root = List([item for _, item in root.pairs], root.whole)
            as_asked = as_asked.restructured()
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
            if box is not None:
                if not self._lacks_label(context):
                    yield _candidate(box, context, bare=True)
                return
            row = self._labelled_row(value)
            if row is not None:
                yield _candidate(row[1], context._replace(label=row[0]).restructured())
                return
            for item in value.items:
                yield from self._boxes_inside(item, context)
        elif isinstance(value, str):
            yield from self._boxes_in_text(value, context)

    def _has_labels(self, value: List) -> bool:
        """Return whether a list has objects, or is a row with a label asked for."""
        return has_objects(value) or self._labelled_row(value) is not None

    def _labelled_row(self, value: List) -> tuple[str, _Numbers] | None:
        """Return the label and box of a row like ``["dog", 1, 2, 3, 4]``; None if it is none."""
        texts = [item for item in value.items if isinstance(item, str)]
        if not self._needs_labels or len(texts) != 1 or not is_asked(texts[0], self._asked):
            return None
        rest: list[Value] = [item for item in value.items if not isinstance(item, str)]
        numbers = rest[0] if len(rest) == 1 else List(rest, value.whole)
        box = self._numbers_of(numbers)
        return None if box is None else (texts[0].strip(), box)

    def _boxes_in_text(self, text: str, context: Context) -> Iterator[Candidate]:
        """Yield the boxes of a text that is a list or object itself, as a tool's arguments."""
        if self._quoted or not IS_VALUE.match(text):
            return
        self._quoted += 1
        for value in values_in(text):
            inner = context.repaired(*value.repairs).restructured()
            yield from self._boxes_inside(value.value, inner)
        self._quoted -= 1

    def _lacks_label(self, context: Context) -> bool:
        return self._needs_labels and context.label is None

    # --- an object --------------------------------------------------------------------------------

    def _boxes_of_object(self, value: Object, context: Context) -> Iterator[Candidate]:
        """Yield the boxes of an object; a key that comes again begins another one."""
        rows = rows_of_columns(value)
        if rows is not None:
            for row in rows:
                yield from self._boxes_of_object(row, context.restructured())
            return
        records = list(records_of(value))
        shared: Labels | None = None
        for record in records:
            again = context if len(records) == 1 else context.repaired(Repair.KEY)
            stated = self._stated_labels(record)
            # A label that does not come again is that of all boxes behind it.
            if stated is None and shared is not None:
                stated = shared
            shared = stated
            yield from self._boxes_of_record(record, stated, again)

    def _boxes_of_record(
        self, value: Object, stated: Labels | None, context: Context
    ) -> Iterator[Candidate]:
        """Yield the boxes of an object without repeated keys, in its frame, with its labels."""
        fields = dict(value.pairs)
        if self._is_video:
            context = self._in_stated_frame(fields, context)
        if is_absent(fields) or is_look(fields):
            return
        if stated is None:
            yield from self._boxes_of_fields(value, fields, context)
            return
        context = context.repaired(*stated.repairs)
        if not stated.is_list:
            labelled = context._replace(label=stated.labels[0])
            yield from self._boxes_of_fields(value, fields, labelled)
            return
        # Lists side by side, as Florence-2 writes them; other counts leave open whose label it is.
        boxes = list(self._boxes_of_fields(value, fields, context._replace(label="")))
        if len(boxes) == len(stated.labels):
            for box, label in zip(boxes, stated.labels, strict=True):
                yield box._replace(label=label)

    def _stated_labels(self, value: Object) -> Labels | None:
        if not self._needs_labels:
            return None
        return stated_labels(dict(value.pairs), self._states_box, self._asked)

    def _states_box(self, key: str) -> bool:
        return self._what_key_says(key) is KeySays.BOX

    def _what_key_says(self, key: str) -> KeySays:
        """Return what a key says; the requested one says a box, with a letter wrong, too."""
        if key in self._requested_keys:
            return KeySays.BOX
        says = what_key_says(key, self._of_points)
        if says is KeySays.NOTHING and any(
            is_one_letter_off(key, asked) for asked in self._requested_keys
        ):
            return KeySays.BOX
        return says

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
        named = numbers_by_name(self._named_fields(fields), self._row)
        if named is not None and _are_numbers(named):
            yield from self._decomposed_box(_Numbers(tuple(named)), value, context)
            return
        corners = self._numbers_of_corners(fields, context.in_box)
        if corners is None and is_rectangle(fields):
            points = (
                value for key, value in fields.items() if not _VERTICES.isdisjoint(words_of(key))
            )
            corners = next(filter(None, map(self._numbers_of, points)), None)
        if corners is not None and not self._lacks_label(context):
            yield _candidate(corners, context.restructured())._replace(named=True)
            return
        for keys in self._keys_by_likelihood(fields, context):
            boxes: list[Candidate] = []
            for key in keys:
                boxes += self._boxes_under(key, fields[key], value, context)
            if boxes:
                yield from boxes
                return

    def _named_fields(self, fields: Mapping[str, Value]) -> dict[str, object]:
        """Return fields by their names, without the unit of the run: ``x_min_px`` is ``x min``.

        A number whose key states another unit has none.
        """
        named: dict[str, object] = {}
        for key, value in with_ends(fields).items():
            name = key_without_unit(key)
            if name == key or not key_states_another_unit(key, self._run):
                named[name] = value
        return named

    def _decomposed_box(
        self, box: _Numbers, value: Object, context: Context
    ) -> Iterator[Candidate]:
        """Yield a box whose numbers the object names, unless it has no label."""
        if self._format.structure != "decomposed":
            context = context.restructured()
        elif not {key for key, _ in value.pairs}.issuperset(self._row.keys):
            context = context.repaired(Repair.KEY)
        if not self._lacks_label(context):
            yield _candidate(box, context)._replace(named=True)

    def _keys_by_likelihood(
        self, fields: Mapping[str, Value], context: Context
    ) -> Iterator[list[str]]:
        """Yield the keys that may hold boxes: those asked for, those that say so, all others."""
        requested: list[str] = []
        known: list[str] = []
        others: list[str] = []
        for key in fields:
            is_label = not self._states_box(key)
            if not is_label and key_states_another_order(key, self._row):
                continue
            may_have_unit = context.in_box or not is_label
            if may_have_unit and key_states_another_unit(key, self._run):
                continue
            if key in self._requested_keys:
                requested.append(key)
            elif not is_label:
                known.append(key)
            else:
                others.append(key)
        # Keys beside the label asked for are other labels.
        of_label = [key for key in others if is_asked(key, self._asked)]
        yield requested
        yield known
        yield others if self._needs_labels or not of_label else of_label

    # --- what stands under a key ------------------------------------------------------------------

    def _boxes_under(
        self, key: str, value: Value, owner: Object, context: Context
    ) -> Iterator[Candidate]:
        """Yield the boxes under a key of an object: a box, an object or a list of either."""
        if not isinstance(value, (List, Object, str)):
            return
        if self._is_video and context.frame is None:
            index = _index(key)
            if index is not None and context.in_other and self._numbers_of(value) is not None:
                return  # Numbered values of another thing
            if index is not None:
                self.indices.append(index)
                in_frame = context._replace(frame=index).restructured()
                yield from self._boxes_inside(value, in_frame)
                return
        below = self._context_under(key, owner, context)
        if below is None:
            return
        if isinstance(value, str) and IS_VALUE.match(value):
            yield from self._boxes_in_text(value, below)
            return
        if not self._may_be_numbers(key, below):
            yield from self._boxes_of_wrapper(value, below)
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

    def _may_be_numbers(self, key: str, context: Context) -> bool:
        """Return whether the numbers under a key are a box: the key says so, or is a label."""
        if self._states_box(key) or context.in_box:
            return True
        if context.in_other:
            return False
        if is_asked(key, self._asked):
            return True
        if not self._needs_labels or context.label is None:
            return False
        return context.label_key == key

    def _boxes_of_wrapper(self, value: Value, context: Context) -> Iterator[Candidate]:
        """Yield the boxes of the objects under a key that says nothing of boxes."""
        if isinstance(value, Object):
            yield from self._boxes_of_object(value, context.restructured())
        elif isinstance(value, List):
            for item in value.items:
                if isinstance(item, Object) or (isinstance(item, List) and self._has_labels(item)):
                    yield from self._boxes_inside(item, context.restructured())

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
        """Return what holds under a key; None if nothing under it may be a box."""
        by_class = self._format.key == CLASS_KEY
        says = self._what_key_says(key)
        states_box = says is KeySays.BOX
        if not states_box and not self._is_around_objects(key, says):
            context = context._replace(in_other=True)
        if says is KeySays.OTHER:
            return None if self._is_of_numbers(owner, key) else context.restructured()
        context = context._replace(in_box=context.in_box or states_box)
        if self._lacks_label(context):
            is_wrapper = plain(key) in CONTAINERS and not is_asked(key, self._asked)
            if by_class and self._only_key(owner) == key and not (is_marked(key) or is_wrapper):
                return context._replace(label=key.strip(), label_key=key)
            if not states_box:
                return self._context_under_label(key, context)
        if by_class:
            return context.restructured()
        if key == self._right_key:
            return context
        if key in self._requested_keys or not states_box:
            return context.restructured()
        return context.repaired(Repair.KEY)

    def _is_around_objects(self, key: str, says: KeySays) -> bool:
        """Return whether labels below a key may be of boxes: it says so, or is a label itself."""
        if is_asked(without_tags(key), self._asked) or _index(key) is not None:
            return True
        if self._asked or not self._needs_labels:
            return not CONTAINERS.isdisjoint(words_of(key))
        return says is not KeySays.OTHER

    def _is_of_numbers(self, owner: Object, key: str) -> bool:
        value = dict(owner.pairs).get(key)
        if isinstance(value, Object):
            named = any(corner_of(name) for name, _ in value.pairs)
            return named or not any(isinstance(item, (List, Object)) for _, item in value.pairs)
        return isinstance(value, str) or (isinstance(value, List) and not has_objects(value))

    def _context_under_label(self, key: str, context: Context) -> Context:
        """Return what holds under a key that is a label, unless it only says that boxes follow."""
        label = without_tags(key)
        words = words_of(label)
        if self._asked:
            is_label = is_asked(label, self._asked)
        else:
            others = CONTAINERS | POINT_WORDS
            is_label = bool(words) and others.isdisjoint({plain(label), words[-1]})
            is_label = is_label and not label.strip().isdecimal()
        if not is_label:
            return context.restructured()
        if is_marked(key):
            context = context.repaired(Repair.LABEL)
        return context._replace(label=label, label_key=key).restructured()

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
        written = _numbers_in_texts(items)
        if len(written) == width and _are_numbers(written):
            return _Numbers(tuple(written), frozenset({Repair.NUMBERS}))
        if is_confidence(items, width):
            return _Numbers(tuple(items[:width]), frozenset({Repair.CONFIDENCE}))
        return self._numbers_in_pairs(items) or self._corners_of_rectangle(items)

    def _numbers_in_string(self, value: str) -> _Numbers | None:
        joined = _BETWEEN_PAIRS.sub(",", TAG.sub(" ", in_ascii(value)).strip())
        match = _IN_QUOTES.fullmatch(joined)
        numbers = _SEPARATOR.split(match[1]) if match else []
        if len(numbers) != self._row.width or not _are_numbers(numbers):
            return None
        return _Numbers(tuple(numbers), frozenset({Repair.NUMBERS}))

    def _corners_of_rectangle(self, points: Sequence[Value]) -> _Numbers | None:
        """Return the numbers of a box that is stated by its four corners; None if it is not."""
        if self._row.name not in POINTS or self._row.width != 4:
            return None
        if len(points) == 8:  # Without brackets around each
            pairs = [points[at : at + 2] for at in range(0, 8, 2)]
            points = [List([*pair], whole=True) for pair in pairs]
        if len(points) == 5 and points[0] == points[4]:  # A closed ring, as of GeoJSON
            points = points[:4]
        if len(points) != 4:
            return None
        numbers: list[float] = []
        for item in points:
            point = _point(item, y_first=self._row.name == "yxyx")
            numbers += point or ()
        corners = REPRESENTATIONS["all"].to_corners(numbers) if len(numbers) == 8 else NO_RECTANGLE
        if corners == NO_RECTANGLE:
            return None
        return _Numbers(tuple(self._row.from_corners(corners)), frozenset({Repair.NUMBERS}))

    def _numbers_in_pairs(self, items: Sequence[Value]) -> _Numbers | None:
        if self._row.name not in POINTS or 2 * len(items) != self._row.width:
            return None
        flat: list[Value] = []
        for pair in items:
            if not isinstance(pair, List) or not pair.whole or len(pair.items) != 2:
                return None
            flat += pair.items
        return _Numbers(tuple(flat), frozenset({Repair.NUMBERS})) if _are_numbers(flat) else None

    def _numbers_of_corners(self, fields: Mapping[str, Value], in_box: bool) -> _Numbers | None:
        """Return the numbers of a box whose corners are keys, as in ``top_left``."""
        if self._row.name not in POINTS:
            return None
        points: list[tuple[str, float, float]] = []
        for key, value in fields.items():
            corner = corner_of(key) or (_ENDS.get(key.lower()) if in_box else None)
            point = _point(value, y_first=self._row.name == "yxyx")
            if corner is not None and point is not None:
                points.append((corner, *point))
        box = box_of_corners(points)
        return None if box is None else _Numbers(tuple(self._row.from_corners(box)))


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


_TOKEN = late_pattern(TOKEN_WITHOUT_UNIT)


def _numbers_in_texts(items: Sequence[Value]) -> list[str]:
    """Return the numbers of a list of texts: ``["1 2", "3,4"]`` has four; none of another list."""
    numbers: list[str] = []
    for item in items:
        if not isinstance(item, str):
            return []
        numbers += _SEPARATOR.split(_TOKEN.sub(r"\1 ", item).strip())
    return numbers


_SEPARATOR = late_pattern(r"\s*+,\s*+|\s++")
_IN_QUOTES = late_pattern(r"[\[(]?\s*+([-+.\deE]++(?:[\s,]++[-+.\deE]++)*+)\s*+[\])]?")
_BETWEEN_PAIRS = late_pattern(r"[\])]\s*+,?\s*+[\[(]")  # [1, 2][3, 4]
_DIGITS = late_pattern(
    r"(?:frame|image|img)?[\s_#<-]*+(\d{1,9})(?:\.\w{3,4})?[\s>]*+", re.IGNORECASE
)


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


# Keys of the points of a shape
_VERTICES = frozenset(("points", "pts", "vertices", "corners"))
# Keys of corners, inside what is said to be a box
_ENDS = {
    **dict.fromkeys(("min", "start"), "left top"),
    **dict.fromkeys(("max", "end"), "right bottom"),
}
