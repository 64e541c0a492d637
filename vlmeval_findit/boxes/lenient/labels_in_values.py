"""Labels that an object states: under a key that names labels, else its only other text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from .conventions import orders_in, units_in
from .labels import without_tags
from .objects import IS_VALUE
from .records import NO_REPAIRS, Repair, Repairs
from .repaired_values import List, Object, Value
from .words import FRAMES, is_asked, is_numbered, plain, rank_of_label, words_of


class Labels(NamedTuple):
    """The labels that an object states."""

    labels: Sequence[str]  # One for all boxes, or one for each
    repairs: Repairs
    is_list: bool = False


def stated_labels(
    fields: Mapping[str, Value], states_box: Callable[[str], bool], asked: Sequence[str] = ()
) -> Labels | None:
    """Return the labels that an object states; None if it has none.

    The likeliest of the keys that name a label counts, else the only text that is a label asked
    for, else the only other text.
    """
    ranked: list[tuple[int, int, str]] = []
    for place, key in enumerate(fields):
        rank = rank_of_label(key)
        # "bboxes_labels": what stands under it says of which of the two it is.
        if rank is not None and (not states_box(key) or _are_names(fields[key])):
            ranked.append((-1 if key == "label" else rank, place, key))
    for _, _, key in sorted(ranked):
        labels = _labels_under(key, fields[key])
        if labels is not None:
            return labels
    texts = [
        (key, value)
        for key, value in fields.items()
        if isinstance(value, str) and value.strip() and not states_box(key)
    ]
    are_asked = [(key, value) for key, value in texts if is_asked(value, asked)]
    if len(are_asked) == 1:
        return _one_label(are_asked[0][1].strip(), frozenset({Repair.KEY}))
    others = [(key, value) for key, value in texts if _may_be_label(key, value)]
    if len(others) == 1 and len(texts) == 1 and any(map(states_box, fields)):
        return _one_label(others[0][1].strip(), frozenset({Repair.KEY}))
    return None


def _are_names(value: Value) -> bool:
    """Return whether a value is a list of texts that begin with a letter."""
    items = value.items if isinstance(value, List) else []
    return bool(items) and all(isinstance(item, str) and item[:1].isalpha() for item in items)


def _may_be_label(key: str, value: str) -> bool:
    """Return whether a text may be a label: it is no number, order, unit or value of its own."""
    has_convention = any(True for _ in orders_in(value)) or any(True for _ in units_in(value))
    is_word = any(map(str.isalpha, words_of(value)))
    is_number = is_numbered(key) or plain(key) in FRAMES or not is_word
    return not is_number and not has_convention and not IS_VALUE.match(value)


def _labels_under(key: str, value: Value) -> Labels | None:
    """Return the label, or the list of labels, under a key of labels."""
    repairs: Repairs = NO_REPAIRS if key == "label" else frozenset({Repair.KEY})
    if isinstance(value, List):
        texts = [item.strip() for item in value.items if isinstance(item, str)]
        if not texts or not all(texts) or len(texts) < len(value.items):
            return None
        labels = list(map(without_tags, texts))
        return Labels(labels, repairs | {Repair.STRUCTURE}, is_list=len(labels) > 1)
    if isinstance(value, Object):
        inner = {name: item for name, item in value.pairs if isinstance(item, str)}
        stated = stated_labels(inner, lambda name: False)
        return stated and stated._replace(repairs=stated.repairs | {Repair.STRUCTURE})
    if value is None:
        return None
    label = str(value).strip()
    return _one_label(label, repairs) if label else None


def _one_label(label: str, repairs: Repairs) -> Labels:
    if not is_marked(label):
        return Labels([label], repairs)
    return Labels([without_tags(label)], repairs | {Repair.LABEL})


def is_marked(label: str) -> bool:
    """Return whether tags stand around a label."""
    return without_tags(label) != label.strip()
