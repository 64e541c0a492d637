"""The fields of a request: which a user may set, how they meet FindIt's, and what they say."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from ...boxes import Space
from ...core import object_or_empty, quoted_value, unlike_json
from ...serving import BOUNDS_FIELD
from ..local.layout import Bounds
from ..token_limits import LIMIT_FIELDS
from .known_fields import meant_fields

# --- a user's fields and FindIt's -----------------------------------------------------------------

# What is asked, of whom, and how the reply is read; in a provider's protocol by its names
_SET_BY_FINDIT = (
    "model",
    "messages",
    "stream",
    "contents",
    "system",
    "systemInstruction",
    "system_instruction",
)
_INSTEAD = {
    "system": "type --system FILE",
    "systemInstruction": "type --system FILE",
    "system_instruction": "type --system FILE",
}

# Where a user states the reasoning in a provider's own words
WITHOUT_OUR_REASONING = (
    'Leave yours out or, where it is of the reasoning, add "reasoning_effort": null'
)


# What a user may take for a field of a request, and where it is stated instead
_STATED_ELSEWHERE = {
    **dict.fromkeys(
        ("headers", "extra_headers"),
        "Type --header 'NAME: VALUE'; in a file and in Python, `headers` of the model",
    ),
    **dict.fromkeys(("extra_body", "settings"), "Write the fields that are in it"),
    "timeout": "Type --timeout SECONDS; in a file, `timeout` in `inference`",
    "retry": "VLMEvalKit's runner has it: --retry N",
    **dict.fromkeys(
        ("max_usd", "budget"), "Type --max-usd USD; in a file, `max_usd` next to `models`"
    ),
    "samples": "Type --samples N; in a file, `samples` next to `models`",
    "prices": "Type --prices IN,OUT; in a file, `prices` of the model",
    "base_url": "Type --base-url URL; in a file, `base_url` of the model",
    "served": "Type --model NAME=SERVED; in a file, `served` of the model",
    "like": "Type --like NAME; in a file, `like` of the model",
    "space": "Type --space SPACE; in a file, `space` of the model",
    "prompt_template": "Type --prompt-template FILE; in a file, `prompt_template` of the model",
    **dict.fromkeys(("checkpoint", "resources"), "It is of a model on this machine. Leave it out"),
}

# Of each call one reply is read; more would be paid for
_REPLIES = ("n", "candidateCount", "candidate_count", "num_return_sequences")
_CONFIGURATIONS = ("generationConfig", "generation_config")  # objects that may have them, too


def check_fields(fields: Mapping[str, Any], own: Collection[str] = ()) -> None:
    """Refuse, with a ValueError, fields of a request that nobody may set, or not to this value.

    ``own`` are the fields that only the provider has.
    """
    refuse_unlike_json(fields)
    for name in _SET_BY_FINDIT:
        if name in fields:
            instead = _INSTEAD.get(name, "Leave it out")
            raise ValueError(f"{name} is set by FindIt. {instead[0].upper()}{instead[1:]}")
    for name, instead in _STATED_ELSEWHERE.items():
        if name in fields and name not in own:
            raise ValueError(f"{name} is no field of a request. {instead}")
    for name, meant in meant_fields(fields, own):
        raise ValueError(
            f"unknown field {quoted_value(name)}: did you mean {meant}? Services drop in silence "
            "what they do not know"
        )
    check_temperature(fields)
    _refuse_further_replies(fields)


def refuse_unlike_json(settings: Mapping[str, Any]) -> None:
    """Refuse, with a ValueError, values that no request and no record can hold."""
    for name in unlike_json(settings):
        raise ValueError(
            f"{name}: JSON has no such value. Write a finite number or a text (a date in quotes)"
        )


def check_temperature(settings: Mapping[str, Any]) -> None:
    """Refuse, with a ValueError, a temperature that is no number from 0 on; null is none."""
    temperature = settings.get("temperature")
    is_number = isinstance(temperature, int | float) and not isinstance(temperature, bool)
    if temperature is None or (is_number and 0 <= temperature < math.inf):
        return
    raise ValueError(f"temperature: {_shown(temperature)} should be a number, at least 0")


def _refuse_further_replies(fields: Mapping[str, Any]) -> None:
    places = {
        "": fields,
        **{f"{name}.": object_or_empty(fields.get(name)) for name in _CONFIGURATIONS},
    }
    for inside, place in places.items():
        for name in _REPLIES:
            if place.get(name, 1) not in (1, None):
                raise ValueError(
                    f"{inside}{name}: {_shown(place[name])} replies would be paid for, and one is "
                    "read. Leave it out; several replies to a query are --samples N"
                )


class _Conflict(NamedTuple):
    """A field to which two say different values; ``name`` has the objects around it."""

    name: str
    theirs: Any
    ours: Any


def _conflicts(
    theirs: Mapping[str, Any], ours: Mapping[str, Any], inside: str = ""
) -> Iterator[_Conflict]:
    for name in filter(theirs.__contains__, ours):
        given = theirs[name]
        value = ours[name]
        if isinstance(given, Mapping) and isinstance(value, Mapping):
            yield from _conflicts(given, value, f"{inside}{name}.")
        elif given != value or isinstance(given, bool) is not isinstance(value, bool):
            yield _Conflict(f"{inside}{name}", given, value)


def _joined(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> dict[str, Any]:
    joined = dict(theirs)
    for name, value in ours.items():
        given = joined.setdefault(name, value)
        if isinstance(given, Mapping) and isinstance(value, Mapping):
            joined[name] = _joined(given, value)
    return joined


def merged_fields(
    theirs: Mapping[str, Any], ours: Mapping[str, Any], advice: str = "Leave yours out"
) -> dict[str, Any]:
    """Return a user's fields of a request and FindIt's, objects merged key by key.

    >>> merged_fields({"a": {"x": 1}}, {"a": {"y": 2}})
    {'a': {'x': 1, 'y': 2}}

    Raises ValueError, with both values and ``advice``, where they contradict.
    """
    for name, given, sent in _conflicts(theirs, ours):
        raise ValueError(
            f"{name}: {_shown(given)} is given, but FindIt sends {_shown(sent)}. {advice}"
        )
    return _joined(theirs, ours)


def stated_fields(settings: Mapping[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    """Return the ``settings`` of a model's entry and ``--extra-body``, merged key by key.

    A field of a request that ``extra`` says is null is not sent, whatever the entry says.

    Raises ValueError, with both values, where else they contradict.
    """
    removed = {name for name, value in extra.items() if value is None}
    kept = {name: None if name in removed else value for name, value in settings.items()}
    for name, given, typed in _conflicts(kept, extra):
        raise ValueError(
            f"{name}: --extra-body says {_shown(typed)}, and `settings` of its entry "
            f"{_shown(given)}. Leave one of them out"
        )
    return _joined(kept, extra)


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


# --- what a request body says ---------------------------------------------------------------------


def limit_in(body: Mapping[str, Any]) -> int:
    """Return the token limit of a request body."""
    return next(int(body[name]) for name in LIMIT_FIELDS if name in body)


def system_text(body: Mapping[str, Any]) -> str:
    """Return the system text of a request body; "" without."""
    return "".join(each["content"] for each in body["messages"] if each["role"] == "system")


# --- the bounds of images -------------------------------------------------------------------------

# What the original checkpoints of InternVL call the most tiles of an image
ORIGINAL_TILES = "max_dynamic_patch"


def bounds_in_request(bounds: Bounds, counted: int, *, original: bool = False) -> dict[str, Any]:
    """Return the field of a request that bounds its images, for programs that take it.

    Args:
        bounds: in force; those that are None are the server's.
        counted: times the processor's areas count a pixel (:class:`.LocalFamily`).
        original: of a checkpoint that was not converted for transformers: its processor calls tiles
            otherwise, and programs drop in silence what a processor does not take.

    >>> bounds_in_request(Bounds(3136, 12544, two_step=True), 2)
    {'mm_processor_kwargs': {'min_pixels': 6272, 'max_pixels': 25088}}
    >>> bounds_in_request(Bounds(patches=6), 1, original=True)
    {'mm_processor_kwargs': {'max_dynamic_patch': 6}}
    """
    if bounds.patches is not None and original:
        arguments: dict[str, Any] = {ORIGINAL_TILES: bounds.patches}
    elif bounds.patches is not None:
        arguments = {"crop_to_patches": True, "max_patches": bounds.patches}
    else:
        areas = replace(bounds, two_step=False).as_dict()
        arguments = {name: area * counted for name, area in areas.items()}
    return {BOUNDS_FIELD: arguments} if arguments else {}


# Bounds of a space by their names in requests: of processors, and in their `size`
_BOUNDS = {
    "min_pixels": "min_pixels",
    "max_pixels": "max_pixels",
    "shortest_edge": "min_pixels",
    "longest_edge": "max_pixels",
}


def refuse_other_bounds(fields: Mapping[str, Any], space: Space, counted: int) -> None:
    """Refuse, with a ValueError, bounds in a request that are others than those of the space.

    Args:
        fields: of the request; bounds may stand in objects of any depth.
        space: in which boxes are read; only ``smart_resize`` has bounds.
        counted: times the processor's areas count a pixel (:class:`.LocalFamily`).
    """
    if space.kind != "smart_resize":
        return
    for name, bound, given in _bounds_within(fields):
        declared = getattr(space, bound)
        if declared is not None and given != declared * counted:
            raise ValueError(
                f"{name}: {given} is in the request, but boxes are read within {bound} {declared} "
                "of the space. Type one of them in both places"
            )


def _bounds_within(
    fields: Mapping[str, Any], inside: str = ""
) -> Iterator[tuple[str, str, int | float]]:
    """Yield each bound's name with the objects around it, its name in a space, and its value."""
    for name, value in fields.items():
        if isinstance(value, Mapping):
            yield from _bounds_within(value, f"{inside}{name}.")
        elif name in _BOUNDS and isinstance(value, int | float):
            yield f"{inside}{name}", _BOUNDS[name], value
