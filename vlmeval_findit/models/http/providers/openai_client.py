"""OpenAI's chat completions through the package ``openai``."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from ..endpoint import Endpoint
from .clients import headers_of, http_arguments, key_of, no_reply, refused, reply_in


def chat(body: Mapping[str, Any], endpoint: Endpoint, timeout: float) -> Mapping[str, Any]:
    """One chat completion.

    Raises:
        CallError: there is none.
    """
    import openai

    headers = tuple(headers_of(endpoint).items())
    client = _client(os.getpid(), endpoint.name, key_of(endpoint), headers)
    more = {name: value for name, value in body.items() if name not in ("model", "messages")}
    try:
        # The reply itself: ours reads more kinds of broken ones than the package's types.
        raw = client.chat.completions.with_raw_response.create(
            model=body["model"], messages=body["messages"], extra_body=more, timeout=timeout
        )
    except openai.APIStatusError as error:
        raise refused(error.response) from None
    except Exception as error:
        raise no_reply(error) from None
    return reply_in(raw.http_response)


@lru_cache(maxsize=8)
def _client(process: int, address: str, key: str, headers: tuple[tuple[str, str], ...]) -> Any:
    """The client of a process, which its threads share: connections do not survive a fork."""
    import openai

    return openai.OpenAI(
        api_key=key,
        base_url=address,
        max_retries=0,
        default_headers=dict(headers),
        http_client=openai.DefaultHttpxClient(**http_arguments()),
    )
