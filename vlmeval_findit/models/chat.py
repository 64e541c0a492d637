"""A model behind an HTTP API as its service knows it: how it is asked, what is recorded of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..answers import HostMessage
from ..predictions import Recorded
from ..prompts import Part, PartKind
from ..scoring import settings_from
from ..spaces import Space
from ..variant import Variant
from .completion import Completion
from .endpoint import LIMIT_FIELDS
from .payload import Manner, Request, openrouter_manner, request, server_manner
from .services import proprietary, server_space, template_fields
from .table import find_model

LIMITS = ("max_new_tokens", *LIMIT_FIELDS)
"""Names of the setting that limits a reply's tokens."""


@dataclass(frozen=True, slots=True)
class ChatModel:
    """A model that is asked over HTTP.

    ``name`` is that of the results; ``space`` gives the coordinate space of its replies by variant,
    ``manner`` how it is asked for them.
    """

    name: str
    space: Callable[[Variant], Space]
    manner: Callable[[Space], Manner]

    def request(self, message: HostMessage, variant: Variant) -> Request:
        """The request for a message.

        Raises:
            OSError: an image cannot be read.
        """
        space = self.space(variant)
        return request(parts_of(message), variant, space, self.manner(space))

    def read(self, completion: Completion) -> Completion:
        """What of an answer is text and what is thought."""
        row = find_model(self.name)
        opens = row is not None and row.opens_thought
        return completion.begun_in_thought() if opens else completion

    def recorded(
        self, variant: Variant, asked: Request | None, completion: Completion | None
    ) -> Recorded:
        """What a run records of a call, answered or not."""
        space = self.space(variant)
        row = find_model(self.name)
        who = {"row": row.name} if row else {}
        images = tuple(image.as_record() for image in asked.images) if asked else ()
        if completion is None:
            who = {"identifier": self.manner(space).model, **who}
            return Recorded(space=space.as_dict(), images=images, model=who)
        return Recorded(
            space=space.as_dict(),
            images=images,
            finish_reason=completion.finish_reason,
            thought=completion.thought,
            ends_in_thought=completion.ends_in_thought,
            tokens=completion.tokens,
            model={**completion.model, **who},
        )


def openrouter_model(name: str, max_tokens: int | None = None) -> ChatModel:
    """A proprietary model through OpenRouter, asked as in the paper's runs.

    Args:
        name: a row of the model table with API facts, by any of its names.
        max_tokens: limit of a reply (None: the row's, else the variant's).

    Raises:
        ValueError: there is none of this name.
    """
    row, facts = proprietary(name)
    manner = _limited(openrouter_manner(facts), max_tokens)
    return ChatModel(name, lambda variant: row.space(variant.row), lambda space: manner)


def server_model(
    name: str,
    served: str | None = None,
    space: str | Mapping[str, Any] | None = None,
    fields: Mapping[str, Any] | None = None,
    max_tokens: int | None = None,
) -> ChatModel:
    """A model behind an OpenAI-compatible server.

    Args:
        name: that of the results; its row of the model table says the space.
        served: the server's name for the model (None: the same).
        space: the coordinate space, where the model table does not say it.
        fields: more fields of every request.
        max_tokens: limit of a reply (None: the row's, else the variant's).

    Raises:
        SpaceError: the coordinate space is not known.
    """
    rule = server_space(name, settings_from({"space": space}).space)
    row = find_model(name)
    facts = row.api if row else None
    sent = {**template_fields(name), **(fields or {})}
    return ChatModel(
        name,
        rule,
        lambda space: _limited(server_manner(served or name, space, sent, facts), max_tokens),
    )


def token_limit(settings: Mapping[str, Any]) -> tuple[int | None, dict[str, Any]]:
    """(the limit of tokens that settings name, the other settings).

    Raises:
        ValueError: it is no whole number, or two names of it contradict.
    """
    rest = {name: value for name, value in settings.items() if name not in LIMITS}
    given = {name: settings[name] for name in LIMITS if settings.get(name) is not None}
    for name, value in given.items():
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise ValueError(f"{name}: {value!r} should be a whole number, at least 1")
    if len(set(given.values())) > 1:
        raise ValueError(f"{' and '.join(given)} are one setting, and differ")
    return next(iter(given.values()), None), rest


def parts_of(message: Sequence[Mapping[str, Any]]) -> list[Part]:
    """A message of VLMEvalKit's as parts."""
    return [Part(PartKind(part["type"]), str(part["value"])) for part in message]


def _limited(manner: Manner, max_tokens: int | None) -> Manner:
    return manner if max_tokens is None else replace(manner, max_tokens=max_tokens)
