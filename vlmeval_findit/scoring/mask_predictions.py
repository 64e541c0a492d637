"""Masks of a segmentation model as replies: a mask a row becomes its tight box.

Ref-L4's table judges six such models so. Only the box is judged.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeGuard

from ..benchmarks.findit import FindItVariant
from ..benchmarks.refl4 import RefL4Variant
from ..boxes import BoxToWrite, MatchRule
from ..core import agreeing, counted, first_few
from ..marks import MASK_KEYS
from ..protocol import AnyDataset, DatasetVariant, Reply
from ..storage import PredictionError
from .coco_predictions import box_of_record, empty_masks_note, reply_of_boxes
from .records_of_others import RecordsOfOthers

# What a record says in place of a mask
_OTHER_ANSWERS = ("pred_bbox", "bbox", "box", "prediction", "response")


def are_masks(file: RecordsOfOthers, dataset: AnyDataset) -> bool:
    """Tell whether every record has the number of a row and a mask, perhaps null, and no box."""
    keys = _row_keys(dataset)
    return bool(file.records) and all(
        _key(record, keys) and _key(record, MASK_KEYS) and not _key(record, _OTHER_ANSWERS)
        for record in file.records
    )


def _row_keys(dataset: AnyDataset) -> tuple[str, ...]:
    """Return the keys of a row's number; an id may be another number, but is Ref-L4's."""
    return ("index", "id") if isinstance(dataset.variant, RefL4Variant) else ("index",)


def replies_of_masks(file: RecordsOfOthers, dataset: AnyDataset) -> tuple[list[Reply], list[str]]:
    """Return a reply to every row, in pixels of the image files, and notes on what was read.

    Raises:
        PredictionError: the set does not ask for the boxes of one thing a row, two records are of
            one row, none is of any, or a mask cannot be read.
    """
    variant = dataset.variant
    if not _asks_for_one_thing(variant):
        raise PredictionError(
            f"{file.path}: masks become boxes of rows that ask for one thing in one image, and "
            f"{variant.name} asks for others. Several classes: write COCO results, with image_id "
            "and category_id"
        )
    masks = _by_row(file, _row_keys(dataset))
    unused = sorted(masks.keys() - dataset.queries.keys())
    # Ref-L4's files are often of all splits
    if unused and (len(unused) == len(masks) or not isinstance(variant, RefL4Variant)):
        rows = first_few([*map(str, dataset.queries)])
        raise PredictionError(
            f"{file.path}: {first_few([*map(str, unused)])} "
            f"{agreeing(len(unused), 'is no row', 'are no rows')} of {dataset.name}: its rows are "
            f"{rows}"
        )
    empty = 0
    replies = []
    missing = 0
    queries: Mapping[int, Any] = dataset.queries
    for query in queries.values():
        at = masks.get(query.index)
        key = None if at is None else _key(file.records[at], MASK_KEYS)
        boxes = []
        if at is None or key is None or file.records[at][key] is None:
            missing += 1
        else:
            box = box_of_record(file, at, key, (query.width, query.height))
            if box is None:
                empty += 1
            else:
                boxes.append(BoxToWrite(box, query.label))
        replies.append(reply_of_boxes(query.index, boxes, variant, masks=len(boxes)))
    notes = [*empty_masks_note(empty)]
    if missing:
        notes.append(f"{counted(missing, 'row')} without a mask: no box")
    if unused:
        notes.append(f"{counted(len(unused), 'record')} of no row of the set: not used")
    return replies, notes


def _asks_for_one_thing(variant: DatasetVariant) -> TypeGuard[FindItVariant]:
    """Tell whether a row asks for the boxes of one thing in one image."""
    if not isinstance(variant, FindItVariant) or variant.frames > 1:
        return False
    return variant.match_rule is MatchRule.BOX_OVERLAP and not variant.multilabel


def _key(record: Mapping[str, Any], keys: tuple[str, ...]) -> str | None:
    """Return the first of some keys that a record has."""
    return next((key for key in keys if key in record), None)


def _by_row(file: RecordsOfOthers, keys: tuple[str, ...]) -> dict[int, int]:
    """Return the place of each record by the number of its row."""
    places: dict[int, int] = {}
    for at, record in enumerate(file.records):
        key = _key(record, keys)
        number = record[key] if key else None
        if isinstance(number, float) and number.is_integer():
            number = int(number)
        if type(number) is not int:
            raise PredictionError(f"{file.where(at)}, {key}: should be the number of a row")
        if number in places:
            first = file.where(places[number])
            raise PredictionError(f"{file.where(at)}: row {number} is that of {first}, too")
        places[number] = at
    return places
