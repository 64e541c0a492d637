"""Models as VLMEvalKit makes or passes them: what a run is, before anything is loaded."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..boxes import SpaceError
from ..core import file_sha256, sha256_of
from ..engine import of_answers
from ..models import ModelRow, find_model, known_revision, space_or_variable
from ..protocol import Answering, CustomPrompt, DatasetVariant, Described
from .model_objects import (
    arguments_of,
    attributes_of,
    checkpoint_of,
    defaults_of,
    endpoint_of,
    hides,
)
from .plain_values import json_value_of


@dataclass(frozen=True, slots=True)
class Entry:
    """A model as the host makes it."""

    cls: type | None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    given: Mapping[str, Any] = field(default_factory=dict)  # arguments of a user's file
    source: str | None = None  # hash of the files of its class; None: FindIt's, or no file
    attributes: Mapping[str, Any] | None = None  # of the object; None: not made yet
    checkpoint: str | None = None
    endpoint: str | None = None  # address of a service, without credentials

    @property
    def is_api(self) -> bool:
        """Return whether any number of threads may ask it."""
        return bool(getattr(self.cls, "is_api", False))

    @property
    def is_findit(self) -> bool:
        return hasattr(self.cls, "describe")


def with_system(entry: Entry, prompt: CustomPrompt | None) -> Entry:
    """Give an entry of a VLMEvalKit class the system text of a prompt, or refuse it.

    FindIt's classes get it with every message.
    """
    if prompt is None or prompt.system is None or entry.is_findit:
        return entry
    if entry.cls is None or "system_prompt" not in inspect.signature(entry.cls).parameters:
        name = entry.cls.__name__ if entry.cls else "class"
        raise ValueError(f"--system: VLMEvalKit's {name} takes no system text. Leave it out")
    more = {"system_prompt": prompt.system}
    return replace(entry, arguments={**entry.arguments, **more}, given={**entry.given, **more})


def entry_of(model: str, settings: Mapping[str, Any] | None = None) -> Entry:
    """Return the entry of a model in ``supported_VLM``; ``settings`` override its arguments."""
    from vlmeval.config import supported_VLM

    maker = supported_VLM.get(model)
    cls = getattr(maker, "func", maker)
    given = dict(settings or {})
    arguments = {**getattr(maker, "keywords", {}), **given}
    return Entry(
        cls=cls if inspect.isclass(cls) else None,
        arguments=arguments,
        given=given,
        source=_source_of(cls),
        checkpoint=checkpoint_of(None, arguments),
        endpoint=endpoint_of(None, arguments),
    )


def entry_of_object(model: Any, name: str) -> Entry:
    """Return the entry of a model that VLMEvalKit passes as an object.

    Raises ValueError where its name is that of another model.
    """
    cls = type(model)
    registered = entry_of(name)
    known = registered.arguments if registered.cls is cls else {}
    expected = {**defaults_of(cls), **known}
    arguments = arguments_of(model)
    given = {n: value for n, value in arguments.items() if not _is_equal(expected, n, value)}
    entry = Entry(
        cls=cls,
        arguments={n: value for n, value in arguments.items() if n in known or n in given},
        given=given,
        source=_source_of(cls),
        attributes=None if hasattr(cls, "describe") else attributes_of(model),
        checkpoint=checkpoint_of(model, arguments),
        endpoint=endpoint_of(model, arguments),
    )
    _refuse_another(name, registered, entry)
    return entry


def _is_equal(expected: Mapping[str, Any], name: str, value: Any) -> bool:
    with suppress(Exception):  # Arrays and others do not say with one word
        return name in expected and bool(expected[name] == value)
    return False


def _refuse_another(name: str, registered: Entry, passed: Entry) -> None:
    """Refuse an object under the name of a model of ours, or of a row, that it is not."""
    kind = passed.cls.__name__ if passed.cls is not None else "object"
    if registered.is_findit and registered.cls is not passed.cls:
        at = f" at {passed.endpoint}" if passed.endpoint else ""
        ours = registered.cls.__name__ if registered.cls is not None else ""
        raise ValueError(
            f"{name} is FindIt's model of the class {ours}, and VLMEvalKit passes a {kind}{at}: "
            "its answers would be stored under the name of another model. For a server type: "
            f"findit run --data DATASET --model {name} --base-url URL. Else name it "
            f"differently: {name}-served, with FINDIT_SPACE=SPACE if its coordinate space is not "
            "known"
        )
    if passed.is_findit:
        row = _row_named(str(passed.arguments.get("like") or ""))
        checkpoint = name
        baseline = [each.arguments.get("baseline") for each in (registered, passed)]
        if registered.is_findit and baseline[0] != baseline[1]:
            raise ValueError(
                f"{name} is the baseline {baseline[0]}, and VLMEvalKit passes {baseline[1]}: "
                f"call it {baseline[1]}"
            )
    else:
        row = _row_named(passed.checkpoint)
        checkpoint = passed.checkpoint or name
    refuse_another_row(name, row, checkpoint)


def refuse_another_row(name: str, row: ModelRow | None, checkpoint: str) -> None:
    """Refuse a name of one row of the model table for a model of another row."""
    named = find_model(name)
    if None not in (named, row) and named is not row:
        assert named is not None
        assert row is not None
        raise ValueError(
            f"{name} names the model {named.name}, and VLMEvalKit passes one of {row.name} "
            f"({checkpoint}): its answers would be stored under the name of another model. Call it "
            f"{Path(checkpoint).name if find_model(Path(checkpoint).name) else row.name}"
        )


def _row_named(checkpoint: str | None) -> ModelRow | None:
    """Return the row that the name of a checkpoint, or of a model at a server, leads to."""
    return find_model(Path(checkpoint).name) if checkpoint else None


def _source_of(maker: object) -> str | None:
    """Hash the files of a class and of its bases in the same package."""
    classes = inspect.getmro(maker) if inspect.isclass(maker) else (maker,)
    package = _package(maker)
    if package in ("", _package(Entry)):
        return None
    files = set()
    for base in classes:
        with suppress(TypeError, OSError):
            if _package(base) == package and (path := inspect.getsourcefile(base)):  # type: ignore[arg-type]
                files.add(Path(path))
    hashes = [file_sha256(path) for path in sorted(files)]
    return f"sha256:{sha256_of(''.join(hashes).encode())[:12]}" if hashes else None


def _package(maker: object) -> str:
    return str(getattr(maker, "__module__", "")).partition(".")[0]


def described(model: str, entry: Entry, variant: DatasetVariant) -> Described:
    """Describe a run of an entry without loading anything; ValueError if it is invalid."""
    if entry.is_findit:
        try:
            description: Described = entry.cls.describe(variant, **entry.arguments)  # type: ignore[union-attr]
        except TypeError as error:
            raise ValueError(f"the entry of {model}: {error}") from None
        return description._replace(answering=replace(description.answering, source=entry.source))
    if variant.reply_schema is not None:
        raise ValueError(
            f"{model} is run by a class of VLMEvalKit, which decodes freely: {variant.name} "
            "needs a model of FindIt, or a server (--base-url)"
        )
    row = _row_of(model, entry)
    checkpoint = entry.checkpoint
    arguments = {name: value for name, value in entry.arguments.items() if value is not None}
    answering = Answering(
        kind=entry.cls.__name__ if entry.cls is not None else None,
        row=row.name if row else None,
        checkpoint=checkpoint,
        revision=known_revision(checkpoint) if checkpoint else None,
        endpoint=entry.endpoint,
        settings=_plain(arguments),
        source=entry.source,
        attributes=entry.attributes,
        runs_here=not entry.is_api,
        in_vlmevalkit=True,
    )
    space = _stock_space(model, entry, variant)
    return Described(answering, space, space)


def on_this_machine(entry: Entry, answering: Answering) -> Answering:
    """Add the device and the hub's revision, if the model runs here."""
    complete = getattr(entry.cls, "on_this_machine", None)
    return answering if complete is None else complete(answering, **entry.arguments)


def stated_of(entry: Entry) -> dict[str, Any]:
    """Return the arguments of a user's on which answers of an entry depend."""
    return of_answers(_plain(entry.given))


# --- classes of VLMEvalKit ------------------------------------------------------------------------


def _stock_space(model: str, entry: Entry, variant: DatasetVariant) -> Mapping[str, Any] | None:
    """Return the space of a model of VLMEvalKit's; None if it is not known.

    Qwen2.5-VL answers in pixels of the image as VLMEvalKit's class resizes it, within bounds
    that differ from the paper's: with those, the recall of perfect boxes is near 0.
    """
    row = _row_of(model, entry)
    space = row.space(variant).as_dict() if row is not None else None
    if not _has_bounds(model, entry) and (space is None or space["kind"] != "smart_resize"):
        return space
    known = {**(entry.attributes or {}), **entry.arguments}
    bounds = {name: known.get(name) for name in ("min_pixels", "max_pixels")}
    return None if None in bounds.values() else {"kind": "smart_resize", **bounds}


def _has_bounds(model: str, entry: Entry) -> bool:
    names = (model, Path(entry.checkpoint or "").name)
    return any(name.startswith("Qwen2.5-VL") for name in names)


def _row_of(model: str, entry: Entry) -> ModelRow | None:
    row = find_model(model)
    if row is None:
        row = _row_named(entry.checkpoint)
        # A proprietary model's space depends on how its service is sent the image.
        row = row if row is not None and row.local is not None else None
    return row


def refuse_unknown_bounds(model: str, entry: Entry, variant: DatasetVariant) -> None:
    """Refuse a model whose space depends on bounds that VLMEvalKit's object does not say.

    Its name alone would lead to the bounds of the paper's runs.
    """
    row = _row_of(model, entry)
    if entry.is_findit or row is None or _stock_space(model, entry, variant) is not None:
        return
    if space_or_variable(None, row) is not None:
        return
    example = '{"kind": "smart_resize", "min_pixels": 3136, "max_pixels": 12845056}'
    where = f"the server at {entry.endpoint}" if entry.endpoint else "VLMEvalKit's class"
    raise SpaceError(
        f"{model} answers in pixels of a resized image, and the bounds of {where} "
        f"are not known. State them: FINDIT_SPACE='{example}'; or let FindIt ask the "
        f"server, which resizes itself: findit run --data DATASET --model {row.name} --base-url URL"
    )


def _plain(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments as JSON values, without secrets."""
    return {
        name: json_value_of(value, depth=1)
        for name, value in arguments.items()
        if not hides(name, value)
    }


def with_space(entry: Entry, space: Any) -> Entry:
    """Add a coordinate space to an entry whose class takes it."""
    if space is None or not entry.is_findit or not hasattr(entry.cls, "takes_space"):
        return entry
    return replace(entry, arguments={**entry.arguments, "space": space})
