"""A cell of the grid: fields, canonical name, valid combinations (protocol section 1).

A canonical name omits the default key and structure, and always has the number of frames of a video
query, so it determines the variant.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...boxes.representation import (
    CLASS_KEY,
    DEFAULT_KEY,
    DEFAULT_STRUCTURE,
    GRID,
    KEYS,
    OUTPUTS,
    REPRESENTATIONS,
    STRUCTURES,
    MatchRule,
    ReplyFormat,
    default_key,
)
from ...boxes.writing import schema_of
from ...core.formatting import nearest
from ...marks.style import Shape
from ...protocol.dataset_variant import DatasetNameError
from . import PREFIX
from .findit_datasets import DATASETS, Dataset, Family

CENTRES = ("definitions", "formula")
_CENTRE_REPRESENTATION = "cxcywh"

# Marks on reference images: shapes that need only a box, since tables have no outlines.
MARKS = tuple(shape.value for shape in (Shape.BOX, Shape.OVAL, Shape.ARROW, Shape.TAG, Shape.POINT))

DECODINGS = ("constrained",)  # by the format's grammar; default: free


class VariantError(DatasetNameError):
    """An invalid name; the message says why and what is nearest."""


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
    centre: str | None = None
    mark: str | None = None
    decoding: str | None = None

    @property
    def data(self) -> Dataset:
        return DATASETS.known(self.dataset)

    @property
    def table(self) -> str:
        return self.data.table_name(self.multilabel)

    @property
    def family(self) -> Family:
        """Return the family; a video dataset with one frame is an image task."""
        family = self.data.family
        return _OF_ONE_FRAME[family] if self.frames == 1 else family

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
    def images(self) -> str:
        return self.data.images

    @property
    def has_references(self) -> bool:
        return self.data.family.has_references

    @property
    def family_name(self) -> str:
        return self.family.title

    @property
    def board_dataset(self) -> str:
        """Name what is asked, whatever the format: table, caption, frames.

        >>> clips = FindItVariant("iGround", "xyxy", "json", multilabel=True, frames=8)
        >>> clips.board_dataset
        'iGround_multilabel_f8'
        """
        parts = [self.table]
        parts += ["caption"] * self.caption
        parts += [f"f{self.frames}"] * self.data.family.is_video
        return "_".join(parts)

    @property
    def format(self) -> str:
        """Return the answer format: the rest of the name.

        >>> FindItVariant("iGround", "xyxy", "json", "bbox_2d", multilabel=True, frames=8).format
        'xyxy_json_bbox_2d'
        """
        return self.name.removeprefix(f"{PREFIX}{self.board_dataset}_")

    @property
    def format_place(self) -> tuple[int, ...]:
        """Return the format's indices in the grid, in the order of a name's parts."""
        # The paper's representations come first.
        known = GRID if self.representation in GRID else tuple(REPRESENTATIONS)
        return (
            known.index(self.representation),
            OUTPUTS.index(self.output),
            KEYS.index(self.key),
            STRUCTURES.index(self.structure),
            (None, *CENTRES).index(self.centre),
            (None, *MARKS).index(self.mark),
            (None, *DECODINGS).index(self.decoding),
        )

    @property
    def format_cell(self) -> tuple[str, str]:
        """Return the format's row (representation) and column (the rest) in a heat map."""
        if self.output == "text":
            parts = ["text"]
        elif self.structure == DEFAULT_STRUCTURE:
            parts = ["json", self.key]
        else:
            parts = ["json", self.structure, *self._named_key]
        parts += endings(self.centre, self.mark, self.decoding)
        return self.representation, " ".join(parts)

    @property
    def _named_key(self) -> list[str]:
        return [] if self.key == default_key(self.representation) else [self.key]

    @property
    def reply(self) -> ReplyFormat:
        return ReplyFormat(
            self.output, self.representation, self.key, self.structure, self.multilabel, self.frames
        )

    @property
    def reply_schema(self) -> Mapping[str, Any] | None:
        """Return the JSON schema that constrains decoding (None: free)."""
        return None if self.decoding is None else schema_of(self.reply)

    @property
    def name(self) -> str:
        parts = [self.dataset]
        parts += ["multilabel"] * self.multilabel
        parts += ["caption"] * self.caption
        parts += [f"f{self.frames}"] * self.data.family.is_video
        parts += [self.representation, self.output]
        parts += self._named_key
        parts += [self.structure] * (self.structure != DEFAULT_STRUCTURE)
        parts += endings(self.centre, self.mark, self.decoding)
        return PREFIX + "_".join(parts)


def endings(centre: str | None, mark: str | None, decoding: str | None) -> list[str]:
    """List the endings of a name: centre experiment, mark, decoding."""
    value = (centre and f"cx-{centre}", mark and f"vp-{mark}", decoding)
    return [part for part in value if part]


def format_problem(v: FindItVariant) -> str | None:
    """Say why a dataset cannot be asked in this format; None where it can."""
    data = v.data
    for what, value, known in (
        ("representation", v.representation, REPRESENTATIONS),
        ("output format", v.output, OUTPUTS),
        ("JSON key", v.key, KEYS),
        ("JSON structure", v.structure, STRUCTURES),
        ("centre experiment", v.centre or CENTRES[0], CENTRES),
        ("way of decoding", v.decoding or DECODINGS[0], DECODINGS),
    ):
        if value not in known:
            return f"unknown {what} {value!r}{nearest(value, known)}"
    row = REPRESENTATIONS[v.representation]
    usual_key = default_key(v.representation)
    if row.match_rule is not MatchRule.BOX_OVERLAP and not data.has_points:
        boxes = MatchRule.BOX_OVERLAP.value
        return f"{data.name} is matched by {boxes}, {v.representation} by {row.match_rule.value}"
    if v.key not in row.json_keys:
        return f"{v.key} is no key of {v.representation} (there are: {', '.join(row.json_keys)})"
    if v.multilabel and not data.has_multilabel:
        return f"{data.name} has no multi-label queries"
    if v.caption and not data.has_caption:
        with_caption = ", ".join(d.name for d in DATASETS.values() if d.has_caption)
        return f"{data.name} has no captions (there are in: {with_caption})"
    if not 1 <= v.frames <= data.frames:
        if data.frames == 1:
            return f"{data.name} has images, not frames"
        return f"{data.name} has 1 to {data.frames} frames, not {v.frames}"
    if v.output == "text" and (v.key, v.structure) != (usual_key, DEFAULT_STRUCTURE):
        return "text replies have neither a JSON key nor a structure"
    if v.key == CLASS_KEY and not v.multilabel:
        return f"the key {CLASS_KEY} is for multi-label queries only"
    if v.structure == "decomposed":
        if not row.keys:
            return f"{v.representation} has no decomposed structure"
        if v.key != usual_key:
            return "the decomposed structure has fixed keys"
    if v.centre is not None and v.representation != _CENTRE_REPRESENTATION:
        return f"cx-{v.centre} is for {_CENTRE_REPRESENTATION} only"
    if v.decoding is not None:
        if v.output != "json":
            return f"{v.decoding} is for JSON only: text replies have no grammar"
        if not row.fields:
            return f"{v.representation} names no format that decoding could be held to"
    return None if v.mark is None else _mark_problem(v.mark, data)


def _mark_problem(mark: str, data: Dataset) -> str | None:
    if not data.family.has_references:
        return f"vp-{mark} is for instance detection only: {data.name} shows no reference images"
    if mark in MARKS:
        return None
    if mark in {shape.value for shape in Shape}:
        return (
            f"vp-{mark} follows the outline of an object, and tables have its box alone "
            f"(marks: {', '.join(MARKS)})"
        )
    return f"unknown mark {mark!r}{nearest(mark, MARKS)}"
