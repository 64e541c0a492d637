"""A model behind an HTTP API as its service knows it: how it is asked, what is recorded of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any
from urllib.parse import urlsplit

from ...boxes.spaces import Space
from ...core.identity import PROVIDER, Answering, Described
from ...core.messages import Message
from ...core.question import Question
from ...core.replies import Recorded
from ...core.settings import settings_from
from ...core.spelling import nearest
from ..prices import Prices
from ..row import ModelRow
from ..table import MODELS, find_model
from .completion import Completion
from .endpoint import LIMIT_FIELDS, Endpoint
from .estimate import load_of
from .images import SentImage, WantedImage, wanted_images
from .payload import (
    Beginning,
    Manner,
    Request,
    provider_manner,
    request,
    server_manner,
)
from .providers.table import OPENROUTER, find_provider
from .schema import First, first_question, unwrapped
from .services import served_as, server_space, template_fields

LIMITS = ("max_new_tokens", *LIMIT_FIELDS)
"""Names of the setting that limits a reply's tokens."""


@dataclass(frozen=True, slots=True)
class ChatModel:
    """A model that is asked over HTTP.

    ``name`` is that of the results, ``row`` its row of the model table (None: none); ``space``
    gives the coordinate space of its replies by question, ``manner`` how it is asked for them.
    ``provider`` is who is asked in its own protocol (empty: nobody), ``prices`` are those of calls
    where the service does not say what they cost (None: not known).
    """

    name: str
    row: ModelRow | None
    space: Callable[[Question], Space]
    manner: Callable[[Space], Manner]
    provider: str = ""
    prices: Prices | None = None

    def wanted_images(self, message: Message, question: Question) -> list[WantedImage]:
        """The images of a message as they are sent."""
        space = self.space(question)
        return wanted_images(message, question, space, self.manner(space).images)

    def request(
        self,
        message: Message,
        question: Question,
        beginning: Beginning = Beginning.ONCE,
        images: Sequence[SentImage] | None = None,
    ) -> Request:
        """The request for a message; ``images`` as of :func:`.payload.request`.

        Raises:
            OSError: an image cannot be read.
        """
        space = self.space(question)
        return request(message, question, space, self.manner(space), beginning, images)

    def first(self, asked: Request, question: Question) -> First | None:
        """The request that shows whether replies are held to a format (:mod:`.schema`); None where
        they are free.
        """
        root = self.manner(self.space(question)).schema_root
        if question.reply_schema is None or root is None:
            return None
        return first_question(asked.body, question, root)

    def at_most(
        self, message: Message, question: Question, asked: Request, *, shared: bool
    ) -> float | None:
        """What a call costs at most, in US dollars: an estimate (None: no price is known).

        Args:
            message, question: what is asked.
            asked: its request.
            shared: whether other calls are over the same images, which a provider keeps at a price.
        """
        if self.prices is None:
            return None
        space = self.space(question)
        limit = self.manner(space).max_tokens or question.max_new_tokens
        # Who marks what may be kept pays for keeping it, at most in every request.
        load = load_of(asked, message, space, limit).priced(self.prices, shared=shared)
        return load.usd_in + load.usd_out_at_most

    def check_limit(self, servers: Sequence[Endpoint]) -> None:
        """Refuse a spending limit where nobody says what calls cost.

        Raises:
            ValueError: no price is known, and a server does not say what a call cost.
        """
        if self.prices is not None or (servers and all(map(_states_costs, servers))):
            return
        raise ValueError(
            f"--max-usd: what calls to {self.name} cost is not known, so no limit can be kept. Say "
            "it: --prices IN,OUT in US dollars a million tokens sent and answered (in a file, "
            "`prices: [IN, OUT]`)"
        )

    def describe(self, question: Question, servers: Sequence[Endpoint]) -> Described:
        """What a run of it is."""
        space = self.space(question)
        manner = self.manner(space)
        said = {
            **manner.fields,
            **manner.holding(question),
            "max_new_tokens": manner.max_tokens or question.max_new_tokens,
            "images": manner.images.__name__,
        }
        if manner.image_detail is not None:
            said["image_detail"] = manner.image_detail
        return Described(
            Answering(
                kind=self._kind,
                row=self.row.name if self.row else None,
                checkpoint=manner.model,
                endpoint=", ".join(sorted({server.name for server in servers})) or None,
                settings=said,
            ),
            _recorded(space, question),
        )

    @property
    def _kind(self) -> str:
        direct = self.provider and not find_provider(self.provider).relays
        return f"{PROVIDER}{self.provider}" if direct else "chat completions"

    def read(self, completion: Completion, question: Question) -> Completion:
        """What of an answer is text and what is thought."""
        opens = self.row is not None and self.row.opens_thought
        said = completion.begun_in_thought() if opens else completion
        if question.reply_schema is None:
            return said
        root = self.manner(self.space(question)).schema_root
        return replace(said, text=unwrapped(said.text, root))

    def recorded(
        self, question: Question, asked: Request | None, completion: Completion | None
    ) -> Recorded:
        """What a run records of a call, answered or not."""
        space = self.space(question)
        who = {"row": self.row.name} if self.row else {}
        images = tuple(image.as_record() for image in asked.images) if asked else ()
        if completion is None:
            who = {"identifier": self.manner(space).model, **who}
            return Recorded(space=_recorded(space, question), images=images, model=who)
        return Recorded(
            space=_recorded(space, question),
            images=images,
            finish_reason=completion.finish_reason,
            thought=completion.thought,
            ends_in_thought=completion.ends_in_thought,
            tokens=completion.tokens,
            model={**completion.model, **who},
            token_logprobs=completion.token_logprobs,
        )


def _states_costs(server: Endpoint) -> bool:
    """Whether a service says what a call cost."""
    if server.provider:
        return find_provider(server.provider).states_costs
    openrouter = find_provider(OPENROUTER).address
    return urlsplit(server.name).hostname == urlsplit(openrouter).hostname


def _recorded(space: Space, question: Question) -> dict[str, Any] | None:
    """What a run records of the space: nothing where no answer is a box."""
    return space.as_dict() if question.in_boxes else None


def openrouter_model(name: str, max_tokens: int | None = None) -> ChatModel:
    """A proprietary model through OpenRouter, asked as in the paper's runs.

    Args:
        name: a row of the model table with API facts, by any of its names.
        max_tokens: limit of a reply (None: the row's, else the question's).

    Raises:
        ValueError: there is none of this name.
    """
    row = find_model(name)
    if row is None or row.api is None:
        known = [other.entry for other in MODELS.values() if other.api]
        raise ValueError(f"no proprietary model {name!r}{nearest(name, known)}")
    return provider_model(OPENROUTER, name, max_tokens=max_tokens)


def server_model(
    name: str,
    served: str | None = None,
    space: str | Mapping[str, Any] | None = None,
    fields: Mapping[str, Any] | None = None,
    max_tokens: int | None = None,
    row: str | None = None,
) -> ChatModel:
    """A model behind an OpenAI-compatible server.

    Args:
        name: that of the results; its row of the model table says the space.
        served: the server's name for the model (None: the same).
        space: the coordinate space, where the model table does not say it.
        fields: more fields of every request.
        max_tokens: limit of a reply (None: the row's, else the question's).
        row: the row of the model table that it is like (None: that of its name).

    """
    rule = server_space(row or name, settings_from({"space": space}).space)
    known = find_model(row or name)
    facts = known.api if known else None
    sent = {**template_fields(name), **(fields or {})}
    return ChatModel(
        name,
        known,
        rule,
        cache(
            lambda space: _limited(
                server_manner(served or served_as(name), space, sent, facts), max_tokens
            )
        ),
        prices=facts.prices if facts else None,
    )


def provider_model(
    provider: str,
    name: str,
    served: str | None = None,
    space: str | Mapping[str, Any] | None = None,
    fields: Mapping[str, Any] | None = None,
    max_tokens: int | None = None,
    row: str | None = None,
) -> ChatModel:
    """A model of a provider that is asked in its own protocol, with a key of one's own.

    Pictures are sent as through OpenRouter, since the coordinate spaces rest on that.

    Args:
        provider: a row of :data:`.providers.table.PROVIDERS`.
        served: the provider's name for the model (None: what the model table says).
        name, space, fields, max_tokens, row: as of :func:`server_model`.

    Raises:
        ValueError: there is no such provider, or its name for the model is not known.
    """
    asked, said = find_provider(provider), settings_from({"space": space}).space
    known = find_model(row or name)
    facts = known.api if known else None
    called = own_name(provider, name, served)
    manner = _limited(
        provider_manner(called, asked.schema_root, fields, facts, relays=asked.relays), max_tokens
    )
    rule = server_space(row or name, said)
    if known is not None and facts is not None and not said:
        rule = known.space
    prices = facts.prices if facts else None
    return ChatModel(name, known, rule, lambda space: manner, provider, prices)


def own_name(provider: str, name: str, served: str | None) -> str:
    """A provider's name for a model: what is said, else what the row of its name says.

    Raises:
        ValueError: nobody says it.
    """
    known = find_model(name)
    if said := served or (known and known.served):
        return said
    facts = known.api if known is not None else None
    names = {} if facts is None else {OPENROUTER: facts.identifier, **facts.own_names}
    if provider not in names:
        raise ValueError(
            f"the model table has no name of {provider}'s for {name}: say it, "
            f"{name}=NAME_AT_{provider.upper()} (in a sweep's file, `served`)"
        )
    return names[provider]


def served_key(name: str, served: str | None, fields: Mapping[str, Any]) -> dict[str, Any]:
    """What the key of a call to a server has of its model beside the message.

    Served by another program, the same weights may say something else.
    """
    return {**fields, "served": served or served_as(name)}


def provider_key(
    provider: str, name: str, served: str | None, fields: Mapping[str, Any]
) -> dict[str, Any]:
    """The same of a call to a provider; through OpenRouter by its bare name it is ``fields`` alone.

    Raises:
        ValueError: its name for the model is not known.
    """
    if provider == OPENROUTER and not served:
        return dict(fields)
    called = own_name(provider, name, served)
    return {**served_key(name, called, fields), "provider": provider}


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


def _limited(manner: Manner, max_tokens: int | None) -> Manner:
    return manner if max_tokens is None else replace(manner, max_tokens=max_tokens)
