"""Parsing of names (protocol section 1), the inverse of :attr:`.FindItVariant.name`.

``FindIt_<Dataset>[_multilabel][_caption][_f<N>]_<representation>_<text|json>[_<key>][_<structure>]
[_cx-<definitions|formula>][_vp-<box|oval|arrow|tag|point>][_constrained]``
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches

from ...boxes import (
    DEFAULT_STRUCTURE,
    JSON_KEYS,
    OUTPUTS,
    PAPER_REPRESENTATIONS,
    REPRESENTATIONS,
    STRUCTURES,
    default_key,
)
from ...core import suggestion
from . import PREFIX
from .findit_datasets import BENCHMARK_DATASETS, DATASETS, Dataset, Family
from .variant import CENTRES, DECODINGS, MARKS, FindItVariant, VariantError, format_problem


class NameParts:
    """The rest of a name, consumed from the front."""

    def __init__(self, text: str) -> None:
        self.text = text

    def take(self, words: Iterable[str]) -> str | None:
        """Take the longest of the words in front that ends at '_' or the end, if any."""
        parts = self.text.split("_")
        fronts = {"_".join(parts[:count]) for count in range(1, len(parts) + 1)}
        fitting = [word for word in words if word in fronts]
        longest = max(fitting, key=len, default=None)
        if longest is not None:
            self.text = self.text[len(longest) + 1 :]
        return longest

    def take_match(self, pattern: str) -> str | None:
        """Take the part in front that matches a pattern, if it does; return its first group."""
        result = re.match(pattern + r"(?=_|\Z)", self.text)
        if result is None:
            return None
        self.text = self.text[result.end() + 1 :]
        return result[1]

    def wrong(self, what: str, known: Iterable[str], listed: str) -> str:
        """Say that the next part is missing, or none of the known words."""
        part = self.text.split("_", 1)[0]
        if not part:
            return f"the {what} is missing ({listed})"
        return f"unknown {what} {part!r}{suggestion(part, known)}"


def parse(name: str) -> FindItVariant:
    """Parse a name, or raise a VariantError with the invalid part and the nearest valid part."""
    if not name.startswith(PREFIX):
        raise VariantError(f"{name}: a FindIt name begins with {PREFIX}")
    if name.endswith("_") and name != PREFIX:
        raise VariantError(f"{name}: a name does not end in '_'")
    text = name.removeprefix(PREFIX)
    rest = NameParts(text)
    dataset = rest.take(DATASETS)
    why = ""
    if dataset is not None:
        variant, why = parse_format(rest.text, DATASETS[dataset], FindItVariant)
        if variant is not None:
            return variant
    variant = parse_alias(name)
    if variant is not None:
        return variant
    raise VariantError(f"{name}: {_misspelt_dataset(text, dataset) or why}")


def parse_format(
    text: str, row: Dataset, kind: type[FindItVariant]
) -> tuple[FindItVariant | None, str]:
    """Parse what follows the dataset in a name; without a variant the text says why.

    >>> parse_format("xyxy_json_bbox_2d", DATASETS["RefCOCO"], FindItVariant)[0].name
    'FindIt_RefCOCO_xyxy_json_bbox_2d'
    >>> parse_format("f8_xyxy_json", DATASETS["RefCOCO"], FindItVariant)[1]
    'RefCOCO has images, not frames'
    """
    rest = NameParts(text)
    multilabel = rest.take(["multilabel"]) is not None
    caption = rest.take(["caption"]) is not None
    frames = rest.take_match(r"f([1-9][0-9]{0,3})")
    representation = rest.take(REPRESENTATIONS.builtin) or rest.take(REPRESENTATIONS.added())
    if representation is None:
        known = ", ".join(REPRESENTATIONS)
        return None, rest.wrong("representation", REPRESENTATIONS, known)
    output = rest.take(OUTPUTS)
    if output is None:
        return None, rest.wrong("output format", OUTPUTS, "text or json")
    key = rest.take(JSON_KEYS)
    structure = rest.take(STRUCTURES)
    centre = rest.take_match(r"cx-([a-z]+)")
    mark = rest.take_match(r"vp-([a-z]+)")
    decoding = rest.take(DECODINGS)
    if rest.text:
        centres = [f"cx-{each}" for each in CENTRES]
        marks = [f"vp-{each}" for each in MARKS]
        last = [*JSON_KEYS, *STRUCTURES, *centres, *marks, *DECODINGS]
        return None, f"unknown JSON key or structure {rest.text!r}{suggestion(rest.text, last)}"
    if output == "text" and (key or structure):
        return None, "text replies have neither a JSON key nor a structure"
    variant = kind(
        row.name,
        representation,
        output,
        key or default_key(representation),
        structure or DEFAULT_STRUCTURE,
        multilabel,
        caption,
        int(frames) if frames else row.frames,
        centre,
        mark,
        decoding,
    )
    why = format_problem(variant)
    return (variant, "") if why is None else (None, why)


def _misspelt_dataset(text: str, dataset: str | None) -> str:
    """Say that the dataset of a name is unknown or misspelt; "" if it is right."""
    guess = _dataset_part(text)
    # Scenes_minni begins with the dataset Scenes, and is nearer to Scenes_mini.
    others = [name for name in DATASETS if dataset is not None and name.startswith(f"{dataset}_")]
    if dataset is None or (guess != dataset and get_close_matches(guess, others, cutoff=0.8)):
        return group_meant(text) or f"unknown dataset {guess!r}{suggestion(guess, DATASETS)}"
    return ""


def group_meant(text: str) -> str:
    """Say which datasets a group of the release means, if a name begins with one; else "".

    >>> group_meant("insdet_xyxy")
    'insdet is a group of the release: name its datasets, HRInsDet_easy and HRInsDet_hard'
    """
    group = NameParts(text.casefold()).take(family.value for family in Family)
    if group is None:
        return ""
    rows = [row for row, multilabel in SUBSETS.values() if not multilabel]
    *most, last = [row.name for row in rows if row.family.value == group]
    listed = f"datasets, {', '.join(most)} and {last}" if most else f"dataset, {last}"
    return f"{group} is a group of the release: name its {listed}"


def _dataset_part(text: str) -> str:
    """Return what comes before the first part that belongs to the grid."""
    grid = {*REPRESENTATIONS, *OUTPUTS, "multilabel", "caption"}
    parts: list[str] = []
    for part in text.split("_"):
        if part in grid or re.fullmatch(r"f\d+", part):
            break
        parts.append(part)
    return "_".join(parts) or text


def _subset_tables() -> dict[str, tuple[Dataset, bool]]:
    tables: dict[str, tuple[Dataset, bool]] = {}
    for row in BENCHMARK_DATASETS.values():
        for multilabel in (False, True):
            subset = row.subset_for(multilabel)
            if subset is not None:
                tables[subset.file] = row, multilabel
    return tables


# By subset file: its dataset, and whether its queries are multi-label
SUBSETS = _subset_tables()


def table_called(name: str) -> str:
    """Return the table that a name means: in any case, its file in the release, or a variant.

    Other names come back as they are. Raises VariantError for a variant's name that is wrong.

    >>> [table_called(name) for name in ("pascal", "refcoco_g_test", "openimages_multilabel")]
    ['Pascal', 'RefCOCOg', 'OpenImages_multilabel']
    >>> table_called("FindIt_Pascal_multilabel_xyxy_json"), table_called("VPBench")
    ('Pascal_multilabel', 'VPBench')
    """
    if name in DATASETS:  # A custom dataset may have the name of a file
        return name
    if name.startswith(PREFIX):
        return parse(name).table
    known: dict[str, str] = {}
    for file, (row, multilabel) in SUBSETS.items():
        table = row.table_name(multilabel)
        known |= {file.casefold(): table, table.casefold(): table}
    return known.get(name.casefold(), name)


def parse_alias(name: str) -> FindItVariant | None:
    """Parse the name of a task of the release; None for other names.

    ``FindIt_<subset file>_<family>_<text|json>_<representation>[_<key>][_<structure>]``, then our
    ``_f<N>``, ``_cx-…`` and ``_vp-…`` where needed.
    """
    rest = NameParts(name.removeprefix(PREFIX))
    subset = rest.take(SUBSETS)
    family = rest.take(f.value for f in Family)
    output = rest.take(OUTPUTS)
    representation = rest.take(PAPER_REPRESENTATIONS)
    if subset is None or family is None or output is None or representation is None:
        return None
    row, multilabel = SUBSETS[subset]
    ends = rest.text.split("_") if rest.text else []
    frames = [part for part in ends if re.fullmatch(r"f\d+", part)]
    ends = [part for part in ends if part not in frames]
    canonical = [*frames, representation, output, *ends]
    if multilabel:
        canonical.insert(0, "multilabel")
    variant, _ = parse_format("_".join(canonical), row, FindItVariant)
    if variant is None or family not in (row.family.value, variant.family.value):
        return None
    return variant
