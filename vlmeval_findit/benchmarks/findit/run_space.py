"""The coordinate space of a run, and how its replies are read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ...boxes import FILE_PIXELS, ReplyFormat, Space, SpaceError, ToPixels, space_from, to_pixels
from ...models import (
    MODELS,
    ModelRow,
    check_settings,
    find_model,
    known_model,
    space_of_settings,
    space_of_variable,
    unknown_space,
)
from ...protocol import (
    GIVEN_SOURCE,
    SPACE_KEY,
    SPACE_SETTING,
    STATED_SOURCE,
    Described,
    Identity,
    IdentityConflict,
    Known,
    Replies,
    Reply,
    Settings,
    choose_value,
    in_words,
    is_stated,
    say_once,
)
from .findit_query import FindItQuery
from .variant import FindItVariant


@dataclass(frozen=True, slots=True)
class SpaceInForce:
    """The coordinate space of a run and its source."""

    space: Space
    source: str

    def as_dict(self) -> dict[str, Any]:
        return {**self.space.as_dict(), "source": self.source}


def run_space(
    model: str,
    variant: FindItVariant,
    settings: Settings,
    recorded: Mapping[str, Any] | None = None,
) -> SpaceInForce:
    """Choose a run's space, in the order of :func:`.choose_value`.

    If none is known, a SpaceError; what is overridden or ignored is said.

    Whether a setting contradicts the record is checked by :func:`contradicting_spaces`.
    """
    stated = space_of_settings(settings)
    variable = space_of_variable(settings)
    row = find_model(model)
    choice = choose_value(
        SPACE_SETTING,
        model,
        recorded=space_from(recorded).as_dict() if recorded is not None else None,
        stated=stated.as_dict() if stated is not None else None,
        last=space_from(settings.last.space).as_dict() if settings.last.space else None,
        known=Known(row.space(variant).as_dict(), f"model table: {row.name}") if row else None,
        variable=variable.as_dict() if variable is not None else None,
    )
    if choice.value is None:
        raise unknown_space(model)
    say_once(choice.remark)
    return SpaceInForce(space_from(choice.value), choice.source)


def space_of_new_run(
    model: str, variant: FindItVariant, settings: Settings, described: Described
) -> Mapping[str, Any]:
    """Return the space that a new run records; a SpaceError if there is none, or two conflict."""
    check_settings(settings)
    space = described.space
    named = space_of_settings(settings)
    if named is not None:
        space = named.as_dict()
        if described.space not in (None, space) and not described.answering.in_vlmevalkit:
            raise SpaceError(
                f"{model} answers in {in_words(described.space)}, and records it with every reply: "
                f"--space {in_words(space)} cannot change that. Leave it out"
            )
    return run_space(model, variant, settings, space).space.as_dict()


def contradicting_spaces(
    replies: Replies, settings: Settings, run: Identity | None
) -> list[IdentityConflict]:
    """Find spaces of a setting or a reply that contradict the record."""
    of_run = run.space if run is not None else None
    of_settings = space_of_settings(settings)
    space_of_variable(settings)  # refuses an unknown one, also where it has no effect
    conflicts: dict[tuple[Space, Space], IdentityConflict] = {}
    for reply in replies:
        of_reply = space_from(reply.recorded.space) if reply.recorded.space else None
        recorded = space_from(of_run) if of_run else of_reply
        if recorded is None:
            continue
        for what, other in (
            (SPACE_KEY, of_settings),
            (f"{SPACE_KEY} of row {reply.index}", of_reply),
        ):
            if other is not None and other != recorded:
                conflict = IdentityConflict(what, recorded.as_dict(), other.as_dict())
                conflicts.setdefault((recorded, other), conflict)
    return list(conflicts.values())


def spaces_of(
    replies: Replies, model: str, variant: FindItVariant, settings: Settings, run: Identity | None
) -> list[SpaceInForce]:
    """Return the space of every reply.

    A setting overrides what was recorded where it is forced or scored as an extra space.
    """
    declared = _declared_spaces(replies, model, variant, settings, run)
    if run is None or not run.answering.runs_here:
        return declared
    return [_of_whole_images(each) for each in declared]


def _of_whole_images(in_force: SpaceInForce) -> SpaceInForce:
    space = space_of_whole_images(in_force.space)
    if space == in_force.space:
        return in_force
    return SpaceInForce(space, f"{in_force.source}; the model saw whole images")


def space_of_whole_images(space: Space) -> Space:
    """Return the space of a model on this machine, which sees images whole.

    ``pixels`` are of a picture that was sent, and is shrunk to 4096 a side before.
    """
    return FILE_PIXELS if space == Space("pixels") else space


def _declared_spaces(
    replies: Replies, model: str, variant: FindItVariant, settings: Settings, run: Identity | None
) -> list[SpaceInForce]:
    recorded = run.space if run is not None else None
    named = space_of_settings(settings)
    if named is not None and (settings.force or settings.separately):
        conflicts = contradicting_spaces(replies, settings, run)
        if conflicts:
            separate = f"{GIVEN_SOURCE}; {conflicts[0]}"
            source = separate if settings.separately else STATED_SOURCE
            return [SpaceInForce(named, source)] * len(replies)
    if recorded is not None or not any(reply.recorded.space for reply in replies):
        in_force = run_space(model, variant, settings, recorded)
        if run is not None and recorded is not None and is_stated(run.space_source):
            in_force = replace(in_force, source=f"{in_force.source}: {run.space_source}")
        return [in_force] * len(replies)
    return [run_space(model, variant, settings, reply.recorded.space) for reply in replies]


def pixel_map(in_force: SpaceInForce, query: FindItQuery, reply: Reply) -> ToPixels:
    """Return the map from a reply's numbers to pixels of its query's images.

    Pixels after a processor's resize refer to the size that this processor gave, if it is recorded:
    programs resize very thin images differently.
    """
    space = in_force.space
    size = (query.width, query.height)
    processed = _processed_size(reply, size) if space.kind == "smart_resize" else None
    recorded = reply.recorded.space
    if processed is not None and recorded is not None and space_from(recorded) == space:
        return ToPixels(size[0] / processed[0], size[1] / processed[1])
    return to_pixels(space, *size)


def _processed_size(reply: Reply, size: tuple[int, int]) -> tuple[int, int] | None:
    """Return the recorded size of a processed image of this size; None if there is none."""
    if not reply.recorded.images:
        return None
    image = reply.recorded.images[-1]  # The scene, or the last frame, comes last
    if list(image.get("original", ())) != list(size):
        return None
    match image.get("processed"):
        case [int(width), int(height)] if width > 0 and height > 0:
            return width, height
    return None


def reply_format(
    model: str, variant: FindItVariant, settings: Settings, recorded_row: str = ""
) -> ReplyFormat:
    """Choose how replies are read: by ``reads_like``, else the recorded row, else the model."""
    if settings.reads_like is not None:
        row: ModelRow | None = known_model(settings.reads_like, "reads_like")
    else:
        row = MODELS.get(recorded_row) or find_model(model)
    return variant.reply if row is None else row.reads(variant.reply)
