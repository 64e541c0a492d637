"""Questions that are not FindIt's, which VLMEvalKit asks a model: any benchmark's, or a user's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vlmeval.smp import parse_file

from ..protocol import (
    CallResult,
    Message,
    Part,
    PartKind,
    PlainVariant,
    image,
    system,
    text,
    text_of_failure,
)

# How such a question is asked: no boxes are expected, so no coordinate space is needed
FREE_QUESTION = PlainVariant("free question", table="", images="", family_name="Free questions")


def free_message(message: Any) -> Message:
    """Return a message of VLMEvalKit's as it is, texts of the role ``system`` in front.

    It is a text, a file or URL of an image, a part with ``type`` and ``value``, or a list of these.
    Raises ValueError for a video, a former reply, and anything else that is neither image nor text.
    """
    parts = list(map(_with_type, message if isinstance(message, list) else [message]))
    before = [str(part["value"]) for part in parts if _role(part) == "system"]
    asked = [_part(part) for part in parts if _role(part) != "system"]
    return (*([system("\n".join(before))] if before else []), *asked)


def _with_type(part: Any) -> Mapping[str, Any]:
    """Return a part with its type; of an image behind a URL, the file that VLMEvalKit makes.

    An image that is not there stays: its call fails, and says so.
    """
    if isinstance(part, str):
        kind, value = parse_file(part)
        shown = str(kind).partition("/")[0]
        if shown in ("image", "video", "audio"):
            return {"type": shown, "value": value}
        return {"type": PartKind.TEXT.value, "value": part}
    if part.get("type") == PartKind.IMAGE.value:
        kind, value = parse_file(part["value"])
        return part if kind is None else {**part, "value": value}
    return dict(part)


def _role(part: Mapping[str, Any]) -> str:
    return str(part.get("role") or "user")


def _part(part: Mapping[str, Any]) -> Part:
    if "type" not in part or _role(part) != "user":
        raise ValueError("FindIt's models answer single questions, and this is a conversation")
    kinds = {PartKind.TEXT.value: text, PartKind.IMAGE.value: image}
    kind = str(part["type"])
    if kind not in kinds:
        raise ValueError(
            f"FindIt's models take images and text, and no {kind}: ask a model of VLMEvalKit's "
            f"that takes {kind}"
        )
    return kinds[kind](str(part["value"]))


def text_alone(answer: CallResult) -> str:
    """Return the text of a reply, or of a failed call as VLMEvalKit's classes say it.

    They take an empty reply for a failed call, too.
    """
    if answer.error is None and answer.text:
        return answer.text
    return text_of_failure(answer.error or "The reply is empty")


def refuse_conversations(model: str, dataset: Any, name: str) -> None:
    """Raise ValueError for a dataset, or a class of them, whose questions are conversations.

    VLMEvalKit would store its words for a conversation that failed as an answer.
    """
    if getattr(dataset, "TYPE", "") == "MT":
        raise ValueError(
            f"{name}: {model} answers single questions, and these are conversations. Leave it out, "
            f"or ask a model of VLMEvalKit's that holds them: python -m vlmeval --data {name} "
            "--model MODEL"
        )


def refused_by_baseline(name: str) -> ValueError:
    """Return the error of a baseline that is asked anything else than a query of FindIt's."""
    return ValueError(f"{name} answers FindIt's queries only: ask a model")
