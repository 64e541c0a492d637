"""Services that answer over HTTP: where they are, their keys, and the space of their replies."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...boxes.spaces import Space, SpaceError, space_from
from ...core.question import Question
from ..table import find_model, how_to_say_space, unknown_space
from .address_file import AddressFile
from .endpoint import LIMIT_FIELDS, Endpoint

HEADERS_VARIABLE = "FINDIT_SERVER_HEADERS"


def server_headers(given: Sequence[str] | Mapping[str, str] = ()) -> dict[str, str]:
    """The headers of an OpenAI-compatible server: the environment's, then those that are given.

    Args:
        given: ``NAME: VALUE`` each, or by name.

    Raises:
        ValueError: one cannot be read; its value is not in the message.
    """
    try:
        headers = json.loads(os.environ.get(HEADERS_VARIABLE) or "{}")
    except ValueError:
        headers = None
    if not isinstance(headers, dict):
        raise ValueError(f'{HEADERS_VARIABLE} should be a JSON object, as {{"api-key": "…"}}')
    return {**headers, **header_lines(given)}


def header_lines(given: Sequence[str] | Mapping[str, str]) -> dict[str, str]:
    """Headers that are given as lines ``NAME: VALUE``, or by name.

    Raises:
        ValueError: one cannot be read; its value is not in the message.
    """
    if isinstance(given, Mapping):
        return dict(given)
    headers = {}
    for line in given:
        name, colon, value = line.partition(":")
        if not colon or not name.strip():
            raise ValueError("--header takes 'NAME: VALUE', and was given something else")
        headers[name.strip()] = value.strip()
    return headers


Endpoints = Sequence[Endpoint] | AddressFile
"""Servers that stay, or those of a file that are followed."""


def lasting(servers: Endpoints) -> Sequence[Endpoint]:
    """The servers that a run can say it was made by: none of those that come and go."""
    return () if isinstance(servers, AddressFile) else servers


def endpoints(
    urls: str | Sequence[str],
    key: str | None = None,
    headers: Sequence[str] | Mapping[str, str] = (),
    limit_field: str | None = None,
) -> Endpoints:
    """The servers of one model.

    Args:
        urls: one or several, with commas between them where it is a text; ``@`` and a file that has
            one a line, which is followed.
        key: of all of them (None: FINDIT_SERVER_KEY).
        headers: beside those of FINDIT_SERVER_HEADERS.
        limit_field: as of :class:`.endpoint.Endpoint`.

    Raises:
        ValueError: a URL, the key or a header cannot be used.
    """
    if isinstance(urls, str):
        urls = [url.strip() for url in urls.split(",")]
    secret = os.environ.get("FINDIT_SERVER_KEY", "").strip() if key is None else key
    whole = server_headers(headers)

    def made(url: str) -> Endpoint:
        return Endpoint(url, secret, whole, limit_field)

    if len(urls) == 1 and urls[0].startswith("@"):
        return AddressFile(Path(urls[0][1:]).expanduser(), made)
    return [made(url) for url in urls]


def server_space(model: str, said: str | Mapping[str, Any] | None) -> Callable[[Question], Space]:
    """The space of a served model by question: what the user ``said``, else its row.

    The rule raises SpaceError where the answer is boxes and neither says it, or where the row's
    space needs resize bounds: those are the server's.
    """
    if said:
        space = space_from(said)
        return lambda question: space
    row = find_model(model)

    def rule(question: Question) -> Space:
        if not question.in_boxes:
            return _SENT_AS_THEY_ARE
        if row is None:
            raise unknown_space(model)
        space = row.space(question)
        if space.kind == "smart_resize" and not row.states_space:
            factor = f', "factor": {space.factor}' if space.factor else ""
            value = f'{{"kind": "smart_resize", "min_pixels": …, "max_pixels": …{factor}}}'
            raise SpaceError(_BOUNDS_WANTED.format(model=model, how=how_to_say_space(value)))
        return space

    return rule


_SENT_AS_THEY_ARE = Space("grid1000")
"""Where no answer is a box: a space in which pictures are not resized.  No run records it."""


_BOUNDS_WANTED = (
    "{model} answers in pixels after its processor's resize, whose bounds are the server's. Say "
    "them: {how}"
)


def extra_fields(text: str | None) -> dict[str, Any]:
    """More fields of a request, from ``--extra-body``.

    Raises:
        ValueError: it is no JSON object.
    """
    try:
        fields = json.loads(text or "{}")
    except ValueError as error:
        raise ValueError(f"--extra-body {text}: {error}") from None
    if not isinstance(fields, dict):
        raise ValueError(f"--extra-body {text}: should be a JSON object")
    fixed = sorted({"model", "messages", *LIMIT_FIELDS, "temperature", "stream"} & fields.keys())
    if fields.get("temperature", 0) is None:
        # Some models take none; then none is sent.
        fixed.remove("temperature")
    if fixed:
        raise ValueError(f"--extra-body: {', '.join(fixed)} is FindIt's to set")
    return fields


def template_fields(model: str) -> dict[str, Any]:
    """Fields of a request that switch thinking off where a model's name says so."""
    if not model.lower().endswith("-nothink"):
        return {}
    return {"chat_template_kwargs": {"enable_thinking": False}}


def served_as(model: str) -> str:
    """What servers call a model: what its row says, else its name."""
    row = find_model(model)
    return (row and row.served) or model


def server_name(model: str) -> tuple[str, str]:
    """(the name of the results, the server's name) of ``NAME``, ``NAME=SERVED`` or ``a/b/NAME``.

    Results are files of their name, which so cannot hold a slash.
    """
    name, given, served = model.partition("=")
    if not given:
        name, served = model.rstrip("/").rsplit("/", 1)[-1], served_as(model)
    if not name or not served or "/" in name:
        raise ValueError(f"--model {model}: with --base-url it is NAME or NAME=THE_SERVERS_NAME")
    return name, served
