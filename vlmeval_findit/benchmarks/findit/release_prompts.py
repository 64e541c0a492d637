"""The prompts in force: ours, a family's, or the release's by a user's clone (``FINDIT_PROMPTS``).

The clone's package ``findit`` is imported from its top folder or ``src``; it needs torch and
torchvision.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from ...boxes import PAPER_REPRESENTATIONS
from ...core import git_revision, suggestion
from ...protocol import PROMPTS_VARIABLE, Message, Part, image, reference, say_once, text
from . import box_prompts as prompts
from .box_prompts import MessageMaker
from .findit_datasets import Family
from .findit_query import FindItQuery
from .variant import FindItVariant

_MARK = re.compile(r"<image (\d+)>")


class PromptError(ValueError):
    """The clone cannot be used, or its text does not place a query's images."""


def prompt_set() -> tuple[str, MessageMaker]:
    """Return name and function of the prompts in force, or raise PromptError."""
    named = os.environ.get(PROMPTS_VARIABLE)
    if not named:
        return prompts.PROMPTS_NAME, prompts.message
    if named in FAMILY_PROMPTS:
        _say_words(named)
        return named, FAMILY_PROMPTS[named].message
    clone = Path(named)
    # The release's first state had a folder src.
    sources = [p for p in (clone, clone / "src") if (p / "findit" / "doc_utils.py").is_file()]
    if not sources:
        raise PromptError(
            f"FINDIT_PROMPTS={clone}: no findit/doc_utils.py there, nor in src; "
            f"name the top folder of a clone of the FindIt release, {prompts_help(named)}"
        )
    doc_to_text = _from(sources[0].resolve())
    _say_words(named)

    def message(query: FindItQuery, variant: FindItVariant) -> Message:
        requested = variant.mark or variant.representation
        if variant.mark is not None or variant.representation not in PAPER_REPRESENTATIONS:
            raise PromptError(
                f"{variant.name}: the release has no prompt for {requested!r}; "
                "run without FINDIT_PROMPTS (--prompts)"
            )
        return _placed(doc_to_text(_doc(query, variant), kwargs_of(variant)), query, variant)

    return f"findit-release-{git_revision(clone) or 'unknown'}", message


def _say_words(named: str) -> None:
    say_once(
        f"all models are asked in the words of {named} (FINDIT_PROMPTS), in place of "
        f"{prompts.PROMPTS_NAME}"
    )


def _from(source: Path) -> Callable[[dict[str, Any], dict[str, Any]], str]:
    if sys.path[:1] != [str(source)]:
        sys.path.insert(0, str(source))
    try:
        module = importlib.import_module("findit.doc_utils")
    except ImportError as error:
        raise PromptError(
            f"FINDIT_PROMPTS={source}: {error}; the release's prompts need torch and torchvision"
        ) from error
    place = Path(module.__file__ or "")
    if not place.is_relative_to(source):  # Python does not import it again
        raise PromptError(
            f"FINDIT_PROMPTS={source}: this process has imported {place}; start another process"
        )
    return module.doc_to_text  # type: ignore[no-any-return]


def kwargs_of(v: FindItVariant) -> dict[str, Any]:
    """Return the release's keyword arguments for a cell (protocol sections 1 and 8)."""
    subset = v.data.subset
    kwargs: dict[str, Any] = {
        "dataset_name": subset.file if subset else v.dataset.lower(),
        "task_family": v.family.value,
        "fmt": v.output,
        "bbox_repr": v.representation,
        "multi_label": v.multilabel,
        "with_caption": v.caption,
        "negative_examples": v.data.has_negatives,
        "center_exp": v.centre or "none",
        # How replies are scaled; no prompt depends on it.
        "rescale_mode": "standard",
    }
    if v.output == "json":
        kwargs |= {"json_key": v.key, "json_structure": v.structure}
    if v.data.family.is_video:
        kwargs["max_frames"] = v.frames
    return kwargs


def _doc(query: FindItQuery, v: FindItVariant) -> dict[str, Any]:
    """Convert a query to a row of the release's subsets."""
    labels = query.truth.labels
    entries: list[Any] = [list(box) for box in query.truth.boxes]
    if labels:
        entries = [{"label": name, "bbox": box} for name, box in zip(labels, entries, strict=True)]
    doc: dict[str, Any] = {
        "filename": query.images[0],
        "label": query.label,
        "bboxes": entries,
        "height": query.height,
        "width": query.width,
        "caption": query.caption,
        "support_shots": list(query.support),
    }
    if v.data.family.is_video:
        frames: list[list[Any]] = [[] for _ in query.images]
        for entry, frame in zip(entries, query.truth.frames, strict=True):
            frames[frame].append(entry)
        doc |= {"bboxes": frames, "frame_paths": list(query.images)}
        doc["frame_indices"] = list(query.frame_indices)
    return doc


def _placed(written: str, query: FindItQuery, v: FindItVariant) -> Message:
    """Put every image at its mark in the release's text, or all of them before it."""
    images = [*map(reference, query.support), *map(image, query.images)]
    pieces = _MARK.split(written)
    if len(pieces) == 1:
        return (*images, text(written))
    marks = [int(number) for number in pieces[1::2]]
    if sorted(marks) != list(range(1, len(images) + 1)):
        raise PromptError(
            f"{v.name}, row {query.index}: the release's text places the images {marks}, "
            f"but the query has {len(images)}"
        )
    parts: list[Part] = [text(pieces[0])]
    for number, after in zip(marks, pieces[2::2], strict=True):
        parts += [images[number - 1], text(after)]
    return tuple(part for part in parts if part.value.strip())


class FamilyPromptError(ValueError):
    """A family's prompt does not ask for what a variant asks for."""


class Asks(Enum):
    """What the prompt of a family asks for; the value is its name in messages."""

    EXPRESSION = "one expression"
    CLASS = "all objects of one class"
    CLASSES = "all objects of several classes"

    @classmethod
    def of(cls, variant: FindItVariant) -> Asks | None:
        """Return what a variant asks for; None: nothing that a family's prompt asks for."""
        if variant.family is Family.OBJDET:
            return cls.CLASSES if variant.multilabel else cls.CLASS
        is_expression = variant.family in (Family.REFEXP, Family.REFEXP_ALL)
        return cls.EXPRESSION if is_expression and not variant.multilabel else None


@dataclass(frozen=True, slots=True)
class FamilyPrompt:
    """The prompt of one family."""

    name: str  # Of the prompt set; another wording has another number
    families: tuple[str, ...]  # Rows of the model table
    words: str  # {} stands for the expression, or the classes
    format: str  # Of the variant, at the end of its name
    source: str
    asks: Asks = Asks.EXPRESSION

    def check(self, variant: FindItVariant) -> None:
        """Raise a FamilyPromptError for a variant that asks for something else."""
        if Asks.of(variant) is not self.asks:
            raise FamilyPromptError(
                f"{variant.name}: the prompt {self.name} asks for {self.asks.value} in an image. "
                "Leave --prompts out, or unset FINDIT_PROMPTS"
            )
        if variant.format != self.format:
            raise FamilyPromptError(
                f"{variant.name}: the prompt {self.name} is answered in another format. Type: "
                f"--data FindIt_{variant.dataset}_{self.format}"
            )

    def message(self, query: FindItQuery, variant: FindItVariant) -> Message:
        """Compose the message for what is asked, or raise a FamilyPromptError."""
        self.check(variant)
        return image(query.images[0]), text(self.words.replace("{}", query.label))


_ROWS = (
    FamilyPrompt(
        "internvl-1",
        ("InternVL3",),
        "Please provide the bounding box coordinate of the region this sentence describes: "
        "<ref>{}</ref>",
        "xyxy_text",
        "OpenGVLab/InternVL, eval/refcoco; open-compass/VLMEvalKit#1305",
    ),
    FamilyPrompt(
        "qwen2.5-vl-1",
        ("Qwen2.5-VL",),
        "Locate {} in this image and output the bbox coordinates in JSON format.",
        "xyxy_json_bbox_2d",
        "QwenLM/Qwen3-VL#991",
    ),
    FamilyPrompt(
        "qwen3-vl-1",
        ("Qwen3-VL",),
        'Locate every object that matches the description "{}" in the image. Report bbox '
        "coordinates in JSON format.",
        "xyxy_json_bbox_2d",
        "QwenLM/Qwen3-VL#1721",
    ),
    FamilyPrompt(
        "qwen2.5-vl-odinw-1",
        ("Qwen2.5-VL",),
        "Locate every {} in the image and output the coordinates in JSON format.",
        "xyxy_json_bbox_2d",
        "QwenLM/Qwen3-VL#839",
        Asks.CLASS,
    ),
    FamilyPrompt(
        "qwen3-vl-odinw-1",
        ("Qwen3-VL",),
        "Locate every instance that belongs to the following categories: '{}'. Report bbox "
        "coordinates in JSON format.",
        "xyxy_json_bbox_2d",
        "QwenLM/Qwen3-VL, evaluation/ODinW-13/dataset_utils.py",
        Asks.CLASSES,
    ),
    # Their report has a second one, and does not say which was asked.
    FamilyPrompt(
        "glm-1",
        ("GLM-4.6V",),
        "Help me to locate {} in the image and give me its bounding boxes.",
        "xyxy_text",
        "zai-org/GLM-V, README; arXiv 2507.01006, appendix B.3",
    ),
)

# Published prompts of model families, by the prompt set's name
FAMILY_PROMPTS: Mapping[str, FamilyPrompt] = {row.name: row for row in _ROWS}


def prompts_help(named: str) -> str:
    """Say which prompts have names, the nearest first.

    >>> prompts_help("qwen3-vl")
    'or name the prompt of a family: did you mean qwen3-vl-1?'
    """
    return f"or name the prompt of a family{suggestion(named, FAMILY_PROMPTS)}"
