"""Translate chat bodies and replies to and from Anthropic's Messages API.

Source: platform.claude.com/docs/en/api/messages.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....core import largest_count, object_or_empty
from ..endpoint import Endpoint
from ..request_fields import WITHOUT_OUR_REASONING, limit_in, merged_fields, system_text


def anthropic_headers(endpoint: Endpoint) -> dict[str, str]:
    """Return the headers of a request, with the key and the API's version.

    Version 2026-10-21 and later, which the package ``anthropic`` 2 requests, refuses a temperature:
    models that take a temperature would no longer be asked greedily.
    """
    return endpoint.request_headers("x-api-key", {"anthropic-version": "2023-06-01"})


def messages_request(body: Mapping[str, Any]) -> dict[str, Any]:
    """Translate a chat body; ValueError if a field of Anthropic's contradicts it."""
    request = {name: value for name, value in body.items() if name not in _LEFT_OUT}
    request["messages"] = [
        {**message, "content": [_part(part) for part in message["content"]]}
        for message in body["messages"]
        if message["role"] != "system"
    ]
    if system := system_text(body):
        request["system"] = system
    request["max_tokens"] = limit_in(body)
    ours: dict[str, Any] = {}
    output: dict[str, Any] = {}
    effort = body.get("reasoning_effort")
    if effort == "none":
        ours["thinking"] = {"type": "disabled"}
    elif effort is not None:
        output["effort"] = effort
    if "response_format" in body:
        schema = body["response_format"]["json_schema"]["schema"]
        output["format"] = {"type": "json_schema", "schema": schema}
    if output:
        ours["output_config"] = output
    return merged_fields(request, ours, WITHOUT_OUR_REASONING)


# Translated above, or without a counterpart
_LEFT_OUT = ("max_completion_tokens", "reasoning_effort", "response_format", "seed")


def _part(part: Mapping[str, Any]) -> dict[str, Any]:
    if part["type"] != "image_url":
        return dict(part)
    mime, _, data = part["image_url"]["url"].removeprefix("data:").partition(";base64,")
    rest = {name: it for name, it in part.items() if name not in ("type", "image_url")}
    source = {"type": "base64", "media_type": mime, "data": data}
    return {"type": "image", "source": source, **rest}


def reply_of_messages(message: Mapping[str, Any]) -> dict[str, Any]:
    """Translate a message; without content the reply has no choice."""
    content = message.get("content")
    usage = object_or_empty(message.get("usage"))
    kinds = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    counts = [largest_count(usage.get(kind)) for kind in kinds]
    sent = [count for count in counts if count is not None]
    thought_tokens = object_or_empty(usage.get("output_tokens_details")).get("thinking_tokens")
    tier = usage.get("service_tier")
    counted = {
        **usage,
        # Priority is capacity that was paid beforehand.
        "service_tier": "scale" if tier == "priority" else tier,
        "prompt_tokens": sum(sent) if sent else None,
        "completion_tokens": usage.get("output_tokens"),
        "completion_tokens_details": {"reasoning_tokens": thought_tokens},
    }
    choice = {"finish_reason": message.get("stop_reason"), "message": {"content": content}}
    return {
        **message,
        "choices": [] if content is None else [choice],
        "usage": counted,
    }
