"""Anthropic's messages through the package ``anthropic``."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from ..anthropic_messages import chat_reply, messages_request
from ..endpoint import Endpoint
from .clients import headers_of, http_arguments, key_of, no_reply, refused, reply_in


def chat(body: Mapping[str, Any], endpoint: Endpoint, timeout: float) -> Mapping[str, Any]:
    """One message.

    Raises:
        CallError: there is none.
    """
    import anthropic

    headers = tuple(headers_of(endpoint).items())
    # The package puts the version of the API into its paths itself.
    address = endpoint.name.removesuffix("/v1")
    client = _client(os.getpid(), address, key_of(endpoint), headers)
    asked = messages_request(body)
    named = {name: asked.pop(name) for name in ("model", "messages", "max_tokens")}
    try:
        raw = client.messages.with_raw_response.create(**named, extra_body=asked, timeout=timeout)
    except anthropic.APIStatusError as error:
        raise refused(error.response) from None
    except Exception as error:
        raise no_reply(error) from None
    return chat_reply(reply_in(raw.http_response))


@lru_cache(maxsize=8)
def _client(process: int, address: str, key: str, headers: tuple[tuple[str, str], ...]) -> Any:
    """The client of a process, which its threads share: connections do not survive a fork."""
    import anthropic

    return anthropic.Anthropic(
        api_key=key,
        base_url=address,
        max_retries=0,
        default_headers=dict(headers),
        http_client=anthropic.DefaultHttpxClient(**http_arguments()),
    )
