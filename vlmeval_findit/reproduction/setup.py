"""How a model is asked to reproduce a figure: as published, as far as it is told and can be set."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from enum import Enum
from pathlib import Path
from shlex import quote
from typing import Any, Literal

from ..benchmarks import parse
from ..benchmarks.findit import (
    DATASETS,
    FAMILY_PROMPTS,
    PREFIX,
    FamilyPromptError,
    FindItVariant,
    box_prompts,
)
from ..boxes import JSON_KEYS, SPACE_KINDS, MatchRule, default_key, space_from
from ..core import no_effect, suggestion
from ..data import (
    MAKERS,
    NOT_STATED,
    ImageBounds,
    PublishedDecoding,
    PublishedFigure,
    load_dataset,
    published_dataset,
    published_figures,
    told_values,
    values_in_words,
)
from ..models import (
    TOKEN_LIMITS,
    Bounds,
    LocalFamily,
    ModelEntry,
    ModelRow,
    RunningProgram,
    bounds_in_request,
    find_model,
    find_provider,
    row_of_checkpoint,
)
from ..protocol import DatasetNameError, DatasetVariant, PictureSample, settings_from
from ..serving import BOUNDS_FIELD, PROGRAMS
from ..storage import table_facts, table_folders, unlike_published
from .figure_metric import FIGURE_METRICS
from .reproduction_records import ConditionAgreement, ConditionSet, Setup


class SetupError(ValueError):
    """A setup that cannot be asked; the message says what to type."""


class Answerer(Enum):
    """Who answers, as far as it decides what can be set; the value is its name in messages."""

    HERE = "a model in this process"
    SERVED = "a model that this machine serves"
    SERVER = "a server"
    PROVIDER = "a provider"
    HOST = "VLMEvalKit's class"


@dataclass(frozen=True, slots=True)
class Stated:
    """What the user states besides the entry of the model; "" and None: nothing."""

    prompts: str = ""  # A prompt set
    format: str = ""  # Of the variant
    max_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class AnsweringProgram:
    """Who answers, and which program that is, with its version ("": not known)."""

    answerer: Answerer
    engine: str = ""
    program: RunningProgram | None = None  # What a server says that it is; None: nothing

    @property
    def takes_bounds(self) -> bool:
        """Return whether requests to it may bound images."""
        program = PROGRAMS.get(self.engine.partition(" ")[0])
        return program is not None and BOUNDS_FIELD in program.fields


def plan_setup(
    figure: PublishedFigure,
    entry: ModelEntry,
    deployment: AnsweringProgram,
    sample: PictureSample,
    stated: Stated | None = None,
) -> Setup:
    """Plan how a model is asked: as the user states, else as published, else as usual.

    Args:
        figure: what is to be reproduced.
        entry: the model, with what the user states of it.
        deployment: who answers.
        sample: the pictures of each dataset.
        stated: what else the user states.

    Raises:
        SetupError: a dataset of the figure is not here, the prompt or the metric does not fit the
            format, or what is stated has no effect.
        SpaceError: the space that the user states is unknown.
    """
    stated = stated or Stated()
    if stated.max_tokens is not None and deployment.answerer is Answerer.HOST:
        raise SetupError(no_effect("--max-tokens", "VLMEvalKit's class decides"))
    row = _row_of(entry)
    prompts, prompt = _prompt(figure, entry, stated)
    form, form_set = _format(figure, row, prompts, stated)
    variants = find_variants(figure, form)
    _refuse_unfit(figure, prompts, form, variants)
    space, space_set = _space(figure, entry, row, variants[0])
    bounds, bounds_set = _bounds(figure, entry, row, deployment, variants[0])
    decoding, decoding_set = _decoding(figure, entry, row, deployment, stated)
    engine = _engine(figure, deployment)
    conditions = [prompt, form_set, space_set, bounds_set, decoding_set, engine]
    if figure.has_iou:
        conditions.append(_iou(figure))
    settings = {**bounds, **decoding, **entry.settings}
    return Setup(
        figure=figure,
        entry=replace(entry, space=space, settings=settings),
        variants=variants,
        prompts=prompts,
        conditions=tuple(conditions),
        sample=sample,
        program=deployment.program,
    )


def _row_of(entry: ModelEntry) -> ModelRow | None:
    row = find_model(entry.like or entry.name)
    if row is None and entry.checkpoint is not None and entry.space is not None:
        return row_of_checkpoint(entry.name, entry.checkpoint, entry.like, space_stated=True)
    return row


def _published_words(value: object) -> str:
    """Return a published condition in words; "" if it is not told."""
    if value == NOT_STATED:
        return ""
    if isinstance(value, ImageBounds | PublishedDecoding):
        return values_in_words(told_values(value))
    return str(value)


def _agreement(published: str, here: str) -> ConditionAgreement:
    """Return how what is asked agrees, where everything can be set."""
    if not published:
        return ConditionAgreement.NOT_TOLD
    return ConditionAgreement.AS_PUBLISHED if here == published else ConditionAgreement.YOURS


# --- prompt and format ----------------------------------------------------------------------------

_OUR_WORDS = f"the dataset's words ({box_prompts.PROMPTS_NAME})"


def _prompt(figure: PublishedFigure, entry: ModelEntry, stated: Stated) -> tuple[str, ConditionSet]:
    """Return the prompt set of a family, "" for ours, and how it agrees."""
    published = _published_words(figure.conditions.prompt)
    name = stated.prompts or published or box_prompts.PROMPTS_NAME
    if name not in FAMILY_PROMPTS and name != box_prompts.PROMPTS_NAME:
        near = suggestion(name, [*FAMILY_PROMPTS, box_prompts.PROMPTS_NAME])
        raise SetupError(f"--prompts {name}: unknown prompt set{near}")
    agreement = _agreement(published, name)
    here = _OUR_WORDS if name == box_prompts.PROMPTS_NAME else name
    files = [file for file in (entry.system, entry.prompt_template) if file is not None]
    if files:
        # Without folders, as somebody else may read it.
        here = f"your words: {', '.join(Path(file).name for file in files)}"
        agreement = ConditionAgreement.YOURS
    if entry.prompt_template is not None:
        if stated.prompts:
            raise SetupError("--prompt-template and --prompts exclude each other: leave one out")
        name = box_prompts.PROMPTS_NAME
    in_force = "" if name == box_prompts.PROMPTS_NAME else name
    return in_force, ConditionSet("prompt", published, here, agreement)


_ANY_DATASET = "RefCOCO"  # A format's name is the same for all


def _format(
    figure: PublishedFigure, row: ModelRow | None, prompts: str, stated: Stated
) -> tuple[str, ConditionSet]:
    published = _published_words(figure.conditions.format)
    form = stated.format or published
    advice = ""
    if not form:
        form = _usual_format(figure, row, prompts)
        advice = "another one: --format NAME"
    return form, ConditionSet("format", published, form, _agreement(published, form), advice)


def _usual_format(figure: PublishedFigure, row: ModelRow | None, prompts: str) -> str:
    """Return the format that a prompt is answered in, else that of the model's row."""
    if prompts:
        return FAMILY_PROMPTS[prompts].format
    schemes = row.schemes if row is not None else {}
    usual = (("json", False), ("text", False), ("text", True))
    scheme = next((schemes[at] for at in usual if at in schemes), None)
    if _is_of_points(figure):
        has_2d = scheme is not None and scheme.key.endswith("_2d")
        return "point_json_point_2d" if has_2d else "point_json"
    if scheme is None:
        return "xyxy_json"
    # Prompts that name a format know no other keys.
    key = scheme.key if scheme.key in JSON_KEYS else default_key(scheme.representation)
    parts = scheme.representation, scheme.output, key, scheme.structure
    return FindItVariant(_ANY_DATASET, *parts).format


def _is_of_points(figure: PublishedFigure) -> bool:
    return figure.set.metric.startswith("point")


def _refuse_unfit(
    figure: PublishedFigure, prompts: str, form: str, variants: Sequence[DatasetVariant]
) -> None:
    """Refuse a format that the prompt does not ask for, or that the metric does not judge."""
    wanted = FAMILY_PROMPTS.get(prompts)
    for variant in variants:
        assert isinstance(variant, FindItVariant)
        of_points = variant.match_rule is not MatchRule.BOX_OVERLAP
        if of_points is not _is_of_points(figure):
            other = "point_json" if _is_of_points(figure) else "xyxy_json"
            what = "points" if _is_of_points(figure) else "boxes"
            raise SetupError(
                f"--format {form}: {figure.set.metric} is a metric of {what}. Type --format {other}"
            )
        if wanted is None:
            continue
        try:
            wanted.check(variant)
        except FamilyPromptError as error:
            if form == wanted.format:
                raise SetupError(str(error)) from None
            raise SetupError(
                f"--format {form}: the prompt {prompts} is answered as {wanted.format}. Type "
                f"--format {wanted.format}, or ask in other words: --prompts "
                f"{box_prompts.PROMPTS_NAME}"
            ) from None


# --- datasets -------------------------------------------------------------------------------------


def find_variants(figure: PublishedFigure, form: str) -> tuple[DatasetVariant, ...]:
    """Return the datasets of a figure in a format.

    Raises:
        SetupError: some are not here; the message has the commands that make them.
        DatasetNameError: the format is not valid.
    """
    missing = [name for name in figure.set.datasets if not _is_here(name)]
    if missing:
        number = len(figure.set.datasets)
        which = "its dataset is" if number == 1 else f"{len(missing)} of {number} datasets are"
        what = f"{figure.set_name}: {which} not here ({', '.join(missing)}). Type:"
        lines = [what, *dict.fromkeys(map(_how_to_get, missing))]
        if here := _sets_here(figure.model):
            lines.append(f"Or type one that is here after --set: {', '.join(map(quote, here))}")
        raise SetupError("\n".join(lines))
    try:
        return tuple(parse(f"{PREFIX}{name}_{form}") for name in figure.set.datasets)
    except DatasetNameError as error:
        raise SetupError(f"--format {form}: {error}") from None


def _sets_here(model: str) -> Collection[str]:
    """Return the sets of a model's figures that can be measured and are here."""
    figures = [each for each in published_figures() if each.model == model and not each.attempt]
    measured = [each for each in figures if each.set.metric in FIGURE_METRICS]
    sets = {each.set_name: each.set.datasets for each in measured}
    return [name for name, datasets in sets.items() if datasets and all(map(_is_here, datasets))]


def _is_here(dataset: str) -> bool:
    """Return whether the table of a dataset is here, or is made on first use."""
    if dataset in MAKERS:
        return True
    published = published_dataset(dataset)
    if published is not None and published[1] not in DATASETS:
        return False
    return any((folder / f"{dataset}.tsv").is_file() for folder in table_folders())


def dataset_notes(setup: Setup) -> Iterator[str]:
    """Say of each dataset that is here how it differs from the published one.

    Raises:
        TableError: the file of facts of a table is damaged.
    """
    for variant in setup.variants:
        table = load_dataset(variant.name).table
        if unlike := unlike_published(table_facts(table) or {}):
            yield f"{variant.board_dataset} is not as published: {unlike}"


def _how_to_get(dataset: str) -> str:
    published = published_dataset(dataset)
    if published is None:
        return f"  python run_findit.py data get {dataset}"
    row, _ = published
    where = f" ({row.address})" if row.address else ""
    command = f"python run_findit.py data get {row.name} --from PATH"
    return f"  {command}\n    PATH has {row.holds}{where}"


# --- space ----------------------------------------------------------------------------------------


def _space(
    figure: PublishedFigure, entry: ModelEntry, row: ModelRow | None, variant: DatasetVariant
) -> tuple[Any, ConditionSet]:
    """Return the space that the entry states, None for its row's, and how it agrees."""
    published = _published_words(figure.conditions.space)
    stated = settings_from({"space": entry.space}).space
    usual = row.space(variant).kind if row is not None else ""
    space: Any = stated
    if stated is not None:
        here = space_from(stated).kind
    elif not published or published == usual:
        here = usual
    else:
        here = published
        space = _space_within(published, figure.conditions.bounds)
    return space, ConditionSet("space", published, here, _agreement(published, here))


def _space_within(kind: str, bounds: ImageBounds | Literal["unknown"]) -> Any:
    """Return a published space with published bounds; None where it needs them and has none."""
    needs = SPACE_KINDS[kind].needs
    told = {name: value for name, value in told_values(bounds).items() if name in needs}
    return {"kind": kind, **told} if len(told) == len(needs) else None


# --- bounds ---------------------------------------------------------------------------------------


def _bounds(
    figure: PublishedFigure,
    entry: ModelEntry,
    row: ModelRow | None,
    deployment: AnsweringProgram,
    variant: DatasetVariant,
) -> tuple[dict[str, Any], ConditionSet]:
    """Return the settings that bound images as published, and how they agree."""
    told = told_values(figure.conditions.bounds)
    published = values_in_words(told)
    local = row.local if row is not None else None
    pixels = local.pixels_counted if local is not None else 1
    converted = bounds_in_request(Bounds(**told), pixels)
    original = bounds_in_request(Bounds(**told), pixels, original=True)
    yours = {name: entry.settings[name] for name in (*told, BOUNDS_FIELD) if name in entry.settings}
    if yours:
        is_published = yours in (told, converted, original)
        here = published if is_published else values_in_words(yours.get(BOUNDS_FIELD, yours))
        return {}, ConditionSet("bounds", published, here, _agreement(published, here))
    if not told:
        here = _bounds_of_processor(local, deployment, variant)
        return {}, ConditionSet("bounds", "", here, ConditionAgreement.NOT_TOLD)
    wanted = converted if _checkpoint(entry, deployment).endswith("-hf") else original
    why = _why_not_bounded(told, row, deployment, wanted)
    if why:
        return {}, ConditionSet("bounds", published, "", ConditionAgreement.CANNOT_BE_SET, why)
    settings = wanted if deployment.answerer is Answerer.SERVER else told
    return settings, ConditionSet("bounds", published, published, ConditionAgreement.AS_PUBLISHED)


def _bounds_of_processor(
    local: LocalFamily | None, deployment: AnsweringProgram, variant: DatasetVariant
) -> str:
    """Return the bounds in words that this machine has without a setting; "" if not known."""
    if local is None or deployment.answerer not in (Answerer.HERE, Answerer.SERVED):
        return ""
    return values_in_words(local.bounds(variant).as_dict()) or "the processor's"


def _checkpoint(entry: ModelEntry, deployment: AnsweringProgram) -> str:
    """Return the checkpoint that a server says it serves, else how the user calls it."""
    told = deployment.program.checkpoint if deployment.program is not None else ""
    return told or entry.served or entry.name


def _why_not_bounded(
    told: Mapping[str, Any],
    row: ModelRow | None,
    deployment: AnsweringProgram,
    wanted: Mapping[str, Any],
) -> str:
    """Say why published bounds cannot be set, and what to type; "" if they can."""
    takes = frozenset[str]()
    if row is not None and row.local is not None:
        takes = row.local.layout.takes
    match deployment.answerer:
        case Answerer.HERE | Answerer.SERVED if unknown := {*told} - takes:
            return f"the image processor here takes no {min(unknown)}"
        case Answerer.SERVED if not deployment.takes_bounds:
            return f"{deployment.engine} takes none in a request: --serve vllm does"
        case Answerer.SERVER if not deployment.takes_bounds:
            keywords = json.dumps(wanted[BOUNDS_FIELD])
            return (
                f"they are the server's. Start it with them (vllm: --mm-processor-kwargs "
                f"'{keywords}')"
            )
        case Answerer.PROVIDER:
            return "the provider decides"
        case Answerer.HOST:
            return "VLMEvalKit's class decides"
    return ""


# --- decoding -------------------------------------------------------------------------------------

# Values that change nothing; a server may have others by default, so it is told them
_NEUTRAL = {"top_p": 1, "repetition_penalty": 1, "presence_penalty": 0}
_OF_SAMPLING = ("top_p", "top_k", "seed")  # Without effect on greedy replies
_EVERYWHERE = frozenset({"temperature", "max_tokens"})


def _decoding(
    figure: PublishedFigure,
    entry: ModelEntry,
    row: ModelRow | None,
    deployment: AnsweringProgram,
    stated: Stated,
) -> tuple[dict[str, Any], ConditionSet]:
    """Return the settings that decode as published, and how they agree."""
    told = told_values(figure.conditions.decoding)
    yours = _stated_decoding(entry, stated)
    thinks = _thinks(entry, row)
    wanted = _with_effect({**_without(told, "thinking"), **yours})
    can_be_set = {*_taken(deployment, entry), *yours}
    in_force = {name: value for name, value in wanted.items() if name in can_be_set}
    rest = {name: value for name, value in wanted.items() if name not in can_be_set}
    lost = {name: value for name, value in rest.items() if _NEUTRAL.get(name) != value}
    is_yours = any(told.get(name, value) != value for name, value in yours.items())
    is_other_mode = "thinking" in told and thinks not in (None, told["thinking"])
    agreement = ConditionAgreement.AS_PUBLISHED
    advice = ""
    if is_yours or is_other_mode:
        agreement = ConditionAgreement.YOURS
    elif lost:
        agreement = ConditionAgreement.CANNOT_BE_SET
        no = values_in_words(lost)
        advice = f"{deployment.answerer.value} takes no {no}; a server (--base-url) does"
    elif "temperature" not in told:
        agreement = ConditionAgreement.NOT_TOLD
    here = _decoding_words(in_force, thinks)
    settings = {_setting_of(name): value for name, value in in_force.items()}
    # Replies are greedy where nothing is set.
    if not settings.get("temperature"):
        settings.pop("temperature", None)
    return settings, ConditionSet("decoding", values_in_words(told), here, agreement, advice)


def _decoding_words(in_force: Mapping[str, Any], thinks: bool | None) -> str:
    words = dict(in_force)
    if thinks is not None:
        words["thinking"] = thinks
    if words.get("temperature"):
        return values_in_words(words)
    return ", ".join(filter(None, ["greedy", values_in_words(_without(words, "temperature"))]))


def _setting_of(name: str) -> str:
    return "max_new_tokens" if name == "max_tokens" else name


def _stated_decoding(entry: ModelEntry, stated: Stated) -> dict[str, Any]:
    """Return what the user states of decoding, by the names of published conditions."""
    names = [each.name for each in fields(PublishedDecoding) if each.name != "thinking"]
    yours = {name: entry.settings[name] for name in names if name in entry.settings}
    limits = [entry.settings[name] for name in TOKEN_LIMITS if name in entry.settings]
    if stated.max_tokens is not None:
        limits = [stated.max_tokens]
    return {**yours, "max_tokens": limits[0]} if limits else yours


def _with_effect(wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out what changes no reply."""
    if wanted.get("temperature"):
        return dict(wanted)
    return {name: value for name, value in wanted.items() if name not in _OF_SAMPLING}


def _without(values: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {each: value for each, value in values.items() if each != name}


def _taken(deployment: AnsweringProgram, entry: ModelEntry) -> frozenset[str]:
    """Return what of decoding can be set."""
    everything = frozenset(each.name for each in fields(PublishedDecoding))
    match deployment.answerer:
        case Answerer.SERVER:
            return everything
        case Answerer.PROVIDER if find_provider(entry.provider or "openrouter").relays:
            return everything
        case Answerer.HOST:
            return frozenset()
    return _EVERYWHERE


def _thinks(entry: ModelEntry, row: ModelRow | None) -> bool | None:
    """Return whether a model thinks, as far as its name or its row says it."""
    name = (entry.checkpoint or entry.served or entry.name).casefold()
    if name.endswith(("-nothink", "-instruct")) or entry.name.casefold().endswith("-nothink"):
        return False
    if name.endswith("-thinking") or (row is not None and row.opens_thought):
        return True
    return None


# --- what is only compared ------------------------------------------------------------------------


def _engine(figure: PublishedFigure, deployment: AnsweringProgram) -> ConditionSet:
    published = _published_words(figure.conditions.engine)
    if published and not deployment.engine:
        advice = "the server does not say which program it is"
        return ConditionSet("engine", published, "", ConditionAgreement.CANNOT_BE_SET, advice)
    agreement = _agreement(published, deployment.engine.partition(" ")[0])
    return ConditionSet("engine", published, deployment.engine, agreement)


def _iou(figure: PublishedFigure) -> ConditionSet:
    published = _published_words(figure.conditions.iou)
    return ConditionSet("iou", published, published or ">=", _agreement(published, published))
