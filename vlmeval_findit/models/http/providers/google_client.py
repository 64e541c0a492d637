"""Google's Gemini API through the package ``google-genai``."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from ..endpoint import Endpoint
from .clients import headers_of, http_arguments, key_of, no_reply, object_in, refused
from .google_content import chat_reply, content_request


def chat(body: Mapping[str, Any], endpoint: Endpoint, timeout: float) -> Mapping[str, Any]:
    """One ``generateContent``.

    Raises:
        CallError: there is no reply, or the prompt was blocked.
    """
    from google.genai import errors

    headers = tuple(headers_of(endpoint).items())
    client = _client(os.getpid(), endpoint.name, key_of(endpoint), headers)
    asked = content_request(body)
    http = {"timeout": max(round(timeout * 1000), 1), "extra_body": asked.more or None}
    config = {
        **asked.config,
        # The reply itself: ours reads more kinds of broken ones than the package's types.
        "should_return_http_response": True,
        "automatic_function_calling": {"disable": True},
        "http_options": http,
    }
    try:
        found = client.models.generate_content(
            model=asked.model, contents=asked.contents, config=config
        )
    except errors.APIError as error:
        raise refused(error.response) from None
    except Exception as error:
        raise no_reply(error) from None
    return chat_reply(object_in(found.sdk_http_response.body or ""))


@lru_cache(maxsize=8)
def _client(process: int, address: str, key: str, headers: tuple[tuple[str, str], ...]) -> Any:
    """The client of a process, which its threads share: connections do not survive a fork."""
    from google import genai

    # The package wants the version of the API apart from the address.
    found = re.fullmatch(r"(.*)/(v\d\w*)", address)
    base, version = found.groups() if found else (address, "v1beta")
    return genai.Client(
        api_key=key,
        vertexai=False,  # whatever the environment says: its answers are another deployment's
        http_options={
            "base_url": base,
            "api_version": version,
            "headers": dict(headers),
            "client_args": http_arguments(),
        },
    )
