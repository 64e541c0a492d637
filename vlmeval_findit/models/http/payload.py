"""From a message to the body of an OpenAI-style chat request, and what was sent of every image.

Texts and images stand in the request where the message has them.  Two rules for images: what
providers are sent is shrunk and encoded as in the paper's runs (:func:`for_provider`); a server of
one's own gets the pixels of the file (:func:`as_they_are`), which its processor resizes as a local
model's would.  The sizes come from :mod:`...boxes.spaces`, the same arithmetic that scoring uses.

Pixels are those of the file as it is stored: the annotations count them so, and what is sent has no
EXIF orientation by which a provider would turn the picture.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import lru_cache
from pathlib import Path
from typing import Any

from ...boxes.spaces import Space, as_sent, reference_size
from ...core.image_files import Size, check, header, orientation
from ...core.messages import Message, PartKind
from ...core.question import Question
from ..row import ApiFacts
from ..scene_cache import CachedScene, encoded
from .schema import SchemaRoot, response_format

JPEG_FROM = 2048
"""Images with a longer side of at least this many pixels are sent as JPEG, others as PNG."""

# --- images ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SentImage:
    """One image as it is sent: the file's size, the size that is sent, and the encoded bytes."""

    original: Size
    sent: Size
    mime: str
    data: bytes = field(repr=False)

    @property
    def url(self) -> str:
        """The image as a data URL."""
        return f"data:{self.mime};base64,{base64.b64encode(self.data).decode('ascii')}"

    def as_record(self) -> dict[str, Any]:
        """What a run records of it."""
        return {
            "original": list(self.original),
            "sent": list(self.sent),
            "mime": self.mime,
            "bytes": len(self.data),
        }


ImageRule = Callable[[Path, int | None], SentImage]
"""From a file and the limit in pixels for its longer side (None: none) to what is sent."""

_KEPT = 32
"""Encoded images that are kept: questions over one image and retries do not encode it again."""


@lru_cache(maxsize=_KEPT)
def for_provider(path: Path, limit: int | None = None) -> SentImage:
    """The paper's API rule: at most 4096 pixels, JPEG of quality 95 from 2048 on, else PNG.

    Raises:
        OSError: the file is no image.
    """
    original = header(path).size
    # The space of pixels as sent is this very rule; scoring divides by the same size.
    width, height = reference_size(Space("pixels", scene_max_size=limit), *original)
    size = (int(width), int(height))
    return _sent(path, original, size, "JPEG" if max(size) >= JPEG_FROM else "PNG")


@lru_cache(maxsize=_KEPT)
def as_they_are(path: Path, limit: int | None = None) -> SentImage:
    """The file's own bytes where a server reads the same pixels from them, else a PNG of these.

    Raises:
        OSError: the file is no image.
    """
    found = header(path)
    size = as_sent(Space("grid1000", scene_max_size=limit), *found.size)
    plain = found.format in ("JPEG", "PNG") and found.mode == "RGB" and size == found.size
    if plain and orientation(path) == 1:
        check(path)  # a call with half a picture is paid for too
        return SentImage(size, size, f"image/{found.format.lower()}", path.read_bytes())
    return _sent(path, found.size, size, "PNG")


def _sent(path: Path, original: Size, size: Size, kind: str) -> SentImage:
    data = encoded(CachedScene(path, size, kind), original)
    return SentImage(original, size, f"image/{kind.lower()}", data)


def sent_images(
    message: Message, question: Question, space: Space, rule: ImageRule
) -> tuple[SentImage, ...]:
    """The images of a message in order; the scene limit of the space is not for support shots."""
    paths = [Path(part.value) for part in message if part.kind is PartKind.IMAGE]
    # References come first, so that the scene or the frames are the last ones.
    shots = len(paths) - question.frames if question.has_references else 0
    return tuple(
        rule(path, None if place < shots else space.scene_max_size)
        for place, path in enumerate(paths)
    )


# --- requests -------------------------------------------------------------------------------------


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
    fields: dict[str, Any] = {"usage": {"include": True}}
    if facts.temperature is not None:
        fields["temperature"] = facts.temperature
    if facts.reasoning is not None:
        fields["reasoning"] = dict(facts.reasoning)
    # Only providers that hold to a schema are asked with one.
    held = {"provider": {"require_parameters": True}}
    return _with_facts(Manner(facts.identifier, for_provider, fields, held=held), facts)


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
) -> Manner:
    """How a provider is asked in its own protocol: as ``facts`` say, with ``extra`` fields.

    A field that is None is not sent.  Without facts a model is asked greedily.
    """
    reasoning = (facts.reasoning or {}).get("effort") if facts else None
    temperature = 0.0 if facts is None else facts.temperature
    fields = {"temperature": temperature, "reasoning_effort": reasoning, **(extra or {})}
    sent = {name: value for name, value in fields.items() if value is not None}
    manner = Manner(model, for_provider, sent)
    return replace(manner if facts is None else _with_facts(manner, facts), schema_root=schema_root)


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
) -> Request:
    """The request for a message whose image parts are paths of files.

    Raises:
        OSError: an image cannot be read.
    """
    images = sent_images(message, question, space, manner.images)
    body = {
        "model": manner.model,
        "messages": [{"role": "user", "content": _content(message, images, manner, beginning)}],
        "max_tokens": manner.max_tokens or question.max_new_tokens,
        **manner.fields,
        **manner.holding(question),
    }
    return Request(body, images)


def _content(
    message: Message, images: Sequence[SentImage], manner: Manner, beginning: Beginning
) -> list[dict[str, Any]]:
    def entries() -> Iterator[dict[str, Any]]:
        pictures = iter(images)
        for part in message:
            if part.kind is PartKind.TEXT:
                yield {"type": "text", "text": part.value}
            else:
                url = {"url": next(pictures).url}
                yield {"type": "image_url", "image_url": {**url, **more}}

    more = {"detail": manner.image_detail} if manner.image_detail else {}
    content = list(entries())
    if manner.cache_control is not None and images and beginning is Beginning.AGAIN:
        last = max(at for at, part in enumerate(content) if part["type"] == "image_url")
        content[last]["cache_control"] = dict(manner.cache_control)
    return content
