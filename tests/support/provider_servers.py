"""Servers with the protocols of OpenAI, Anthropic and Google, on 127.0.0.1.

What each takes is checked as it does: path, key, the fields that it has.  A request that it would
refuse is answered with the provider's error.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from chat_server import Answer, Asked, ChatServer, Script

KEY = "sk-own-c0ffee-SECRET"

AnswerOf = Callable[[list[dict[str, Any]]], str]
"""From the parts of a message, as OpenAI writes them, to the answer."""


@dataclass(frozen=True)
class Protocol:
    """One provider's: ``provider`` and ``model`` in our tables, ``called`` is its name there.

    ``path`` and ``key`` are of a request; ``wrong`` says why the provider would refuse a body
    (empty: it takes it), ``parts`` gives its message as OpenAI writes it; ``reply`` and ``error``
    are its answers.
    """

    provider: str
    model: str
    called: str
    variable: str
    base: str
    path: str
    key: Callable[[Mapping[str, str]], str]
    wrong: Callable[[Mapping[str, Any]], str]
    parts: Callable[[Mapping[str, Any]], list[dict[str, Any]]]
    reply: Callable[..., Answer]
    error: Callable[..., Answer]

    def answering(self, answer_of: AnswerOf) -> Script:
        """Return a script that answers what the provider would take."""

        def script(asked: Asked, number: int) -> Answer:
            if asked.path != self.path:
                return self.error(404, f"no such model: {asked.path}")
            if self.key(asked.headers) != KEY:
                return self.error(401, f"invalid key: {self.key(asked.headers)}")
            if why := self.wrong(asked.body):
                return self.error(400, why)
            return self.reply(answer_of(self.parts(asked.body)))

        return script


def address(server: ChatServer, protocol: Protocol) -> str:
    """Return where a server speaks a protocol."""
    return server.url.removesuffix("/api/v1") + protocol.base


def _answer(value: object, status: int = 200, **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(json.dumps(value).encode(), status, named)


def _beyond(body: Mapping[str, Any], known: set[str]) -> str:
    more = sorted(body.keys() - known)
    return f"unknown fields: {', '.join(more)}" if more else ""


# --- OpenAI ---------------------------------------------------------------------------------------

_OPENAI = {
    "model", "messages", "max_completion_tokens", "temperature", "reasoning_effort",
    "response_format", "logprobs", "top_logprobs", "seed",
}  # fmt: skip


def _openai_parts(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    (message,) = body["messages"]
    return [
        {name: it for name, it in part.items() if name != "cache_control"}
        for part in message["content"]
    ]


def openai_reply(text: str | None = "[]", **more: Any) -> Answer:
    """Return a chat completion as OpenAI sends it."""
    message = {"role": "assistant", "content": text, "refusal": None, **more.pop("message", {})}
    choice = {"index": 0, "finish_reason": more.pop("finish_reason", "stop"), "message": message}
    usage = {
        "prompt_tokens": 900, "completion_tokens": 20, "total_tokens": 920,
        "prompt_tokens_details": {"cached_tokens": 400, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 5, "audio_tokens": 0},
    }  # fmt: skip
    reply = {
        "id": "chatcmpl-1", "object": "chat.completion", "model": "gpt-5.4-2026-03-05",
        "choices": [{**choice, **more.pop("choice", {})}], "usage": usage,
    }  # fmt: skip
    return _answer({**reply, **more})


def openai_error(status: int, message: str, code: str | None = None, **headers: str) -> Answer:
    """Return an error as OpenAI reports it."""
    kind = "invalid_request_error" if status < 429 else "server_error"
    return _answer({"error": {"message": message, "type": kind, "code": code}}, status, **headers)


OPENAI = Protocol(
    "openai",
    "GPT-5.4",
    "gpt-5.4",
    "OPENAI_API_KEY",
    "/v1",
    "/v1/chat/completions",
    lambda headers: headers.get("authorization", "").removeprefix("Bearer "),
    lambda body: _beyond(body, _OPENAI),
    _openai_parts,
    openai_reply,
    openai_error,
)

# --- Anthropic ------------------------------------------------------------------------------------

_ANTHROPIC = {
    "model", "messages", "max_tokens", "temperature", "thinking", "output_config", "metadata"
}  # fmt: skip


def _anthropic_wrong(body: Mapping[str, Any]) -> str:
    if "max_tokens" not in body:
        return "max_tokens: Field required"
    return _beyond(body, _ANTHROPIC)


def _anthropic_parts(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    (message,) = body["messages"]
    return [_anthropic_part(part) for part in message["content"]]


def _anthropic_part(part: Mapping[str, Any]) -> dict[str, Any]:
    if part["type"] == "text":
        return {"type": "text", "text": part["text"]}
    source = part["source"]
    return _picture(source["media_type"], base64.b64decode(source["data"], validate=True))


def _picture(mime: str, data: bytes) -> dict[str, Any]:
    url = f"data:{mime};base64,{base64.b64encode(data).decode()}"
    return {"type": "image_url", "image_url": {"url": url}}


def anthropic_reply(text: str | None = "[]", **more: Any) -> Answer:
    """Return a message as Anthropic sends it; with a ``thought`` before the text."""
    content = [] if text is None else [{"type": "text", "text": text}]
    if thought := more.pop("thought", ""):
        content.insert(0, {"type": "thinking", "thinking": thought, "signature": "s"})
    usage = {
        "input_tokens": 300, "cache_read_input_tokens": 400, "cache_creation_input_tokens": 200,
        "output_tokens": 20, "output_tokens_details": {"thinking_tokens": 5},
    }  # fmt: skip
    reply = {
        "id": "msg_1", "type": "message", "role": "assistant",
        "model": "claude-sonnet-4-5-20250929", "content": content, "stop_reason": "end_turn",
        "stop_sequence": None, "usage": usage,
    }  # fmt: skip
    return _answer({**reply, **more})


def anthropic_error(status: int, message: str, kind: str = "an_error", **headers: str) -> Answer:
    """Return an error as Anthropic reports it."""
    error = {"type": kind, "message": message}
    return _answer({"type": "error", "error": error, "request_id": "r"}, status, **headers)


ANTHROPIC = Protocol(
    "anthropic",
    "Claude-Sonnet-4.5",
    "claude-sonnet-4-5",
    "ANTHROPIC_API_KEY",
    "",
    "/v1/messages",
    # Which of the two is the package's choice; Anthropic takes either.
    lambda headers: (
        headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ")
    ),
    _anthropic_wrong,
    _anthropic_parts,
    anthropic_reply,
    anthropic_error,
)

# --- Google ---------------------------------------------------------------------------------------

_GOOGLE = {"contents", "generationConfig", "safetySettings"}
_GENERATION = {
    "temperature", "maxOutputTokens", "thinkingConfig", "responseMimeType", "responseJsonSchema",
    "responseLogprobs", "logprobs", "seed",
}  # fmt: skip


def _google_parts(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    (content,) = body["contents"]
    return [_google_part(part) for part in content["parts"]]


def _google_part(part: Mapping[str, Any]) -> dict[str, Any]:
    if "text" in part:
        return {"type": "text", "text": part["text"]}
    inline = part["inlineData"]
    # Names in either way of writing, base64 with either alphabet: as protocol buffers take them.
    mime = inline.get("mimeType") or inline["mime_type"]
    return _picture(mime, base64.urlsafe_b64decode(inline["data"]))


def google_reply(text: str | None = "[]", **more: Any) -> Answer:
    """A reply of ``generateContent`` as Google sends it; with a ``thought`` before the text."""
    parts = [] if text is None else [{"text": text}]
    if thought := more.pop("thought", ""):
        parts.insert(0, {"text": thought, "thought": True})
    content = {"content": {"parts": parts, "role": "model"}} if parts else {}
    candidate = {**content, "finishReason": "STOP", "index": 0, **more.pop("candidate", {})}
    usage = {
        "promptTokenCount": 900, "cachedContentTokenCount": 400, "candidatesTokenCount": 15,
        "thoughtsTokenCount": 5, "totalTokenCount": 920,
    }  # fmt: skip
    reply = {
        "candidates": [candidate], "usageMetadata": usage, "modelVersion": "gemini-2.5-flash",
        "responseId": "r-1",
    }  # fmt: skip
    return _answer({**reply, **more})


def google_error(status: int, message: str, details: Any = None, **headers: str) -> Answer:
    """Return an error as Google reports it."""
    error = {"code": status, "message": message, "status": "AN_ERROR", "details": details or []}
    return _answer({"error": error}, status, **headers)


GOOGLE = Protocol(
    "google",
    "Gemini-2.5-Flash",
    "gemini-2.5-flash",
    "GEMINI_API_KEY",
    "",
    "/v1beta/models/gemini-2.5-flash:generateContent",
    lambda headers: headers.get("x-goog-api-key", ""),
    lambda body: _beyond(body, _GOOGLE) or _beyond(body["generationConfig"], _GENERATION),
    _google_parts,
    google_reply,
    google_error,
)

PROTOCOLS = (OPENAI, ANTHROPIC, GOOGLE)
