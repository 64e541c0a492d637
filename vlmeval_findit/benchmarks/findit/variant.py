"""A cell of the grid: fields, canonical name, valid combinations (protocol section 1).

A canonical name omits the default key and structure, and always has the number of frames of a video
query, so it determines the variant.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...boxes import (
    CLASS_KEY,
    DEFAULT_KEY,
    DEFAULT_STRUCTURE,
    JSON_KEYS,
    OUTPUTS,
    PAPER_REPRESENTATIONS,
    REPRESENTATIONS,
    STRUCTURES,
    MatchRule,
    ReplyFormat,
    default_key,
    schema_of,
)
from ...core import suggestion
from ...marks import Shape
from ...protocol import DatasetNameError
from . import PREFIX
from .findit_datasets import DATASETS, Dataset, Family

# Experiments with the meaning of cx and cy: prompts explain them by these
CENTRES = ("definitions", "formula")
_CENTRE_REPRESENTATION = "cxcywh"

# Marks on reference images: shapes that need only a box, since tables have no outlines
MARKS = tuple(shape.value for shape in (Shape.BOX, Shape.OVAL, Shape.ARROW, Shape.TAG, Shape.POINT))

# Ways of decoding other than free: by the grammar of the format
DECODINGS = ("constrained",)


class VariantError(DatasetNameError):
    """An invalid name; the message says why and what is nearest."""


# The family of a video dataset whose queries show a single frame
_OF_ONE_FRAME = {family: Family(family.value.removesuffix("_video")) for family in Family}


@dataclass(frozen=True, slots=True)
class FindItVariant:
    """A cell of the grid, from :func:`.parse` or checked by :func:`format_problem`."""

    dataset: str
    representation: str
    output: str
    key: str = DEFAULT_KEY
    structure: str = DEFAULT_STRUCTURE
    multilabel: bool = False
    caption: bool = False
    frames: int = 1
    centre: str | None = None  # One of CENTRES
    mark: str | None = None  # One of MARKS
    decoding: str | None = None  # One of DECODINGS

    # --- names ------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        return f"{PREFIX}{self.board_dataset}_{self.format}"

    @property
    def board_dataset(self) -> str:
        """Name what is asked, whatever the format: table, caption, frames.

        >>> clips = FindItVariant("iGround", "xyxy", "json", multilabel=True, frames=8)
        >>> clips.board_dataset
        'iGround_multilabel_f8'
        """
        parts = [self.table]
        if self.caption:
            parts.append("caption")
        if self.data.family.is_video:
            parts.append(f"f{self.frames}")
        return "_".join(parts)

    @property
    def format(self) -> str:
        """Name the answer format.

        >>> FindItVariant("iGround", "xyxy", "json", "bbox_2d", multilabel=True, frames=8).format
        'xyxy_json_bbox_2d'
        """
        parts = [self.representation, self.output, *self._key_if_named]
        if self.structure != DEFAULT_STRUCTURE:
            parts.append(self.structure)
        return "_".join([*parts, *self._endings])

    @property
    def format_cell(self) -> tuple[str, str]:
        """Return the format's row (representation) and column (the rest) in a heat map."""
        if self.output == "text":
            parts = ["text"]
        elif self.structure == DEFAULT_STRUCTURE:
            parts = ["json", self.key]
        else:
            parts = ["json", self.structure, *self._key_if_named]
        return self.representation, " ".join([*parts, *self._endings])

    @property
    def format_place(self) -> tuple[int, ...]:
        """Return the format's indices in the grid, in the order of a name's parts."""
        # The paper's representations come first.
        known = (
            PAPER_REPRESENTATIONS
            if self.representation in PAPER_REPRESENTATIONS
            else tuple(REPRESENTATIONS)
        )
        return (
            known.index(self.representation),
            OUTPUTS.index(self.output),
            JSON_KEYS.index(self.key),
            STRUCTURES.index(self.structure),
            (None, *CENTRES).index(self.centre),
            (None, *MARKS).index(self.mark),
            (None, *DECODINGS).index(self.decoding),
        )

    @property
    def axes(self) -> Mapping[str, str | int]:
        """Return its values on the axes of a sweep; those that it has none on are left out.

        >>> FindItVariant("iGround", "xyxy", "text", frames=4).axes
        {'representation': 'xyxy', 'output': 'text', 'frames': 4, 'caption': 'no'}
        """
        values: dict[str, str | int] = {
            "representation": self.representation,
            "output": self.output,
        }
        if self.output == "json":
            values["structure"] = self.structure
            values["decoding"] = self.decoding or "free"
            if self.structure != "decomposed":
                values["key"] = self.key
        if self.representation == _CENTRE_REPRESENTATION:
            values["centre"] = self.centre or "none"
        if self.has_references:
            values["mark"] = self.mark or "none"
        if self.data.family.is_video:
            values["frames"] = self.frames
        if self.data.has_caption:
            values["caption"] = "yes" if self.caption else "no"
        return values

    @property
    def _key_if_named(self) -> list[str]:
        """Return the key where a name has it: where it is not the default."""
        return [] if self.key == default_key(self.representation) else [self.key]

    @property
    def _endings(self) -> list[str]:
        """Return the last parts of a name: centre experiment, mark, decoding."""
        parts: list[str] = []
        if self.centre is not None:
            parts.append(f"cx-{self.centre}")
        if self.mark is not None:
            parts.append(f"vp-{self.mark}")
        if self.decoding is not None:
            parts.append(self.decoding)
        return parts

    # --- the dataset ------------------------------------------------------------------------------

    @property
    def data(self) -> Dataset:
        return DATASETS.known(self.dataset)

    @property
    def table(self) -> str:
        return self.data.table_name(self.multilabel)

    @property
    def family(self) -> Family:
        """Return the family; with one frame a video dataset is one of images."""
        family = self.data.family
        return _OF_ONE_FRAME[family] if self.frames == 1 else family

    @property
    def images(self) -> str:
        return self.data.images

    @property
    def has_references(self) -> bool:
        return self.data.family.has_references

    @property
    def family_name(self) -> str:
        return self.family.title

    # --- replies ----------------------------------------------------------------------------------

    @property
    def max_new_tokens(self) -> int:
        """Return the token limit of a reply (protocol section 2)."""
        return max(768, 192 * self.frames)

    @property
    def in_boxes(self) -> bool:
        return True

    @property
    def match_rule(self) -> MatchRule:
        return REPRESENTATIONS[self.representation].match_rule

    @property
    def reply(self) -> ReplyFormat:
        return ReplyFormat(
            self.output, self.representation, self.key, self.structure, self.multilabel, self.frames
        )

    @property
    def reply_schema(self) -> Mapping[str, Any] | None:
        """Return the JSON schema that constrains decoding (None: free)."""
        return None if self.decoding is None else schema_of(self.reply)


# --- valid combinations ---------------------------------------------------------------------------


def format_problem(variant: FindItVariant) -> str | None:
    """Say why a dataset cannot be asked in this format; None where it can."""
    for problem_of in (
        _unknown_value,
        _representation_problem,
        _query_problem,
        _structure_problem,
        _centre_problem,
        _decoding_problem,
        _mark_problem,
    ):
        why = problem_of(variant)
        if why is not None:
            return why
    return None


def _unknown_value(variant: FindItVariant) -> str | None:
    for what, value, known in (
        ("representation", variant.representation, REPRESENTATIONS),
        ("output format", variant.output, OUTPUTS),
        ("JSON key", variant.key, JSON_KEYS),
        ("JSON structure", variant.structure, STRUCTURES),
        ("centre experiment", variant.centre or CENTRES[0], CENTRES),
        ("way of decoding", variant.decoding or DECODINGS[0], DECODINGS),
    ):
        if value not in known:
            return f"unknown {what} {value!r}{suggestion(value, known)}"
    return None


def _representation_problem(variant: FindItVariant) -> str | None:
    data = variant.data
    row = REPRESENTATIONS[variant.representation]
    if row.match_rule is not MatchRule.BOX_OVERLAP and not data.has_points:
        boxes = MatchRule.BOX_OVERLAP.value
        return f"{data.name} is matched by {boxes}, {row.name} by {row.match_rule.value}"
    if variant.key not in row.json_keys:
        return f"{row.name} has no key {variant.key} (there are: {', '.join(row.json_keys)})"
    return None


def _query_problem(variant: FindItVariant) -> str | None:
    """Say why the dataset has no queries with these labels, captions or frames."""
    data = variant.data
    if variant.multilabel and not data.has_multilabel:
        return f"{data.name} has no multi-label queries"
    if variant.caption and not data.has_caption:
        with_caption = ", ".join(each.name for each in DATASETS.values() if each.has_caption)
        return f"{data.name} has no captions (there are in: {with_caption})"
    if 1 <= variant.frames <= data.frames:
        return None
    if data.frames == 1:
        return f"{data.name} has images, not frames"
    return f"{data.name} has 1 to {data.frames} frames, not {variant.frames}"


def _structure_problem(variant: FindItVariant) -> str | None:
    """Say why replies cannot have this key and structure together."""
    row = REPRESENTATIONS[variant.representation]
    has_usual_key = variant.key == default_key(variant.representation)
    is_usual = has_usual_key and variant.structure == DEFAULT_STRUCTURE
    if variant.output == "text" and not is_usual:
        return "text replies have neither a JSON key nor a structure"
    if variant.key == CLASS_KEY and not variant.multilabel:
        return f"the key {CLASS_KEY} is for multi-label queries only"
    if variant.structure == "decomposed" and not row.keys:
        return f"{row.name} has no decomposed structure"
    if variant.structure == "decomposed" and not has_usual_key:
        return "the decomposed structure has fixed keys"
    return None


def _centre_problem(variant: FindItVariant) -> str | None:
    if variant.centre is None or variant.representation == _CENTRE_REPRESENTATION:
        return None
    return f"cx-{variant.centre} is for {_CENTRE_REPRESENTATION} only"


def _decoding_problem(variant: FindItVariant) -> str | None:
    if variant.decoding is None:
        return None
    if variant.output != "json":
        return f"{variant.decoding} is for JSON only: text replies have no grammar"
    if not REPRESENTATIONS[variant.representation].fields:
        return f"{variant.representation} names no format that decoding could be held to"
    return None


def _mark_problem(variant: FindItVariant) -> str | None:
    mark = variant.mark
    data = variant.data
    if mark is None:
        return None
    if not data.family.has_references:
        return f"vp-{mark} is for instance detection only: {data.name} shows no reference images"
    if mark in MARKS:
        return None
    if mark in {shape.value for shape in Shape}:
        return (
            f"vp-{mark} follows the outline of an object, and tables have its box alone "
            f"(marks: {', '.join(MARKS)})"
        )
    return f"unknown mark {mark!r}{suggestion(mark, MARKS)}"
