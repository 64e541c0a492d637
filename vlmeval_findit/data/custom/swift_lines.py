"""Read ms-swift's grounding lines: ``objects`` has expressions (ref) and boxes (bbox).

Which expression a box has is told by the messages, in which ``<ref-object>`` and ``<bbox>`` stand
for them in order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from ...core import Expected, Text
from ...storage import Size
from ..annotated_samples import AnnotationError, Samples, Units
from ..ledger import Ledger
from .annotation_values import ListOfJson, json_of, state_size, validated
from .glimpse import glimpse
from .jsonl import Place, lines_of, samples_of_lines
from .node import SIDES_OF_IMAGES, Node, read_elements
from .reader_options import ReaderOptions
from .text_encodings import text_of

_UNITS = {"real": Units.PIXELS, "norm1": Units.FRACTIONS}
_Names = Annotated[list[Text], Expected("a list of names")]
_Texts = Annotated[list[Text], Expected("a list of texts")]
_OF_LINE = frozenset(("messages", "images", "objects"))
_NOT_NEEDED = frozenset(("rejected_messages", "rejected_response", "channel", "id", "solution"))
_REF = "<ref-object>"
_BOX = "<bbox>"


@dataclass(frozen=True, slots=True)
class _SwiftObjects:
    ref: _Texts
    bbox: ListOfJson
    bbox_type: Text = "real"
    image_id: ListOfJson | None = None


def read_swift(path: Path, images: Path, options: ReaderOptions | None = None) -> Samples:
    """Read a file of lines, or a list of them: a query for every expression, about all its boxes.

    Without messages, one expression has all boxes, and several have one each.

    Raises an AnnotationError for other lines, and where boxes have two units.
    """
    options = options or ReaderOptions()
    ledger = Ledger()
    units: dict[Units, Place] = {}
    sizes: dict[str, Size] = {}
    queries = []
    for where, value in _lines(path, ledger, options.encoding):
        queries += list(_queries(value, where, units, sizes, ledger))
    if len(units) > 1:
        first, second = units.values()
        raise AnnotationError(f"{second}: bbox_type is not that of {first}; make a file of each")
    stated = next(iter(units), Units.PIXELS)
    return samples_of_lines(path, images, options, ledger, queries, stated, sizes)


def _lines(path: Path, ledger: Ledger, encoding: str | None) -> Iterator[tuple[Place, Any]]:
    if not glimpse(path).is_list:
        yield from lines_of(path, text_of(path, encoding))
        return
    for _, line in read_elements(path, ledger, encoding):
        yield str(line), line.value


def _names(stated: Any, where: Place) -> list[str]:
    """Return the images of a line: names, or records with a path, as datasets stores them."""
    several = stated if isinstance(stated, list) else [stated] if stated else []
    paths = [each.get("path") if isinstance(each, dict) else each for each in several]
    names: list[str] = validated(_Names, paths, f"{where}, images")
    return names


def _queries(
    value: Any,
    where: Place,
    units: dict[Units, Place],
    sizes: dict[str, Size],
    ledger: Ledger,
) -> Iterator[tuple[Place, Mapping[str, Any]]]:
    """Yield a line of our JSON lines for each expression."""
    if not isinstance(value, dict) or not value.get("objects"):
        ledger.leave_out("lines without objects: no grounding", where)
        return
    line = Node(value, where, ledger)
    for key in line.rest("lines", _OF_LINE.union(*SIDES_OF_IMAGES.values()), _NOT_NEEDED):
        ledger.not_read(f"lines: {key}", where)
    ledger.not_needed("messages: the questions and answers of a training", where)
    stated = value["objects"]
    if isinstance(stated, str):
        stated = json_of(stated, f"{where}, objects")
    objects: _SwiftObjects = validated(_SwiftObjects, stated, f"{where}, objects")
    if not objects.ref:
        ledger.leave_out("lines without an expression (ref)", where)
        return
    if objects.bbox_type not in _UNITS:
        raise AnnotationError(
            f"{where}, objects, bbox_type: {objects.bbox_type!r} should be real or norm1"
        )
    units.setdefault(_UNITS[objects.bbox_type], where)
    names = _names(value.get("images"), where)
    if len(names) == 1 and line.size is not None:
        state_size(sizes, names[0], line.size, where)
    places = objects.image_id or [0] * len(objects.bbox)
    if len(places) != len(objects.bbox):
        raise AnnotationError(f"{where}, objects: {len(places)} image_id, should be one a bbox")
    expressions = _expressions(objects, _texts(value.get("messages")), where)
    boxes: dict[tuple[int, str], list[Any]] = {}
    for place, expression, box in zip(places, expressions, objects.bbox, strict=True):
        if not isinstance(place, int) or not 0 <= place < len(names):
            raise AnnotationError(f"{where}: {len(names)} images, but an object is in {place!r}")
        boxes.setdefault((place, expression), []).append(box)
    for at, ((place, expression), of_query) in enumerate(boxes.items()):
        # Its own place: the expressions of a line are objects of their own.
        yield (
            f"{where}, ref {at}",
            {"image": names[place], "expression": expression, "boxes": of_query},
        )


# --- which expression a box has -------------------------------------------------------------------


def _texts(messages: Any) -> list[str]:
    """Return the texts of messages; ms-swift itself reads no others."""
    several = messages if isinstance(messages, list) else []
    contents = (each.get("content") for each in several if isinstance(each, dict))
    return [content for content in contents if isinstance(content, str)]


def _expressions(objects: _SwiftObjects, messages: Sequence[str], where: Place) -> Sequence[str]:
    """Return the expression of every box, or raise an AnnotationError."""
    count = len(objects.bbox)
    if len({*objects.ref}) == 1:
        return objects.ref[:1] * count
    marks = [re.findall(f"{_REF}|{_BOX}", text) for text in messages]
    flat = [mark for of_message in marks for mark in of_message]
    found: Sequence[str] | None = None
    if flat.count(_REF) == len(objects.ref) and flat.count(_BOX) == count:
        found = _paired(marks, objects.ref)
    elif not flat and len(objects.ref) == count:
        found = objects.ref
    if found is None:
        raise AnnotationError(
            f"{where}, objects: {len(objects.ref)} ref, but {count} bbox: which box is whose? "
            f"One ref for all, or a {_REF} before each {_BOX} in the messages"
        )
    return found


def _paired(marks: Sequence[Sequence[str]], refs: Sequence[str]) -> list[str] | None:
    """Return the expression of each box in the order of the text; None where it is not clear.

    Args:
        marks: ``<ref-object>`` and ``<bbox>`` of every message, in order.
        refs: the text of every ``<ref-object>``.
    """
    rest = iter(refs)
    texts = [[next(rest) if mark == _REF else None for mark in of_message] for of_message in marks]
    expressions: list[str] = []
    for at, of_message in enumerate(texts):
        if None not in of_message:
            continue
        before = _nearest_before(of_message)
        behind = _nearest_before(of_message[::-1])[::-1]
        if all(text is None for text in of_message):
            # Names of other messages: a question before, or an answer behind
            others = [text for each in (texts[:at] or texts[at:]) for text in each if text]
            if len({*others}) != 1:
                return None
            expressions += others[:1] * len(before)
        elif before == behind or None in behind:
            expressions += [text or "" for text in before]
        elif None in before:
            expressions += [text or "" for text in behind]
        else:
            return None
        if "" in expressions:
            return None
    return expressions


def _nearest_before(texts: Sequence[str | None]) -> list[str | None]:
    """Return for every box (None) the name before it; None: there is none."""
    found = []
    name: str | None = None
    for text in texts:
        name = text or name
        if text is None:
            found.append(name)
    return found
