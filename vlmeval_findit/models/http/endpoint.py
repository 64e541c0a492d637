"""An API's address, credentials and headers, which are never shown."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from urllib.parse import SplitResult, parse_qsl, urlunsplit

from ...core import is_secret_header, remember_secrets, split_address

_OPENAI = "api.openai.com"


@dataclass(frozen=True, slots=True, repr=False)
class Endpoint:
    """The address of an OpenAI-compatible API, or of a provider's.

    A ValueError for an invalid URL, key or header shows none of them.
    """

    base_url: str  # including /v1, perhaps with a query
    key: str = ""  # bearer token, unless the headers have credentials
    headers: Mapping[str, str] = field(default_factory=dict)  # of every request, besides FindIt's
    provider: str = ""  # row of PROVIDERS, asked in its protocol
    label: str = ""  # for logs and records; empty: the address
    gpus: int = 0  # of this machine, on which it runs; 0: none, or it runs elsewhere

    def __post_init__(self) -> None:
        parts = _parts(self.base_url)
        # An HTTP library would quote the key or header in its error.
        if not _is_plain(self.key) or " " in self.key:
            raise ValueError(
                "the API key contains a space, a line end or another character that keys do not "
                "have"
            )
        remember_secrets(self.key)
        for name, value in self.headers.items():
            if not _is_plain(name + value):
                raise ValueError(
                    f"the header {name!r} contains characters that headers do not have"
                )
            if is_secret_header(name):
                words = value.replace(";", " ").split()
                remember_secrets(
                    value, *(words[1:] or words), *(each.partition("=")[2] for each in words)
                )
        remember_secrets(
            *(value for name, value in parse_qsl(parts.query) if is_secret_header(name))
        )

    def __repr__(self) -> str:
        return f"Endpoint({self.name!r})"

    @property
    def name(self) -> str:
        """Its label, or its address without a query, for logs and records."""
        if self.label:
            return self.label
        parts = _parts(self.base_url)
        return urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/"), "", ""))

    def at(self, path: str, query: str = "") -> str:
        """Return the URL of an API path."""
        parts = _parts(self.base_url)
        whole = "&".join(filter(None, (parts.query, query)))
        path = f"{parts.path.rstrip('/')}/{path}"
        return urlunsplit((parts.scheme, parts.netloc, path, whole, ""))

    @property
    def limit_field(self) -> str:
        """Its field for a reply's token limit."""
        is_openai = self.provider == "openai" or _parts(self.base_url).hostname == _OPENAI
        return "max_completion_tokens" if is_openai else "max_tokens"

    def request_headers(
        self, key_header: str = "", more: Mapping[str, str] = MappingProxyType({})
    ) -> dict[str, str]:
        """Return a request's headers with secrets; the user's override FindIt's and ``more``."""
        # An uncompressed reply cannot be a zip bomb.
        defaults = {
            "Content-Type": "application/json",
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            **more,
        }
        given = {name.lower() for name in self.headers}
        if self.key and "authorization" not in given:
            bearer = "" if key_header else "Bearer "
            defaults[key_header or "Authorization"] = bearer + self.key
        remaining = {name: value for name, value in defaults.items() if name.lower() not in given}
        return {**remaining, **self.headers}


def _parts(url: str) -> SplitResult:
    """Split a valid URL; errors show no credentials."""
    shown = re.sub(r"\?.*", "?…", re.sub(r"[^/]*@", "***@", url), flags=re.DOTALL)
    try:
        parts = split_address(url)
    except ValueError as error:
        raise ValueError(f"the base URL {shown!r} {error}") from None
    if parts.username is not None:
        raise ValueError(
            f"the base URL {shown!r} contains credentials, which would be recorded: pass them "
            "as --key, or as --header 'Authorization: Basic …'"
        )
    return parts


def _is_plain(text: str) -> bool:
    return text.isascii() and text.isprintable()
