"""One row of the model table (protocol sections 3, 4 and 7)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..boxes.representation import ReplyFormat
from ..boxes.spaces import Space
from ..core.question import Question
from ..core.replies import ThoughtMarks
from .bounds import BoundsRule, processors_own
from .local.layout import ImageLayout
from .prices import Prices

SpaceRule = Callable[[Question], Space]

Schemes = Mapping[tuple[str, bool], ReplyFormat]
"""By the prompt's output format and whether it has several labels."""


@dataclass(frozen=True, slots=True)
class ApiFacts:
    """How the paper's runs ask a proprietary model through OpenRouter."""

    identifier: str  # OpenRouter's name
    reasoning: Mapping[str, Any] | None  # field of the request; None: provider's default
    max_tokens: int | None = None  # None: the question's limit
    temperature: float | None = None  # None: not accepted
    image_detail: str | None = None  # OpenAI's field
    cache_control: Mapping[str, str] | None = None  # marks what to cache; None: automatic
    prices: Prices | None = None  # for estimates
    schema_of_list: bool = False  # a JSON schema may be a list; OpenAI and Anthropic take objects
    own_names: Mapping[str, str] = field(default_factory=dict)  # by row of PROVIDERS


@dataclass(frozen=True, slots=True)
class LocalFamily:
    """How the models of a family run with transformers' ``AutoModelForImageTextToText``."""

    checkpoints: Mapping[str, str]  # by name: hub identifier or folder
    bounds: BoundsRule = processors_own
    layout: type[ImageLayout] = ImageLayout  # of its image processor
    template: Mapping[str, Any] = field(default_factory=dict)  # chat template switches
    stops: tuple[str, ...] = ()  # end a reply, beside the checkpoint's
    keeps: tuple[str, ...] = ()  # special tokens that stay in a reply
    thought: ThoughtMarks | None = None
    pixels_counted: int = 1  # times its processor's areas count a pixel (GLM: 2 frames per patch)

    @property
    def kept_tokens(self) -> tuple[str, ...]:
        """Special tokens that decoding must keep, thought marks included."""
        marks = (self.thought.opens, self.thought.closes) if self.thought else ()
        return (*self.keeps, *marks)


@dataclass(frozen=True, slots=True)
class ModelRow:
    """One row of the model table."""

    name: str
    names: str  # regular expression of whole names, ignoring case
    space: SpaceRule  # coordinate space by question
    schemes: Schemes = field(default_factory=dict)  # how ``unconstrained`` prompts are answered
    api: ApiFacts | None = None  # if it is proprietary
    opens_thought: bool = False  # the chat template opens a thought, so replies lack its mark
    local: LocalFamily | None = None  # if it runs on this machine
    served: str | None = None  # a custom model's name at servers; None: its name
    settings: Mapping[str, Any] = field(default_factory=dict)  # of a custom model's local runs
    states_space: bool = False  # whether its owner stated the space

    @property
    def entry(self) -> str:
        """Its name among VLMEvalKit's models."""
        return self.name.replace(" ", "-")

    def reads(self, asked: ReplyFormat) -> ReplyFormat:
        """Return the format in which its replies are read."""
        scheme = self.schemes.get((asked.output, asked.multilabel))
        if asked.representation != "unconstrained" or scheme is None:
            return asked
        return replace(scheme, multilabel=asked.multilabel, frames=asked.frames)


def matching(rows: Iterable[ModelRow], name: str) -> ModelRow | None:
    """Return the first row that has a name, or None."""
    for row in rows:
        if row.name == name or re.fullmatch(row.names, name, re.IGNORECASE):
            return row
    return None
