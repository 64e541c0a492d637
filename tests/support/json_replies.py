"""What the tests' servers share: where they listen, and a handler that answers with JSON."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ssl import SSLContext
from typing import ClassVar, Self


class JsonReplies(BaseHTTPRequestHandler):
    def read(self) -> bytes:
        """Return the body of the request."""
        return self.rfile.read(int(self.headers["Content-Length"]))

    def named(self) -> dict[str, str]:
        """Return the headers of the request, by their names in lower case."""
        return {name.lower(): value for name, value in self.headers.items()}

    def say(self, status: int, answer: object) -> None:
        """Answer with bytes, or with a value as JSON."""
        body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:
        pass


class ServerProcess:
    """``with ServerProcess(handler) as server``: answers at ``server.url`` until the end."""

    path: ClassVar[str] = "/v1"

    def __init__(
        self, handler: type[BaseHTTPRequestHandler], tls: SSLContext | None = None
    ) -> None:
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self._scheme = "http"
        if tls is not None:
            self._scheme = "https"
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)

    @property
    def url(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self._server.server_address[1]}{self.path}"

    def __enter__(self) -> Self:
        # The interval is what the end of a server takes.
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        self._server.shutdown()
        self._server.server_close()
