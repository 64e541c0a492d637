"""The parsing of names (protocol section 1).

``FindIt_<Dataset>[_multilabel][_caption][_f<N>]_<representation>_<text|json>[_<key>][_<structure>]
[_cx-<definitions|formula>][_vp-<box|oval|arrow|tag|point>][_constrained]``

:func:`parse` and :attr:`.Variant.name` are inverse over the whole valid grid.  The release's own
task names are accepted too (:mod:`.aliases`).
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache

from ...boxes.reply_format import DEFAULT_STRUCTURE, KEYS, OUTPUTS, STRUCTURES, default_key
from ...boxes.representation import REPRESENTATIONS
from ...core.spelling import nearest
from . import PREFIX
from .aliases import parse_alias
from .datasets import DATASETS, Dataset
from .name_parts import NameParts
from .variant import CENTRES, DECODINGS, MARKS, Variant, VariantError, format_problem


def parse(name: str) -> Variant:
    """The variant that a name stands for.

    Raises:
        VariantError: the name is not valid; the message names the part and the nearest valid one.
    """
    # Another one each time: it looks its dataset up once, and the file of one's own may change.
    return replace(_parsed(name))


def forget_names() -> None:
    """Parse every name anew from now on: a dataset was added in this process."""
    _parsed.cache_clear()


@lru_cache(maxsize=4096)
def _parsed(name: str) -> Variant:
    """The variant of a name; that there is none is not remembered, since rows may be added."""
    variant, why = _parse(name)
    if variant is None:
        raise VariantError(f"{name}: {why}")
    return variant


def _parse(name: str) -> tuple[Variant | None, str]:
    if not name.startswith(PREFIX):
        return None, f"a FindIt name begins with {PREFIX}"
    if name.endswith("_") and name != PREFIX:
        return None, "a name does not end in '_'"
    variant, why = _parse_own(name.removeprefix(PREFIX))
    if variant is None:
        alias = parse_alias(name)
        if alias is not None:
            return alias, ""
    return variant, why


def _parse_own(text: str) -> tuple[Variant | None, str]:
    rest = NameParts(text)
    dataset = rest.take(DATASETS)
    if dataset is None:
        guess = _looks_like_dataset(text)
        return None, f"no dataset {guess!r}{nearest(guess, DATASETS)}"
    return parse_format(rest.text, DATASETS[dataset], Variant)


def parse_format(text: str, row: Dataset, kind: type[Variant]) -> tuple[Variant | None, str]:
    """The variant of a dataset that the rest of a name says, or why there is none.

    The dataset may be another benchmark's, whose variants are of a ``kind`` of their own.

    >>> parse_format("xyxy_json_bbox_2d", DATASETS["RefCOCO"], Variant)[0].name
    'FindIt_RefCOCO_xyxy_json_bbox_2d'
    >>> parse_format("f8_xyxy_json", DATASETS["RefCOCO"], Variant)[1]
    'RefCOCO has images, not frames'
    """
    rest = NameParts(text)
    multilabel = rest.take(["multilabel"]) is not None
    caption = rest.take(["caption"]) is not None
    frames = rest.take_match(r"f([1-9][0-9]{0,3})")
    representation = rest.take_row(REPRESENTATIONS)
    if representation is None:
        part = rest.part()
        if not part:
            return None, f"the representation is missing ({', '.join(REPRESENTATIONS)})"
        return None, f"no representation {part!r}{nearest(part, REPRESENTATIONS)}"
    output = rest.take(OUTPUTS)
    if output is None:
        part = rest.part()
        if not part:
            return None, "the output format is missing (text or json)"
        return None, f"no output format {part!r}{nearest(part, OUTPUTS)}"
    key = rest.take(KEYS)
    structure = rest.take(STRUCTURES)
    centre = rest.take_match(r"cx-([a-z]+)")
    mark = rest.take_match(r"vp-([a-z]+)")
    decoding = rest.take(DECODINGS)
    if rest.text:
        last = [*KEYS, *STRUCTURES, *(f"cx-{c}" for c in CENTRES), *(f"vp-{m}" for m in MARKS)]
        last += DECODINGS
        return None, f"no JSON key or structure {rest.text!r}{nearest(rest.text, last)}"
    if output == "text" and (key or structure):
        return None, "text replies have neither a JSON key nor a structure"
    made = kind(
        dataset=row.name,
        representation=representation,
        output=output,
        key=key or default_key(representation),
        structure=structure or DEFAULT_STRUCTURE,
        multilabel=multilabel,
        caption=caption,
        frames=int(frames) if frames else row.frames,
        centre=centre,
        mark=mark,
        decoding=decoding,
    )
    why = format_problem(made)
    return (made, "") if why is None else (None, why)


def _looks_like_dataset(text: str) -> str:
    """The front of a name up to the first part that belongs to the grid: for error messages."""
    grid = {*REPRESENTATIONS, *OUTPUTS, "multilabel", "caption"}
    front = []
    for part in text.split("_"):
        if part in grid or re.fullmatch(r"f\d+", part):
            break
        front.append(part)
    return "_".join(front) or text
