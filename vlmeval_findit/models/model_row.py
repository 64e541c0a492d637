"""One row of the model table (protocol sections 3, 4 and 7), and the checks of a plug-in's row."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..boxes import ReplyFormat, Space
from ..core import PluginTable, model_names, quoted_value
from ..protocol import DatasetVariant, PlainVariant, ThoughtMarks, ThoughtRule, rule_of
from ..storage import check_model_name
from .local.layout import Bounds, ImageLayout
from .prices import TokenPrices

SpaceRule = Callable[[DatasetVariant], Space]

SPACE_WITHOUT_BOXES = Space("grid1000")  # of answers without boxes: images are sent as they are

# By the prompt's output format and whether it has several labels
Schemes = Mapping[tuple[str, bool], ReplyFormat]


# --- bounds of the images that local models are shown (protocol sections 4 and 7) -----------------

BoundsRule = Callable[[DatasetVariant], Bounds]


def processor_bounds(variant: DatasetVariant) -> Bounds:
    """Leave all bounds to the checkpoint's processor."""
    return Bounds()


def qwen2_5_bounds(variant: DatasetVariant) -> Bounds:
    """Return the paper's bounds: simple interface for instance detection, else chat interface."""
    if variant.has_references:
        return Bounds(min_pixels=200_704, max_pixels=12_845_056)
    return Bounds(min_pixels=200_704, max_pixels=1_605_632, two_step=True)


def qwen3_bounds(variant: DatasetVariant) -> Bounds:
    """Return the bounds of Qwen2.5-VL without its second resize.

    The protocol states ``max_pixels`` for instance detection only; the rest is taken from
    Qwen2.5-VL. These models answer in thousandths, so it cannot shift boxes.
    """
    return replace(qwen2_5_bounds(variant), two_step=False)


def internvl3_bounds(variant: DatasetVariant) -> Bounds:
    """Allow 64 tiles for instance detection, else the processor's default of twelve."""
    return Bounds(patches=64 if variant.has_references else 12)


NANO_FACTOR = 24  # pixels of the side of a visual token of the models that ship: two patches of 12


def nano_px_bounds(variant: DatasetVariant) -> Bounds:
    """Repeat the processor's bounds, within which its replies are read."""
    return Bounds(min_pixels=4 * NANO_FACTOR**2, max_pixels=168 * 168)


def space_within(space: Space, bounds: Bounds) -> Space:
    """Return a space with a run's bounds, where it depends on them."""
    if space.kind != "smart_resize":
        return space
    return replace(
        space, min_pixels=bounds.min_pixels, max_pixels=bounds.max_pixels, two_step=bounds.two_step
    )


# --- rows -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ApiFacts:
    """How the paper's runs ask a proprietary model through OpenRouter."""

    identifier: str  # OpenRouter's name
    reasoning: Mapping[str, Any] | None  # field of the request; None: provider's default
    max_tokens: int | None = None  # None: the variant's limit
    temperature: float | None = None  # None: not accepted
    image_detail: str | None = None  # OpenAI's field
    cache_control: Mapping[str, str] | None = None  # marks what to cache; None: automatic
    prices: TokenPrices | None = None  # for estimates
    schema_of_list: bool = False  # a JSON schema may be a list; OpenAI and Anthropic take objects
    provider_names: Mapping[str, str] = field(default_factory=dict)  # by row of PROVIDERS

    def name_at(self, provider: str) -> str:
        """Return a provider's name for the model; "" if it is not known."""
        return {"openrouter": self.identifier, **self.provider_names}.get(provider, "")


# Of models without API facts: they are asked greedily.
NO_API = ApiFacts("", None, temperature=0.0, schema_of_list=True)


@dataclass(frozen=True, slots=True)
class LocalFamily:
    """How the models of a family run with transformers' ``AutoModelForImageTextToText``."""

    checkpoints: Mapping[str, str]  # by name: hub identifier or folder
    bounds: BoundsRule = processor_bounds
    layout: type[ImageLayout] = ImageLayout  # of its image processor
    template: Mapping[str, Any] = field(default_factory=dict)  # chat template switches
    stops: tuple[str, ...] = ()  # end a reply, in addition to the checkpoint's
    preserves: tuple[str, ...] = ()  # special tokens that stay in a reply
    thought: ThoughtMarks | None = None
    # Values of ``model_type`` in the config.json of its checkpoints; none: not known
    model_types: tuple[str, ...] = ()
    multiple: int | None = None  # its processor rounds sides to it, in pixels
    by_numpy: bool = False  # NumPy can compute its checkpoints, too (:mod:`.local.which_engine`)
    pixels_counted: int = 1  # times its processor's areas count a pixel (GLM: 2 frames per patch)

    @property
    def preserved_tokens(self) -> tuple[str, ...]:
        """Special tokens that decoding must keep, thought marks included."""
        marks = (self.thought.opens, self.thought.closes) if self.thought else ()
        return (*self.preserves, *marks)


@dataclass(frozen=True, slots=True)
class ModelRow:
    """One row of the model table."""

    name: str
    names: str  # regular expression of whole names, ignoring case
    space: SpaceRule  # coordinate space by dataset variant
    schemes: Schemes = field(default_factory=dict)  # how ``unconstrained`` prompts are answered
    api: ApiFacts | None = None  # if it is proprietary
    opens_thought: bool = False  # the chat template opens a thought, so replies lack its mark
    local: LocalFamily | None = None  # if it runs on this machine
    thought: ThoughtMarks | None = None  # if neither all models' table nor ``local`` has them

    @property
    def entry(self) -> str:
        """Its name among VLMEvalKit's models."""
        return self.name.replace(" ", "-")

    @property
    def named_marks(self) -> ThoughtMarks | None:
        """The marks of its thoughts, also where the table of all models has them."""
        return self.thought or (self.local.thought if self.local else None)

    @property
    def thoughts(self) -> ThoughtRule:
        """How its thoughts are marked in replies of servers and prediction files."""
        return rule_of(self.named_marks, self.opens_thought)

    def reads(self, asked: ReplyFormat) -> ReplyFormat:
        """Return the format in which its replies are read."""
        scheme = self.schemes.get((asked.output, asked.multilabel))
        if asked.representation != "unconstrained" or scheme is None:
            return asked
        return replace(scheme, multilabel=asked.multilabel, frames=asked.frames)


def find_row(rows: Iterable[ModelRow], name: str) -> ModelRow | None:
    """Return the first row that has a name, or None."""
    named = (r for r in rows if r.name == name or re.fullmatch(r.names, name, re.IGNORECASE))
    return next(named, None)


# --- checks of a plug-in's row -------------------------------------------------------------------

# Stands for a variant where only the model is known
ANY_QUESTION = PlainVariant("any", table="any", images="any", family_name="any", in_boxes=True)
_SCENES = replace(ANY_QUESTION, images="HRInsDet", has_references=True)


def row_problem(row: ModelRow, table: PluginTable[ModelRow]) -> str | None:
    """Return why a row cannot join a table; None if it can."""
    check_model_name(row.entry)
    others = list(table.values())
    for name in (row.name, *_entries(row)):
        other = find_row(others, name)
        if other is not None:
            return f"{name} is a name of {other.name}{_whose(other, table)}"
        if find_row([row], check_model_name(name)) is None:
            return f"{name} is its name, but does not match its names {row.names}"
    for other in others:
        for name in (other.name, *_entries(other)):
            if re.fullmatch(row.names, name, re.IGNORECASE):
                return f"its names {row.names} have {name}, of {other.name}{_whose(other, table)}"
    for name in _entries(row):
        if name in model_names():
            return f"{name} of the row {row.name} is the name of a model of VLMEvalKit: rename it"
    for variant in (ANY_QUESTION, _SCENES):
        space = row.space(variant)
        if not isinstance(space, Space):
            return f"its space is {quoted_value(space, 40)}"
        local = row.local
        if local is not None:
            if row.thought not in (None, local.thought):
                return "its thought is not that of its LocalFamily: name the marks there alone"
            bounds = local.bounds(variant).as_dict().keys() - local.layout.takes - {"two_step"}
            if bounds:
                other_bounds = ", ".join(sorted(bounds))
                layout = local.layout.__name__
                return f"its bounds set {other_bounds}, which {layout} does not take"
    return None


def _entries(row: ModelRow) -> list[str]:
    """Return its entries among VLMEvalKit's models."""
    entries = [row.entry] if row.api else []
    if row.local is not None:
        entries += row.local.checkpoints
    return entries


def _whose(row: ModelRow, table: PluginTable[ModelRow]) -> str:
    plugin = table.plugin_of(row.name)
    return f" of {plugin}" if plugin else ", a row of vlmeval_findit"
