"""Read ms-swift's grounding lines: ``objects`` has expressions (ref) and boxes (bbox)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from ...core import Expected, Text
from ..annotated_samples import AnnotationError, Samples, Units
from ..ledger import Ledger
from .annotation_values import ListOfJson, validated
from .jsonl import Place, lines_of, samples_of_lines
from .reader_options import ReaderOptions

_UNITS = {"real": Units.PIXELS, "norm1": Units.FRACTIONS}
_Texts = Annotated[list[Text], Expected("a list of texts", min_length=1)]
_OF_LINE = frozenset(("messages", "images", "objects"))
_NOT_NEEDED = frozenset(("rejected_messages", "rejected_response", "channel", "id", "solution"))


@dataclass(frozen=True, slots=True)
class _SwiftObjects:
    ref: _Texts
    bbox: ListOfJson
    bbox_type: Text = "real"
    image_id: ListOfJson | None = None


def read_swift(path: Path, images: Path, options: ReaderOptions | None = None) -> Samples:
    """Read a file of lines: a query for every expression, about all its boxes.

    One expression has all boxes; several have one each.

    Raises an AnnotationError for other lines, and where boxes have two units.
    """
    options = options or ReaderOptions()
    ledger = Ledger()
    lines = list(lines_of(path))
    units: dict[Units, Place] = {}
    queries = []
    for where, value in lines:
        queries += list(_queries(value, where, units, ledger))
    if len(units) > 1:
        first, second = units.values()
        raise AnnotationError(f"{second}: bbox_type is not that of {first}; make a file of each")
    stated = options.units or next(iter(units), Units.PIXELS)
    return samples_of_lines(path, images, replace(options, units=stated), ledger, queries)


def _queries(
    value: Any, where: Place, units: dict[Units, Place], ledger: Ledger
) -> Iterator[tuple[Place, Mapping[str, Any]]]:
    """Yield a line of our JSON lines for each expression."""
    stated = value.get("images") or [] if isinstance(value, dict) else []
    names = [stated] if isinstance(stated, str) else stated
    if not isinstance(value, dict) or not value.get("objects"):
        ledger.leave_out("lines without objects: no grounding", where)
        return
    ledger.keys("lines", value.keys() - _OF_LINE, _NOT_NEEDED, where)
    ledger.not_needed("messages: the questions and answers of a training", where)
    objects: _SwiftObjects = validated(_SwiftObjects, value["objects"], f"{where}, objects")
    if objects.bbox_type not in _UNITS:
        raise AnnotationError(
            f"{where}, objects, bbox_type: {objects.bbox_type!r} should be real or norm1"
        )
    units.setdefault(_UNITS[objects.bbox_type], where)
    places = objects.image_id or [0] * len(objects.bbox)
    expressions = objects.ref * len(objects.bbox) if len(objects.ref) == 1 else objects.ref
    if not len(expressions) == len(objects.bbox) == len(places):
        raise AnnotationError(
            f"{where}, objects: {len(objects.ref)} ref, but {len(objects.bbox)} bbox: which box "
            "is whose? One ref for all, or one for each"
        )
    boxes: dict[tuple[int, str], list[Any]] = {}
    for place, expression, box in zip(places, expressions, objects.bbox, strict=True):
        if not isinstance(place, int) or not 0 <= place < len(names):
            raise AnnotationError(f"{where}: {len(names)} images, but an object is in {place!r}")
        boxes.setdefault((place, expression), []).append(box)
    for (place, expression), of_query in boxes.items():
        yield where, {"image": names[place], "expression": expression, "boxes": of_query}
