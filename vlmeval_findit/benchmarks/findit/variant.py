"""One cell of the grid: its fields, its name, and the parsing of names (protocol section 1).

``FindIt_<Dataset>[_multilabel][_caption][_f<N>]_<representation>_<text|json>[_<key>][_<structure>]
[_cx-<definitions|formula>]``

:func:`parse` and :attr:`Variant.name` are inverse over the whole valid grid.  A canonical name
leaves out the default key and structure and always says how many frames a video query has, so that
every file that is keyed by it holds the whole variant.  The release's own task names are accepted
too (:func:`parse_alias`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from ...boxes.reply_format import (
    CLASS_KEY,
    DEFAULT_KEY,
    DEFAULT_STRUCTURE,
    KEYS,
    OUTPUTS,
    STRUCTURES,
    ReplyFormat,
)
from ...boxes.representation import REPRESENTATIONS
from ...core.question import QuestionError
from ...core.spelling import nearest
from . import PREFIX as PREFIX
from .datasets import BENCHMARK, DATASETS, Dataset, Family

CENTRES = ("definitions", "formula")
_CENTRE_REPRESENTATION = "cxcywh"


class VariantError(QuestionError):
    """A name that is no variant; the message says why and what is nearest."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One cell of the grid.  Make it with :func:`parse` or check it with :func:`problem`."""

    dataset: str
    representation: str
    output: str
    key: str = DEFAULT_KEY
    structure: str = DEFAULT_STRUCTURE
    multilabel: bool = False
    caption: bool = False
    frames: int = 1
    centre: str | None = None

    @property
    def row(self) -> Dataset:
        return DATASETS[self.dataset]

    @property
    def table(self) -> str:
        """The name of the annotation table that holds its queries."""
        return self.row.table_name(self.multilabel)

    @property
    def family(self) -> Family:
        """The family that is asked: a video dataset with one frame is an image task."""
        family = self.row.family
        return Family(family.value.removesuffix("_video")) if self.frames == 1 else family

    @property
    def max_new_tokens(self) -> int:
        """The most tokens that a reply may have (protocol section 2)."""
        return max(768, 192 * self.frames)

    @property
    def images(self) -> str:
        """The key of the folder of its images."""
        return self.row.images

    @property
    def has_references(self) -> bool:
        """Whether a query shows reference images of the object instead of naming it."""
        return self.row.family.has_references

    @property
    def family_name(self) -> str:
        return self.family.value

    @property
    def column(self) -> str:
        """What it asks, whatever the format: table, caption, frames.

        >>> parse("FindIt_iGround_multilabel_f8_xyxy_json_bbox_2d").column
        'iGround_multilabel_f8'
        """
        parts = [self.table]
        parts += ["caption"] * self.caption
        parts += [f"f{self.frames}"] * self.row.family.is_video
        return "_".join(parts)

    @property
    def format(self) -> str:
        """How the answer is to be written: the rest of its name.

        >>> parse("FindIt_iGround_multilabel_f8_xyxy_json_bbox_2d").format
        'xyxy_json_bbox_2d'
        """
        return self.name.removeprefix(f"{PREFIX}{self.column}_")

    @property
    def format_place(self) -> tuple[int, ...]:
        """Its format's place in the grid: representation, output, key, structure, centre."""
        return (
            list(REPRESENTATIONS).index(self.representation),
            OUTPUTS.index(self.output),
            KEYS.index(self.key),
            STRUCTURES.index(self.structure),
            (None, *CENTRES).index(self.centre),
        )

    @property
    def format_cell(self) -> tuple[str, str]:
        """Its format's row and column in a heat map: representation; output, key, structure."""
        if self.output == "text":
            parts = ["text"]
        elif self.structure == DEFAULT_STRUCTURE:
            parts = ["json", self.key]
        else:
            parts = ["json", self.structure, *([self.key] if self.key != DEFAULT_KEY else [])]
        parts += [f"cx-{self.centre}"] * (self.centre is not None)
        return self.representation, " ".join(parts)

    @property
    def reply(self) -> ReplyFormat:
        return ReplyFormat(
            output=self.output,
            representation=self.representation,
            key=self.key,
            structure=self.structure,
            multilabel=self.multilabel,
            frames=self.frames,
        )

    @property
    def name(self) -> str:
        parts = [self.dataset]
        parts += ["multilabel"] * self.multilabel
        parts += ["caption"] * self.caption
        parts += [f"f{self.frames}"] * self.row.family.is_video
        parts += [self.representation, self.output]
        parts += [self.key] * (self.key != DEFAULT_KEY)
        parts += [self.structure] * (self.structure != DEFAULT_STRUCTURE)
        parts += [f"cx-{self.centre}"] * (self.centre is not None)
        return PREFIX + "_".join(parts)


def problem(v: Variant) -> str | None:
    """Why a combination of fields is not in the grid, or None when it is."""
    if v.dataset not in DATASETS:
        return f"no dataset {v.dataset!r}{nearest(v.dataset, DATASETS)}"
    return format_problem(v)


def format_problem(v: Variant) -> str | None:
    """Why a dataset cannot be asked in this way, or None when it can."""
    row = v.row
    if v.representation not in REPRESENTATIONS:
        return f"no representation {v.representation!r}{nearest(v.representation, REPRESENTATIONS)}"
    if v.output not in OUTPUTS:
        return f"no output format {v.output!r}{nearest(v.output, OUTPUTS)}"
    if v.key not in KEYS:
        return f"no JSON key {v.key!r}{nearest(v.key, KEYS)}"
    if v.structure not in STRUCTURES:
        return f"no JSON structure {v.structure!r}{nearest(v.structure, STRUCTURES)}"
    if v.multilabel and not row.has_multilabel:
        return f"{row.name} has no multi-label queries"
    if v.caption and not row.has_caption:
        with_caption = ", ".join(d.name for d in DATASETS.values() if d.has_caption)
        return f"{row.name} has no captions (there are in: {with_caption})"
    if not 1 <= v.frames <= row.frames:
        if row.frames == 1:
            return f"{row.name} has images, not frames"
        return f"{row.name} has 1 to {row.frames} frames, not {v.frames}"
    if v.output == "text" and (v.key, v.structure) != (DEFAULT_KEY, DEFAULT_STRUCTURE):
        return "text replies have neither a JSON key nor a structure"
    if v.key == CLASS_KEY and not v.multilabel:
        return f"the key {CLASS_KEY} is for multi-label queries only"
    if v.structure == "decomposed":
        if not REPRESENTATIONS[v.representation].keys:
            return f"{v.representation} has no decomposed structure"
        if v.key != DEFAULT_KEY:
            return "the decomposed structure names its own keys"
    if v.centre is not None:
        if v.representation != _CENTRE_REPRESENTATION:
            return f"cx-{v.centre} is for {_CENTRE_REPRESENTATION} only"
        if v.centre not in CENTRES:
            return f"no centre experiment {v.centre!r}{nearest(v.centre, CENTRES)}"
    return None


class _Rest:
    """What is left of a name while its parts are taken from the front."""

    def __init__(self, text: str) -> None:
        self.text = text

    def take(self, words: Iterable[str]) -> str | None:
        """The longest of the words that stands in front as a whole part, taken off; else None."""
        for word in sorted(words, key=len, reverse=True):
            if self.text == word or self.text.startswith(word + "_"):
                self.text = self.text[len(word) + 1 :]
                return word
        return None

    def take_match(self, pattern: str) -> str | None:
        found = re.match(pattern + r"(?=_|\Z)", self.text)
        if found is None:
            return None
        self.text = self.text[found.end() + 1 :]
        return found[1]

    def part(self) -> str:
        """The next part, for an error message."""
        return self.text.split("_", 1)[0]


def parse(name: str) -> Variant:
    """The variant that a name stands for.

    Raises:
        VariantError: the name is not valid; the message names the part and the nearest valid one.
    """
    variant, why = _parse(name)
    if variant is None:
        raise VariantError(f"{name}: {why}")
    return variant


def is_variant(name: object) -> bool:
    """Whether a name is a variant's: membership is decided by parsing."""
    return isinstance(name, str) and _parse(name)[0] is not None


def forget_names() -> None:
    """Parse every name anew from now on: a dataset was added in this process."""
    _parse.cache_clear()


@lru_cache(maxsize=4096)
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
    rest = _Rest(text)
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
    rest = _Rest(text)
    multilabel = rest.take(["multilabel"]) is not None
    caption = rest.take(["caption"]) is not None
    frames = rest.take_match(r"f([1-9][0-9]{0,3})")
    representation = rest.take(REPRESENTATIONS)
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
    if rest.text:
        last = [*KEYS, *STRUCTURES, *(f"cx-{c}" for c in CENTRES)]
        return None, f"no JSON key or structure {rest.text!r}{nearest(rest.text, last)}"
    if output == "text" and (key or structure):
        return None, "text replies have neither a JSON key nor a structure"
    made = kind(
        dataset=row.name,
        representation=representation,
        output=output,
        key=key or DEFAULT_KEY,
        structure=structure or DEFAULT_STRUCTURE,
        multilabel=multilabel,
        caption=caption,
        frames=int(frames) if frames else row.frames,
        centre=centre,
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


def parse_alias(name: str) -> Variant | None:
    """The variant of one of the release's task names, or None.

    Read: ``FindIt_<subset file>_<family>_<text|json>_<representation>[_<key>][_<structure>]`` with
    our ``_f<N>`` and ``_cx-…`` at the end where they are needed, as in
    ``FindIt_refcoco_testA_refexp_json_xyxy_bbox_2d_per_box``.
    """
    rest = _Rest(name.removeprefix(PREFIX))
    subset = rest.take(SUBSETS)
    family = rest.take(f.value for f in Family)
    output = rest.take(OUTPUTS)
    representation = rest.take(REPRESENTATIONS)
    if subset is None or family is None or output is None or representation is None:
        return None
    key, structure = rest.take(KEYS), rest.take(STRUCTURES)
    frames = rest.take_match(r"f([1-9][0-9]{0,3})")
    centre = rest.take_match(r"cx-([a-z]+)")
    row, multilabel = SUBSETS[subset]
    variant = Variant(
        dataset=row.name,
        representation=representation,
        output=output,
        key=key or DEFAULT_KEY,
        structure=structure or DEFAULT_STRUCTURE,
        multilabel=multilabel,
        frames=int(frames) if frames else row.frames,
        centre=centre,
    )
    if rest.text or problem(variant) or family not in (row.family.value, variant.family.value):
        return None
    return variant


SUBSETS: dict[str, tuple[Dataset, bool]] = {
    subset.file: (row, multilabel)
    for row in BENCHMARK.values()
    for multilabel in (False, True)
    if (subset := row.subset_for(multilabel)) is not None
}
"""The table of each subset file of the release, as (dataset, multi-label)."""


def grid(datasets: Iterable[Dataset] | None = None) -> Iterator[Variant]:
    """Every valid variant of the datasets (default: all), with every frame count."""
    for row in DATASETS.values() if datasets is None else datasets:
        for representation in REPRESENTATIONS:
            for output in OUTPUTS:
                first = Variant(row.name, representation, output)
                for v in _dressings(first, row):
                    if problem(v) is None:
                        yield v


def _dressings(first: Variant, row: Dataset) -> Iterator[Variant]:
    """All values of the remaining axes; some combinations are not in the grid."""
    for multilabel in (False, True)[: 1 + row.has_multilabel]:
        for caption in (False, True)[: 1 + row.has_caption]:
            for frames in range(1, row.frames + 1):
                for key in KEYS:
                    for structure in STRUCTURES:
                        for centre in (None, *CENTRES):
                            yield replace(
                                first,
                                multilabel=multilabel,
                                caption=caption,
                                frames=frames,
                                key=key,
                                structure=structure,
                                centre=centre,
                            )
