"""A server that takes batches as OpenAI and Anthropic do, on 127.0.0.1."""

from __future__ import annotations

import email
import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler
from time import time
from typing import Any
from urllib.parse import parse_qs, urlsplit

from json_replies import JsonReplies, ServerProcess

AnswerOf = Callable[[Mapping[str, Any]], str]
"""From a chat body (or Anthropic's) to the answer."""


def words(body: Mapping[str, Any]) -> str:
    """Return the texts of a request."""
    parts = body["messages"][0]["content"]
    return " ".join(part["text"] for part in parts if part["type"] == "text")


def one_box(body: Mapping[str, Any]) -> str:
    """Return the same box to the same words."""
    return f'[{{"bbox": [10, 20, {200 + len(words(body)) % 700}, 900]}}]'


@dataclass
class Batch:
    """A batch: its requests by id, and how often its state was asked for."""

    id: str
    requests: dict[str, Mapping[str, Any]]
    metadata: Mapping[str, str]
    created: float
    polls: int = 0
    input_file: str = ""
    is_refused: bool = False  # too much was on its way


@dataclass
class BatchSettings:
    """How the server behaves."""

    polls: int = 0  # before a batch ends
    outcomes: Mapping[int, str] = field(default_factory=dict)  # request: "errored" or "expired"
    status: str = "completed"  # of ended batches
    refused: str = ""  # why a batch fails at once
    loses_reply: int = 0  # batches that are created and whose creator gets an error
    gateway_status: int = 502  # of errors of a gateway
    hides: int = 0  # lists of batches that are empty
    falls_over: int = 0  # questions about a batch that get 502
    forgets: int = 0  # questions about a batch that get 404
    hangs: str = "nothing"  # beginning of requests that are handled and never answered
    archives: bool = False  # Anthropic's results are gone
    denies: bool = False  # every request gets 401
    uploads: float = 0.0  # seconds of an upload
    spoils: Callable[[str, bytes], bytes] = lambda path, content: content  # files of results
    lost_files: str = "nothing"  # beginning of the names of files that are gone
    busy: dict[str, int] = field(default_factory=dict)  # requests that get 429, by their beginning
    late: int = 0  # looks at an ended batch that do not name its files
    spoils_once: int = 10**9  # downloads that are spoilt
    on_way: int = 10**9  # requests that may be on their way; larger batches fail
    hides_names: bool = False  # neither metadata nor files are repeated
    skew: float = 0.0  # seconds by which its clock goes before ours


class BusyError(Exception):
    """A request that is refused for now."""


class BatchServer(ServerProcess):
    """``with BatchServer() as server``: takes batches and chats at ``server.url``."""

    def __init__(self, answer: AnswerOf = one_box, **settings: Any) -> None:
        super().__init__(self._handler())
        self.settings = BatchSettings(**settings)
        self.asked: Counter[str] = Counter()
        self.single = 0
        self.batches: dict[str, Batch] = {}
        self.headers: list[Mapping[str, str]] = []
        self.paths: list[str] = []
        self.files: dict[str, bytes] = {}
        self._answer_of = answer

    def forget(self) -> None:
        """Forget everything; stay at the same address."""
        self.asked.clear()
        self.batches.clear()
        self.files.clear()

    def _refuse_if_busy(self, request: str) -> None:
        for begin, left in self.settings.busy.items():
            if left and request.startswith(begin):
                self.settings.busy[begin] -= 1
                raise BusyError

    # --- both protocols ---------------------------------------------------------------------------

    def _create(self, requests: dict[str, Any], metadata: Mapping[str, str]) -> Batch:
        open_batches = [each for each in self.batches.values() if not self._has_ended(each)]
        on_way = sum(len(each.requests) for each in open_batches) + len(requests)
        at = time() + self.settings.skew
        batch = Batch(f"batch_{len(self.batches)}", requests, metadata, at)
        batch.is_refused = "findit_batch" in metadata and on_way > self.settings.on_way
        self.batches[batch.id] = batch
        if batch.is_refused:
            return batch
        self.asked.update(requests.keys())
        return batch

    def _has_ended(self, batch: Batch) -> bool:
        return batch.is_refused or batch.polls > self.settings.polls

    def _spoilt(self, kind: str, lines: list[dict[str, Any]]) -> bytes:
        content = "\n".join(map(json.dumps, lines)).encode()
        self.settings.spoils_once -= 1
        return self.settings.spoils(kind, content) if self.settings.spoils_once >= 0 else content

    def _lost(self) -> bool:
        self.settings.loses_reply -= 1
        return self.settings.loses_reply >= 0

    def _listed(self, query: Mapping[str, list[str]], after: str) -> tuple[list[Batch], bool]:
        if self.settings.hides > 0:
            self.settings.hides -= 1
            return [], False
        newest = list(self.batches.values())[::-1]
        last = query.get(after, [""])[0]
        start = next((at + 1 for at, batch in enumerate(newest) if batch.id == last), 0)
        return newest[start : start + 2], len(newest) > start + 2  # pages of two

    def _outcomes(self, batch: Batch) -> list[tuple[str, Mapping[str, Any], str]]:
        outcomes = self.settings.outcomes
        results = [
            (key, body, outcomes.get(number, "succeeded"))
            for number, (key, body) in enumerate(batch.requests.items())
        ]
        return results[::-1]

    # --- OpenAI -----------------------------------------------------------------------------------

    def _openai(self, batch: Batch) -> dict[str, Any]:
        ended = batch.polls > self.settings.polls
        status = self.settings.status if ended else "in_progress"
        status = "failed" if self.settings.refused or batch.is_refused else status
        values = {
            "id": batch.id, "object": "batch", "status": status,
            "created_at": int(batch.created), "metadata": batch.metadata,
            "request_counts": {
                "total": len(batch.requests), "completed": min(batch.polls, len(batch.requests)),
                "failed": 0,
            },
        }  # fmt: skip
        if not self.settings.hides_names:
            values["input_file_id"] = batch.input_file
        else:
            values["metadata"] = None
        if batch.is_refused:
            error = {"code": "token_limit_exceeded", "message": "Enqueued token limit reached"}
            return {**values, "errors": {"data": [error]}}
        if self.settings.refused:
            return {**values, "errors": {"data": [{"message": self.settings.refused}]}}
        if ended:
            outcomes = [outcome for _, _, outcome in self._outcomes(batch)]
            values["request_counts"] |= {
                "completed": outcomes.count("succeeded"),
                "failed": len(outcomes) - outcomes.count("succeeded"),
            }
            self.settings.late -= 1
            if self.settings.late >= 0:
                return {**values, "output_file_id": None}
            kinds = {outcome == "succeeded" for _, _, outcome in self._outcomes(batch)}
            values |= {"output_file_id": f"out-{batch.id}"} if True in kinds else {}
            values |= {"error_file_id": f"err-{batch.id}"} if False in kinds else {}
        return values

    def _openai_file(self, name: str) -> bytes:
        kind, _, id = name.partition("-")
        if name.startswith(self.settings.lost_files):
            raise KeyError(name)
        lines = []
        for key, body, outcome in self._outcomes(self.batches[id]):
            if (outcome == "succeeded") != (kind == "out"):
                continue
            reply = chat(self._answer_of(body)) if outcome == "succeeded" else None
            response = {"status_code": 200, "request_id": "r", "body": reply}
            error = None
            if outcome == "errored":
                response = {"status_code": 400, "body": {"error": {"message": "too many pixels"}}}
            if outcome == "expired":
                response = None
                error = {"code": "batch_expired", "message": "too late"}
            lines.append({"id": "l", "custom_id": key, "response": response, "error": error})
        return self._spoilt(kind, lines)

    # --- Anthropic --------------------------------------------------------------------------------

    def _anthropic(self, batch: Batch) -> dict[str, Any]:
        ended = batch.polls > self.settings.polls
        count = len(batch.requests)
        done = "succeeded" if ended else "processing"
        return {
            "id": batch.id, "type": "message_batch",
            "processing_status": "ended" if ended else "in_progress",
            "created_at": datetime.fromtimestamp(batch.created, UTC).isoformat(),
            "request_counts": {"processing": 0, "succeeded": 0, "errored": 0, done: count},
            "results_url": self._results_url(batch) if ended else None,
        }  # fmt: skip

    def _results_url(self, batch: Batch) -> str | None:
        return None if self.settings.archives else f"http://elsewhere.invalid/{batch.id}/results"

    def _anthropic_results(self, batch: Batch) -> bytes:
        if self.settings.archives:
            raise KeyError("results")
        lines = []
        for key, body, outcome in self._outcomes(batch):
            result: dict[str, Any] = {"type": outcome}
            if outcome == "succeeded":
                result["message"] = message(self._answer_of(body))
            if outcome == "errored":
                inner = {"type": "invalid_request_error", "message": "too many pixels"}
                result["error"] = {"type": "error", "error": inner}
            lines.append({"custom_id": key, "result": result})
        return self._spoilt("out", lines)

    # --- the paths --------------------------------------------------------------------------------

    def _get(self, path: str, query: Mapping[str, list[str]]) -> bytes | dict[str, Any]:
        if self.settings.falls_over > 0:
            self.settings.falls_over -= 1
            raise ConnectionError
        if self.settings.forgets > 0:
            self.settings.forgets -= 1
            raise KeyError("batch")
        if path == "/batches":
            batches, more = self._listed(query, "after")
            return {"data": [self._openai(batch) for batch in batches], "has_more": more}
        if path == "/messages/batches":
            batches, more = self._listed(query, "after_id")
            for batch in batches:
                batch.polls += 1
            return {"data": [self._anthropic(batch) for batch in batches], "has_more": more}
        if path.startswith("/files/"):
            return self._openai_file(path.split("/")[2])
        name = path.split("/")[3 if path.startswith("/messages") else 2]
        batch = self.batches[name]
        if path.endswith("/results"):
            return self._anthropic_results(batch)
        batch.polls += 1
        return self._anthropic(batch) if path.startswith("/messages") else self._openai(batch)

    def _post(self, path: str, kind: str, data: bytes) -> dict[str, Any]:
        if path == "/files":
            self._ended.wait(self.settings.uploads)
            whole = b"Content-Type: " + kind.encode() + b"\r\n\r\n" + data
            parts = email.message_from_bytes(whole).get_payload()
            assert isinstance(parts, list)
            fields = {part.get_param("name", header="content-disposition"): part for part in parts}
            assert fields["purpose"].get_payload() == "batch"
            id = f"file-{len(self.files)}"
            self.files[id] = fields["file"].get_payload(decode=True)
            return {"id": id, "created_at": int(time() + self.settings.skew)}
        body = json.loads(data)
        if path == "/chat/completions":
            self.single += 1
            return chat(self._answer_of(body))
        if path == "/batches":
            assert body["completion_window"] == "24h"
            lines = [json.loads(line) for line in self.files[body["input_file_id"]].splitlines()]
            assert {(line["method"], line["url"]) for line in lines} == {("POST", body["endpoint"])}
            requests = {line["custom_id"]: line["body"] for line in lines}
            batch = self._create(requests, body["metadata"])
            batch.input_file = body["input_file_id"]
            shown = self._openai
        else:
            requests = {each["custom_id"]: each["params"] for each in body["requests"]}
            batch = self._create(requests, {})
            shown = self._anthropic
        if self._lost():
            raise ConnectionError
        return shown(batch)

    def _handler(self) -> type[JsonReplies]:
        outer = self

        class Handler(JsonReplies, BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                url = urlsplit(self.path)
                self._answer(lambda: outer._get(url.path[3:], parse_qs(url.query)))

            def do_POST(self) -> None:
                data = self.read()
                kind = self.headers["Content-Type"]
                self._answer(lambda: outer._post(self.path[3:], kind, data))

            def _answer(self, make: Callable[[], bytes | dict[str, Any]]) -> None:
                with outer._lock:
                    outer.headers.append(self.named())
                    outer.paths.append(f"{self.command} {self.path}")
                    try:
                        if outer.settings.denies:
                            raise PermissionError
                        outer._refuse_if_busy(f"{self.command} {self.path}")
                        content, status = make(), 200
                    except BusyError:
                        content = {"error": {"message": "slow down"}}
                        status = 429
                    except PermissionError:
                        content = {"error": {"message": "this key may not"}}
                        status = 401
                    except ConnectionError:
                        content = {"error": {"message": "bad gateway"}}
                        status = outer.settings.gateway_status
                    except KeyError as error:
                        content = {"error": {"message": f"no {error}"}}
                        status = 404
                if f"{self.command} {self.path}".startswith(outer.settings.hangs):
                    outer._ended.wait()
                self.say(status, content)

        return Handler


def chat(text: str) -> dict[str, Any]:
    """Return a chat completion."""
    return {
        "id": "gen-1",
        "model": "served",
        "choices": [{"finish_reason": "stop", "message": {"content": text}}],
        "usage": {"prompt_tokens": 900, "completion_tokens": 20},
    }


def message(text: str) -> dict[str, Any]:
    """Return Anthropic's message, with a thought before the text."""
    return {
        "id": "gen-1",
        "model": "served",
        "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": text}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 800, "cache_read_input_tokens": 100, "output_tokens": 20},
    }
