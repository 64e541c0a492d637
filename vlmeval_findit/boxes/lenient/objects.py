"""What objects say besides boxes, and objects that stand for several or for a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ...core import late_pattern
from .conventions import size_of_picture
from .remembered import Remembered
from .repaired_values import List, Object, Value
from .words import KeySays, rank_of_label, what_key_says, words_of

IS_VALUE = late_pattern(r"\s*+(?:[\[{]\s*+[\[{\"'\\]|\{)")


def has_objects(value: List) -> bool:
    """Return whether a list has an object among its items."""
    return any(isinstance(item, Object) for item in value.items)


def records_of(value: Object) -> Iterator[Object]:
    """Yield the objects that an object's pairs make: a key that comes again begins another."""
    pairs: list[tuple[str, Value]] = []
    keys: set[str] = set()
    for key, item in value.pairs:
        is_object = not key and isinstance(item, Object)
        if is_object or key in keys:
            yield Object(pairs, whole=True)
            pairs = []
            keys = set()
        if is_object:
            yield from records_of(item)  # type: ignore[arg-type]
            continue
        pairs.append((key, item))
        keys.add(key)
    if pairs:
        yield Object(pairs, value.whole)


_COLUMNS = frozenset(("columns", "header", "headers", "fields", "column_names"))


def rows_of_columns(value: Object) -> list[Object] | None:
    """Return the rows of a table as objects; None if an object has no columns with rows."""
    fields = dict(value.pairs)
    key = next((key for key in fields if key.lower() in _COLUMNS), None)
    names = fields[key] if key is not None else None
    if not isinstance(names, List) or not all(isinstance(name, str) for name in names.items):
        return None
    objects: list[Object] = []
    for table in fields.values():
        rows = table.items if isinstance(table, List) and table is not names else []
        for row in rows:
            if isinstance(row, List) and len(row.items) == len(names.items):
                pairs = list(zip(map(str, names.items), row.items, strict=True))
                objects.append(Object(pairs, row.whole))
    return objects or None


def with_ends(fields: Mapping[str, Value]) -> dict[str, object]:
    """Return fields with ``{"x": {"min": 1, "max": 2}}`` as ``x min`` and ``x max``."""
    result: dict[str, object] = {}
    for key, value in fields.items():
        if isinstance(value, Object) and key.lower() in ("x", "y"):
            result.update((f"{key} {end}", number) for end, number in value.pairs)
        else:
            result[key] = value
    return result


# --- what its texts say ------------------------------------------------------------------------

_UNLIKELY = 5  # From this rank on, a text is a label only if nothing else is


def texts_in(value: Value) -> Iterator[str]:
    """Yield the texts of a value that may state an order or a unit: all but labels.

    A key stands before its text, a list of texts is one.
    """
    if isinstance(value, List):
        words = [item for item in value.items if isinstance(item, str)]
        if words:
            yield ", ".join(words)
        for item in value.items:
            if isinstance(item, (List, Object)):
                yield from texts_in(item)
    elif isinstance(value, Object):
        yield from _sizes_of_picture(value)
        for key, item in value.pairs:
            rank = rank_of_label(key)
            if item is True:
                yield f'"{key}"'
            elif item in (100, 1000) and words_of(key) == ["scale"]:
                yield f"0-{item}"
            elif isinstance(item, str) and (rank is None or rank >= _UNLIKELY):
                yield f'"{key}": "{item}"'
            elif isinstance(item, (List, Object)) and not _is_list_of_labels(key, item):
                yield from texts_in(item)


def _sizes_of_picture(value: Object) -> Iterator[str]:
    """Yield the size of the picture that an object states beside its boxes."""
    sides: dict[str, int] = {}
    for key, item in value.pairs:
        words = _words_of_picture(key)
        if not words:
            continue
        numbers = item.items if isinstance(item, List) else [item]
        if isinstance(item, Object):
            numbers = [number for _, number in item.pairs]
        whole = [number for number in numbers if isinstance(number, int) and number > 1]
        if len(whole) == 2 and not words.isdisjoint(("size", "resolution", "dimensions", "shape")):
            yield size_of_picture(whole[0], whole[1])
        elif len(whole) == 1 and not words.isdisjoint(("width", "height")):
            sides["width" if "width" in words else "height"] = whole[0]
    if len(sides) == 2:
        yield size_of_picture(sides["width"], sides["height"])


@Remembered
def _words_of_picture(key: str) -> frozenset[str]:
    """Return the words of a key that is about the picture, as its size; else none."""
    words = frozenset(words_of(key))
    return words if not words.isdisjoint(_OF_PICTURE) else frozenset()


_OF_PICTURE = frozenset(
    """
    image img picture photo resolution canvas screen screenshot frame video input original resized
    scaled
    """.split()
)


def _is_list_of_labels(key: str, value: List | Object) -> bool:
    is_texts = isinstance(value, List) and all(isinstance(item, str) for item in value.items)
    return is_texts and rank_of_label(key) is not None


_KINDS = frozenset(("shape", "type", "kind", "geometry"))


def is_rectangle(fields: Mapping[str, Value]) -> bool:
    """Return whether an object says that its shape is a box, as labelme's shapes do.

    >>> is_rectangle({"shape_type": "rectangle"}), is_rectangle({"shape_type": "circle"})
    (True, False)
    """
    for key, value in fields.items():
        is_kind = isinstance(value, str) and not _KINDS.isdisjoint(words_of(key))
        if is_kind and what_key_says(str(value)) is KeySays.BOX:
            return True
    return False


_FOUND = frozenset(("found", "exists", "exist", "present", "visible", "detected"))


_NOT_FOUND = frozenset(
    ("not found", "not present", "not visible", "not detected", "absent", "missing", "none found")
)


def is_absent(fields: Mapping[str, Value]) -> bool:
    """Return whether an object says that its thing is not there.

    >>> is_absent({"found": False}), is_absent({"note": "Not found."}), is_absent({"label": "none"})
    (True, True, False)
    """
    for key, value in fields.items():
        if value is False and not _FOUND.isdisjoint(words_of(key)):
            return True
        is_note = isinstance(value, str) and len(value) < 20 and rank_of_label(key) is None
        if is_note and " ".join(words_of(str(value))) in _NOT_FOUND:
            return True
    return False


_CALLS = ("arguments", "parameters", "input", "args")


def is_look(fields: Mapping[str, Value]) -> bool:
    """Return whether an object calls a tool that looks closer at a part of the image: no answer.

    >>> is_look({"name": "image_zoom_in_tool", "arguments": 0}), is_look({"name": "zoom lens"})
    (True, False)
    """
    name = fields.get("name", fields.get("tool"))
    is_call = isinstance(name, str) and any(key in fields for key in _CALLS)
    return is_call and "zoom" in words_of(str(name))
