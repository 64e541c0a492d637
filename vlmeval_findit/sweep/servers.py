"""OpenAI-compatible servers as the host of a sweep: ``--endpoints URL,URL``.  No VLMEvalKit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..core.identity import Answering, Described
from ..core.question import Question
from ..models.http.chat import ChatModel, served_key, server_model, token_limit
from ..models.http.endpoint import Endpoint
from ..models.http.services import endpoints
from ..models.http.spending import Budget
from .config import Inference, ModelEntry
from .executors import Executor, ThreadsExecutor

if TYPE_CHECKING:
    from ..models.http.asker import ChatAsker

_FIELD = "max_tokens_field"


class ServersHost:
    """Answers with servers that all serve the same model; each gets its share of the calls.

    Args:
        urls: base URLs up to and with ``/v1``.
        inference: how calls are made; ``threads`` at a time to each server.
        headers: ``NAME: VALUE`` each, of every request.
        budget: what all models may spend together (None: only count).

    Raises:
        ValueError: a URL or a header is none.
    """

    def __init__(
        self,
        urls: Sequence[str],
        inference: Inference,
        headers: Sequence[str] = (),
        budget: Budget | None = None,
    ) -> None:
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
            chat_model(entry)
            self._endpoints(entry)
        except ValueError as error:
            raise _said_of(entry, error) from None

    def settings(self, entry: ModelEntry) -> Mapping[str, Any]:
        return settings(entry)

    def describe(self, entry: ModelEntry, question: Question) -> Described:
        try:
            return chat_model(entry).describe(question, self._endpoints(entry))
        except ValueError as error:
            raise _said_of(entry, error) from None

    def on_this_machine(self, entry: ModelEntry, found: Answering) -> Answering:
        return found

    @property
    def version(self) -> Mapping[str, str]:
        return {}

    def executor(self, entry: ModelEntry) -> Executor:
        def asker() -> ChatAsker:
            # Not at the top: what asks is not imported where nothing is asked.
            from ..models.http.asker import ChatAsker, Terms

            terms = Terms(timeout=self._inference.timeout)
            return ChatAsker(chat_model(entry), self._endpoints(entry), terms, self._budget)

        return ThreadsExecutor(lambda: [asker()], len(self._urls) * self._inference.threads)

    def _endpoints(self, entry: ModelEntry) -> list[Endpoint]:
        given = {} if entry.headers is None else dict(entry.headers)
        flags = endpoints(self._urls, headers=self._headers)[0].headers
        return endpoints(self._urls, headers={**flags, **given}, limit_field=_limit_field(entry))


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
