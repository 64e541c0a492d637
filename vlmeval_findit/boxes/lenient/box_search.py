"""Find boxes in lists and objects, under any keys and in any structure, and in prose.

Numbers are in the format's order; boxes that name another order are left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from ..reading import as_index
from ..representation import CLASS_KEY, PLURAL_KEYS, ReplyFormat, Representation
from .values import List, Object, Repair, Value

# --- keys of boxes, labels and frames -------------------------------------------------------------

_NO_LETTER = re.compile(r"[\W_]+")


@lru_cache(maxsize=4096)
def plain(key: str) -> str:
    """Normalise a key: no case, no punctuation.

    >>> plain("Bbox_2D"), plain("x min")
    ('bbox2d', 'xmin')
    """
    return _NO_LETTER.sub("", key.lower())


# Keys of boxes; where labels are asked for, any other key may be a label
BOXES = frozenset(
    (
        *("bbox", "bboxes", "bbox2d", "bboxes2d", "box", "boxes", "box2d", "boxes2d", "bndbox"),
        *("boundingbox", "boundingboxes", "coordinates", "coordinate", "coords", "points"),
        *("position", "positions", "location", "locations", "rect", "rectangle", "region"),
    )
)

LABELS = ("class", "classname", "category", "name", "object", "objectname", "type", "text")
FRAMES = ("frame", "frameindex", "frameid", "framenumber", "frameno", "image", "imageindex")

_ORDERS = re.compile(
    "(?P<cxcywh>cxcyw(?:idth)?h|(?:xcent|cent(?:er|re)x)[a-z]{0,2}(?:ycent|cent(?:er|re)y))"
    "|(?P<xyxy>x(?:min|1)?y(?:min|1)?x(?:max|2)?y(?:max|2)?|ltrb|lefttopright)"
    "|(?P<yxyx>y(?:min|1)?x(?:min|1)?y(?:max|2)?x(?:max|2)?|topleftbottom)"
    "|(?P<xywh>x(?:min|1)?y(?:min|1)?w(?:idth)?h|ltwh|lefttopwidth)"
    "|(?P<yxhw>y(?:min|1)?x(?:min|1)?h(?:eight)?w|topleftheight)"
)


def names_another_order(words: str, representation: Representation) -> bool:
    """Return whether words name another order of numbers than was asked for."""
    match = _ORDERS.search(plain(words))
    if match is None:
        return False
    requested = "xyxy" if representation.name == "unconstrained" else representation.name
    return match.lastgroup != requested


_SIDES = {
    "xyxy": (("x1", "y1", "x2", "y2"), ("left", "top", "right", "bottom")),
    "yxyx": (("y1", "x1", "y2", "x2"), ("top", "left", "bottom", "right")),
    "xywh": (("x", "y", "w", "h"), ("left", "top", "width", "height")),
    "yxhw": (("y", "x", "h", "w"), ("top", "left", "height", "width")),
    "cxcywh": (("cx", "cy", "w", "h"), ("xcenter", "ycenter", "width", "height")),
}


@lru_cache
def names_of(representation: Representation) -> Sequence[tuple[str, ...]]:
    """Return the plain names that the numbers may have, those asked for first."""
    names = [representation.keys] if representation.keys else []
    if representation.keys and len(set(representation.fields)) == representation.width:
        names.append(tuple(map(plain, representation.fields)))
    order = "xyxy" if representation.name == "unconstrained" else representation.name
    return [*names, *_SIDES.get(order, ())]


def numbers_by_name(
    fields: Mapping[str, object], representation: Representation
) -> tuple[tuple[str, ...], list[object]] | None:
    """Return names and numbers of an object that names all of them; else None."""
    by_name = {plain(key): value for key, value in fields.items()}
    if not representation.excluded_keys.isdisjoint(by_name):
        return None
    for names in names_of(representation):
        if all(name in by_name for name in names):
            return names, [by_name[name] for name in names]
    return None


# --- lists and objects ----------------------------------------------------------------------------

# Representations made of points, whose numbers may come in pairs
POINTS = ("xyxy", "yxyx", "unconstrained", "all", "all-labelled")

_NO_REPAIRS: frozenset[Repair] = frozenset()


class Candidate(NamedTuple):
    """A box, with the repairs that it needed."""

    label: str
    frame: int | None  # None: not stated
    numbers: tuple[Any, ...]
    repairs: frozenset[Repair]
    bare: bool = False  # Only brackets around it


class Context(NamedTuple):
    """What holds for everything inside an object or list."""

    label: str | None = None
    frame: int | None = None
    repairs: frozenset[Repair] = _NO_REPAIRS

    def after(self, repair: Repair) -> Context:
        return self._replace(repairs=self.repairs | {repair})


def _odd(place: Context) -> Context:
    return place.after(Repair.STRUCTURE)


class Entries:
    """Finds the boxes in the values of a reply; ``indices`` are all frame numbers."""

    def __init__(self, fmt: ReplyFormat) -> None:
        self._how = fmt
        self._labelled = fmt.multilabel
        self._keys = {fmt.key, PLURAL_KEYS.get(fmt.key, fmt.key)} - {CLASS_KEY}
        self._plain_keys = set(map(plain, self._keys))
        keys = {*fmt.numbers.json_keys} - {CLASS_KEY}
        plurals = {PLURAL_KEYS.get(key, key) for key in keys}
        self._known = BOXES | set(map(plain, keys | plurals))
        self.indices: list[int] = []

    def of(self, root: List | Object) -> Iterator[Candidate]:
        """Yield the boxes of an outermost value."""
        odd = _odd(Context())
        if isinstance(root, Object):
            yield from self._object(root, Context() if self._how.structure == "nested" else odd)
            return
        if self._numbers(root) is not None:
            yield from self._inside(root, odd)
            return
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
                yield self._candidate(box, place, bare=True)

    def _object(self, value: Object, place: Context) -> Iterator[Candidate]:
        fields = dict(value.pairs)
        place = self._placed(fields, place)
        named = numbers_by_name(fields, self._how.numbers)
        if named is not None and _are_numbers(named[1]):
            yield from self._decomposed(_Numbers(tuple(named[1]), _NO_REPAIRS), value, place)
            return
        for keys in self._ranks(fields):
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
            yield self._candidate(box, place)

    def _placed(self, fields: dict[str, Value], place: Context) -> Context:
        label, frame, repairs = place.label, place.frame, set(place.repairs)
        if self._labelled:
            key = "label" if "label" in fields else _first(fields, LABELS)
            value = fields.get(key) if key else None
            if key and not isinstance(value, (List, Object)):
                label = str(value).strip()
                repairs |= {Repair.KEY} if key != "label" else set()
        if self._how.frames > 1:
            key = "frame_idx" if "frame_idx" in fields else _first(fields, FRAMES)
            if key:
                value = fields[key]
                index = _index(value)
                if index is not None:
                    self.indices.append(index)
                    frame = index
                    if key != "frame_idx" or as_index(value) is None:
                        repairs.add(Repair.KEY)
        return Context(label, frame, frozenset(repairs))

    def _ranks(self, fields: dict[str, Value]) -> Iterator[list[str]]:
        """Yield the keys that may hold boxes: those asked for, known words, all others."""
        asked = [key for key in fields if key in self._keys]
        known = [key for key in fields if key not in self._keys and plain(key) in self._known]
        rest = [key for key in fields if key not in asked and key not in known]
        for keys in (asked, known, rest):
            yield [key for key in keys if not names_another_order(key, self._how.numbers)]

    def _under(self, key: str, value: Value, owner: Object, place: Context) -> Iterator[Candidate]:
        if not isinstance(value, (List, Object, str)):
            return
        if self._how.frames > 1 and place.frame is None and (index := _index(key)) is not None:
            self.indices.append(index)
            there = place._replace(frame=index)
            yield from self._inside(value, there.after(Repair.STRUCTURE))
            return
        named = self._named(key, owner, place)
        if named is None:
            return
        nested = self._how.structure == "nested"
        box = self._numbers(value)
        if box is not None:
            yield self._candidate(box, named if self._how.structure == "per_box" else _odd(named))
        elif isinstance(value, Object):
            yield from self._object(value, _odd(named))
        elif isinstance(value, List):
            for item in value.items:
                box = self._numbers(item)
                if box is not None:
                    yield self._candidate(box, named if nested else _odd(named))
                else:
                    yield from self._inside(item, _odd(named))

    def _named(self, key: str, owner: Object, place: Context) -> Context | None:
        """Return the place under a key; None if the object was cut off before a label."""
        fmt = self._how
        is_box = key in self._keys or plain(key) in self._known
        by_class = fmt.key == CLASS_KEY
        if self._labelled and place.label is None:
            others = [name for name, _ in owner.pairs if name != "frame_idx" or fmt.frames == 1]
            if by_class and others == [key]:
                return place._replace(label=key.strip())
            if not is_box:
                return _odd(place._replace(label=key.strip()))
            if not owner.whole:
                return None
            place = place._replace(label="")
        if by_class:
            return _odd(place)
        # Singular for plural is another structure, which is noted elsewhere.
        return place if plain(key) in self._plain_keys else place.after(Repair.KEY)

    def _candidate(self, box: _Numbers, place: Context, bare: bool = False) -> Candidate:
        repairs = place.repairs | box.repairs
        return Candidate(place.label or "", place.frame, box.numbers, repairs, bare)

    def _numbers(self, value: Value) -> _Numbers | None:
        row = self._how.numbers
        if isinstance(value, str):
            match = _IN_QUOTES.fullmatch(value.strip())
            numbers = _SEPARATOR.split(match[1]) if match else []
            written = frozenset({Repair.NUMBERS})
            return _Numbers(tuple(numbers), written) if len(numbers) == row.width else None
        if not isinstance(value, List) or not value.whole:
            return None
        items = value.items
        if len(items) == row.width and _are_numbers(items):
            return _Numbers(tuple(items), _NO_REPAIRS)
        if row.name in POINTS and 2 * len(items) == row.width:
            points = [pair.items for pair in items if isinstance(pair, List) and pair.whole]
            flat = [n for point in points for n in point]
            if all(len(point) == 2 for point in points) and len(flat) == row.width:
                pairs = _Numbers(tuple(flat), frozenset({Repair.NUMBERS}))
                return pairs if _are_numbers(flat) else None
        return None


class _Numbers(NamedTuple):
    numbers: tuple[Any, ...]
    repairs: frozenset[Repair]


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


def _first(fields: dict[str, Value], words: Sequence[str]) -> str | None:
    by_word = {plain(key): key for key in reversed(fields)}
    return next((by_word[word] for word in words if word in by_word), None)


def _index(value: object) -> int | None:
    """Return the frame number in a value, as a number or in words such as "frame 2"."""
    index = as_index(value)
    if index is None and isinstance(value, str):
        match = _DIGITS.fullmatch(value.strip())
        index = int(match[1]) if match else None
    return index


# --- prose: round brackets, two points, between tags, or all alone --------------------------------

_NUMBER = r"([-+]?\d++(?:\.\d*+)?(?:[eE][-+]?\d++)?)"
_BETWEEN = r"(?:\s*+[,;]\s*+|\s++)"
_POINT = rf"\(\s*+{_NUMBER}{_BETWEEN}{_NUMBER}\s*+\)"
_IN_PROSE = frozenset({Repair.PROSE})

_FRAME = re.compile(r"frame\W{0,4}(\d{1,9})|^\s*+<?\s*+(\d{1,9})\s*+[>:.)]", re.I | re.M)
_MARKS = " \t\r:;,.*-–—=>#\"'`([{)]}•"
_BULLET = re.compile(r"^\s*+(?:\d{1,3}[.)]|[-*•])\s++")
_LABEL_WITHIN = 200  # Characters before a box that are searched for its label and frame


def boxes_in(text: str, fmt: ReplyFormat) -> Iterator[Candidate]:
    """Yield the boxes in prose that have the label and frame asked for."""
    width = fmt.numbers.width
    numbers = _BETWEEN.join([_NUMBER] * width)
    alone = re.fullmatch(rf"\s*+{numbers}\s*+\.?", text)
    if alone is not None and not fmt.multilabel and fmt.frames == 1:
        yield Candidate("", None, alone.groups(), _IN_PROSE)
        return
    # Between the points of one box: a word or an arrow, no other number.
    points = r"[^()\d\n]{0,20}+".join([_POINT] * (width // 2))
    kinds = [rf"[\[(>]\s*+{numbers}\s*+[\])<]"] + [points] * (fmt.representation in POINTS)
    end = 0
    label, frame = "", None
    for match in re.finditer("|".join(kinds), text):
        before = text[max(end, match.start() - _LABEL_WITHIN) : match.start()]
        end = match.end()
        if fmt.frames > 1:
            frame = _frame(before, frame)
            if frame is None:
                continue
        if fmt.multilabel:
            label = _label(before) or label
            if not label:
                continue
        yield Candidate(label, frame, tuple(n for n in match.groups() if n is not None), _IN_PROSE)


def _frame(before: str, last: int | None) -> int | None:
    """Return the last frame named before a box, else that of the previous box."""
    for match in _FRAME.finditer(before):
        last = int(match[1] or match[2])
    return last


def _label(before: str) -> str:
    """Return the text before a box in its line, without marks and bullets."""
    line = before.rstrip(_MARKS + "\n").rpartition("\n")[2]
    line = _FRAME.sub("", line)
    return _BULLET.sub("", line).strip(_MARKS)
