"""Models behind an HTTP API as VLMEvalKit's: OpenRouter, and any OpenAI-compatible server.

The host's ``BaseAPI.generate`` tries again whatever went wrong, takes an empty answer for a failed
call and prints answers.  Ours asks once (the client knows what is worth another attempt), keeps an
empty answer, and records a failed call as one: the host asks it again in the next run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from threading import Lock
from typing import Any

from vlmeval.api.base import BaseAPI

from ..models.client import ChatClient, Endpoint
from ..models.completion import CallError, Completion
from ..models.payload import (
    Manner,
    Request,
    SentImage,
    openrouter_manner,
    request,
    server_manner,
)
from ..models.services import (
    openrouter_key,
    openrouter_url,
    proprietary,
    server_key,
    server_space,
    template_fields,
)
from ..models.spending import Budget, SpendingError
from ..models.table import MODELS, find_model
from ..predictions import Recorded
from ..prompts import Part, PartKind
from ..scoring import settings_from
from ..spaces import Space
from ..variant import Variant, parse
from .models import HostMessage, RecordedReply


class _ChatAPI(BaseAPI):  # type: ignore[misc]
    """A FindIt model that is asked over HTTP; any number of threads may share it."""

    is_api = True
    INTERLEAVE = True
    allowed_types = ("text", "image")

    def __init__(self, name: str, client: ChatClient, budget: Budget) -> None:
        super().__init__(retry=1, verbose=False)
        self.name = name
        self._client = client
        self._budget = budget
        self._begun: set[str] = set()
        self._lock = Lock()

    def _space(self, variant: Variant) -> Space:
        """The coordinate space of its replies to a variant."""
        raise NotImplementedError

    def _manner(self, space: Space) -> Manner:
        """How it is asked for replies in a space."""
        raise NotImplementedError

    def _read(self, completion: Completion) -> Completion:
        """What of an answer is text and what is thought."""
        return completion

    def generate(self, message: HostMessage, dataset: str | None = None, **_: Any) -> RecordedReply:
        """The reply to a message of a FindIt dataset, or the record of a failed call.

        Raises:
            RuntimeError: the spending limit was reached before this dataset began.
            ValueError: the dataset is not FindIt's.
        """
        code, text, recorded = self.generate_inner(message, dataset)
        return RecordedReply(text if code == 0 else f"{self.fail_msg} {text}", recorded)

    def generate_inner(
        self, inputs: HostMessage, dataset: str | None = None
    ) -> tuple[int, str, Recorded]:
        """(0, the answer, its record), or (-1, why there is none, the record of the call)."""
        if dataset is None:
            raise ValueError("this model answers FindIt datasets only, and was told none")
        variant = parse(dataset)
        space, row = self._space(variant), find_model(self.name)
        asked = request(_parts(inputs), variant, space, self._manner(space))
        try:
            completion = self._read(self._complete(asked, dataset))
        except CallError as error:
            call = {"error": str(error), "status": error.status, "cost": error.cost}
            return -1, str(error), _recorded(space, asked.images, call=call)
        except SpendingError as error:
            return -1, f"Not asked: {error}.", _recorded(space, asked.images)
        recorded = _recorded(
            space,
            asked.images,
            finish_reason=completion.finish_reason,
            thought=completion.thought,
            ends_in_thought=completion.ends_in_thought,
            tokens=completion.tokens,
            model={**completion.model, **({"row": row.name} if row else {})},
            call=_call(completion),
        )
        return 0, completion.text, recorded

    def _complete(self, asked: Request, dataset: str) -> Completion:
        self._refuse_new(dataset)
        with self._budget.call() as charge:
            try:
                completion = self._client.complete(asked.body)
            except CallError as error:
                charge.cost = error.cost
                raise
            charge.cost = completion.cost
        return completion

    def _refuse_new(self, dataset: str) -> None:
        """A dataset that would begin after the limit is not begun, so that none is scored empty.

        One that has begun goes on: its replies are paid for, and the others become failed calls.
        """
        with self._lock:
            if self._budget.exhausted and dataset not in self._begun:
                raise _NotBegunError(f"{dataset} was not begun: the spending limit is reached")
            self._begun.add(dataset)


class _NotBegunError(RuntimeError):
    """Stops the host's work on one dataset."""


class FindItOpenRouter(_ChatAPI):
    """A proprietary model through OpenRouter, asked as in the paper's runs.

    Args:
        model: a row of the model table with API facts, by any of its names.
        retry: attempts for one call at most.
        timeout: seconds for one call.
        max_usd: spending limit in US dollars (None: no limit).
        budget: one that several models share, in place of ``max_usd``.

    The key comes from the environment variable OPENROUTER_API_KEY, the URL from
    OPENROUTER_BASE_URL where that is set.

    Raises:
        ValueError: no such model, or no key.
    """

    records_space = True

    def __init__(
        self,
        model: str,
        retry: int = 6,
        timeout: float = 600.0,
        max_usd: float | None = None,
        budget: Budget | None = None,
    ) -> None:
        self._row, self._facts = proprietary(model)
        endpoint = Endpoint(openrouter_url(), openrouter_key(), timeout)
        limit = math.inf if max_usd is None else max_usd
        super().__init__(model, ChatClient(endpoint, retry), budget or Budget(limit))

    def _space(self, variant: Variant) -> Space:
        return self._row.space(variant.row)

    def _manner(self, space: Space) -> Manner:
        return openrouter_manner(self._facts)


class FindItServer(_ChatAPI):
    """A model behind any OpenAI-compatible server (``vllm serve``, ``transformers serve``).

    Args:
        model: the name by which results go; its row of the model table says the space.
        base_url: the server's URL, up to and with ``/v1``.
        served: the server's name for the model (default: the same).
        space: the coordinate space, where the model table does not say it.
        extra_body: more fields of every request.
        retry: attempts for one call at most.
        timeout: seconds for one call.
        key: the server's key (default: the environment variable FINDIT_SERVER_KEY).

    Raises:
        SpaceError: the coordinate space is not known.
    """

    def __init__(
        self,
        model: str,
        base_url: str,
        served: str | None = None,
        space: str | Mapping[str, Any] | None = None,
        extra_body: Mapping[str, Any] | None = None,
        retry: int = 6,
        timeout: float = 600.0,
        key: str | None = None,
    ) -> None:
        self._rule = server_space(model, settings_from({"space": space}).space)
        self._served = served or model
        self._extra = {**template_fields(model), **(extra_body or {})}
        row = find_model(model)
        self._opens_thought = row is not None and row.opens_thought
        endpoint = Endpoint(base_url, server_key() if key is None else key, timeout)
        super().__init__(model, ChatClient(endpoint, retry), Budget())

    def _space(self, variant: Variant) -> Space:
        return self._rule(variant)

    def _manner(self, space: Space) -> Manner:
        return server_manner(self._served, space, self._extra)

    def _read(self, completion: Completion) -> Completion:
        return completion.begun_in_thought() if self._opens_thought else completion


def _parts(message: Sequence[Mapping[str, Any]]) -> list[Part]:
    return [Part(PartKind(part["type"]), str(part["value"])) for part in message]


def _recorded(space: Space, images: Sequence[SentImage], **more: Any) -> Recorded:
    return Recorded(
        space=space.as_dict(), images=tuple(image.as_record() for image in images), **more
    )


def _call(completion: Completion) -> dict[str, Any]:
    said = {"id": completion.id or None, "cost": completion.cost}
    return {name: value for name, value in said.items() if value is not None}


API_CLASSES = (FindItOpenRouter, FindItServer)


def api_models() -> dict[str, Callable[..., Any]]:
    """Our API entries of the host's ``supported_VLM``: proprietary models by their own names."""
    # `retry` is named so that the host's --retry reaches it.
    return {
        row.entry: partial(FindItOpenRouter, model=row.entry, retry=6)
        for row in MODELS.values()
        if row.api
    }
