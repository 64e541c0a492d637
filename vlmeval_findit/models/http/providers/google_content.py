"""Translate chat bodies and replies to and from Google's Gemini API.

Source: ai.google.dev/api/generate-content.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....core import largest_count, object_or_empty, objects_of
from ...token_limits import LIMIT_FIELDS
from ..request_fields import WITHOUT_OUR_REASONING, limit_in, merged_fields, system_text


def content_request(body: Mapping[str, Any]) -> dict[str, Any]:
    """Translate a chat body; ValueError if a field of Google's contradicts it."""
    config: dict[str, Any] = {"maxOutputTokens": limit_in(body)}
    config |= {name: body[name] for name in ("temperature", "seed") if name in body}
    effort = body.get("reasoning_effort")
    if effort == "none":
        config["thinkingConfig"] = {"thinkingBudget": 0}
    elif effort is not None:
        config["thinkingConfig"] = {"thinkingLevel": effort}
    if "response_format" in body:
        config["responseMimeType"] = "application/json"
        config["responseJsonSchema"] = body["response_format"]["json_schema"]["schema"]
    if body.get("logprobs"):
        config |= {"responseLogprobs": True, "logprobs": body.get("top_logprobs", 1)}
    contents = [
        {"role": message["role"], "parts": [_part(part) for part in message["content"]]}
        for message in body["messages"]
        if message["role"] != "system"
    ]
    system = system_text(body)
    instruction = {"systemInstruction": {"parts": [{"text": system}]}} if system else {}
    theirs = {name: value for name, value in body.items() if name not in _TAKEN}
    if "seed" in object_or_empty(theirs.get("generationConfig")):
        config.pop("seed", None)  # FindIt's is for want of a user's
    ours = {**instruction, "contents": contents, "generationConfig": config}
    return merged_fields(theirs, ours, WITHOUT_OUR_REASONING)


_TAKEN = {"model", "messages", *LIMIT_FIELDS, "temperature", "seed", "reasoning_effort"}
_TAKEN |= {"response_format", "logprobs", "top_logprobs"}


def _part(part: Mapping[str, Any]) -> dict[str, Any]:
    if part["type"] != "image_url":
        return {"text": part["text"]}
    mime, _, data = part["image_url"]["url"].removeprefix("data:").partition(";base64,")
    return {"inlineData": {"mimeType": mime, "data": data}}


def reply_of_content(reply: Mapping[str, Any]) -> dict[str, Any]:
    """Translate a reply of ``generateContent``; a blocked prompt is an error."""
    candidates = objects_of(reply.get("candidates"))
    blocked = object_or_empty(reply.get("promptFeedback")).get("blockReason")
    error = reply.get("error")
    if blocked and not candidates:
        error = error or f"the prompt was blocked: {blocked}"
    return {
        **reply,
        "id": reply.get("responseId"),
        "model": reply.get("modelVersion"),
        "error": error,
        "choices": [_choice(candidate) for candidate in candidates[:1]],
        "usage": {
            **object_or_empty(reply.get("usage")),
            **_usage(object_or_empty(reply.get("usageMetadata"))),
        },
    }


def _choice(candidate: Mapping[str, Any]) -> dict[str, Any]:
    content = candidate.get("content")
    parts = content.get("parts") if isinstance(content, dict) else content
    choice: dict[str, Any] = {
        "finish_reason": candidate.get("finishReason"),
        "finish_message": candidate.get("finishMessage"),
        "message": {"content": [*map(_reply_part, parts)] if isinstance(parts, list) else parts},
    }
    if "logprobsResult" in candidate:
        # Protocol buffers omit zeros in JSON: log(1).
        chosen = objects_of(object_or_empty(candidate["logprobsResult"]).get("chosenCandidates"))
        choice["logprobs"] = {
            "content": [
                {"token": token.get("token"), "logprob": token.get("logProbability", 0.0)}
                for token in chosen
            ]
        }
    return choice


def _reply_part(part: object) -> object:
    """Translate a part of a reply; one without a text keeps its name as its type."""
    if not isinstance(part, dict):
        return part
    if "functionCall" in part:
        return {"type": "tool_use", **object_or_empty(part["functionCall"])}
    if "text" in part:
        kind = "thinking" if part.get("thought") is True else "text"
        return {"type": kind, kind: part["text"]}
    names = [name for name in part if name not in ("thoughtSignature", "thought")]
    return {"type": names[0]} if names else {"type": "text", "text": ""}


def _usage(usage: Mapping[str, Any]) -> dict[str, Any]:
    if not usage:
        return {}
    thought = largest_count(usage.get("thoughtsTokenCount"))
    answered = largest_count(usage.get("candidatesTokenCount"))
    return {
        "service_tier": usage.get("serviceTier"),
        "prompt_tokens": usage.get("promptTokenCount"),
        "prompt_tokens_details": {"cached_tokens": usage.get("cachedContentTokenCount")},
        # Thoughts are charged as output, but counted apart; an empty reply has no candidate tokens.
        "completion_tokens": (answered or 0) + (thought or 0),
        "completion_tokens_details": {"reasoning_tokens": thought},
    }
