"""One row of the model table: what a row may say (protocol sections 3, 4 and 7)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..boxes.reply_format import ReplyFormat
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
    """How the paper's runs ask a proprietary model through OpenRouter.

    ``identifier`` is OpenRouter's name, ``own_names`` are the names of who makes it, by the row of
    :data:`.http.providers.table.PROVIDERS`.  ``reasoning`` is the request's field of that name
    (None: the provider's default).  ``max_tokens`` limits the output (None: the question's own
    limit).  ``temperature`` is None where the provider takes none.  ``image_detail`` is OpenAI's
    field.
    ``cache_control`` marks where the beginning of a prompt ends that the provider should keep
    (None: it finds that out itself).  ``prices`` are for estimates.  ``schema_of_list``: whether a
    JSON schema may be a list; OpenAI and Anthropic take objects.
    """

    identifier: str
    reasoning: Mapping[str, Any] | None
    max_tokens: int | None = None
    temperature: float | None = None
    image_detail: str | None = None
    cache_control: Mapping[str, str] | None = None
    prices: Prices | None = None
    schema_of_list: bool = False
    own_names: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LocalFamily:
    """How the models of a family are run.

    Any architecture of transformers' ``AutoModelForImageTextToText`` can be.  ``checkpoints`` maps
    the names that people type to Hugging Face identifiers or folders.  ``layout`` is how its image
    processor lays out images.  ``template`` are switches of the chat template.
    ``stops`` end a reply in addition to what the checkpoint says.  Special tokens are stripped from
    a reply, but those that ``keeps`` names and the marks of its ``thought``.
    ``pixels_counted`` is how often the processor's areas count a pixel (GLM counts both frames of
    a temporal patch, an image too).
    """

    checkpoints: Mapping[str, str]
    bounds: BoundsRule = processors_own
    layout: type[ImageLayout] = ImageLayout
    template: Mapping[str, Any] = field(default_factory=dict)
    stops: tuple[str, ...] = ()
    keeps: tuple[str, ...] = ()
    thought: ThoughtMarks | None = None
    pixels_counted: int = 1

    @property
    def kept_tokens(self) -> tuple[str, ...]:
        """Special tokens that decoding must leave in the text, thought marks among them."""
        marks = (self.thought.opens, self.thought.closes) if self.thought else ()
        return (*self.keeps, *marks)


@dataclass(frozen=True, slots=True)
class ModelRow:
    """One row of the table.

    ``names`` is a regular expression that a whole model name must match (any case); ``space`` says
    the coordinate space by question, ``schemes`` how ``unconstrained`` prompts are answered,
    ``api`` how it is asked where it is proprietary, ``opens_thought`` whether its chat template
    begins the reply inside a thought, so that a server's reply lacks the mark that opens it,
    ``local`` how it is run on this machine (None: it is not).  Of a model of one's own
    (:mod:`.described`): ``served`` is what servers call it (None: its name), ``settings`` what it
    is run with on this machine, ``states_space`` whether its owner said the space.
    """

    name: str
    names: str
    space: SpaceRule
    schemes: Schemes = field(default_factory=dict)
    api: ApiFacts | None = None
    opens_thought: bool = False
    local: LocalFamily | None = None
    served: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    states_space: bool = False

    @property
    def entry(self) -> str:
        """Its name among VLMEvalKit's models: as people would type it."""
        return self.name.replace(" ", "-")

    def reads(self, asked: ReplyFormat) -> ReplyFormat:
        """How its replies are read where a format was asked for."""
        scheme = self.schemes.get((asked.output, asked.multilabel))
        if asked.representation != "unconstrained" or scheme is None:
            return asked
        return replace(scheme, multilabel=asked.multilabel, frames=asked.frames)


def matching(rows: Iterable[ModelRow], name: str) -> ModelRow | None:
    """The first of some rows that has a name; None where none has."""
    for row in rows:
        if row.name == name or re.fullmatch(row.names, name, re.IGNORECASE):
            return row
    return None
