"""A chat server on 127.0.0.1 that answers by a script."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from itertools import count
from typing import Any

from json_replies import JsonReplies, ServerProcess

from vlmeval_findit.models import PROBE_REQUEST


@dataclass(frozen=True)
class Answer:
    """An answer: its status, headers and body; ``never`` keeps the caller waiting."""

    body: bytes
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    never: bool = False
    delay: float = 0.0


@dataclass(frozen=True)
class Asked:
    """One request: its path, headers (names in lower case) and body."""

    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]


def completion(text: str | None = "[]", **more: Any) -> Answer:
    """A chat completion as OpenRouter sends it; ``usage``, ``message`` … replace its fields."""
    reply: dict[str, Any] = {
        "id": "gen-1",
        "model": "openai/gpt-5.4-2026-03-05",
        "provider": "OpenAI",
        "choices": [
            {
                "finish_reason": more.pop("finish_reason", "stop"),
                "message": {"role": "assistant", "content": text, **more.pop("message", {})},
            }
        ],
        "usage": {"prompt_tokens": 900, "completion_tokens": 20, "cost": 0.01},
    }
    return Answer(json.dumps({**reply, **more}).encode())


def error(status: int, message: str, **headers: str) -> Answer:
    """Return an error as services report it."""
    body = json.dumps({"error": {"code": status, "message": message}}).encode()
    return Answer(body, status, {name.replace("_", "-"): value for name, value in headers.items()})


NEVER = Answer(b"", never=True)
GARBAGE = Answer(b"<html>upstream fell over</html>")
NO_CHOICES = completion(choices=[])

Script = Callable[[Asked, int], Answer]
"""From a request and its number (from 0) to the answer."""


# Pages that keep the caller waiting, and that end the connection
NEVER_SHOWN, BREAKS_OFF = "never shown", "breaks off"


class ChatServer(ServerProcess):
    """Answers what a script says; ``asked`` are the requests, ``looked`` the pages looked at.

    ``pages`` are what GET shows by path: bytes, or values as JSON; all others are not there.
    """

    path = "/api/v1"

    def __init__(self, script: Script, pages: Mapping[str, Any] | None = None) -> None:
        super().__init__(self._handler())
        self.asked: list[Asked] = []
        self.looked: list[Asked] = []
        self._script = script
        self._pages = pages or {}

    def _handler(self) -> type[JsonReplies]:
        outer = self

        class Handler(JsonReplies, BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.looked.append(Asked(self.path, self.named(), {}))
                page = outer._pages.get(self.path)
                if page == NEVER_SHOWN:
                    outer._ended.wait(3600)
                elif page == BREAKS_OFF:
                    return
                elif page is None:
                    self.say(404, {"detail": "Not Found"})
                else:
                    self.say(200, page)

            def do_POST(self) -> None:
                asked = Asked(self.path, self.named(), json.loads(self.read()))
                with outer._lock:
                    number = len(outer.asked)
                    outer.asked.append(asked)
                answer = outer._script(asked, number)
                outer._ended.wait(3600 if answer.never else answer.delay)
                if answer.never:
                    return
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(answer.body)))
                self.end_headers()
                self.wfile.write(answer.body)

        return Handler


def is_first(asked: Asked) -> bool:
    """Return whether it is the question that comes before constrained ones."""
    return PROBE_REQUEST in json.dumps(asked.body)


def holding(script: Script) -> Script:
    """Return the script of a server that holds replies to formats: its first answer shows it, and
    it numbers the other questions from 0."""
    numbers = count()

    def held(asked: Asked, number: int) -> Answer:
        return completion(HELD_REPLY) if is_first(asked) else script(asked, next(numbers))

    return held


HELD_REPLY = '{"word": "quokka"}'


def in_turn(*answers: Answer) -> Script:
    """Return the answers one after the other, the last for ever."""
    return lambda asked, number: answers[min(number, len(answers) - 1)]


Serve = Callable[[Script], ChatServer]
"""What the fixture ``serve`` is: from a script to its server, which ends with the test."""
