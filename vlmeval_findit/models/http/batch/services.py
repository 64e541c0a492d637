"""Batches at a service: made, looked for, looked at, fetched.

Requests begin with the chat body that a single call has, and results end in the completion that one
gives.  Sources: the batch pages of developers.openai.com/api/reference and of
platform.claude.com/docs, and ``vllm run-batch``, which reads and writes OpenAI's lines.
"""

from __future__ import annotations

import json
import sys
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Container, Mapping
from contextlib import closing
from datetime import datetime
from io import BytesIO
from tempfile import TemporaryFile
from typing import Any, BinaryIO
from urllib.parse import quote

from ..client import HttpClient, HttpRequest
from ..completion import CallError, Completion, error_of, read_completion
from ..endpoint import Endpoint
from ..providers.anthropic_messages import anthropic_headers, chat_reply, messages_request
from .records import Batch, BatchKind, BatchMatch, BatchStatus
from .results import Results

SKEW = 3600.0
"""Seconds by which our clock and a service's may differ."""

_NAME = "findit_batch"
_PAGE = 100


class BatchService(ABC):
    """Who takes batches; requests and results are OpenAI's lines, unless it says otherwise.

    ``name`` is its address without secrets.  It ``works_alone`` if results come without anybody
    doing something for them (:meth:`to_do`).  Where it ``takes_files``, requests are uploaded
    before a batch is made of them, which costs nothing.  Requests stand ``between`` in a file that
    begins with ``head`` and ends with ``tail``: at most ``requests`` in at most ``size`` bytes.
    """

    kind: BatchKind
    name: str = ""
    works_alone: bool = True
    takes_files: bool = False
    head: bytes = b""
    between: bytes = b"\n"
    tail: bytes = b"\n"
    requests: int = sys.maxsize
    size: int = sys.maxsize

    @staticmethod
    def line(key: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """A chat body as one request."""
        url = "/v1/chat/completions"
        return {"custom_id": key, "method": "POST", "url": url, "body": dict(body)}

    @staticmethod
    def completion(result: Mapping[str, Any], confidences: bool) -> Completion:
        """The completion in a result.

        Raises:
            CallError: there is none.
        """
        response = result.get("response")
        if isinstance(response, dict) and response.get("body"):
            status, body = response.get("status_code"), json.dumps(response["body"]).encode()
            if status == 200:
                return read_completion(body, confidences=confidences)
            if isinstance(status, int):
                raise error_of(body, status, "", None)
        return _no_completion(result.get("error"))

    @abstractmethod
    async def submit(self, batch: Batch, lines: BinaryIO, uploaded: Callable[[str], None]) -> str:
        """The id of a batch that was made of requests; ``uploaded`` takes that of their file.

        Raises:
            CallError: it was refused, or (without a status, or from 500 on) nobody knows.
        """

    @abstractmethod
    async def find(self, batch: Batch, known: Container[str]) -> BatchMatch:
        """A batch that may have been made: not one of those ``known``."""

    @abstractmethod
    async def status(self, id: str) -> BatchStatus:
        """How a batch goes."""

    @abstractmethod
    async def results(self, id: str) -> Results:
        """The results of a batch that ended; to be closed."""

    def to_do(self, id: str) -> str:
        """What the user should do for a batch."""
        return ""


def _no_completion(error: object) -> Completion:
    """Raise the error that stands in place of a reply, as a CallError."""
    return read_completion(json.dumps({"error": error or {"message": "no reply"}}).encode())


class _Http(BatchService):
    """What both services share."""

    def __init__(self, endpoint: Endpoint, timeout: float) -> None:
        self.name = endpoint.name
        self._endpoint = endpoint
        self._timeout = timeout

    def _headers(self) -> dict[str, str]:
        return self._endpoint.request_headers()

    async def _send(
        self,
        method: str,
        path: str,
        body: BinaryIO | None = None,
        form: Mapping[str, str] | None = None,
        into: BinaryIO | None = None,
    ) -> bytes:
        path, _, query = path.partition("?")
        url = self._endpoint.at(path, query)
        # A body is a file, which no client sends a second time: it might make a second batch.
        request = HttpRequest(method, url, self._headers(), body, form, into)
        # A batch is asked about once a minute: no connection is kept for it.
        async with HttpClient(self._timeout) as client:
            return await client.send(request)

    async def _object(self, *request: Any) -> dict[str, Any]:
        """The JSON object of a reply.

        Raises:
            CallError: it is none.
        """
        try:
            found = json.loads(await self._send(*request))
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise CallError("the reply about a batch is no JSON object")
        return found

    async def _made(self, *request: Any) -> str:
        """The id of a batch, or a file, that a reply is about."""
        found = (await self._object(*request)).get("id")
        if not isinstance(found, str):
            raise CallError("the reply about a batch has no id")
        return found

    async def _results(self, *paths: str) -> Results:
        file = TemporaryFile()  # noqa: SIM115 (closed with the results)
        try:
            for path in paths:
                await self._send("GET", path, None, None, file)
                file.write(b"\n")
            return Results(file)
        except BaseException:
            file.close()
            raise

    async def _listed(self, path: str, after: str) -> AsyncIterator[dict[str, Any]]:
        """All batches of the account, the newest first; ``after`` names the field of a page."""
        query = f"limit={_PAGE}"
        while True:
            page = await self._object("GET", f"{path}?{query}")
            batches = [one for one in page.get("data") or () if isinstance(one, dict)]
            for one in batches:
                if isinstance(one.get("id"), str):
                    yield one
            if not page.get("has_more") or not batches:
                return
            query = f"limit={_PAGE}&{after}={quote(str(batches[-1].get('id')), safe='')}"


class OpenAIBatches(_Http):
    """``/files`` and ``/batches``, of OpenAI and of who does as it does.

    A batch carries our name for it, by which it is found again.
    """

    kind = BatchKind.OPENAI
    takes_files = True
    requests = 50_000
    size = 200 * 10**6

    async def submit(self, batch: Batch, lines: BinaryIO, uploaded: Callable[[str], None]) -> str:
        fields = {"purpose": "batch", "filename": f"{batch.name}.jsonl"}
        try:
            file = await self._made("POST", "files", lines, fields)
        except CallError as error:
            # A file alone costs nothing: whatever happened to it, no batch was made.
            status = error.status if 400 <= error.status < 500 else 400
            message = f"the file of requests was not taken: {error}"
            raise CallError(message, status, hopeless=error.hopeless) from None
        uploaded(file)
        wanted = {
            "input_file_id": file,
            "endpoint": "/v1/chat/completions",
            "completion_window": "24h",
            "metadata": {_NAME: batch.name},
        }
        return await self._made("POST", "batches", BytesIO(json.dumps(wanted).encode()))

    async def find(self, batch: Batch, known: Container[str]) -> BatchMatch:
        async for one in self._listed("batches", "after"):
            made, metadata = one.get("created_at"), one.get("metadata")
            if isinstance(made, int | float) and made < batch.at - SKEW:
                break
            if isinstance(metadata, dict) and metadata.get(_NAME) == batch.name:
                return BatchMatch(one["id"])
        return BatchMatch()

    async def status(self, id: str) -> BatchStatus:
        found = await self._object("GET", f"batches/{quote(id, safe='')}")
        said, counts = str(found.get("status")), _counts(found)
        ended = said in ("completed", "expired", "cancelled", "failed")
        has_file = found.get("output_file_id") or found.get("error_file_id")
        refused = _why(found.get("errors")) if said == "failed" and not has_file else ""
        done = counts.get("completed", 0) + counts.get("failed", 0)
        return BatchStatus(said, done, ended, refused)

    async def results(self, id: str) -> Results:
        found = await self._object("GET", f"batches/{quote(id, safe='')}")
        files = (found.get(name) for name in ("output_file_id", "error_file_id"))
        paths = (f"files/{quote(one, safe='')}/content" for one in files if isinstance(one, str))
        return await self._results(*paths)


def _why(errors: object) -> str:
    data = errors.get("data") if isinstance(errors, dict) else None
    said = [one.get("message") for one in data or () if isinstance(one, dict)]
    return "; ".join(str(one) for one in said[:3]) or "it does not say why"


class AnthropicBatches(_Http):
    """``/messages/batches`` of Anthropic.

    A batch has no name of ours there.  One that may be it, by its time and its number of requests,
    is known by the ids in its results, so not before it has ended.
    """

    kind = BatchKind.ANTHROPIC
    head = b'{"requests": ['
    between = b",\n"
    tail = b"]}\n"
    requests = 100_000
    size = 256 * 10**6

    @staticmethod
    def line(key: str, body: Mapping[str, Any]) -> dict[str, Any]:
        return {"custom_id": key, "params": messages_request(body)}

    @staticmethod
    def completion(result: Mapping[str, Any], confidences: bool) -> Completion:
        found = result.get("result")
        found = found if isinstance(found, dict) else {}
        message, error = found.get("message"), found.get("error")
        if found.get("type") == "succeeded" and isinstance(message, dict):
            return read_completion(json.dumps(chat_reply(message)).encode())
        if isinstance(error, dict):
            return _no_completion(error.get("error", error))
        why = f"the request is {found.get('type') or 'without a result'}"
        return _no_completion({"message": why})

    async def submit(self, batch: Batch, lines: BinaryIO, uploaded: Callable[[str], None]) -> str:
        return await self._made("POST", "messages/batches", lines)

    async def find(self, batch: Batch, known: Container[str]) -> BatchMatch:
        perhaps = ""
        async for one in self._listed("messages/batches", "after_id"):
            made = _seconds(one.get("created_at"))
            if made is not None and made < batch.at - SKEW:
                break
            if one["id"] in known or sum(_counts(one).values()) != len(batch.keys):
                continue
            if one.get("processing_status") != "ended":
                perhaps = one["id"]
            elif one.get("results_url"):
                with closing(await self.results(one["id"])) as results:
                    if batch.keys <= results.keys():
                        return BatchMatch(one["id"])
        return BatchMatch(perhaps=perhaps)

    async def status(self, id: str) -> BatchStatus:
        found = await self._object("GET", f"messages/batches/{quote(id, safe='')}")
        said, counts = str(found.get("processing_status")), _counts(found)
        done = sum(counts.values()) - counts.get("processing", 0)
        return BatchStatus(said, done, said == "ended")

    async def results(self, id: str) -> Results:
        # Not the address that the batch names: the key goes nowhere else.
        return await self._results(f"messages/batches/{quote(id, safe='')}/results")

    def _headers(self) -> dict[str, str]:
        return anthropic_headers(self._endpoint)


def _counts(batch: Mapping[str, Any]) -> dict[str, int]:
    """How many requests of a batch there are, by how they are."""
    counts = batch.get("request_counts")
    counts = counts if isinstance(counts, dict) else {}
    return {kind: count for kind, count in counts.items() if isinstance(count, int)}


def _seconds(date: object) -> float | None:
    try:
        return datetime.fromisoformat(str(date)).timestamp()
    except ValueError:
        return None
