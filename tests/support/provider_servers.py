"""Servers with the protocols of OpenAI, Anthropic and Google, on 127.0.0.1."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from chat_server import Answer, Asked, ChatServer, Script

KEY = "sk-own-c0ffee-SECRET"


@dataclass(frozen=True)
class Protocol:
    """One provider's: ``provider`` and ``model`` in our tables, ``called`` is its name there.

    ``path`` and ``key`` (a header and its value) are of a request; ``reply`` and ``error`` are its
    answers.
    """

    provider: str
    model: str
    called: str
    variable: str
    base: str
    path: str
    key: tuple[str, str]
    reply: Callable[..., Answer]
    error: Callable[..., Answer]

    def answering(self, answer_of: Callable[[Mapping[str, Any]], str]) -> Script:
        """Return a script that answers bodies, and refuses other paths and keys."""
        header, key = self.key

        def script(asked: Asked, number: int) -> Answer:
            if asked.path != self.path:
                return self.error(404, f"no such model: {asked.path}")
            if asked.headers.get(header) != key:
                return self.error(401, "invalid key")
            return self.reply(answer_of(asked.body))

        return script


def address(server: ChatServer, protocol: Protocol) -> str:
    """Return where a server speaks a protocol."""
    return server.url.removesuffix("/api/v1") + protocol.base


def _answer(value: object, status: int = 200) -> Answer:
    return Answer(json.dumps(value).encode(), status)


# --- OpenAI ---------------------------------------------------------------------------------------


def openai_reply(text: str = "[]", **more: Any) -> Answer:
    """Return a chat completion as OpenAI sends it."""
    message = {"role": "assistant", "content": text, "refusal": None}
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


def openai_error(status: int, message: str, code: str | None = None) -> Answer:
    """Return an error as OpenAI reports it."""
    return _answer({"error": {"message": message, "type": "an_error", "code": code}}, status)


OPENAI = Protocol(
    "openai",
    "GPT-5.4",
    "gpt-5.4",
    "OPENAI_API_KEY",
    "/v1",
    "/v1/chat/completions",
    ("authorization", f"Bearer {KEY}"),
    openai_reply,
    openai_error,
)

# --- Anthropic ------------------------------------------------------------------------------------


def anthropic_reply(text: str = "[]", **more: Any) -> Answer:
    """Return a message as Anthropic sends it; with a ``thought`` before the text."""
    content = [{"type": "text", "text": text}]
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


def anthropic_error(status: int, message: str, kind: str = "an_error") -> Answer:
    """Return an error as Anthropic reports it."""
    error = {"type": kind, "message": message}
    return _answer({"type": "error", "error": error, "request_id": "r"}, status)


ANTHROPIC = Protocol(
    "anthropic",
    "Claude-Sonnet-4.5",
    "claude-sonnet-4-5",
    "ANTHROPIC_API_KEY",
    "",
    "/v1/messages",
    ("x-api-key", KEY),
    anthropic_reply,
    anthropic_error,
)

# --- Google ---------------------------------------------------------------------------------------


def google_reply(text: str = "[]", **more: Any) -> Answer:
    """A reply of ``generateContent`` as Google sends it; with a ``thought`` before the text."""
    parts: list[dict[str, Any]] = [{"text": text}]
    if thought := more.pop("thought", ""):
        parts.insert(0, {"text": thought, "thought": True})
    content = {"parts": parts, "role": "model"}
    candidate = {
        "content": content,
        "finishReason": "STOP",
        "index": 0,
        **more.pop("candidate", {}),
    }
    usage = {
        "promptTokenCount": 900, "cachedContentTokenCount": 400, "candidatesTokenCount": 15,
        "thoughtsTokenCount": 5, "totalTokenCount": 920,
    }  # fmt: skip
    reply = {
        "candidates": [candidate], "usageMetadata": usage, "modelVersion": "gemini-2.5-flash",
        "responseId": "r-1",
    }  # fmt: skip
    return _answer({**reply, **more})


def google_error(status: int, message: str, details: Any = None) -> Answer:
    """Return an error as Google reports it."""
    error = {"code": status, "message": message, "status": "AN_ERROR", "details": details or []}
    return _answer({"error": error}, status)


GOOGLE = Protocol(
    "google",
    "Gemini-2.5-Flash",
    "gemini-2.5-flash",
    "GEMINI_API_KEY",
    "",
    "/v1beta/models/gemini-2.5-flash:generateContent",
    ("x-goog-api-key", KEY),
    google_reply,
    google_error,
)

PROTOCOLS = (OPENAI, ANTHROPIC, GOOGLE)
