"""A small client of OpenAI-compatible servers: one user message, images as data URLs, greedy.

A call that one server cannot take goes to the next one.  Certificates are verified and redirects
are not followed, whatever VLMEvalKit has switched off for its own connections.
"""

from __future__ import annotations

import base64
import http.client
import io
import json
import mimetypes
import os
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..predictions import RECORD_KEY
from .asking import Answer, Work, said
from .calls import HostMessage

KEY_VARIABLE = "FINDIT_SERVER_KEY"
"""The environment variable with the servers' key, where they want one."""

_TRANSIENT = frozenset({408, 429, 500, 502, 503, 504})
_SENT_AS_THEY_ARE = frozenset({"image/jpeg", "image/png", "image/webp"})
_OURS = ("max_new_tokens", "image_folder", "served")
"""Settings of a call that are no fields of a request."""


class ServerAsker:
    """One of several servers; any number of threads may use it.

    Args:
        urls: base URLs up to and with ``/v1``, the one that is asked first in front.
        served: the servers' name for the model.
        attempts: how often a call is tried, over all servers.
        timeout: seconds for one attempt.
        sleep: waits a number of seconds.
    """

    def __init__(
        self,
        urls: Sequence[str],
        served: str,
        attempts: int = 5,
        timeout: float = 600.0,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._urls = [check_url(url) for url in urls]
        self._served = served
        self._attempts = attempts
        self._timeout = timeout
        self._sleep = sleep
        context = ssl.create_default_context()
        self._opener = urllib.request.build_opener(
            urllib.request.HTTPSHandler(context=context), _NoRedirect()
        )

    def ask(self, work: Work) -> list[Answer]:
        return [self._one(message, work.settings) for message in work.messages]

    def answers_together(self, *, shares_images: bool) -> bool:
        return False

    def _one(self, message: HostMessage, settings: Mapping[str, Any]) -> Answer:
        start = time.perf_counter()
        try:
            answer = self._tried(json.dumps(body(message, self._served, settings)).encode())
        except (OSError, ValueError, http.client.HTTPException) as error:
            answer = Answer("", error=_reason(error))
        return answer._replace(seconds=time.perf_counter() - start)

    def _tried(self, data: bytes) -> Answer:
        """The answer of the first server that gives one.

        Raises:
            OSError, ValueError, HTTPException: the last attempt's error.
        """
        for attempt in range(self._attempts):
            url = self._urls[attempt % len(self._urls)]
            try:
                return read_reply(self._post(url, data))
            except (OSError, http.client.HTTPException) as error:
                status = getattr(error, "code", None)
                hopeless = status is not None and status not in _TRANSIENT
                if hopeless or attempt + 1 == self._attempts:
                    raise
            if (attempt + 1) % len(self._urls) == 0:
                # Every server was asked once more.
                self._sleep(0.5 * 2 ** (attempt // len(self._urls)))
        raise AssertionError("the last attempt returns or raises")

    def _post(self, url: str, data: bytes) -> bytes:
        headers = {"Content-Type": "application/json"}
        key = os.environ.get(KEY_VARIABLE, "").strip()
        if key:
            headers["Authorization"] = f"Bearer {key}"
        request = urllib.request.Request(f"{url}/chat/completions", data, headers, method="POST")
        with self._opener.open(request, timeout=self._timeout) as reply:
            content: bytes = reply.read()
            return content


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect would carry the key to another host."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


def check_url(url: str) -> str:
    """A base URL without its last slash.

    Raises:
        ValueError: it is none.
    """
    if not url.startswith(("http://", "https://")):
        raise ValueError(f"the endpoint {url!r} should begin with http:// or https://")
    return url.rstrip("/")


def body(message: HostMessage, served: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """A request: greedy, with as many new tokens as the settings say, images at their places.

    Raises:
        OSError: an image cannot be read.
    """
    content = [
        {"type": "image_url", "image_url": {"url": data_url(Path(part["value"]))}}
        if part["type"] == "image"
        else {"type": "text", "text": part["value"]}
        for part in message
    ]
    return {
        "model": served,
        "messages": [{"role": "user", "content": content}],
        "max_tokens": settings["max_new_tokens"],
        "temperature": 0,
        **{name: value for name, value in settings.items() if name not in _OURS},
    }


@lru_cache(maxsize=64)
def data_url(path: Path) -> str:
    """An image as a data URL: its own bytes where servers read them, else as PNG.

    Variants of one image come together, so the last few are kept.
    """
    kind = mimetypes.guess_type(path.name)[0]
    content = path.read_bytes()
    if kind not in _SENT_AS_THEY_ARE:
        from PIL import Image

        with Image.open(io.BytesIO(content)) as image:
            out = io.BytesIO()
            image.convert("RGB").save(out, "PNG")
        kind, content = "image/png", out.getvalue()
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def read_reply(content: bytes) -> Answer:
    """The answer in the body of a reply.

    Raises:
        ValueError: it is not JSON or has no choice.
    """
    reply = json.loads(content)
    try:
        choice = reply["choices"][0]
        text = choice["message"]["content"] or ""
    except (KeyError, IndexError, TypeError):
        raise ValueError(f"the reply has no choice: {content[:200]!r}") from None
    usage = reply.get("usage") or {}
    counts = {"prompt": usage.get("prompt_tokens"), "completion": usage.get("completion_tokens")}
    record = {
        "finish_reason": choice.get("finish_reason") or "",
        "tokens": {name: n for name, n in counts.items() if n is not None},
    }
    return Answer(text, json.dumps({RECORD_KEY: record}))


def _reason(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        with error:
            return f"HTTP {error.code}: {error.read(300).decode('utf-8', 'replace')}".strip()
    return said(error)
