"""Batch services: create, find, poll and fetch batches.

Sources: the batch pages of developers.openai.com/api/reference and of platform.claude.com/docs.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import AsyncIterator, Container, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from tempfile import SpooledTemporaryFile
from typing import Any
from urllib.parse import quote

from aiohttp import FormData

from ....core import count_of, error_line, object_or_empty, objects_of, quoted_line, scrub
from ....protocol import CallResult, DatasetVariant, Message, ThoughtRule
from ..call_errors import LONGEST_MESSAGE, CallError
from ..chat import ChatModel
from ..chat_call import ChatCall
from ..client import HttpClient, HttpRequest
from ..completion import Completion
from ..endpoint import Endpoint
from ..providers.anthropic_messages import anthropic_headers, messages_request, reply_of_messages
from ..reply_bodies import most_bytes_of
from ..reply_logprobs import with_logprobs
from ..response_verdict import object_in, read_completion
from ..sent_images import EncodedImages, json_pieces
from ..service_errors import error_of
from ..spending import Budget
from .batch_records import (
    BATCH_PRICE,
    BatchKind,
    BatchLine,
    BatchRequest,
    BatchResults,
    BatchStatus,
)

_MOST_BYTES = 1 << 30  # of a file with results
# A service whose account has as many tokens on their way as it may
_TOO_MUCH_ON_WAY = re.compile(r"token_limit_exceeded|enqueued token", re.IGNORECASE)
# Of results in memory; longer ones are on the disk
_IN_MEMORY = 8 << 20
_BESIDES_REPLY = 1 << 20  # of a line's envelope and error
_LONGEST_LISTED = 64 << 20  # of a result of a batch that may be another's
_FILES = ("output", "error")
_SAME_MOMENT = 60.0  # seconds by which clocks of one service may differ
_NAME = "findit_batch"
_LONGEST_WORD = 60  # characters of a status
# Results of Anthropic's requests that cost nothing
_UNBILLED = frozenset({"errored", "canceled", "expired"})
_URL = "/v1/chat/completions"


class BatchService:
    """A model through ``/files`` and ``/batches`` of OpenAI, or of a compatible service.

    Batches carry our name, by which they are recognised. Methods raise CallError if the service
    does not answer.
    """

    kind = BatchKind.OPENAI
    takes_files = True  # requests are uploaded first, at no cost
    # Limits and framing of a request file, sizes in bytes.
    head = b""
    between = b"\n"
    tail = b"\n"
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
        self._others = set[str]()  # ended batches of others, by their results

    def call(self, message: Message, variant: DatasetVariant, *options: Any) -> ChatCall:
        """Return how a message is asked; ``options`` are :class:`ChatCall`'s from ``logprobs``."""
        call = ChatCall(self._model, self.budget, message, variant, *options)
        call.attempts = 1
        call.server = self.name
        return call

    async def request_line(self, key: str, call: ChatCall) -> tuple[bytes, float | None]:
        """Return the request of a call, and its greatest cost in US dollars (None: unknown)."""
        asked = await call.build_request(self._images)
        fields = dict(asked.body)
        if call.logprobs:
            fields = with_logprobs(fields)
        fields[self._endpoint.limit_field] = fields.pop("max_tokens")
        at_most = call.at_most()
        line = b"".join(json_pieces(self.line(key, fields), asked.images))
        return line, None if at_most is None else at_most * BATCH_PRICE

    async def answer(
        self, call: ChatCall, batch: str, line: BatchLine | None, missing: CallError
    ) -> CallResult:
        """Convert a result to the call's answer; without one it is the error ``missing``."""
        with suppress(Exception):  # an answer stays valid if the image is gone
            await call.build_request(self._images)
        call.batch = batch
        try:
            if line is None:
                raise missing
            call.completion = self.completion(line.result, call.logprobs, self._model.thoughts)
            call.pay(call.completion.usage, BATCH_PRICE)
        except CallError as error:
            where = f" ({line.place} of the batch {batch})" if line and error.unread else ""
            call.fail(error.with_note(where), BATCH_PRICE)
        except Exception as error:  # a batch is paid, whatever its results are
            place = line.place if line else ""
            why = f"{place} of the batch {batch} cannot be read: {error_line(error)}"
            call.fail(CallError(why, worked_on=True), BATCH_PRICE)
        self.budget.count(call.cost, call.guessed, call.guesses)
        return call.answer()

    @staticmethod
    def line(key: str, body: Mapping[str, Any]) -> dict[str, Any]:
        return {"custom_id": key, "method": "POST", "url": _URL, "body": dict(body)}

    @staticmethod
    def completion(result: Mapping[str, Any], logprobs: bool, rule: ThoughtRule) -> Completion:
        response = object_or_empty(result.get("response"))
        status = response.get("status_code", 200)
        body = object_or_empty(response.get("body"))
        if body and status in (200, "200"):
            return read_completion(body, logprobs=logprobs, rule=rule)
        if body and isinstance(status, int):
            raise error_of(json.dumps(body).encode(), status, "", None)
        error = result.get("error")
        # Failed, expired or cancelled at the service: no model was asked.
        is_unasked = result.get("response") is None and bool(error)
        is_billed = status in (200, "200") and not is_unasked
        return _no_completion(error, is_billed)

    async def upload(self, batch: BatchRequest, lines: Sequence[bytes]) -> tuple[str, float]:
        """Upload requests; return the file's id, and when it came by the service's clock (or 0)."""
        form = FormData({"purpose": "batch"})
        form.add_field("file", b"".join(lines), filename=f"{batch.name}.jsonl")
        uploaded = await self._object("POST", "files", None, form)
        at = uploaded.get("created_at")
        return _id_in(uploaded), float(at) if isinstance(at, int | float) else 0.0

    async def submit(self, batch: BatchRequest, lines: Sequence[bytes]) -> str:
        """Create a batch; return its id. After an error without status or with 5xx it may exist."""
        creation = {
            "input_file_id": batch.uploaded,
            "endpoint": _URL,
            "completion_window": "24h",
            "metadata": {_NAME: batch.name},
        }
        return await self._created_id("batches", [json.dumps(creation).encode()])

    async def find(self, batch: BatchRequest, known: Container[str]) -> tuple[str, str]:
        """Return the id of a batch that may exist, and of one not ``known`` that may be it ("").

        A batch is known by its file of requests. A service that names none in its list may repeat
        our name; of one that repeats neither, the results of those with as many requests say it.
        """
        unclear = list[str]()
        async for listed in self._listed("batches", "after", batch.uploaded_at):
            name = object_or_empty(listed.get("metadata")).get(_NAME)
            file = listed.get("input_file_id")
            if batch.name == name or (file and file == batch.uploaded):
                return listed["id"], ""
            is_later = _seconds(listed["created_at"]) > batch.uploaded_at - _SAME_MOMENT
            is_as_large = _counts(listed).get("total") in (None, len(batch.keys))
            if is_later and is_as_large and not (name or file) and listed["id"] not in known:
                unclear.append(listed["id"])
        return await self._of_these(unclear, batch)

    async def _of_these(self, ids: Sequence[str], batch: BatchRequest) -> tuple[str, str]:
        """Return which of some batches it is by their results, or one that may be it."""
        perhaps = ""
        for id in ids:
            if id in self._others:
                continue
            status = await self.status(id)
            if not status.results:
                if not status.refused:
                    perhaps = id
                continue
            try:
                found = await self.results(status.results, _LONGEST_LISTED, len(batch.keys))
            except CallError as error:
                # Results stay for a month: without them it may be the batch, and be paid.
                raise error.with_note(f" (of the batch {id}, which may be it)") from None
            if not found.keys:
                perhaps = id
            elif found.keys <= batch.keys:
                return id, ""
            else:
                self._others.add(id)
        return "", perhaps

    async def status(self, id: str) -> BatchStatus:
        batch = await self._object("GET", f"batches/{quote(id, safe='')}")
        word = _word(batch.get("status"))
        counts = _counts(batch)
        done = counts.get("completed", 0) + counts.get("failed", 0)
        if word not in ("completed", "expired", "cancelled", "failed"):
            return BatchStatus(word, done)
        output, errors = (_content_path(batch.get(f"{kind}_file_id")) for kind in _FILES)
        places = tuple(filter(None, (output, errors)))
        if word == "failed" and not places:
            return _refused(word, done, batch)
        paid = counts.get("completed", 0)
        if word == "completed":  # of requests that are neither done nor failed nothing is known
            paid = max(paid, counts.get("total", 0) - counts.get("failed", 0))
        return BatchStatus(word, done, places, paid=paid, paid_path=output)

    def longest_line(self, tokens: int, logprobs: bool) -> int:
        """Return the most bytes of the result of a call that may have so many tokens."""
        return _BESIDES_REPLY + most_bytes_of(tokens, 2 if logprobs else 0)

    async def results(self, places: tuple[str, ...], longest: int, count: int) -> BatchResults:
        """Return the results of a batch; raise CallError if none of its files can be had.

        Args:
            places: their paths.
            longest: the most bytes of a result.
            count: of the requests.
        """
        results = BatchResults()
        most = min(longest * count, _MOST_BYTES)
        for path in places:
            # It is read as long as the results are.
            file = SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115
            try:
                await self._send("GET", path, most=most, file=file)
            except CallError as error:
                if error.transient:
                    raise
                results.lose(path, error)
                continue
            results.take(path, file, longest, self._is_answer)
        if results.lost and len(results.lost) == len(places):
            raise results.lost[places[0]]
        return results

    def _is_answer(self, result: Mapping[str, Any]) -> bool:
        try:
            self.completion(result, False, self._model.thoughts)
        except Exception:
            return False
        return True

    def _headers(self) -> dict[str, str]:
        return self._endpoint.request_headers()

    async def _send(self, method: str, path: str, *content: Any, **options: Any) -> bytes:
        path, _, query = path.partition("?")
        url = self._endpoint.at(path, query)
        request = HttpRequest(method, url, self._headers(), *content, **options)
        # At one request a minute, keeping a connection is of no use.
        async with HttpClient(self._timeout) as client:
            return await client.send(request)

    async def _object(self, *request: Any) -> dict[str, Any]:
        return object_in(await self._send(*request))

    async def _created_id(self, *request: Any) -> str:
        return _id_in(await self._object("POST", *request))

    async def _listed(
        self, path: str, after: str, since: float = 0.0
    ) -> AsyncIterator[Mapping[str, Any]]:
        """Yield the account's batches; ``after`` is for paging.

        Those before ``since``, by the service's clock, may be left out: only where the newest come
        first, as a list may be in any order.
        """
        query = "limit=100"
        seen = set[str]()
        before = math.inf
        is_newest_first = True
        while True:
            page = await self._object("GET", f"{path}?{query}")
            batches = [batch for batch in objects_of(page.get("data")) if _is_listed(batch)]
            new = [batch for batch in batches if batch["id"] not in seen]
            for batch in new:
                seen.add(batch["id"])
                at = _seconds(batch["created_at"])
                is_newest_first = is_newest_first and at <= before
                before = at
                yield batch
            is_past = is_newest_first and len(seen) > 1 and before < since - _SAME_MOMENT
            if not new or is_past or not page.get("has_more"):
                return
            query = f"limit=100&{after}={quote(batches[-1]['id'], safe='')}"


class AnthropicBatches(BatchService):
    """``/messages/batches`` of Anthropic, where batches cannot be named.

    A candidate, by time and number of requests, is identified by the ids in its results, so only
    once it has ended.
    """

    kind = BatchKind.ANTHROPIC
    takes_files = False
    head = b'{"requests": ['
    between = b",\n"
    tail = b"]}\n"
    requests = 100_000
    size = 256 * 10**6

    @staticmethod
    def line(key: str, body: Mapping[str, Any]) -> dict[str, Any]:
        return {"custom_id": key, "params": messages_request(body)}

    @staticmethod
    def completion(result: Mapping[str, Any], logprobs: bool, rule: ThoughtRule) -> Completion:
        outcome = object_or_empty(result.get("result"))
        kind, message, error = map(outcome.get, ("type", "message", "error"))
        if kind == "succeeded" and isinstance(message, dict):
            return read_completion(reply_of_messages(message), rule=rule)
        is_billed = kind not in _UNBILLED
        if isinstance(error, dict):
            return _no_completion(error.get("error", error), is_billed)
        message = f"the request is {kind or 'without a result'}"
        return _no_completion({"message": message}, is_billed)

    async def submit(self, batch: BatchRequest, lines: Sequence[bytes]) -> str:
        return await self._created_id("messages/batches", lines)

    async def find(self, batch: BatchRequest, known: Container[str]) -> tuple[str, str]:
        like = list[str]()
        async for listed in self._listed("messages/batches", "after_id"):
            is_as_large = sum(_counts(listed).values()) == len(batch.keys)
            if is_as_large and listed["id"] not in known:
                like.append(listed["id"])
        return await self._of_these(like, batch)

    async def status(self, id: str) -> BatchStatus:
        batch = await self._object("GET", f"messages/batches/{quote(id, safe='')}")
        word = _word(batch.get("processing_status"))
        counts = _counts(batch)
        total = sum(counts.values())
        done = total - counts.get("processing", 0)
        if word != "ended":
            return BatchStatus(word, done)
        # Every request has a line, also one that is not paid for.
        (path,) = places = _anthropic_results(id)
        return BatchStatus(word, done, places, paid=total, paid_path=path)

    def _headers(self) -> dict[str, str]:
        return anthropic_headers(self._endpoint)


# The client of a batch API, by its kind
BATCH_SERVICES: Mapping[BatchKind, type[BatchService]] = {
    service.kind: service for service in (BatchService, AnthropicBatches)
}


def _anthropic_results(id: str) -> tuple[str]:
    # Not the address in the batch: the key must go nowhere else.
    return (f"messages/batches/{quote(id, safe='')}/results",)


def _no_completion(error: object, is_billed: bool) -> Completion:
    """Raise the error of a request without a reply."""
    try:
        return read_completion({"error": error or {"message": "no reply"}})
    except CallError as problem:
        problem.worked_on = is_billed
        raise


def _id_in(reply: Mapping[str, Any]) -> str:
    id = reply.get("id")
    if not isinstance(id, str):
        raise CallError("the reply about a batch has no id", worked_on=True)
    if not _is_id(id):
        raise CallError(f"the id of a batch quotes a secret: {id}", worked_on=True)
    return id


def _is_id(id: str) -> bool:
    """Tell whether the journal may keep an id: it quotes no secret."""
    return scrub(id) == id


def _word(status: object) -> str:
    return quoted_line(str(status), _LONGEST_WORD)


def _content_path(file: object) -> str:
    return f"files/{quote(file, safe='')}/content" if file and isinstance(file, str) else ""


def _refused(word: str, done: int, batch: Mapping[str, Any]) -> BatchStatus:
    errors = objects_of(object_or_empty(batch.get("errors")).get("data"))
    stated = [error["message"] for error in errors if isinstance(error.get("message"), str)]
    why = quoted_line("; ".join(stated[:3]), LONGEST_MESSAGE) or "it does not say why"
    may_pass = any(_TOO_MUCH_ON_WAY.search(json.dumps(error)) for error in errors)
    return BatchStatus(word, done, (), why, may_pass)


def _counts(batch: Mapping[str, Any]) -> Mapping[str, int]:
    counts = {
        name: count_of(it) for name, it in object_or_empty(batch.get("request_counts")).items()
    }
    return {name: count for name, count in counts.items() if count is not None}


def _is_listed(batch: Mapping[str, Any]) -> bool:
    """Return whether a list tells which batch it is, and when it was made."""
    try:
        _seconds(batch["created_at"])
    except (KeyError, TypeError, ValueError):
        return False
    id = batch.get("id")
    return isinstance(id, str) and _is_id(id)


def _seconds(date: float | str) -> float:
    """Return a date of OpenAI's, in seconds, or of Anthropic's, as text, in seconds since 1970."""
    return datetime.fromisoformat(date).timestamp() if isinstance(date, str) else float(date)
