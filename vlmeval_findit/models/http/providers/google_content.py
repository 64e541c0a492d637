"""A chat body in the words of Google's Gemini API, and its reply as a chat reply.

Source: ai.google.dev/api/generate-content.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from ..completion import CallError
from ..endpoint import LIMIT_FIELDS, Endpoint, limit_in


def content_path(body: Mapping[str, Any]) -> str:
    """Where a request goes: the model is part of the path."""
    return f"models/{quote(body['model'], safe='')}:generateContent"


def google_headers(endpoint: Endpoint) -> dict[str, str]:
    """The headers of a request: Google has one of its own for the key."""
    return endpoint.request_headers("x-goog-api-key")


def content_request(body: Mapping[str, Any]) -> dict[str, Any]:
    """The request of a chat body.

    >>> content_request({"model": "m", "messages": [], "max_tokens": 9})
    {'contents': [], 'generationConfig': {'maxOutputTokens': 9}}
    """
    config: dict[str, Any] = {"maxOutputTokens": limit_in(body)}
    if "temperature" in body:
        config["temperature"] = body["temperature"]
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
    ]
    more = {name: value for name, value in body.items() if name not in _TAKEN}
    return {"contents": contents, "generationConfig": config, **more}


_TAKEN = frozenset(
    {
        "model",
        "messages",
        *LIMIT_FIELDS,
        "temperature",
        "reasoning_effort",
        "response_format",
        "logprobs",
        "top_logprobs",
    }
)


def _part(part: Mapping[str, Any]) -> dict[str, Any]:
    if part["type"] != "image_url":
        return {"text": part["text"]}
    mime, _, data = part["image_url"]["url"].removeprefix("data:").partition(";base64,")
    return {"inlineData": {"mimeType": mime, "data": data}}


_FINISH = {"STOP": "stop", "MAX_TOKENS": "length"}
_FILTERED = frozenset(
    {"SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MODEL_ARMOR"}
)


def chat_reply(reply: Mapping[str, Any]) -> dict[str, Any]:
    """A reply of ``generateContent`` as a chat reply.

    Raises:
        CallError: Google did not let the model see the prompt.
    """
    candidates, feedback = reply.get("candidates"), reply.get("promptFeedback")
    blocked = feedback.get("blockReason") if isinstance(feedback, dict) else None
    if blocked and not candidates:
        raise CallError(f"the prompt was blocked: {blocked}")
    one = candidates[0] if isinstance(candidates, list) and candidates else None
    return {
        "id": reply.get("responseId"),
        "model": reply.get("modelVersion"),
        "error": reply.get("error"),
        "choices": [_choice(one)] if isinstance(one, dict) else [],
        "usage": _usage(reply.get("usageMetadata")),
    }


def _choice(candidate: Mapping[str, Any]) -> dict[str, Any]:
    content = candidate.get("content")
    parts = content.get("parts") if isinstance(content, dict) else None
    texts = [*_texts(parts if isinstance(parts, list) else ())]
    reason = str(candidate.get("finishReason") or "")
    choice: dict[str, Any] = {
        "finish_reason": "content_filter"
        if reason in _FILTERED
        else _FINISH.get(reason, reason.lower()),
        "message": {
            "content": "".join(text for text, thought in texts if not thought),
            "reasoning": "".join(text for text, thought in texts if thought),
        },
    }
    result = candidate.get("logprobsResult")
    chosen = result.get("chosenCandidates") if isinstance(result, dict) else None
    if isinstance(chosen, list):
        choice["logprobs"] = {"content": [_logprob(one) for one in chosen]}
    return choice


def _texts(parts: Sequence[Any]) -> Iterator[tuple[str, bool]]:
    """The texts, each with whether it is thought."""
    for part in parts:
        if isinstance(part, dict) and isinstance(part.get("text"), str):
            yield part["text"], part.get("thought") is True


def _logprob(one: Any) -> dict[str, Any]:
    known = one if isinstance(one, dict) else {}
    # A certainty is left out, as JSON of protocol buffers leaves out every nought.
    return {"token": known.get("token"), "logprob": known.get("logProbability", 0.0)}


def _usage(usage: Any) -> dict[str, Any]:
    if not isinstance(usage, dict):
        return {}
    thought = usage.get("thoughtsTokenCount")
    answered = [usage.get("candidatesTokenCount"), thought]
    counts = [one for one in answered if isinstance(one, int)]
    return {
        "prompt_tokens": usage.get("promptTokenCount"),
        "prompt_tokens_details": {"cached_tokens": usage.get("cachedContentTokenCount")},
        # Thoughts are paid as what is said, and counted apart.  Of an empty reply nothing is said.
        "completion_tokens": sum(counts),
        "completion_tokens_details": {"reasoning_tokens": thought},
    }
