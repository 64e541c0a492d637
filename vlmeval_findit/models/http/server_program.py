"""Which program serves a model behind a base URL, in which version, and with which checkpoint.

Each program says it at other paths, which are asked once, with a short time limit and with the
key and headers of calls.  What they do not say stays unknown; asking a model never needs it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from ...core import object_or_empty, objects_of, parse_json, quoted_line
from .call_errors import CallError
from .client import HttpClient, HttpRequest
from .endpoint import Endpoint

_SECONDS = 5.0  # For each place
_SECONDS_IN_ALL = 15.0
_MOST_BYTES = 1 << 20  # SGLang lists all of its settings
_LONGEST = 200  # Characters of a version or a checkpoint

# Programs that a model server may be recognised as
PROGRAM_NAMES = (
    "vllm",
    "sglang",
    "transformers",  # Says nothing of itself; known where we start it, or run it here
    "llama.cpp",
    "lmdeploy",
    "ollama",
    "LM Studio",
    "TGI",
)

_VERSION_IN_PATH = re.compile(r"/v\d\w*$")
_SNAPSHOT = re.compile(r"/models--(?P<name>[^/]+)/snapshots/(?P<revision>[0-9a-f]{40})/?$")


@dataclass(frozen=True, slots=True)
class RunningProgram:
    """What a server says of itself; "" where it says nothing."""

    name: str  # Of PROGRAM_NAMES
    version: str = ""  # As the program writes it: "0.11.0", "b6887-d261223d2"
    checkpoint: str = ""  # Without the server's folders
    revision: str = ""  # Of the checkpoint

    @property
    def words(self) -> str:
        """Name and version, as people say them.

        >>> RunningProgram("vllm", "0.11.0").words
        'vllm 0.11.0'
        """
        return f"{self.name} {self.version}".rstrip()


async def running_program(
    client: HttpClient, endpoint: Endpoint, served: str = ""
) -> RunningProgram | None:
    """Return what serves a model at an endpoint; None if it is not told, or a provider is asked.

    Args:
        client: sends the requests.
        endpoint: of the calls; its key and headers are sent.
        served: the server's name for the model, if it lists several.
    """
    if endpoint.provider:
        return None
    server = _Server(client, endpoint)
    with suppress(TimeoutError):
        async with asyncio.timeout(_SECONDS_IN_ALL):
            card = await server.model_card(served)
            for look in _LOOKS:
                program = await look(server, card)
                if program is not None:
                    return program
    return None


class _Server:
    """Asks one server for what it says of itself."""

    def __init__(self, client: HttpClient, endpoint: Endpoint) -> None:
        self._client = client
        self._endpoint = endpoint
        self._root = replace(endpoint, base_url=_without_version(endpoint.base_url))
        self._is_silent = False  # Nobody listens, or not in time: no further place is asked

    async def model_card(self, served: str) -> Mapping[str, Any]:
        """Return its entry for a model (else its first) of /v1/models; empty without a list."""
        reply = await self._object_at(self._endpoint.at("models"))
        cards = objects_of(reply.get("data"))
        named = [card for card in cards if card.get("id") == served]
        return next(iter(named or cards), {})

    async def object_at(self, path: str) -> Mapping[str, Any]:
        """Return the JSON object at a path from the root; empty if there is none."""
        return await self._object_at(self._root.at(path))

    async def text_at(self, path: str) -> str:
        """Return the text at a path from the root; "" if there is none."""
        return (await self._get(self._root.at(path))).decode("utf-8", "replace")

    async def _object_at(self, url: str) -> Mapping[str, Any]:
        try:
            return object_or_empty(parse_json(await self._get(url)))
        except ValueError:
            return {}

    async def _get(self, url: str) -> bytes:
        if self._is_silent:
            return b""
        headers = self._endpoint.request_headers()
        request = HttpRequest("GET", url, headers, most=_MOST_BYTES)
        try:
            async with asyncio.timeout(_SECONDS):
                return await self._client.send(request)
        except CallError as error:
            self._is_silent = error.status == 0
        except TimeoutError:
            self._is_silent = True
        return b""


def _without_version(base_url: str) -> str:
    """Return the root below which programs have further paths.

    >>> _without_version("http://gpu:8000/v1/")
    'http://gpu:8000'
    """
    parts = urlsplit(base_url)
    path = _VERSION_IN_PATH.sub("", parts.path.rstrip("/"))
    return urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))


# --- programs -------------------------------------------------------------------------------------

_Look = Callable[[_Server, Mapping[str, Any]], Awaitable[RunningProgram | None]]
"""Returns the program if it answers there, by the card of the model or by asking."""


async def _vllm(server: _Server, card: Mapping[str, Any]) -> RunningProgram | None:
    if card.get("owned_by") != "vllm":
        return None
    reply = await server.object_at("version")
    return _program("vllm", reply.get("version"), card.get("root"))


async def _sglang(server: _Server, card: Mapping[str, Any]) -> RunningProgram | None:
    if card.get("owned_by") != "sglang":
        return None
    # The second is its name in older versions, and answers with a warning in newer ones.
    reply = await server.object_at("server_info") or await server.object_at("get_server_info")
    checkpoint = reply.get("model_path", card.get("root"))
    return _program("sglang", reply.get("version"), checkpoint, reply.get("revision"))


async def _llama_cpp(server: _Server, card: Mapping[str, Any]) -> RunningProgram | None:
    if card.get("owned_by") != "llamacpp":
        return None
    reply = await server.object_at("props")
    return _program("llama.cpp", reply.get("build_info"), reply.get("model_path"))


async def _lmdeploy(server: _Server, card: Mapping[str, Any]) -> RunningProgram | None:
    # It says its version nowhere.
    return _program("lmdeploy") if card.get("owned_by") == "lmdeploy" else None


async def _ollama(server: _Server, card: Mapping[str, Any]) -> RunningProgram | None:
    if (await server.text_at("")).strip() != "Ollama is running":
        return None
    reply = await server.object_at("api/version")
    return _program("ollama", reply.get("version"), card.get("id"))


async def _lm_studio(server: _Server, card: Mapping[str, Any]) -> RunningProgram | None:
    models = objects_of((await server.object_at("api/v0/models")).get("data"))
    if not any("compatibility_type" in model for model in models):
        return None
    model = next((each for each in models if each.get("id") == card.get("id")), {})
    quantization = model.get("quantization")
    named = card.get("id")
    whole = f"{named} {quantization}" if named and quantization else named
    return _program("LM Studio", checkpoint=whole)


async def _tgi(server: _Server, card: Mapping[str, Any]) -> RunningProgram | None:
    reply = await server.object_at("info")
    if "model_id" not in reply or "model_sha" not in reply:
        return None
    return _program("TGI", reply.get("version"), reply["model_id"], reply["model_sha"])


# What the model's card tells comes first: it costs no further request.
_LOOKS: Sequence[_Look] = (_vllm, _sglang, _llama_cpp, _lmdeploy, _ollama, _lm_studio, _tgi)


def _program(
    name: str, version: object = None, checkpoint: object = None, revision: object = None
) -> RunningProgram:
    path = _text(checkpoint)
    snapshot = _SNAPSHOT.search(path)
    if snapshot is not None:
        hub_name = snapshot["name"].replace("--", "/", 1)
        return RunningProgram(name, _text(version), hub_name, snapshot["revision"])
    # A server's folders are nobody's business.
    if path.startswith(("/", "~", ".")) or re.match(r"[A-Za-z]:[\\/]", path):
        path = re.split(r"[\\/]", path.rstrip("\\/"))[-1]
    return RunningProgram(name, _text(version), path, _text(revision))


def _text(value: object) -> str:
    return quoted_line(value, _LONGEST) if isinstance(value, str) else ""
