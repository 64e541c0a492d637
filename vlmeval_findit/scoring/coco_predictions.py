"""COCO results of a detector as replies: images and classes become rows, scores a threshold."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any, NamedTuple, TypeGuard

from ..benchmarks.findit import Family, FindItQuery, FindItVariant
from ..boxes import FILE_PIXELS, BoxToWrite, Corners, MatchRule, write
from ..core import agreeing, counted, first_few, quoted_value
from ..data import (
    AS_LABELS,
    AS_STATED,
    BoxForm,
    CocoIds,
    KnownImages,
    KnownNames,
    Units,
    id_text,
    read_ids,
)
from ..marks import MASK_KEYS, MaskError, box_of_mask
from ..protocol import AnyDataset, DatasetVariant, Reply, ReplyRecord
from ..storage import PredictionError
from .records_of_others import RecordsOfOthers


@dataclass(frozen=True, slots=True)
class ConversionChoices:
    """What the user says of another program's file."""

    min_score: float | None = None  # A box counts from this score on; None: not stated
    form: BoxForm | None = None  # None: not stated, which is COCO's: sides
    leave_out_unknown: bool = False  # Boxes of images and classes that the set does not have


# Names of the same thing, the first that a record has
_IMAGES = ("image_id", "file_name", "image", "image_name", "image_path")
_CLASSES = ("category_id", "category", "category_name", "class", "class_name", "label")
_BOXES = ("bbox", "box")
_SCORES = ("score", "confidence", "conf")

# Of a box that leaves its image: detectors cut boxes off there, but round
_OUTSIDE = 2.0  # Pixels
# Share of boxes. Fewer are asked about, too, if still fewer leave their images as corners.
_TOO_MANY = 0.25


def are_coco_results(file: RecordsOfOthers) -> bool:
    """Tell whether a file has boxes of images, as COCO's results have, or none at all."""
    return all(
        _first(record, _IMAGES) and _first(record, (*_BOXES, *MASK_KEYS)) for record in file.records
    )


def replies_of_coco(
    file: RecordsOfOthers, dataset: AnyDataset, choices: ConversionChoices
) -> tuple[list[Reply], list[str]]:
    """Return a reply to every row, in pixels of the image files, and notes on what was read.

    Raises:
        PredictionError: the set is not about labelled images, a record has another form, or it is
            not clear what a box or a score means; the message says what to type.
    """
    variant = dataset.variant
    if not asks_for_classes(variant):
        raise PredictionError(
            f"{file.path}: COCO results name images and classes, and {variant.name} does not ask "
            'for the boxes of a class. Write the answers as {"index": 0, "prediction": "…"} a row, '
            f"in the format of the set, to <model>_{variant.name}.jsonl"
        )
    found = _Results(file, dataset, variant, choices).read()
    queries: Mapping[int, Any] = dataset.queries
    _check_form(file, found, choices)
    kept = _kept(file, found, choices)
    by_place: dict[tuple[str, str], list[_Result]] = {}
    for result in kept:
        by_place.setdefault((result.image, result.label), []).append(result)
    replies = []
    used: set[tuple[str, str]] = set()
    for query in queries.values():
        boxes = []
        masks = 0
        for label in _labels(query, variant):
            place = (query.images[0], label)
            used.add(place)
            results = by_place.get(place, [])
            boxes += [BoxToWrite(each.box, label) for each in results]
            masks += sum(each.is_around_mask for each in results)
        replies.append(reply_of_boxes(query.index, boxes, variant, masks))
    asked = sum(len(by_place[place]) for place in used & by_place.keys())
    notes = [*_notes(found, kept, choices), *_unasked(len(kept) - asked)]
    if not file.records:
        notes = [f"{file.path}: an empty list: nothing was found in any image"]
    return replies, notes


def reply_of_boxes(
    index: int, boxes: Sequence[BoxToWrite], variant: FindItVariant, masks: int
) -> Reply:
    """Write boxes in pixels of the image files as a reply; ``masks`` of them are around masks."""
    record = ReplyRecord(space=FILE_PIXELS.as_dict(), finish_reason="stop", masks=masks)
    return Reply(index, write(boxes, variant.reply, _DIGITS), record)


_DIGITS = 3  # Of a pixel, in replies that are made of boxes


def asks_for_classes(variant: DatasetVariant) -> TypeGuard[FindItVariant]:
    """Tell whether the rows of a variant ask for boxes of classes in one image."""
    if not isinstance(variant, FindItVariant):
        return False
    is_boxes = variant.match_rule is MatchRule.BOX_OVERLAP
    return is_boxes and variant.data.family is Family.OBJDET


def _labels(query: FindItQuery, variant: FindItVariant) -> Sequence[str]:
    """Return the labels that a row asks for."""
    if not variant.multilabel:
        return [query.label]
    return [label.strip() for label in query.label.split(",")]


def _unasked(count: int) -> Iterator[str]:
    if count:
        yield (
            f"{counted(count, 'box')} of classes that no row asks of their image: rows "
            f"ask for classes that are there, so {agreeing(count, 'it is', 'they are')} no "
            f"{agreeing(count, 'error', 'errors')} here"
        )


# --- records --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Result:
    at: int  # Place in the file
    image: str
    label: str
    numbers: Corners  # As the file has them
    box: Corners  # In pixels of the stored image
    size: tuple[int, int]  # Of the image as the file has it
    score: float | None
    is_around_mask: bool


class _StatedBox(NamedTuple):
    """The box of a record: as the file has it, and in pixels of the stored image."""

    numbers: Corners
    stored: Corners
    is_around_mask: bool = False


@dataclass(frozen=True, slots=True)
class _Found:
    results: Sequence[_Result]
    unknown: Counter[str]  # Results that the set has no image or class for, by which
    empty_masks: int


def empty_masks_note(count: int) -> Iterator[str]:
    """Yield what a reader of the score must know of empty masks; the score counts the others."""
    if count:
        yield f"{counted(count, 'empty mask')}: no box"


def box_of_record(
    file: RecordsOfOthers, at: int, key: str, size: tuple[int, int]
) -> Corners | None:
    """Return the tight box of a record's mask in pixels of its image; None: the mask is empty.

    Raises:
        PredictionError: it cannot be read, or is of another size than the image.
    """
    try:
        found = box_of_mask(file.records[at][key], size, file.path.parent)
    except MaskError as error:
        raise PredictionError(f"{file.where(at)}, {key}: {error}") from None
    if found.box is not None and _is_outside(found.box, size):
        width, height = size
        raise PredictionError(
            f"{file.where(at)}, {key}: the mask leaves its image of {width} x {height} pixels: "
            "write masks in pixels of the image files"
        )
    return found.box


class _Results:
    """Reads records with the names and ids of a set."""

    def __init__(
        self,
        file: RecordsOfOthers,
        dataset: AnyDataset,
        variant: FindItVariant,
        choices: ConversionChoices,
    ) -> None:
        self.file = file
        self.choices = choices
        self.ids = read_ids(dataset.table)
        queries: list[Any] = list(dataset.queries.values())
        self.sizes = {query.images[0]: (query.width, query.height) for query in queries}
        labels: dict[str, None] = {}
        for query in queries:
            labels |= dict.fromkeys(_labels(query, variant))
        self.labels = labels | dict.fromkeys(self.ids.categories)
        # A file that lists images and classes means these by its ids.
        own_images = _stated(file.head, "images", "file_name")
        own_classes = _stated(file.head, "categories", "name")
        self.images = _images(own_images, self.ids, list(self.sizes))
        self.classes = _classes(own_classes, self.ids, list(labels))
        self.image_ids = _by_name(own_images) or self.ids.images
        self.category_ids = _by_name(own_classes) or self.ids.categories

    def read(self) -> _Found:
        results = []
        unknown: Counter[str] = Counter()
        empty_masks = 0
        for at, record in enumerate(self.file.records):
            image = self._known(at, record, self.images, self.sizes, unknown)
            label = self._known(at, record, self.classes, self.labels, unknown)
            if image is None or label is None:
                continue
            box = self._box(at, record, image)
            if box is None:
                empty_masks += 1
            else:
                results.append(self._result(at, record, box, image, label))
        if unknown and (not results or not self.choices.leave_out_unknown):
            what, count = unknown.most_common(1)[0]
            more = f", and {len(unknown) - 1:,} more" if len(unknown) > 1 else ""
            flag = "" if not results else ". If they are of no matter: --leave-out-unknown"
            raise PredictionError(
                f"{self.file.path}: {what} is not in the set ({counted(count, 'box')})"
                f"{more}. The set has images {_shown(self.sizes, self.image_ids)}, and "
                f"classes {_shown(self.labels, self.category_ids)}{flag}"
            )
        return _Found(results, unknown, empty_masks)

    def _known(
        self,
        at: int,
        record: Mapping[str, Any],
        things: _Things,
        of_set: Container[str],
        unknown: Counter[str],
    ) -> str | None:
        """Return what of the set a record names; None: nothing, which is counted.

        Raises a PredictionError where it may be two things.
        """
        key = _first(record, things.keys)
        if key is None:
            unknown[f"a box without {things.what}"] += 1
            return None
        value = record[key]
        found = things.find(key, value)
        if len(found) > 1:
            raise PredictionError(
                f"{self.file.where(at)}, {key}: {things.what} {quoted_value(value)} may be "
                f"{' or '.join(map(repr, found[:2]))} of the set: write the one that is meant, "
                "spelled so"
            )
        if not found or found[0] not in of_set:
            if isinstance(value, Mapping):
                value = value.get("id", value.get("name"))
            unknown[f"{things.what} {quoted_value(value)}"] += 1
            return None
        return found[0]

    def _box(self, at: int, record: Mapping[str, Any], image: str) -> _StatedBox | None:
        """Return the box of a record, or that of its mask; None: the mask is empty."""
        stored = self.sizes[image]
        form = self.choices.form or BoxForm.SIDES
        key = _first(record, _BOXES)
        if key is None:
            key = _first(record, MASK_KEYS)
            assert key is not None, "are_coco_results tells others apart"
            corners = box_of_record(self.file, at, key, self.ids.size(image, stored))
            if corners is None:
                return None
            in_pixels = replace(self.ids, units=Units.PIXELS.value)
            numbers = form.numbers(corners)
            return _StatedBox(numbers, in_pixels.stored(image, corners, stored), True)
        stated = record[key]
        is_four = isinstance(stated, list) and len(stated) == 4 and all(map(_is_number, stated))
        if not is_four:
            raise PredictionError(
                f"{self.file.where(at)}, {key}: should be four numbers, not {quoted_value(stated)}"
            )
        a, b, c, d = map(float, stated)
        corners = form.corners((a, b, c, d))
        return _StatedBox((a, b, c, d), self.ids.stored(image, corners, stored))

    def _result(
        self, at: int, record: Mapping[str, Any], box: _StatedBox, image: str, label: str
    ) -> _Result:
        return _Result(
            at,
            image,
            label,
            box.numbers,
            box.stored,
            self.ids.size(image, self.sizes[image]),
            self._score(at, record),
            box.is_around_mask,
        )

    def _score(self, at: int, record: Mapping[str, Any]) -> float | None:
        key = _first(record, _SCORES)
        value = record[key] if key else None
        if value is not None and not _is_number(value):
            raise PredictionError(
                f"{self.file.where(at)}, {key}: should be a number, not {quoted_value(value)}"
            )
        return None if value is None else float(value)


def _first(record: Mapping[str, Any], keys: Sequence[str]) -> str | None:
    return next((key for key in keys if record.get(key) is not None), None)


def _is_number(value: object) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and math.isfinite(value)  # type: ignore[arg-type]


# --- names ----------------------------------------------------------------------------------------


def _shown(names: Iterable[str], ids: Mapping[str, int | str]) -> str:
    """Say what a set has, with ids where there are any."""
    with_ids = [f"{ids[name]} ({name})" if name in ids else name for name in names]
    return first_few(with_ids, 4)


def _by_name(listed: Sequence[tuple[str, str]]) -> dict[str, int | str]:
    return {name: number for number, name in listed}


class _Things:
    """The images, or the classes, of a set: what a value of a record means.

    Args:
        what: one of them, as messages call it.
        keys: at which a record has one; the first one is that of ids.
        ids: pairs of an id, as :func:`.id_text` has it, and a thing.
        names: of the things.
    """

    def __init__(
        self,
        what: str,
        keys: Sequence[str],
        ids: Iterable[tuple[str, str]],
        names: KnownNames | KnownImages,
    ) -> None:
        self.what = what
        self.keys = keys
        self._names = names
        self._ids = KnownNames(ids, AS_STATED)

    def find(self, key: str, value: object) -> Sequence[str]:
        """Return what the value at a key may mean: nothing, one, more.

        A number is an id. A text is first what its key says: an id, or the very name.
        """
        if isinstance(value, Mapping):  # As Azure and FiftyOne nest a class
            key, value = (self.keys[0], value["id"]) if "id" in value else ("", value.get("name"))
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            return ()
        text = id_text(value)
        if not isinstance(value, str):
            return self._ids.find(text)
        sides = (self._ids, self._names) if key == self.keys[0] else (self._names, self._ids)
        for side in sides:
            if text in side:
                return side.find(text)
        return self._ids.find(text) or self._names.find(text)


def _stated(head: Mapping[str, Any], key: str, name: str) -> list[tuple[str, str]]:
    """Return the ids that the file itself lists, and their names."""
    rows = head.get(key)
    rows = rows if isinstance(rows, list) else []
    objects = [row for row in rows if isinstance(row, dict) and {"id", name} <= row.keys()]
    return [(id_text(row["id"]), str(row[name])) for row in objects]


def _images(own: Sequence[tuple[str, str]], ids: CocoIds, asked: Sequence[str]) -> _Things:
    """Return images by what a result may call them: id, path, name, name without suffix, number."""
    names = list(dict.fromkeys([*asked, *ids.images]))
    known = KnownImages(names)
    numbers = [(id_text(number), name) for name, number in ids.images.items()]
    if own:
        numbers = _of_listed(own, known)
    elif not numbers:
        # Some programs make a number of 000000012.jpg.
        stems = [(PurePosixPath(name).stem, name) for name in names]
        numbers = [(str(int(stem)), name) for stem, name in stems if stem.isdecimal()]
    return _Things("image", _IMAGES, numbers, known)


def _classes(own: Sequence[tuple[str, str]], ids: CocoIds, asked: Sequence[str]) -> _Things:
    """Return classes by id and name, also those that they had before the import."""
    names = [(label, label) for label in (*asked, *ids.categories)]
    names += [(each.name, each.label) for each in ids.renamed]
    known = KnownNames(names, AS_LABELS)
    numbers = [(id_text(number), name) for name, number in ids.categories.items()]
    numbers += [(id_text(each.id), each.label) for each in ids.renamed]
    return _Things("class", _CLASSES, _of_listed(own, known) if own else numbers, known)


def _of_listed(
    listed: Sequence[tuple[str, str]], known: KnownNames | KnownImages
) -> list[tuple[str, str]]:
    """Return the ids that a file lists with what their names mean.

    What has its very name in the list is meant by no other name there.
    """
    taken: set[str] = set()
    for _, name in listed:
        if name in known:
            taken.update(known.find(name))
    found: list[tuple[str, str]] = []
    for number, name in listed:
        meant = known.find(name)
        if name not in known:
            meant = [each for each in meant if each not in taken]
        found += [(number, each) for each in meant]
    return found


# --- what numbers mean ----------------------------------------------------------------------------


def _check_form(file: RecordsOfOthers, found: _Found, choices: ConversionChoices) -> None:
    """Refuse boxes that are probably no [x, y, width, height] in pixels, unless it was said."""
    if choices.form is not None:
        for result in found.results:
            x1, y1, x2, y2 = choices.form.corners(result.numbers)
            if x2 < x1 or y2 < y1:
                raise PredictionError(
                    f"{file.where(result.at)}: {list(result.numbers)} has a negative side"
                )
        return
    apart = [result for result in found.results if _is_apart(result)]
    outside = [result for result in found.results if _leaves(result, BoxForm.SIDES)]
    outside += [result for result in apart if not _leaves(result, BoxForm.SIDES)]
    count = len(outside)
    if not count:
        return
    as_corners = sum(_leaves(result, BoxForm.CORNERS) for result in found.results)
    if not apart and count < _TOO_MANY * len(found.results) and as_corners >= count:
        return
    first = (apart or outside)[0]
    but = f", {len(apart):,} of them wholly" if apart else ""
    raise PredictionError(
        f"{file.path}: {count:,} of {counted(len(found.results), 'box')} "
        f"{agreeing(count, 'lies outside its image', 'lie outside their images')}{but}, if "
        "numbers are left, top, width and height, as COCO has them; if they are left, top, right "
        f"and bottom, {as_corners:,}. The first: "
        f"{file.places[first.at]}, {list(first.numbers)} in {first.size[0]} x {first.size[1]} "
        "pixels. If they are left, top, right and bottom: --box corners. If they are right as they "
        "are: --box sides"
    )


def _leaves(result: _Result, form: BoxForm) -> bool:
    """Tell whether a box leaves its image, or has a negative side, if its numbers are so."""
    corners = form.corners(result.numbers)
    x1, y1, x2, y2 = corners
    return x2 < x1 or y2 < y1 or _is_outside(corners, result.size)


def _is_apart(result: _Result) -> bool:
    """Tell whether nothing of a box is in its image."""
    x1, y1, x2, y2 = BoxForm.SIDES.corners(result.numbers)
    width, height = result.size
    return x1 >= width or y1 >= height or x2 <= 0 or y2 <= 0


def _is_outside(box: Corners, size: tuple[int, int]) -> bool:
    _, _, right, bottom = box
    width, height = size
    return right > width + _OUTSIDE or bottom > height + _OUTSIDE


def _kept(file: RecordsOfOthers, found: _Found, choices: ConversionChoices) -> Sequence[_Result]:
    """Return the results from the stated score on."""
    scores = [result.score for result in found.results if result.score is not None]
    if not scores:
        if choices.min_score is not None and found.results:
            raise PredictionError(f"{file.path}: no box has a score. Leave --min-score out")
        return found.results
    for result in found.results:
        if result.score is None:
            raise PredictionError(f"{file.where(result.at)}: no score, and other boxes have one")
    least = choices.min_score
    if least is None:
        if min(scores) == max(scores):
            return found.results
        half = (min(scores) + max(scores)) / 2
        more = sum(score >= half for score in scores)
        raise PredictionError(
            f"{file.path}: scores are from {min(scores):g} to {max(scores):g}, and F1 counts every "
            "box. Say from which score on a box counts, as chosen on other images: --min-score "
            f"{half:.2g} ({more:,} of {len(scores):,} boxes), or --min-score {min(scores):g} (all)"
        )
    return [
        result for result in found.results if result.score is not None and result.score >= least
    ]


def _notes(found: _Found, kept: Sequence[_Result], choices: ConversionChoices) -> Iterator[str]:
    yield from empty_masks_note(found.empty_masks)
    if choices.min_score is not None:
        below = len(found.results) - len(kept)
        counts = f"{counted(len(kept), 'box')} {agreeing(len(kept), 'counts', 'count')}"
        has = agreeing(below, "has", "have")
        yield f"{counts}; {below:,} {has} a score below {choices.min_score:g}"
    for what, count in found.unknown.most_common(8):
        yield f"left out: {what}, not in the set ({counted(count, 'box')})"
    if len(found.unknown) > 8:
        count = len(found.unknown) - 8
        these = agreeing(count, "image or class that is", "images or classes that are")
        yield f"left out: {count:,} more {these} not in the set"
