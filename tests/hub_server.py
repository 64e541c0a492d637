"""A small Hugging Face hub on 127.0.0.1: as much of its protocol as creating a dataset repository
and one commit need.  Files come inline, as the hub takes small ones."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Hub:
    """The hub as tests see it: repositories with their files, and what was asked."""

    url: str = ""
    token: str = "hf_" + "a1B2" * 8
    repositories: dict[str, dict[str, bytes]] = field(default_factory=dict)
    private: set[str] = field(default_factory=set)
    asked: list[str] = field(default_factory=list)
    full: bool = False

    def answer(self, method: str, path: str, body: bytes, token: str) -> tuple[int, Any]:
        self.asked.append(f"{method} {path}")
        if token != f"Bearer {self.token}":
            return 401, {"error": f"Invalid token {token}"}
        if path == "/api/repos/create":
            return self._create(json.loads(body))
        if path == "/api/validate-yaml":
            return 200, {"errors": [], "warnings": []}
        _, _, _, owner, name, *rest = path.split("?")[0].split("/")
        files = self.repositories[f"{owner}/{name}"]
        if rest[:1] == ["preupload"]:
            wanted = [one["path"] for one in json.loads(body)["files"]]
            modes = [
                {"path": one, "uploadMode": "regular", "shouldIgnore": False, "oid": None}
                for one in wanted
            ]
            return 200, {"files": modes}
        if rest[:1] == ["commit"]:
            return self._commit(f"{owner}/{name}", files, body)
        if rest[:1] == ["tree"]:
            return 200, [
                {"type": "file", "path": one, "size": len(data), "oid": "0" * 40}
                for one, data in files.items()
            ]
        return 200, {"id": f"{owner}/{name}", "sha": "0" * 40, "siblings": []}

    def _create(self, asked: dict[str, Any]) -> tuple[int, Any]:
        name = f"{asked['organization']}/{asked['name']}"
        if name in self.repositories:
            return 409, {"error": "exists", "url": f"{self.url}/datasets/{name}"}
        self.repositories[name] = {}
        if asked.get("private") or asked.get("visibility") == "private":
            self.private.add(name)
        return 200, {"url": f"{self.url}/datasets/{name}"}

    def _commit(self, name: str, files: dict[str, bytes], body: bytes) -> tuple[int, Any]:
        if self.full:
            return 403, {"error": "Private repository storage limit reached"}
        for line in body.splitlines():
            one = json.loads(line)
            value = one["value"]
            if one["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif one["key"] == "deletedFile":
                files.pop(value["path"])
        url = f"{self.url}/datasets/{name}/commit/{'0' * 40}"
        return 200, {"commitUrl": url, "commitOid": "0" * 40, "hookOutput": "", "success": True}


@contextmanager
def hub_server() -> Iterator[Hub]:
    hub = Hub()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *args: Any) -> None:
            pass

        def do_GET(self) -> None:
            self._answer()

        def do_POST(self) -> None:
            self._answer()

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            said = self.headers.get("Authorization", "")
            status, values = hub.answer(self.command, self.path, body, said)
            data = json.dumps(values).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    hub.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
