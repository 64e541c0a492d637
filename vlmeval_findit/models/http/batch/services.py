"""Batch services: create, find, poll and fetch batches.

Sources: the batch pages of developers.openai.com/api/reference and of platform.claude.com/docs.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Container, Mapping
from contextlib import closing, suppress
from datetime import datetime
from io import BytesIO
from tempfile import TemporaryFile
from typing import Any, BinaryIO
from urllib.parse import quote

from ....core.answers import Answer
from ....core.question import Message, Question
from ..chat import ChatModel
from ..chat_attempts import ChatCall
from ..client import HttpClient, HttpRequest
from ..completion import (
    LOGPROBS_FIELDS,
    CallError,
    Completion,
    error_of,
    mapping,
    object_in,
    read_completion,
)
from ..endpoint import Endpoint
from ..providers.anthropic_messages import anthropic_headers, chat_reply, messages_request
from ..sent_images import EncodedImages, pieces
from ..spending import Budget
from . import HALF, BatchKind, BatchRequest, BatchStatus

_SKEW = 3600.0  # seconds by which our clock and a service's may differ
_NAME = "findit_batch"
_URL = "/v1/chat/completions"


class BatchResults:
    """The results of a batch by request id, from JSON lines in any order.

    They stay on disk, as log-probabilities make them large. Other lines are ignored; the first
    result of a request counts.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.places: dict[str, int] = {}  # offset of each request's line
        start = file.seek(0)
        for line in file:
            with suppress(ValueError, RecursionError, LookupError, TypeError):
                self.places.setdefault(json.loads(line)["custom_id"], start)
            start += len(line)

    def get(self, key: str) -> dict[str, Any] | None:
        if key not in self.places:
            return None
        self._file.seek(self.places[key])
        result: dict[str, Any] = json.loads(self._file.readline())
        return result

    def close(self) -> None:
        self._file.close()


class BatchService:
    """A model through ``/files`` and ``/batches`` of OpenAI, or of a compatible service.

    Batches carry our name, by which they are recognised. Methods raise CallError if the service
    does not answer.
    """

    kind = BatchKind.OPENAI
    takes_files = True  # requests are uploaded first, at no cost
    # Limits and framing of a request file, sizes in bytes.
    head, between, tail = b"", b"\n", b"\n"
    requests = 50_000
    size = 200 * 10**6

    def __init__(
        self, model: ChatModel, endpoint: Endpoint, timeout: float, budget: Budget
    ) -> None:
        self.budget = budget
        self.name = endpoint.name
        self._model = model
        self._endpoint = endpoint
        self._timeout = timeout
        self._images = EncodedImages()

    def call(
        self,
        message: Message,
        question: Question,
        logprobs: bool,
        shared: bool,
        seed: int | None = None,
    ) -> ChatCall:
        call = ChatCall(self._model, self.budget, message, question, logprobs, shared, seed)
        call.attempts, call.server = 1, self.name
        return call

    async def request_line(self, key: str, call: ChatCall) -> tuple[bytes, float | None]:
        """Return the request of a call, and its greatest cost in US dollars (None: unknown)."""
        asked = await call.build_request(self._images)
        fields = {**asked.body, **(LOGPROBS_FIELDS if call.logprobs else {})}
        fields[self._endpoint.limit_field] = fields.pop("max_tokens")
        at_most = call.at_most()
        line = b"".join(pieces(self.line(key, fields), asked.images))
        return line, None if at_most is None else at_most * HALF

    async def answer(
        self, call: ChatCall, batch: str, result: Mapping[str, Any] | None, why: str
    ) -> Answer:
        """Convert a result to the call's answer; ``why`` explains a missing one."""
        with suppress(Exception):  # an answer stays valid if the image is gone
            await call.build_request(self._images)
        call.batch = batch
        try:
            if result is None:
                raise CallError(why)
            completion = self.completion(result, call.logprobs)
            call.completion = completion.priced(self._model.prices, HALF)
            call.cost = call.completion.cost
        except CallError as error:
            call.error, call.cost = error, error.cost
        return call.answer(None, "")

    @staticmethod
    def line(key: str, body: Mapping[str, Any]) -> dict[str, Any]:
        return {"custom_id": key, "method": "POST", "url": _URL, "body": dict(body)}

    @staticmethod
    def completion(result: Mapping[str, Any], logprobs: bool) -> Completion:
        response = mapping(result.get("response"))
        if response.get("body"):
            status, body = response.get("status_code"), json.dumps(response["body"]).encode()
            if status == 200:
                return read_completion(body, logprobs=logprobs)
            if isinstance(status, int):
                raise error_of(body, status, "", None)
        return _no_completion(result.get("error"))

    async def upload(self, batch: BatchRequest, lines: BinaryIO) -> str:
        fields = {"purpose": "batch", "filename": f"{batch.name}.jsonl"}
        return await self._created_id("files", lines, fields)

    async def submit(self, batch: BatchRequest, lines: BinaryIO) -> str:
        """Create a batch; return its id. After an error without status or with 5xx it may exist."""
        creation = {
            "input_file_id": batch.uploaded,
            "endpoint": _URL,
            "completion_window": "24h",
            "metadata": {_NAME: batch.name},
        }
        return await self._created_id("batches", BytesIO(json.dumps(creation).encode()))

    async def find(self, batch: BatchRequest, known: Container[str]) -> tuple[str, str]:
        """Return the id of a batch that may exist, or "", and of a batch not ``known`` that may be
        it.
        """
        async for listed in self._listed("batches", "after", batch.at):
            if mapping(listed.get("metadata")).get(_NAME) == batch.name:
                return listed["id"], ""
        return "", ""

    async def status(self, id: str) -> BatchStatus:
        batch = await self._object("GET", f"batches/{quote(id, safe='')}")
        word, counts = str(batch.get("status")), _counts(batch)
        done = counts.get("completed", 0) + counts.get("failed", 0)
        if word not in ("completed", "expired", "cancelled", "failed"):
            return BatchStatus(word, done)
        files = (batch.get(name) for name in ("output_file_id", "error_file_id"))
        ids = [quote(file, safe="") for file in files if isinstance(file, str)]
        results = tuple(f"files/{file}/content" for file in ids)
        refused = _why(batch.get("errors")) if word == "failed" and not results else ""
        return BatchStatus(word, done, results, refused)

    async def results(self, places: tuple[str, ...]) -> BatchResults:
        file = TemporaryFile()  # noqa: SIM115 (closed with the results)
        try:
            for path in places:
                await self._send("GET", path, into=file)
                file.write(b"\n")
            return BatchResults(file)
        except BaseException:
            file.close()
            raise

    def _headers(self) -> dict[str, str]:
        return self._endpoint.request_headers()

    async def _send(
        self, method: str, path: str, *body: Any, into: BinaryIO | None = None
    ) -> bytes:
        path, _, query = path.partition("?")
        url, headers = self._endpoint.at(path, query), self._headers()
        # No client resends a file body, which might create a second batch.
        request = HttpRequest(method, url, headers, *body)._replace(into=into)
        # At one request a minute, keeping a connection is of no use.
        async with HttpClient(self._timeout) as client:
            return await client.send(request)

    async def _object(self, *request: Any) -> dict[str, Any]:
        return object_in(await self._send(*request))

    async def _created_id(self, *request: Any) -> str:
        id = (await self._object("POST", *request)).get("id")
        if not isinstance(id, str):
            raise CallError("the reply about a batch has no id")
        return id

    async def _listed(self, path: str, after: str, at: float) -> AsyncIterator[dict[str, Any]]:
        """Yield the account's batches since about ``at``, newest first; ``after`` is for paging."""
        query = "limit=100"
        while True:
            page = await self._object("GET", f"{path}?{query}")
            batches = [batch for batch in page.get("data") or () if isinstance(batch, dict)]
            for batch in batches:
                created = _seconds(batch.get("created_at"))
                if created is not None and created < at - _SKEW:
                    return
                if isinstance(batch.get("id"), str):
                    yield batch
            if not page.get("has_more") or not batches:
                return
            query = f"limit=100&{after}={quote(str(batches[-1].get('id')), safe='')}"


class AnthropicBatches(BatchService):
    """``/messages/batches`` of Anthropic, where batches cannot be named.

    A candidate, by time and number of requests, is identified by the ids in its results, so only
    once it has ended.
    """

    kind = BatchKind.ANTHROPIC
    takes_files = False
    head, between, tail = b'{"requests": [', b",\n", b"]}\n"
    requests = 100_000
    size = 256 * 10**6

    @staticmethod
    def line(key: str, body: Mapping[str, Any]) -> dict[str, Any]:
        return {"custom_id": key, "params": messages_request(body)}

    @staticmethod
    def completion(result: Mapping[str, Any], logprobs: bool) -> Completion:
        outcome = mapping(result.get("result"))
        message, error = outcome.get("message"), outcome.get("error")
        if outcome.get("type") == "succeeded" and isinstance(message, dict):
            return read_completion(chat_reply(message))
        if isinstance(error, dict):
            return _no_completion(error.get("error", error))
        return _no_completion(
            {"message": f"the request is {outcome.get('type') or 'without a result'}"}
        )

    async def submit(self, batch: BatchRequest, lines: BinaryIO) -> str:
        return await self._created_id("messages/batches", lines)

    async def find(self, batch: BatchRequest, known: Container[str]) -> tuple[str, str]:
        perhaps = ""
        async for listed in self._listed("messages/batches", "after_id", batch.at):
            if listed["id"] in known or sum(_counts(listed).values()) != len(batch.keys):
                continue
            if listed.get("processing_status") != "ended":
                perhaps = listed["id"]
            elif listed.get("results_url"):
                with closing(await self.results(_anthropic_results(listed["id"]))) as results:
                    if batch.keys <= results.places.keys():
                        return listed["id"], ""
        return "", perhaps

    async def status(self, id: str) -> BatchStatus:
        batch = await self._object("GET", f"messages/batches/{quote(id, safe='')}")
        word, counts = str(batch.get("processing_status")), _counts(batch)
        done = sum(counts.values()) - counts.get("processing", 0)
        return BatchStatus(word, done, _anthropic_results(id) if word == "ended" else None)

    def _headers(self) -> dict[str, str]:
        return anthropic_headers(self._endpoint)


SERVICES: Mapping[BatchKind, type[BatchService]] = {
    service.kind: service for service in (BatchService, AnthropicBatches)
}


def _anthropic_results(id: str) -> tuple[str]:
    # Not the address in the batch: the key must go nowhere else.
    return (f"messages/batches/{quote(id, safe='')}/results",)


def _no_completion(error: object) -> Completion:
    return read_completion({"error": error or {"message": "no reply"}})


def _why(errors: object) -> str:
    data = mapping(errors).get("data") or ()
    messages = [error.get("message") for error in data if isinstance(error, dict)]
    return "; ".join(str(error) for error in messages[:3]) or "it does not say why"


def _counts(batch: Mapping[str, Any]) -> dict[str, int]:
    counts = mapping(batch.get("request_counts")).items()
    return {kind: count for kind, count in counts if isinstance(count, int)}


def _seconds(date: object) -> float | None:
    if isinstance(date, int | float):
        return date
    try:
        return datetime.fromisoformat(str(date)).timestamp()
    except ValueError:
        return None
