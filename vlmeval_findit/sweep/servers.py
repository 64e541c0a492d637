"""OpenAI-compatible servers as the host of a sweep: ``--endpoints URL,URL``.  No VLMEvalKit.

With ``--batch`` their batch interface, or files of requests for a program without a server.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ..core.identity import Answering, Described
from ..core.question import Question
from ..models.http.batch.dialects import DIALECTS, BatchKind
from ..models.http.chat import ChatModel, served_key, server_model, token_limit
from ..models.http.endpoint import LIMIT_FIELDS, Endpoint
from ..models.http.services import endpoints, served_as
from ..models.http.spending import Budget
from .batches import BatchExecutor, Batching
from .config import Inference, ModelEntry
from .executors import Executor, ThreadsExecutor

if TYPE_CHECKING:
    from ..models.http.asker import ChatAsker
    from ..models.http.batch.asker import BatchAsker
    from ..models.http.batch.services import BatchService

_FIELD = "max_tokens_field"


class ServersHost:
    """Answers with servers that all serve the same model; each gets its share of the calls.

    Args:
        urls: base URLs up to and with ``/v1``.
        inference: how calls are made; ``threads`` at a time to each server.
        headers: ``NAME: VALUE`` each, of every request.
        budget: what all models may spend together (None: only count).
        batching: that calls are made in batches (None: one by one).

    Raises:
        ValueError: a URL or a header is none, or batches are not taken there.
    """

    def __init__(
        self,
        urls: Sequence[str],
        inference: Inference,
        headers: Sequence[str] = (),
        budget: Budget | None = None,
        batching: Batching | None = None,
    ) -> None:
        self._batching = batching
        if batching is not None:
            _refuse_batches(batching.kind, urls)
        self._urls = urls
        self._headers = headers
        self._inference = inference
        self._budget = budget or Budget()
        endpoints(urls, headers=headers)  # what cannot be used is refused now

    def check(self, entry: ModelEntry) -> None:
        """Servers know their models themselves."""
        try:
            if "max_usd" in entry.settings:
                raise ValueError("max_usd is the whole sweep's: beside `models`, or --max-usd")
            chat = chat_model(entry)
            self._endpoints(entry)
            priced = chat.row is not None and chat.row.api is not None and chat.row.api.prices
            if self._batching and not math.isinf(self._budget.limit) and not priced:
                raise ValueError("what its batches cost is not known beforehand: no --max-usd")
        except ValueError as error:
            raise _said_of(entry, error) from None

    def settings(self, entry: ModelEntry) -> Mapping[str, Any]:
        return settings(entry)

    def describe(self, entry: ModelEntry, question: Question) -> Described:
        try:
            kind = self._batching and self._batching.kind
            if kind and question.reply_schema is not None and not DIALECTS[kind].holds_to_schemas:
                raise ValueError(
                    f"{question.name}: --batch {kind.value} holds no reply to a format: ask it one "
                    "by one, or without _constrained"
                )
            return chat_model(entry).describe(question, self._endpoints(entry))
        except ValueError as error:
            raise _said_of(entry, error) from None

    def on_this_machine(self, entry: ModelEntry, found: Answering) -> Answering:
        return found

    @property
    def version(self) -> Mapping[str, str]:
        return {}

    def executor(self, entry: ModelEntry) -> Executor:
        batching = self._batching
        if batching is not None:
            load = partial(self._batch_asker, entry, batching)
            return BatchExecutor(load, batching.journal, self._inference.poll, self._budget)

        def asker() -> ChatAsker:
            # Not at the top: what asks is not imported where nothing is asked.
            from ..models.http.asker import ChatAsker, Terms

            terms = Terms(timeout=self._inference.timeout)
            return ChatAsker(chat_model(entry), self._endpoints(entry), terms, self._budget)

        return ThreadsExecutor(lambda: [asker()], len(self._urls) * self._inference.threads)

    def _batch_asker(self, entry: ModelEntry, batching: Batching) -> BatchAsker:
        from ..models.http.batch.asker import BatchAsker
        from ..models.http.batch.files import BatchFiles
        from ..models.http.batch.services import AnthropicBatches, OpenAIBatches

        service: BatchService
        limit_field = LIMIT_FIELDS[0]
        if batching.kind is BatchKind.FILES:
            folder = batching.journal.with_name(f"{batching.journal.name}.batch-files")
            service = BatchFiles(folder, entry.served or served_as(entry.name))
        else:
            (endpoint,) = self._endpoints(entry)
            if batching.kind is BatchKind.ANTHROPIC:
                service = AnthropicBatches(endpoint, self._inference.timeout)
            else:
                service = OpenAIBatches(endpoint, self._inference.timeout)
                limit_field = endpoint.takes
        return BatchAsker(chat_model(entry), service, limit_field, batching.told)

    def _endpoints(self, entry: ModelEntry) -> list[Endpoint]:
        if not self._urls:
            return []
        given = {} if entry.headers is None else dict(entry.headers)
        flags = endpoints(self._urls, headers=self._headers)[0].headers
        return endpoints(self._urls, headers={**flags, **given}, limit_field=_limit_field(entry))


def _refuse_batches(kind: BatchKind, urls: Sequence[str]) -> None:
    if kind is BatchKind.FILES and urls:
        raise ValueError("--batch files asks no server: leave --endpoints away")
    if kind is not BatchKind.FILES and len(urls) != 1:
        raise ValueError(
            f"--batch {kind.value} is for one server: --endpoints with its address, up to and with "
            "/v1"
        )


def _said_of(entry: ModelEntry, error: ValueError) -> ValueError:
    """The error of a model with its place in the sweep's file; a SpaceError stays one."""
    where = f"line {entry.line}: " if entry.line else ""
    return type(error)(f"{where}{entry.name}: {error}")


def settings(entry: ModelEntry) -> dict[str, Any]:
    """What the answers of a served model depend on beside messages."""
    return served_key(entry.name, entry.served, entry.settings)


def chat_model(entry: ModelEntry) -> ChatModel:
    """A model of a sweep as its servers know it; its settings are fields of every request.

    Raises:
        SpaceError: the coordinate space is not known.
        ValueError: its limit of tokens is none.
    """
    limit, rest = token_limit(entry.settings)
    rest.pop(_FIELD, None)
    return server_model(entry.name, entry.served, entry.space, rest, limit, entry.row)


def _limit_field(entry: ModelEntry) -> str | None:
    field = entry.settings.get(_FIELD)
    return None if field is None else str(field)
