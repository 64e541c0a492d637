"""Prompts in which figures of model families were published, for expressions of one image.

A published figure is one of a prompt, so its wording is as the authors have it.  It says nothing of
our formats: each is asked in the variant in whose format these models answer it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...core import nearest
from ...protocol import Message, image, text
from .findit_datasets import Family
from .findit_query import FindItQuery
from .variant import FindItVariant


class FamilyPromptError(ValueError):
    """A family's prompt does not ask for what a variant asks for."""


@dataclass(frozen=True, slots=True)
class FamilyPrompt:
    """The prompt of one family."""

    name: str  # Of the prompt set; another wording has another number
    families: tuple[str, ...]  # Rows of the model table
    words: str  # {} stands for the expression
    format: str  # Of the variant, at the end of its name
    source: str

    def check(self, variant: FindItVariant) -> None:
        """Raise a FamilyPromptError for a variant that asks for something else."""
        if variant.family not in (Family.REFEXP, Family.REFEXP_ALL) or variant.multilabel:
            raise FamilyPromptError(
                f"{variant.name}: the prompt {self.name} asks for one expression in an image"
            )
        if variant.format != self.format:
            raise FamilyPromptError(
                f"{variant.name}: the prompt {self.name} is answered in another format. Type: "
                f"--data FindIt_{variant.dataset}_{self.format}"
            )

    def message(self, query: FindItQuery, variant: FindItVariant) -> Message:
        """Compose the message for an expression, or raise a FamilyPromptError."""
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
    return f"or name the prompt of a family{nearest(named, FAMILY_PROMPTS)}"
