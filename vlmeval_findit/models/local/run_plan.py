"""Settings of a local run, and what follows from them before anything is loaded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ...boxes import Space, SpaceError, stated_space
from ...core import (
    suggestion,
)
from ...protocol import NUMPY, Answering, DatasetVariant, Described
from ..adapter import adapter_of, refuse_without_peft
from ..checkpoint_files import processor_areas
from ..model_row import SPACE_WITHOUT_BOXES, LocalFamily, ModelRow, space_within
from ..revision import base_settings, known_revision
from .layout import Bounds
from .machine import choose_placement, this_machine
from .run_settings import RunSettings
from .which_engine import engine_of


@dataclass(frozen=True, slots=True)
class GenerationPlan:
    """How the queries of a dataset variant are run and recorded."""

    family: LocalFamily
    bounds: Bounds
    limit: int
    space: dict[str, Any]
    known: dict[str, Any] | None = None  # its space if the user stated none; None: not known
    schema: Mapping[str, Any] | None = None
    logprobs: bool = False


def stated_bounds(row: ModelRow, settings: RunSettings) -> dict[str, int | None]:
    """Return the bounds that a user states of images; ValueError if the model has none such."""
    assert row.local is not None
    limits = {key: getattr(settings, key) for key in ("min_pixels", "max_pixels", "patches")}
    for key, limit in limits.items():
        if limit is not None and key not in row.local.layout.takes:
            takes = suggestion(key, sorted(row.local.layout.takes))
            raise ValueError(f"{key}: the image processor of {row.name} takes no {key}{takes}")
    return limits


def plan_generation(
    row: ModelRow, variant: DatasetVariant, settings: RunSettings, *, logprobs: bool = False
) -> GenerationPlan:
    """Combine the protocol and the user's settings for a variant; ValueError if they conflict."""
    if row.local is None:
        raise ValueError(f"{row.name} does not run on this machine")
    if variant.reply_schema is not None and row.opens_thought:
        raise ValueError(
            f"{row.name} thinks before it answers, and a grammar holds from the first word: "
            f"{variant.name} needs a model that does not"
        )
    bounds = row.local.bounds(variant).overridden(stated_bounds(row, settings))
    known: Space | None = None
    try:
        known = space_within(row.space(variant), bounds)
    except SpaceError:
        if settings.space is None and variant.in_boxes:
            raise
    space = known or SPACE_WITHOUT_BOXES
    if settings.space is not None:
        space = stated_space(settings.space)
    return GenerationPlan(
        family=row.local,
        bounds=bounds,
        limit=settings.max_new_tokens or variant.max_new_tokens,
        space=space.as_dict(),
        known=known.as_dict() if known is not None else None,
        schema=variant.reply_schema,
        logprobs=logprobs,
    )


def describe_local_run(
    row: ModelRow, checkpoint: str, variant: DatasetVariant, settings: RunSettings
) -> Described:
    """Describe a checkpoint's run without torch or network; raises as :func:`plan_generation`."""
    generation = plan_generation(row, variant, settings)
    refuse_without_peft(checkpoint)
    refuse_outside_processor(generation.bounds, checkpoint, generation.family)
    set_by_user = {
        "bounds": generation.bounds.as_dict(),
        "max_new_tokens": generation.limit,
        "template": {**generation.family.template, **settings.template},
        "engine": engine_of(row, checkpoint, settings),
        "dtype": settings.dtype,
        "attention": settings.attention,
        **base_settings(checkpoint, settings.revision, settings.merge_adapter),
    }
    if generation.schema is not None:
        set_by_user["reply_schema"] = generation.schema
    if settings.temperature:
        set_by_user["temperature"] = settings.temperature
    revision = known_revision(checkpoint, settings.revision)
    answering = Answering(
        kind="FindItLocalModel",  # VLMEvalKit's class of all local models
        row=row.name,
        checkpoint=checkpoint,
        revision=revision,
        settings=set_by_user,
        runs_here=True,
    )
    # By its content, so that a folder may be moved
    named = {"checkpoint": revision or checkpoint}
    return Described(answering, generation.space, generation.known, named)


def refuse_outside_processor(bounds: Bounds, checkpoint: str, family: LocalFamily) -> None:
    """Refuse, with a ValueError, bounds that contradict those of a checkpoint's processor.

    They are known only if its files are here. Every call would find them.
    """
    if not family.layout.takes & {"min_pixels", "max_pixels"}:
        return
    least, greatest = processor_areas(checkpoint)
    own = {"min_pixels": least, "max_pixels": greatest}
    missing = {
        name: area // family.pixels_counted
        for name, area in own.items()
        if area is not None and getattr(bounds, name) is None
    }
    try:
        bounds.overridden(missing)
    except ValueError as error:
        (name,) = missing
        other = "min_pixels" if name == "max_pixels" else "max_pixels"
        raise ValueError(
            f"{error}, which the processor of {checkpoint} has. State {name}, too, or another "
            f"{other}"
        ) from None


def on_this_machine(answering: Answering, settings: RunSettings) -> Answering:
    """Add what torch and the hub know, without loading the model; NumPy needs neither."""
    assert answering.checkpoint is not None
    if answering.settings["engine"] == NUMPY:
        return replace(answering, settings={**answering.settings, "dtype": "float32"})
    from .transformer import checkpoint_revision

    placed = choose_placement(this_machine(), settings.device, settings.dtype, settings.attention)
    known = {"dtype": placed.dtype, "attention": placed.attention}
    adapter = adapter_of(answering.checkpoint)
    if adapter is not None and adapter.base_folder is None:
        revision = adapter.base_revision(settings.revision)
        known["base_revision"] = checkpoint_revision(adapter.base, revision)
    return replace(
        answering,
        revision=checkpoint_revision(answering.checkpoint, settings.revision),
        settings={**answering.settings, **known},
    )
