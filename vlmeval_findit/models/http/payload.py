"""From a message to the body of an OpenAI-style chat request.

Texts and images stand in the request where the message has them; images come from :mod:`.images`.
A body that is sent has a mark in place of each image, so that it is small to write and to
translate; the image's base64 goes between its pieces (:func:`pieces`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from secrets import token_hex
from typing import Any

from ...boxes.spaces import Space
from ...core.messages import Message, PartKind
from ...core.question import Question
from ..row import ApiFacts
from .images import ImageRule, SentImage, as_they_are, for_provider, wanted_images
from .schema import SchemaRoot, response_format


@dataclass(frozen=True, slots=True)
class Manner:
    """How a service is asked.

    ``model`` is the service's name for it; ``fields`` are the request's fields besides model,
    messages and ``max_tokens`` (None: the question's limit).  ``cache_control`` stands at the last
    image: up to there a prompt is the same for all that is asked about its images.  ``schema_root``
    is what it takes as a schema (None: it holds to none), ``held`` are the fields beside one.
    ``by_question`` gives further fields by question (None: there are none).
    """

    model: str
    images: ImageRule
    fields: Mapping[str, Any] = field(default_factory=dict)
    max_tokens: int | None = None
    image_detail: str | None = None
    cache_control: Mapping[str, str] | None = None
    schema_root: SchemaRoot | None = SchemaRoot.LIST
    held: Mapping[str, Any] = field(default_factory=dict)
    by_question: Callable[[Question], Mapping[str, Any]] | None = None

    def holding(self, question: Question) -> dict[str, Any]:
        """The fields that depend on the question: those that hold a reply to its schema, where it
        has one, and :attr:`by_question`.

        Raises:
            ValueError: the service cannot hold to it.
        """
        own = dict(self.by_question(question)) if self.by_question else {}
        if question.reply_schema is None:
            return own
        if self.schema_root is None:
            raise ValueError(
                f"{question.name}: the provider holds no reply to a format: ask it without "
                "_constrained"
            )
        held = response_format(question.reply_schema, self.schema_root)
        return {**own, "response_format": held, **self.held}


def openrouter_manner(facts: ApiFacts) -> Manner:
    """How a proprietary model is asked through OpenRouter."""
    return provider_manner(facts.identifier, None, facts=facts, relays=True)


def server_manner(
    model: str,
    space: Space,
    extra: Mapping[str, Any] | None = None,
    facts: ApiFacts | None = None,
) -> Manner:
    """How an OpenAI-compatible server is asked: greedily, with ``extra`` fields of the user's.

    A field that is None is not sent.  ``facts`` are those of a proprietary model, asked elsewhere
    than through OpenRouter: it takes no temperature there either.  Spaces that count the pixels as
    sent presume the providers' limit of 4096, so that images are sent by the providers' rule there.
    """
    rule = for_provider if space.kind in _SENT_WITHIN_LIMIT else as_they_are
    temperature = 0.0 if facts is None else facts.temperature
    fields = {"temperature": temperature, **(extra or {})}
    sent = {name: value for name, value in fields.items() if value is not None}
    manner = Manner(model, rule, sent)
    return manner if facts is None else _with_facts(manner, facts)


def provider_manner(
    model: str,
    schema_root: SchemaRoot | None,
    extra: Mapping[str, Any] | None = None,
    facts: ApiFacts | None = None,
    *,
    relays: bool = False,
) -> Manner:
    """How a provider is asked: as ``facts`` say, with ``extra`` fields.

    A field that is None is not sent.  Without facts a model is asked greedily.  Who ``relays``
    requests to the makers of models, as OpenRouter does, takes schemas as they do, and says costs.
    """
    reasoning = facts.reasoning if facts else None
    fields: dict[str, Any] = {"temperature": 0.0 if facts is None else facts.temperature}
    if relays:
        fields |= {"usage": {"include": True}, "reasoning": reasoning and dict(reasoning)}
    else:
        fields |= {"reasoning_effort": (reasoning or {}).get("effort")}
    sent = {name: it for name, it in {**fields, **(extra or {})}.items() if it is not None}
    # Only makers that hold to a schema are asked with one.
    held = {"provider": {"require_parameters": True}} if relays else {}
    manner = Manner(model, for_provider, sent, held=held)
    manner = manner if facts is None else _with_facts(manner, facts)
    return manner if relays else replace(manner, schema_root=schema_root)


def _with_facts(manner: Manner, facts: ApiFacts) -> Manner:
    return replace(
        manner,
        max_tokens=facts.max_tokens,
        image_detail=facts.image_detail,
        cache_control=facts.cache_control,
        schema_root=SchemaRoot.LIST if facts.schema_of_list else SchemaRoot.OBJECT,
    )


_SENT_WITHIN_LIMIT = ("pixels", "openai_high", "claude_standard", "claude_highres")


class Beginning(Enum):
    """Whether the images of a prompt, and the words before them, are sent in other calls too.

    Providers charge more for what they keep than for what they forget.
    """

    ONCE = "only here"
    AGAIN = "in other calls too"


@dataclass(frozen=True, slots=True)
class Request:
    """The body of a chat request and the images in it."""

    body: Mapping[str, Any] = field(repr=False)
    images: tuple[SentImage, ...]


def request(
    message: Message,
    question: Question,
    space: Space,
    manner: Manner,
    beginning: Beginning = Beginning.ONCE,
    images: Sequence[SentImage] | None = None,
) -> Request:
    """The request for a message whose image parts are paths of files.

    Args:
        message, question, space, manner, beginning: what is asked, and how.
        images: those of the message, encoded before: the body has a mark in place of each, and is
            sent in :func:`pieces` (None: they are encoded now, and the body is whole).

    Raises:
        OSError: an image cannot be read.
    """
    if images is None:
        wanted = wanted_images(message, question, space, manner.images)
        images = [image.encoded() for image in wanted]
        urls = [image.url for image in images]
    else:
        urls = [f"data:{image.mime};base64,{_mark(at)}" for at, image in enumerate(images)]
    body = {
        "model": manner.model,
        "messages": [{"role": "user", "content": _content(message, urls, manner, beginning)}],
        "max_tokens": manner.max_tokens or question.max_new_tokens,
        **manner.fields,
        **manner.holding(question),
    }
    return Request(body, tuple(images))


def _content(
    message: Message, urls: Sequence[str], manner: Manner, beginning: Beginning
) -> list[dict[str, Any]]:
    def entries() -> Iterator[dict[str, Any]]:
        left = iter(urls)
        for part in message:
            if part.kind is PartKind.TEXT:
                yield {"type": "text", "text": part.value}
            else:
                yield {"type": "image_url", "image_url": {"url": next(left), **more}}

    more = {"detail": manner.image_detail} if manner.image_detail else {}
    content = list(entries())
    if manner.cache_control is not None and urls and beginning is Beginning.AGAIN:
        last = max(at for at, part in enumerate(content) if part["type"] == "image_url")
        content[last]["cache_control"] = dict(manner.cache_control)
    return content


_MARK = f"image-{token_hex(16)}-"
"""What no text has: it is drawn when the program starts."""


def _mark(number: int) -> str:
    return f"{_MARK}{number}-"


_MARKS = re.compile(f"{_MARK}([0-9]+)-".encode())


def pieces(body: Mapping[str, Any], images: Sequence[SentImage]) -> list[bytes]:
    """A body with marks as JSON in pieces; the images' base64, between them, is not copied."""
    parts = _MARKS.split(json.dumps(body).encode())
    parts[1::2] = [images[int(number)].base64 for number in parts[1::2]]
    return parts
