"""Read ms-swift's grounding lines: ``objects`` has expressions (ref) and boxes (bbox)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from ...core import Expected, Text
from ...storage import Size
from ..annotated_samples import AnnotationError, Samples, Units
from ..ledger import Ledger
from .annotation_values import ListOfJson, state_size, validated
from .jsonl import Place, lines_of, samples_of_lines
from .node import SIDES_OF_IMAGES, Node
from .reader_options import ReaderOptions

_UNITS = {"real": Units.PIXELS, "norm1": Units.FRACTIONS}
_Names = Annotated[list[Text], Expected("a list of names")]
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
    units: dict[Units, Place] = {}
    sizes: dict[str, Size] = {}
    queries = []
    for where, value in lines_of(path):
        queries += list(_queries(value, where, units, sizes, ledger))
    if len(units) > 1:
        first, second = units.values()
        raise AnnotationError(f"{second}: bbox_type is not that of {first}; make a file of each")
    stated = next(iter(units), Units.PIXELS)
    return samples_of_lines(path, images, options, ledger, queries, stated, sizes)


def _names(stated: Any, where: Place) -> list[str]:
    """Return the images of a line: a list of names, or one name."""
    several = [stated] if isinstance(stated, str) else stated or []
    names: list[str] = validated(_Names, several, f"{where}, images")
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
    objects: _SwiftObjects = validated(_SwiftObjects, value["objects"], f"{where}, objects")
    if objects.bbox_type not in _UNITS:
        raise AnnotationError(
            f"{where}, objects, bbox_type: {objects.bbox_type!r} should be real or norm1"
        )
    units.setdefault(_UNITS[objects.bbox_type], where)
    names = _names(value.get("images"), where)
    if len(names) == 1 and line.size is not None:
        state_size(sizes, names[0], line.size, where)
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
    for at, ((place, expression), of_query) in enumerate(boxes.items()):
        # Its own place: the expressions of a line are objects of their own.
        yield (
            f"{where}, ref {at}",
            {"image": names[place], "expression": expression, "boxes": of_query},
        )
