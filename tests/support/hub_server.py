"""A small Hugging Face hub on 127.0.0.1: as much of its protocol as looking at a dataset
repository, creating one and one commit need.  Files come inline, as the hub takes small ones."""

from __future__ import annotations

import base64
import hashlib
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
    commits: dict[str, int] = field(default_factory=dict)
    full: bool = False

    def answer(self, method: str, path: str, body: bytes, token: str) -> tuple[int, Any]:
        self.asked.append(f"{method} {path}")
        if token != f"Bearer {self.token}":
            return 401, {"error": f"Invalid token {token}"}
        if path == "/api/repos/create":
            return self._create(json.loads(body))
        if path == "/api/validate-yaml":
            return 200, {"errors": [], "warnings": []}
        if path.startswith("/datasets/"):
            return self._file(path)
        _, _, _, owner, name, *rest = path.split("?")[0].split("/")
        if f"{owner}/{name}" not in self.repositories:
            return 404, {"error": "Repository not found", "code": "RepoNotFound"}
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
        full = f"{owner}/{name}"
        said = {"id": full, "sha": self.commit(full), "private": full in self.private}
        return 200, {**said, "siblings": []}

    def commit(self, name: str) -> str:
        """The newest commit of a repository."""
        return f"{self.commits.get(name, 0):040}"

    def _file(self, path: str) -> tuple[int, Any]:
        _, _, owner, name, _, _, *rest = path.split("?")[0].split("/")
        return 200, self.repositories[f"{owner}/{name}"]["/".join(rest)]

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
        lines = [json.loads(line) for line in body.splitlines()]
        if lines[0]["value"].get("parentCommit", self.commit(name)) != self.commit(name):
            return 412, {"error": "A commit has happened since. Please refresh and try again."}
        self.commits[name] = self.commits.get(name, 0) + 1
        for one in lines:
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

        def do_HEAD(self) -> None:
            self._answer()

        def do_POST(self) -> None:
            self._answer()

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            said = self.headers.get("Authorization", "")
            status, values = hub.answer(self.command, self.path, body, said)
            data = values if isinstance(values, bytes) else json.dumps(values).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            if isinstance(values, bytes):
                self.send_header("ETag", f'"{hashlib.sha1(values).hexdigest()}"')
                self.send_header("X-Repo-Commit", self.path.split("/resolve/")[1][:40])
            elif "code" in values:
                self.send_header("X-Error-Code", values["code"])
            self.end_headers()
            if self.command != "HEAD":
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
