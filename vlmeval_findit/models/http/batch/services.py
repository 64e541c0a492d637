"""Batches at a service: submitted, looked for, looked at, fetched."""

from __future__ import annotations

import json
from collections.abc import Container, Iterator, Mapping
from datetime import datetime
from io import BytesIO
from typing import Any, BinaryIO, NamedTuple, Protocol
from urllib.parse import quote

from ..completion import CallError
from ..endpoint import Endpoint
from ..transport import Sending, Transport
from .dialects import DIALECTS, BatchKind, Dialect
from .results import Results

SKEW = 3600.0
"""Seconds by which our clock and a service's may differ."""

_NAME = "findit_batch"
_PAGE = 100


class Intent(NamedTuple):
    """What was written down before a batch was submitted: our name for it, the ids of its
    requests, and when that was (seconds since 1970)."""

    name: str
    keys: frozenset[str]
    at: float


class Found(NamedTuple):
    """The service's id of a batch (empty: it has none of ours), or of one that may be it."""

    id: str = ""
    perhaps: str = ""


class Look(NamedTuple):
    """How a batch goes.

    ``said`` is the service's word for it, ``done`` how many requests are; ``ended`` says that
    results are there, ``refused`` why none was answered (empty: nothing was refused), ``whole``
    that what has no result will have none.
    """

    said: str
    done: int = 0
    ended: bool = False
    refused: str = ""
    whole: bool = True


class BatchService(Protocol):
    """Who takes batches.

    ``name`` is its address without secrets; ``works_alone`` says that results come without anybody
    doing something for them.
    """

    kind: BatchKind
    dialect: Dialect
    name: str
    works_alone: bool

    def submit(self, intent: Intent, requests: BinaryIO) -> str:
        """The id of a batch that was made of a file of requests.

        Raises:
            CallError: it was refused, or (without a status, or from 500 on) nobody knows.
        """

    def find(self, intent: Intent, known: Container[str]) -> Found:
        """The batch that was submitted under an intent, not one of those ``known``."""

    def look(self, batch: str) -> Look:
        """How a batch goes."""

    def results(self, batch: str) -> Results:
        """The results of a batch that ended."""

    def to_do(self, batch: str) -> str:
        """What the user should do for a batch that does not work alone."""


class _Http:
    """What both services share."""

    works_alone = True

    def __init__(self, endpoint: Endpoint, timeout: float) -> None:
        self.name = endpoint.name
        self._endpoint = endpoint
        self._transport = Transport(timeout)

    def to_do(self, batch: str) -> str:
        return ""

    def _headers(self) -> dict[str, str]:
        return self._endpoint.request_headers()

    def _send(
        self,
        method: str,
        path: str,
        body: BinaryIO | None = None,
        form: Mapping[str, str] | None = None,
        into: BinaryIO | None = None,
    ) -> bytes:
        path, _, query = path.partition("?")
        url = self._endpoint.at(path, query)
        return self._transport.send(Sending(method, url, self._headers(), body, form, into))

    def _object(self, *request: Any) -> dict[str, Any]:
        """The JSON object of a reply.

        Raises:
            CallError: it is none.
        """
        try:
            found = json.loads(self._send(*request))
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise CallError("the reply about a batch is no JSON object")
        return found

    def _batch(self, *request: Any) -> dict[str, Any]:
        """A reply that is a batch or a file: it has an id."""
        found = self._object(*request)
        if not isinstance(found.get("id"), str):
            raise CallError("the reply about a batch has no id")
        return found

    def _listed(self, path: str, after: str) -> Iterator[dict[str, Any]]:
        """All batches of the account, the newest first; ``after`` names the field of a page."""
        query = f"limit={_PAGE}"
        while True:
            page = self._object("GET", f"{path}?{query}")
            data = page.get("data")
            batches = [one for one in data if isinstance(one, dict)] if data else []
            yield from (one for one in batches if isinstance(one.get("id"), str))
            if not page.get("has_more") or not batches:
                return
            query = f"limit={_PAGE}&{after}={quote(str(batches[-1].get('id')), safe='')}"


class OpenAIBatches(_Http):
    """``/files`` and ``/batches``, of OpenAI and of who does as it does.

    A batch carries our name for it, by which it is found again.
    """

    kind = BatchKind.OPENAI
    dialect = DIALECTS[kind]

    def submit(self, intent: Intent, requests: BinaryIO) -> str:
        fields = {"purpose": "batch", "filename": f"{intent.name}.jsonl"}
        try:
            file = self._batch("POST", "files", requests, fields)["id"]
        except CallError as error:
            # A file alone costs nothing: whatever happened to it, no batch was made.
            status = error.status if 400 <= error.status < 500 else 400
            message = f"the file of requests was not taken: {error}"
            raise CallError(message, status, hopeless=error.hopeless) from None
        wanted = {
            "input_file_id": file,
            "endpoint": "/v1/chat/completions",
            "completion_window": "24h",
            "metadata": {_NAME: intent.name},
        }
        return str(self._batch("POST", "batches", BytesIO(json.dumps(wanted).encode()))["id"])

    def find(self, intent: Intent, known: Container[str]) -> Found:
        for batch in self._listed("batches", "after"):
            made = batch.get("created_at")
            if isinstance(made, int | float) and made < intent.at - SKEW:
                break
            metadata = batch.get("metadata")
            if isinstance(metadata, dict) and metadata.get(_NAME) == intent.name:
                return Found(batch["id"])
        return Found()

    def look(self, batch: str) -> Look:
        found = self._object("GET", f"batches/{quote(batch, safe='')}")
        said, counts = str(found.get("status")), found.get("request_counts")
        counts = counts if isinstance(counts, dict) else {}
        numbers = [counts.get(kind) for kind in ("completed", "failed")]
        done = sum(number for number in numbers if isinstance(number, int))
        ended = said in ("completed", "expired", "cancelled", "failed")
        has_file = found.get("output_file_id") or found.get("error_file_id")
        refused = _why(found.get("errors")) if said == "failed" and not has_file else ""
        return Look(said, done, ended, refused)

    def results(self, batch: str) -> Results:
        found = self._object("GET", f"batches/{quote(batch, safe='')}")
        results = Results()
        with results.filled() as into:
            for name in ("output_file_id", "error_file_id"):
                if isinstance(found.get(name), str):
                    path = f"files/{quote(found[name], safe='')}/content"
                    self._send("GET", path, None, None, into)
                    into.write(b"\n")
        return results


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
    dialect = DIALECTS[kind]

    def submit(self, intent: Intent, requests: BinaryIO) -> str:
        return str(self._batch("POST", "messages/batches", requests)["id"])

    def find(self, intent: Intent, known: Container[str]) -> Found:
        perhaps = ""
        for batch in self._listed("messages/batches", "after_id"):
            made = _seconds(batch.get("created_at"))
            if made is not None and made < intent.at - SKEW:
                break
            if batch["id"] in known or _requests(batch) != len(intent.keys):
                continue
            if batch.get("processing_status") != "ended":
                perhaps = batch["id"]
            elif batch.get("results_url"):
                with self.results(batch["id"]) as results:
                    if intent.keys <= results.keys():
                        return Found(batch["id"])
        return Found(perhaps=perhaps)

    def look(self, batch: str) -> Look:
        found = self._object("GET", f"messages/batches/{quote(batch, safe='')}")
        said, counts = str(found.get("processing_status")), found.get("request_counts")
        open_ones = counts.get("processing") if isinstance(counts, dict) else None
        done = _requests(found) - (open_ones if isinstance(open_ones, int) else 0)
        return Look(said, done, said == "ended")

    def results(self, batch: str) -> Results:
        results = Results()
        with results.filled() as into:
            # Not the address that the batch names: the key goes nowhere else.
            path = f"messages/batches/{quote(batch, safe='')}/results"
            self._send("GET", path, None, None, into)
        return results

    def _headers(self) -> dict[str, str]:
        own = self._endpoint.request_headers()
        given = {name.lower() for name in self._endpoint.headers}
        if self._endpoint.key and "authorization" not in given:
            own.pop("Authorization", None)
            own = {"x-api-key": self._endpoint.key, **own}
        return own if "anthropic-version" in given else {**own, "anthropic-version": "2023-06-01"}


def _requests(batch: Mapping[str, Any]) -> int:
    counts = batch.get("request_counts")
    return sum(n for n in counts.values() if isinstance(n, int)) if isinstance(counts, dict) else 0


def _seconds(date: object) -> float | None:
    try:
        return datetime.fromisoformat(str(date)).timestamp()
    except ValueError:
        return None
