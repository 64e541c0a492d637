"""The model table (protocol sections 3, 4 and 7).

A row has a model's names, its coordinate space, how it answers when a prompt names no format, and
how it runs on this machine, if it does. A name without a row is an error, never a guess.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import partial

from ..boxes import ReplyFormat, Space, SpaceError, space_from, spaces_help, stated_space
from ..core import Group, PluginTable, closest
from ..protocol import (
    CHANNEL,
    READS_LIKE,
    SPACE_SETTING,
    THINK,
    USUAL_THOUGHTS,
    Settings,
    ThoughtMarks,
    ThoughtRule,
)
from . import prices
from .local.layout import Grid, Positions, Tiles
from .model_row import (
    NANO_FACTOR,
    ApiFacts,
    BoundsRule,
    LocalFamily,
    ModelRow,
    Schemes,
    SpaceRule,
    find_row,
    internvl3_bounds,
    nano_px_bounds,
    processor_bounds,
    qwen2_5_bounds,
    qwen3_bounds,
    row_problem,
    space_within,
)
from .shipped_weights import shipped_weights

NANO = "FindIt-Nano"  # Shipped model that answers in thousandths of the image
NANO_PX = "FindIt-Nano-px"  # Shipped model that answers in pixels after its resize

# Checkpoints that ship with the package, by row
SHIPPED: Mapping[str, str] = {
    NANO: shipped_weights("findit_nano"),
    NANO_PX: shipped_weights("findit_nano_px"),
}

# Spaces, by dataset variant


def _always(space: Space) -> SpaceRule:
    return lambda variant: space


def _shrinking_scenes(kind: str, longer_side: int) -> SpaceRule:
    """Shrink the 8192x6144 scenes of HR-InsDet before sending, as the paper's API runs do."""
    shrunk = Space(kind, scene_max_size=longer_side)
    whole = Space(kind)
    return lambda variant: shrunk if variant.images == "HRInsDet" else whole


def _smart_resize(bounds: BoundsRule, factor: int | None = None) -> SpaceRule:
    """Pixels of the processor's input, within the bounds of inference."""
    within = Space("smart_resize", min_pixels=1, max_pixels=1, factor=factor)
    return lambda variant: space_within(within, bounds(variant))


_GRID = _always(Space("grid1000"))

# Schemes: how a model answers a prompt that names no format

_XYXY = ReplyFormat(output="json", representation="xyxy", key="bbox_2d")
_YXYX = ReplyFormat(output="json", representation="yxyx", key="box_2d")
_NAMED = ReplyFormat(output="json", representation="xyxy", structure="decomposed")
_PLAIN = ReplyFormat(output="json", representation="xyxy")
_XYWH = ReplyFormat(output="json", representation="xywh")

_ALL = (("text", False), ("text", True), ("json", False), ("json", True))
_QWEN3: Schemes = {("text", True): _XYXY}
_QWEN_ALL_TEXT: Schemes = {("text", False): _XYXY, ("text", True): _XYXY}
_GOOGLE: Schemes = dict.fromkeys(_ALL, _YXYX)
_NANO_PX: Schemes = dict.fromkeys(_ALL, _XYWH)
_CLAUDE_SONNET: Schemes = {("json", False): _NAMED, ("json", True): _PLAIN}


# Proprietary models: reasoning is switched off (greedy, the variant's limit), or the provider's
# default reasoning may take 8,000 tokens; then no temperature is accepted.
_WITHOUT_REASONING = partial(ApiFacts, reasoning={"effort": "none"}, temperature=0.0)
_WITH_DEFAULT_REASONING = partial(ApiFacts, reasoning=None, max_tokens=8000)

# Anthropic caches what is marked, for five minutes from its last use.
_CACHED = {"type": "ephemeral"}


# Models on this machine


def _checkpoints(name: str, identifier: str, usual: str, sizes: str) -> dict[str, str]:
    """Return a checkpoint of each size by name; the name without a size is the usual one's."""
    sized = {name.replace("#", s): identifier.replace("#", s) for s in sizes.split()}
    return {name.replace("-#", ""): identifier.replace("#", usual), **sized}


_CHATML = ("<|im_end|>", "<|endoftext|>")
_QWEN = partial(LocalFamily, layout=Grid, stops=_CHATML)
_THINKING_QWEN = partial(_QWEN, bounds=qwen3_bounds, multiple=32, thought=THINK)
_QWEN3_5 = partial(_THINKING_QWEN, model_types=("qwen3_5", "qwen3_5_moe"))


def _shipped(name: str, space: SpaceRule, schemes: Schemes, bounds: BoundsRule) -> ModelRow:
    """Return the row of a shipped checkpoint: a very small Qwen3-VL."""
    types = ("qwen3_vl",)
    folders = {name: SHIPPED[name]}
    local = _QWEN(folders, bounds, model_types=types, multiple=NANO_FACTOR, by_numpy=True)
    return ModelRow(name, re.escape(name), space, schemes, local=local)


_SIZE = r"(-\d+(\.\d+)?B(-A\d+B)?)?"
_THINKING_OFF = {"enable_thinking": False}

_ROWS = (
    # VLMEvalKit's Qwen2.5-VL-…-Instruct entries have other bounds, which :mod:`..host` reads
    # from them; this row is for runs with the paper's.
    ModelRow(
        "Qwen2.5-VL",
        rf"Qwen2\.5-VL{_SIZE}",
        _smart_resize(qwen2_5_bounds),
        _QWEN_ALL_TEXT,
        local=_QWEN(
            _checkpoints("Qwen2.5-VL-#", "Qwen/Qwen2.5-VL-#-Instruct", "7B", "3B 7B 32B 72B"),
            qwen2_5_bounds,
            model_types=("qwen2_5_vl",),
            multiple=28,
        ),
    ),
    ModelRow(
        "Qwen3-VL",
        rf"(Qwen/)?Qwen3-VL{_SIZE}(-Instruct|-Thinking)?",
        _GRID,
        _QWEN3,
        local=_THINKING_QWEN(
            _checkpoints(
                "Qwen3-VL-#", "Qwen/Qwen3-VL-#-Instruct", "8B", "2B 4B 8B 32B 30B-A3B 235B-A22B"
            ),
            model_types=("qwen3_vl", "qwen3_vl_moe"),
        ),
    ),
    ModelRow(
        "Qwen3.5-nothink",
        rf"(Qwen/)?Qwen3\.5{_SIZE}(-nothink|_InstructMode_api)",
        _GRID,
        _QWEN_ALL_TEXT,
        local=_QWEN3_5(
            _checkpoints(
                "Qwen3.5-#-nothink", "Qwen/Qwen3.5-#", "9B", "9B 27B 35B-A3B 122B-A10B 397B-A17B"
            ),
            template=_THINKING_OFF,
        ),
    ),
    ModelRow(
        "Qwen3.5",
        rf"(Qwen/)?Qwen3\.5{_SIZE}(_ThinkMode_api|_api)?",
        _GRID,
        _QWEN3,
        opens_thought=True,
        # The larger sizes are VLMEvalKit's entries.
        local=_QWEN3_5(_checkpoints("Qwen3.5-#", "Qwen/Qwen3.5-#", "9B", "9B")),
    ),
    ModelRow(
        "InternVL3",
        r"(OpenGVLab/)?InternVL3(-\d+B)?(-hf)?",
        _GRID,
        local=LocalFamily(
            # Names without -hf are VLMEvalKit's, with the original weights.
            _checkpoints(
                "InternVL3-#-hf", "OpenGVLab/InternVL3-#-hf", "8B", "1B 2B 8B 14B 38B 78B"
            ),
            internvl3_bounds,
            Tiles,
            stops=_CHATML,
            model_types=("internvl",),
        ),
    ),
    ModelRow(
        "GLM-4.6V",
        r"(zai-org/)?(GLM-4\.6V(-Flash)?(-nothink)?|GLM4_6V(-api)?)",
        _GRID,
        local=LocalFamily(
            checkpoints={
                "GLM-4.6V-Flash-nothink": "zai-org/GLM-4.6V-Flash",
                "GLM-4.6V-nothink": "zai-org/GLM-4.6V",
            },
            layout=Grid,
            template=_THINKING_OFF,
            stops=("<|endoftext|>", "<|user|>", "<|observation|>"),
            # The parser reads what is between them (protocol section 3).
            preserves=("<|begin_of_box|>", "<|end_of_box|>"),
            thought=THINK,
            model_types=("glm46v", "glm4v", "glm4v_moe"),
            multiple=28,
            pixels_counted=2,
        ),
    ),
    ModelRow(
        "Gemma 4",
        r"(google/)?Gemma-?4(-[\w.-]+)?",
        _GRID,
        _GOOGLE,
        local=LocalFamily(
            _checkpoints("Gemma4-#", "google/gemma-4-#-it", "E4B", "E2B E4B 26B-A4B 31B"),
            layout=Positions,
            template=_THINKING_OFF,
            stops=("<turn|>", "<eos>"),
            thought=CHANNEL,
            model_types=("gemma4",),
        ),
    ),
    ModelRow(
        "Gemini 2.5 Flash",
        r"(google/)?(Gemini-2\.5-Flash|GeminiFlash2-5)",
        _shrinking_scenes("grid1000", 4096),
        _GOOGLE,
        api=_WITHOUT_REASONING(
            "google/gemini-2.5-flash",
            prices=prices.GEMINI_2_5_FLASH,
            schema_of_list=True,
            provider_names={"google": "gemini-2.5-flash"},
        ),
    ),
    ModelRow(
        "GPT-5.4",
        r"(openai/)?GPT-5\.4(-\d{4}-\d\d-\d\d)?",
        _shrinking_scenes("openai_high", 4096),
        api=_WITHOUT_REASONING(
            "openai/gpt-5.4",
            image_detail="high",  # explicit, because the coordinate space depends on this sizing
            prices=prices.GPT_5_4,
            provider_names={"openai": "gpt-5.4"},
        ),
    ),
    ModelRow(
        "GPT-6 Astra",
        r"(openai/)?GPT-6-Astra",
        _shrinking_scenes("pixels", 1824),
        api=_WITH_DEFAULT_REASONING(
            "openai/gpt-6-astra",
            prices=prices.GPT_6_ASTRA,
            provider_names={"openai": "gpt-6-astra"},
        ),
    ),
    ModelRow(
        "Claude Sonnet 4.5",
        r"(anthropic/)?(Claude-Sonnet-4[.-]5|claude-4\.5-sonnet|GCP_ClaudeSonnet4-5)",
        _shrinking_scenes("claude_standard", 4096),
        _CLAUDE_SONNET,
        api=_WITHOUT_REASONING(
            "anthropic/claude-4.5-sonnet",
            cache_control=_CACHED,
            prices=prices.SONNET_4_5,
            provider_names={"anthropic": "claude-sonnet-4-5"},
        ),
    ),
    ModelRow(
        "Claude Opus 5.5",
        r"(anthropic/)?Claude-Opus-5[.-]5",
        _always(Space("claude_highres")),
        api=_WITH_DEFAULT_REASONING(
            "anthropic/claude-opus-5.5",
            cache_control=_CACHED,
            prices=prices.OPUS_5_5,
            provider_names={"anthropic": "claude-opus-5-5"},
        ),
    ),
    # Models that ship with the package, and their baselines.
    _shipped(NANO, _GRID, _QWEN_ALL_TEXT, processor_bounds),
    _shipped(NANO_PX, _smart_resize(nano_px_bounds, NANO_FACTOR), _NANO_PX, nano_px_bounds),
    ModelRow("FullImage", r"FullImage", _GRID),
)


def _problem(row: ModelRow) -> str | None:
    return row_problem(row, MODELS)


# Known models by name; plug-ins add rows
MODELS: PluginTable[ModelRow] = PluginTable(
    Group.MODELS, {row.name: row for row in _ROWS}, ModelRow, _problem
)


def find_model(name: str) -> ModelRow | None:
    """Return the row that has a model's name, or None."""
    row = find_row(_ROWS, name)
    if row is None and name:
        return find_row((added.row for added in MODELS.added().values()), name)
    return row


def thought_rule(name: str, marks: ThoughtMarks | None) -> ThoughtRule:
    """Return how a model marks its thoughts: with the user's ``marks``, else as its row says.

    ``marks`` are those of :func:`.settings_of_model`.
    """
    row = find_model(name)
    rule = row.thoughts if row is not None else USUAL_THOUGHTS
    return rule if marks is None else ThoughtRule(marks, rule.opened)


class UnknownModelError(SpaceError):
    """A model that a flag or a file names for its coordinates is not known."""


def known_model(name: str, key: str) -> ModelRow:
    """Return the row of a model that ``key`` of a file or command names, or raise an error."""
    row = find_model(name)
    if row is None:
        raise UnknownModelError(f"{key}: unknown model {name!r}{meant_model(name)}")
    return row


def meant_model(name: str, names: Iterable[str] | None = None) -> str:
    """Return what follows ``unknown model``: the name that was meant, or where names are listed.

    Another number is another model, and no other spelling: GPT-5.4 is not what gpt-4o means.
    ``names`` are by default those of the table.
    """
    known = list(MODELS if names is None else names)
    if meant := closest(name, [each for each in known if _may_be(name, each)]):
        return f": did you mean {meant}?"
    near = closest(name, known)
    another = f"the nearest name is of another model, {near}; " if near else ""
    return f" ({another}names: run_findit.py models)"


def _may_be(typed: str, name: str) -> bool:
    """Return whether two names have the same numbers, as far as both have some."""
    pairs = zip(_numbers(typed), _numbers(name), strict=False)
    return all(left == right for left, right in pairs)


def _numbers(name: str) -> list[str]:
    """Return the numbers of a model's name, its versions and sizes, without what is inside them.

    >>> _numbers("claude-sonnet-4-5"), _numbers("Qwen2.5-VL-7B"), _numbers("Qwen25VL:7b")
    (['45'], ['25', '7'], ['25', '7'])
    """
    found = re.findall(r"\d+(?:[._]\d{1,2}(?!\d)|-\d{1,2}(?![\dA-Za-z]))*", name)
    return [re.sub(r"\D", "", number) for number in found]


def how_to_ask(name: str) -> str:
    """Say how a model that no table has is asked: at a server, at a provider, on this machine."""
    return (
        f"At a server it is --model NAME={name} --base-url URL, at a provider --model NAME={name} "
        "--provider PROVIDER, where NAME is the known model that it is like; a checkpoint is "
        f"--model {name}=FOLDER"
    )


def space_of_settings(settings: Settings) -> Space | None:
    """Return the space that the user states, or raise SpaceError."""
    return None if settings.space is None else space_from(settings.space)


def space_of_variable(settings: Settings) -> Space | None:
    """Return the space of models of which none is known, or raise SpaceError."""
    value = settings.of_unknown.space
    try:
        return None if value is None else stated_space(value)
    except SpaceError as error:
        raise SpaceError(f"{SPACE_SETTING.variable}={value}: {error}") from None


def check_settings(settings: Settings) -> None:
    """Raise SpaceError for settings with an unknown space or model."""
    space_of_settings(settings)
    space_of_variable(settings)
    if settings.reads_like is not None:
        known_model(settings.reads_like, "reads_like")
    if settings.of_unknown.reads_like is not None:
        known_model(settings.of_unknown.reads_like, READS_LIKE.variable)


def check_stated(settings: Settings) -> None:
    """Raise SpaceError for settings of a user: as :func:`check_settings`, or keys without effect.

    Settings that were completed by a record may have such keys.
    """
    check_settings(settings)
    if settings.space is not None:
        stated_space(settings.space)


def local_names() -> dict[str, tuple[ModelRow, str]]:
    """Return the row and checkpoint of every local model by name."""
    names = {}
    for row in MODELS.values():
        if row.local is not None:
            for name, identifier in row.local.checkpoints.items():
                names[name] = (row, identifier)
    return names


def same_checkpoint(name: str) -> list[str]:
    """Return our names for a model that the hub, or VLMEvalKit, has under another name.

    >>> same_checkpoint("Qwen/Qwen2.5-VL-7B-Instruct"), same_checkpoint("InternVL3-8B")
    (['Qwen2.5-VL-7B'], ['InternVL3-8B-hf'])
    """
    wanted = _plain(name)
    result: dict[str, str] = {}  # by row: its longest name, which has the size
    for ours, (row, identifier) in local_names().items():
        if _plain(identifier) == wanted and len(ours) > len(result.get(row.name, "")):
            result[row.name] = ours
    return list(result.values())


def _plain(name: str) -> str:
    return name.rpartition("/")[2].casefold().removesuffix("-hf")


def space_options(value: str) -> str:
    """Return all ways to state a coordinate space; ``value`` is one as JSON, or stands for one."""
    word = f"'{value}'" if value.startswith("{") else value
    return f"--space {word}, `space` in a sweep's or a --config file, or FINDIT_SPACE={word}"


_EXAMPLE = "Qwen3-VL-8B"


def like_which(model: str, served: str) -> str:
    """Say how a model at a server or provider is said to be like a known one."""
    names = [name for name in local_names() if _may_be(model, name)]
    near = next(iter(same_checkpoint(model)), None) or closest(model, names) or _EXAMPLE
    return (
        f"Say which known model it is like (names: run_findit.py models): --model {near}={served}, "
        f"or --like {near}, under its own name"
    )


def unknown_space(model: str, served: str | None = None) -> SpaceError:
    """Return the error for a model whose coordinate space is not known.

    ``served``: its name at the server or provider that is to be asked.
    """
    ours = same_checkpoint(model)
    same = ""
    if ours:
        same = f"{' or '.join(ours)} is the same checkpoint, asked as the protocol says.\n"
    unknown = f"the coordinate space of the model {model!r} is not known, and it is not guessed.\n"
    if served is not None:
        return SpaceError(
            f"{unknown}{same}{like_which(model, served)}.\n"
            f"Or state it: {space_options('SPACE')} (names: run_findit.py score --help)"
        )
    return SpaceError(
        f"{unknown}{same}State it: {space_options('SPACE')}.\n"
        f"Spaces:\n{spaces_help()}\n"
        f"Models whose space is known: {', '.join(MODELS)}"
    )
