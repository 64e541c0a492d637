"""Batches at a service: made, looked for, looked at, fetched.

Requests begin with the chat body that a single call has, and results end in the completion that one
gives.  Sources: the batch pages of developers.openai.com/api/reference and of
platform.claude.com/docs, and ``vllm run-batch``, which reads and writes OpenAI's lines.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Container, Mapping
from contextlib import closing
from datetime import datetime
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, BinaryIO
from urllib.parse import quote

from ....core.files import replacing
from ..client import HttpClient, HttpRequest
from ..completion import CallError, Completion, error_of, read_completion
from ..endpoint import Endpoint
from ..providers.anthropic_messages import anthropic_headers, chat_reply, messages_request
from .records import Batch, BatchKind, BatchMatch, BatchStatus

SKEW = 3600.0
"""Seconds by which our clock and a service's may differ."""

_NAME = "findit_batch"
_URL = "/v1/chat/completions"


class Results:
    """The results of a batch by the id of their request, from lines of JSON in any order.

    They stay on the disk, since log-probabilities make them large.  What is no result is left out,
    of several for one request the first counts.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.places: dict[str, int] = {}
        """Where the line of each request begins."""
        start = file.seek(0)
        for line in file:
            try:
                found = json.loads(line)
            except (ValueError, RecursionError):
                found = None
            if isinstance(found, dict) and isinstance(found.get("custom_id"), str):
                self.places.setdefault(found["custom_id"], start)
            start += len(line)

    def get(self, key: str) -> dict[str, Any] | None:
        """The result of a request, None where it has none."""
        if key not in self.places:
            return None
        self._file.seek(self.places[key])
        found: dict[str, Any] = json.loads(self._file.readline())
        return found

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class BatchService(ABC):
    """Who takes batches; requests and results are OpenAI's lines, unless it says otherwise."""

    kind: BatchKind
    name: str = ""
    """Its address without secrets."""
    works_alone: bool = True
    """Whether results come without anybody doing something for them (:meth:`to_do`)."""
    takes_files: bool = False
    """Whether requests are uploaded before a batch is made of them, which costs nothing."""
    head: bytes = b""
    between: bytes = b"\n"
    tail: bytes = b"\n"
    """Around requests in a file: at most ``requests`` in at most ``size`` bytes."""
    requests: int = sys.maxsize
    size: int = sys.maxsize

    @staticmethod
    def line(key: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """A chat body as one request."""
        return {"custom_id": key, "method": "POST", "url": _URL, "body": dict(body)}

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

    async def upload(self, batch: Batch, lines: BinaryIO) -> str:
        """The id of a file of requests, where the service takes files."""
        raise NotImplementedError

    @abstractmethod
    async def submit(self, batch: Batch, lines: BinaryIO) -> str:
        """The id of a batch that was made of requests.

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
    async def results(self, places: tuple[str, ...]) -> Results:
        """The results of a batch that ended; to be closed."""

    def to_do(self, id: str) -> str:
        """What the user should do for a batch."""
        return ""


def _no_completion(error: object) -> Completion:
    """Raise the error that stands in place of a reply, as a CallError."""
    return read_completion(json.dumps({"error": error or {"message": "no reply"}}).encode())


class BatchFiles(BatchService):
    """Files for ``vllm run-batch``: no server, no network.

    A batch is ``NAME.jsonl``; its results are wanted as ``NAME.results.jsonl`` beside it.

    Args:
        folder: made when the first batch is written.
        model: the served model's name, for the command that is said.
    """

    kind = BatchKind.FILES
    works_alone = False

    def __init__(self, folder: Path, model: str) -> None:
        self._folder = folder
        self._model = model

    async def submit(self, batch: Batch, lines: BinaryIO) -> str:
        self._folder.mkdir(parents=True, exist_ok=True)
        with replacing(self._file(batch.name)) as temporary, temporary.open("wb") as f:
            shutil.copyfileobj(lines, f)
            f.flush()
            os.fsync(f.fileno())
        return batch.name

    async def find(self, batch: Batch, known: Container[str]) -> BatchMatch:
        return BatchMatch(batch.name if self._file(batch.name).is_file() else "")

    async def status(self, id: str) -> BatchStatus:
        requests, results = self._file(id), self._file(f"{id}.results")
        if results.is_file():
            return BatchStatus("worked", results=(str(results),))
        gone = "" if requests.is_file() else f"{requests} is not there any more"
        return BatchStatus("written", refused=gone)

    async def results(self, places: tuple[str, ...]) -> Results:
        return Results(Path(places[0]).open("rb"))

    def to_do(self, id: str) -> str:
        files = f"-i {self._file(id)} -o {self._file(f'{id}.results')}"
        return f"vllm run-batch {files} --model {self._model}"

    def _file(self, name: str) -> Path:
        return self._folder / f"{name}.jsonl"


class _Http(BatchService):
    """What both services share."""

    def __init__(self, endpoint: Endpoint, timeout: float) -> None:
        self.name = endpoint.name
        self._endpoint = endpoint
        self._timeout = timeout

    def _headers(self) -> dict[str, str]:
        return self._endpoint.request_headers()

    async def _send(
        self, method: str, path: str, *body: Any, into: BinaryIO | None = None
    ) -> bytes:
        path, _, query = path.partition("?")
        url, headers = self._endpoint.at(path, query), self._headers()
        # A body is a file, which no client sends a second time: it might make a second batch.
        request = HttpRequest(method, url, headers, *body)._replace(into=into)
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
        """The id of a batch, or a file, that was made."""
        found = (await self._object("POST", *request)).get("id")
        if not isinstance(found, str):
            raise CallError("the reply about a batch has no id")
        return found

    async def results(self, places: tuple[str, ...]) -> Results:
        file = TemporaryFile()  # noqa: SIM115 (closed with the results)
        try:
            for path in places:
                await self._send("GET", path, into=file)
                file.write(b"\n")
            return Results(file)
        except BaseException:
            file.close()
            raise

    async def _listed(self, path: str, after: str, at: float) -> AsyncIterator[dict[str, Any]]:
        """The account's batches that may have been made ``at`` a time or later, the newest first;
        ``after`` names the field of a page.
        """
        query = "limit=100"
        while True:
            page = await self._object("GET", f"{path}?{query}")
            batches = [one for one in page.get("data") or () if isinstance(one, dict)]
            for one in batches:
                made = _seconds(one.get("created_at"))
                if made is not None and made < at - SKEW:
                    return
                if isinstance(one.get("id"), str):
                    yield one
            if not page.get("has_more") or not batches:
                return
            query = f"limit=100&{after}={quote(str(batches[-1].get('id')), safe='')}"


class OpenAIBatches(_Http):
    """``/files`` and ``/batches``, of OpenAI and of who does as it does.

    A batch carries our name for it, by which it is found again.
    """

    kind = BatchKind.OPENAI
    takes_files = True
    requests = 50_000
    size = 200 * 10**6

    async def upload(self, batch: Batch, lines: BinaryIO) -> str:
        fields = {"purpose": "batch", "filename": f"{batch.name}.jsonl"}
        return await self._made("files", lines, fields)

    async def submit(self, batch: Batch, lines: BinaryIO) -> str:
        wanted = {
            "input_file_id": batch.uploaded,
            "endpoint": _URL,
            "completion_window": "24h",
            "metadata": {_NAME: batch.name},
        }
        return await self._made("batches", BytesIO(json.dumps(wanted).encode()))

    async def find(self, batch: Batch, known: Container[str]) -> BatchMatch:
        async for one in self._listed("batches", "after", batch.at):
            metadata = one.get("metadata")
            if isinstance(metadata, dict) and metadata.get(_NAME) == batch.name:
                return BatchMatch(one["id"])
        return BatchMatch()

    async def status(self, id: str) -> BatchStatus:
        found = await self._object("GET", f"batches/{quote(id, safe='')}")
        said, counts = str(found.get("status")), _counts(found)
        done = counts.get("completed", 0) + counts.get("failed", 0)
        if said not in ("completed", "expired", "cancelled", "failed"):
            return BatchStatus(said, done)
        files = (found.get(name) for name in ("output_file_id", "error_file_id"))
        ids = [quote(one, safe="") for one in files if isinstance(one, str)]
        results = tuple(f"files/{one}/content" for one in ids)
        refused = _why(found.get("errors")) if said == "failed" and not results else ""
        return BatchStatus(said, done, results, refused)


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

    async def submit(self, batch: Batch, lines: BinaryIO) -> str:
        return await self._made("messages/batches", lines)

    async def find(self, batch: Batch, known: Container[str]) -> BatchMatch:
        perhaps = ""
        async for one in self._listed("messages/batches", "after_id", batch.at):
            if one["id"] in known or sum(_counts(one).values()) != len(batch.keys):
                continue
            if one.get("processing_status") != "ended":
                perhaps = one["id"]
            elif one.get("results_url"):
                with closing(await self.results(_anthropic_results(one["id"]))) as results:
                    if batch.keys <= results.places.keys():
                        return BatchMatch(one["id"])
        return BatchMatch(perhaps=perhaps)

    async def status(self, id: str) -> BatchStatus:
        found = await self._object("GET", f"messages/batches/{quote(id, safe='')}")
        said, counts = str(found.get("processing_status")), _counts(found)
        done = sum(counts.values()) - counts.get("processing", 0)
        return BatchStatus(said, done, _anthropic_results(id) if said == "ended" else None)

    def _headers(self) -> dict[str, str]:
        return anthropic_headers(self._endpoint)


def _anthropic_results(id: str) -> tuple[str]:
    # Not the address that the batch names: the key goes nowhere else.
    return (f"messages/batches/{quote(id, safe='')}/results",)


def _counts(batch: Mapping[str, Any]) -> dict[str, int]:
    """How many requests of a batch there are, by how they are."""
    counts = batch.get("request_counts")
    counts = counts if isinstance(counts, dict) else {}
    return {kind: count for kind, count in counts.items() if isinstance(count, int)}


def _seconds(date: object) -> float | None:
    """A time in seconds, or as ISO has it, in seconds."""
    if isinstance(date, int | float):
        return date
    try:
        return datetime.fromisoformat(str(date)).timestamp()
    except ValueError:
        return None
