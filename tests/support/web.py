"""A web server on 127.0.0.1 that serves small stand-ins and misbehaves as it is told."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from ssl import SSLContext
from typing import Any

from json_replies import ServerProcess


@dataclass
class Answer:
    """The answer to a request.  ``cut`` closes after so many bytes, ``slow`` waits before it."""

    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    cut: int | None = None
    slow: float = 0.0
    pace: float = 0.0
    length: int | None = None
    ranges: bool = True
    etag: str | None = None


@dataclass
class Web:
    """The server, as tests see it: what it serves by path, and what it was asked."""

    url: str = ""
    answers: dict[str, list[Answer]] = field(default_factory=dict)
    folders: dict[str, Path] = field(default_factory=dict)
    asked: list[tuple[str, str | None]] = field(default_factory=list)
    now: int = 0
    most_at_once: int = 0
    hold: float = 0.0

    def serve(self, path: str, *answers: Answer | bytes) -> str:
        """Return the last answer is given again and again; returns the address."""
        self.answers[f"/{path}"] = [Answer(a) if isinstance(a, bytes) else a for a in answers]
        return self.url + path

    def answer(self, path: str) -> Answer:
        if path in self.answers:
            known = self.answers[path]
            return known.pop(0) if len(known) > 1 else known[0]
        for begin, folder in self.folders.items():
            file = folder / path.removeprefix(begin)
            if path.startswith(begin) and file.is_file():
                return Answer(file.read_bytes())
        return Answer(b"not here", 404)

    @property
    def requests(self) -> int:
        return len(self.asked)

    def counts(self) -> Counter[str]:
        return Counter(path for path, _ in self.asked)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    web: Web
    lock: threading.Lock

    def log_message(self, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        with self.lock:
            self.web.asked.append((self.path, self.headers.get("Range")))
            answer = self.web.answer(self.path)
            self.web.now += 1
            self.web.most_at_once = max(self.web.most_at_once, self.web.now)
        try:
            time.sleep(answer.slow + self.web.hold)
            self._send(answer)
        except OSError:
            pass
        finally:
            with self.lock:
                self.web.now -= 1

    def _send(self, answer: Answer) -> None:
        etag = answer.etag if answer.etag is not None else f'"{sha256(answer.body).hexdigest()}"'
        body = answer.body
        status = answer.status
        headers = dict(answer.headers)
        asked = self.headers.get("Range")
        fresh = self.headers.get("If-Range") in (None, etag)
        if asked and answer.ranges and status == 200 and fresh:
            first, _, last = asked.removeprefix("bytes=").partition("-")
            start = int(first)
            end = min(int(last or len(body) - 1), len(body) - 1)
            if start >= len(body):
                status, body = 416, b""
            else:
                status = 206
                headers["Content-Range"] = f"bytes {start}-{end}/{len(body)}"
                body = body[start : end + 1]
        self.send_response(status)
        if etag:
            self.send_header("ETag", etag)
        self.send_header("Content-Length", str(answer.length or len(body)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self._write(body, answer)

    def _write(self, body: bytes, answer: Answer) -> None:
        whole = body if answer.cut is None else body[: answer.cut]
        if answer.pace:
            for at in range(0, len(whole), 1024):
                self.wfile.write(whole[at : at + 1024])
                self.wfile.flush()
                time.sleep(answer.pace)
        else:
            self.wfile.write(whole)
        if answer.cut is not None or answer.length is not None:
            self.wfile.flush()
            self.close_connection = True


class _Server(ServerProcess):
    path = "/"

    def __init__(self, handler: type[_Handler], tls: SSLContext | None) -> None:
        super().__init__(handler, tls)
        self._server.handle_error = lambda *_: None  # type: ignore[method-assign]  # who hangs up


@contextmanager
def web_server(tls: SSLContext | None = None) -> Iterator[Web]:
    web = Web()
    handler = type("Handler", (_Handler,), {"web": web, "lock": threading.Lock()})
    with _Server(handler, tls) as server:
        web.url = server.url
        yield web
