"""Remove this process's secrets from texts.

Servers quote keys in errors and replies, so their texts pass here before they are logged, shown or
written. A reply that quotes a secret is not stored at all
(:func:`.call_results.refused_if_it_quotes`).
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from .formatting import printable
from .secret_spellings import has_secret, hide_escaped, hide_parts, plain_spellings

HIDDEN = "***"  # Stands in messages and records where a secret was

SHORTEST = 8  # Characters; a shorter secret could be a word or number of an answer

# Environment variables that hold a secret
_NAMES = re.compile(
    r"(?:api_?key|token|secret|password|passwd|passphrase)$|_(?:key|pass|pwd)$"
    r"|(?:^|_)secret_(?!(?:.*_)?(?:file|path|name)$)",
    re.IGNORECASE,
)

# Words in the name of a field that holds a secret, besides those of variables
_OF_FIELDS = re.compile(
    r"^key$|authori[sz]ation|bearer|cookie|credential|^headers?$|_headers$", re.IGNORECASE
)

# Words in the name of a header, or of a parameter of an address, that holds a secret
_OF_HEADERS = re.compile(
    r"(?<!port)key|token|secret|passw|pwd|cookie|session|credential|bearer|jwt|authoriz|authentic"
    r"|(?:^|[-_.])(?:auth|sig|signature)(?:$|[-_.])|^code$",
    re.IGNORECASE,
)

# Tokens of a tokenizer's vocabulary, and what services call the name of a cached prompt
_NO_SECRET = re.compile(
    "cache_?key$|(?:bos|eos|pad|unk|sep|cls|mask|image|img|video|audio|start|end|stop|think|special|prompt)"
    "_?token$",
    re.IGNORECASE,
)

_CREDENTIALS = re.compile(r"(://)[^/\s@]+@|([?&][^=&\s]*(?:key|token|secret|sig)[^=&\s]*=)[^&\s]+")

_IN_ADDRESS = re.compile(r"://[^/\s:@]*:([^/\s@]+)@")

_remembered: set[str] = set()


def remember_secrets(*secrets: str) -> None:
    """Hide these secrets from now on, besides those in the environment."""
    _remembered.update(secret for secret in secrets if len(secret) >= SHORTEST)


def is_secret_name(name: str) -> bool:
    """Return whether a field or an argument of this name holds a secret.

    >>> [is_secret_name(name) for name in ("api_key", "Authorization", "max_tokens", "eos_token")]
    [True, True, False, False]
    """
    if _NO_SECRET.search(name):
        return False
    return bool(_NAMES.search(name) or _OF_FIELDS.search(name))


def is_secret_header(name: str) -> bool:
    """Return whether a header, or a parameter of an address, of this name may hold a secret.

    >>> [is_secret_header(name) for name in ("api-key", "Helicone-Auth", "x-portkey-provider")]
    [True, True, False]
    """
    return bool(_OF_HEADERS.search(name))


def secret_field(value: Any) -> str | None:
    """Return the name of the first text field in nested JSON whose name says that it is a secret.

    >>> secret_field({"a": [{"api_key": "sk-123"}]}), secret_field({"prompt_cache_key": "x"})
    ('api_key', None)
    """
    if isinstance(value, Mapping):
        for name, inner in value.items():
            if isinstance(inner, str) and is_secret_name(str(name)):
                return str(name)
            secret = secret_field(inner)
            if secret is not None:
                return secret
    if isinstance(value, list | tuple):
        for inner in value:
            secret = secret_field(inner)
            if secret is not None:
                return secret
    return None


def without_credentials(text: str) -> str:
    """Remove what addresses in a text hold of credentials, known or not.

    >>> without_credentials("http://me:pass@host:8000/v1?api_key=123&size=2")
    'http://***@host:8000/v1?api_key=***&size=2'
    """

    def hidden(match: re.Match[str]) -> str:
        scheme, parameter = match.groups()
        return f"{scheme}{HIDDEN}@" if scheme else f"{parameter}{HIDDEN}"

    return _CREDENTIALS.sub(hidden, text)


@dataclass(frozen=True, slots=True)
class Secrets:
    """The secrets of one moment: reading the environment costs more than looking for them."""

    # Of the environment, each with its variable's name
    named: tuple[tuple[str, str], ...] = field(repr=False)
    known: frozenset[str] = field(repr=False)  # All of them

    def scrub(self, text: str) -> str:
        """Remove secrets, in any of :mod:`.secret_spellings`."""
        if not self.known or len(text) < SHORTEST:
            return text
        for spelling in _plain_of_all(self.known):
            text = text.replace(spelling, HIDDEN)
        for secret in self.known:
            text = hide_parts(text, secret, HIDDEN)
        return hide_escaped(text, self.known, HIDDEN)

    def credential_in(self, text: str) -> str:
        """Say which secret a text quotes, in the user's terms; "" if none."""
        if self.scrub(text) == text:
            return ""
        for name, secret in self.named:
            if has_secret(text, secret):
                return f"the value of {name}"
        return "a key of this run"

    def scrubbed(self, value: Any) -> Any:
        """Remove secrets from a nested JSON value, keys included."""
        if isinstance(value, str):
            return self.scrub(value)
        if isinstance(value, dict):
            return {self.scrubbed(key): self.scrubbed(each) for key, each in value.items()}
        if isinstance(value, list | tuple):
            return [self.scrubbed(each) for each in value]
        return value


def known_secrets() -> Secrets:
    """Return the secrets that are known now: for texts of one moment, never for later ones."""
    named = tuple(_of_environment())
    secrets = _remembered.union(secret for _, secret in named)
    return Secrets(named, frozenset(secrets))


def scrub(text: str) -> str:
    """Remove the secrets that are known now, in any of :mod:`.secret_spellings`."""
    return text if len(text) < SHORTEST else known_secrets().scrub(text)


def quoted_line(text: str, limit: int) -> str:
    """Quote others' text on one line: scrubbed first, then cut, and printable."""
    line = " ".join(scrub(replace_surrogates(text)).split())
    return printable(line[:limit])


def quoted_json(value: Any) -> str:
    """Write a JSON value of others: each text scrubbed before JSON escapes it, names of keys too.

    >>> quoted_json({"é": [1, "x"]})
    '{"é": [1, "x"]}'
    """
    return json.dumps(known_secrets().scrubbed(value), ensure_ascii=False, default=str)


def error_line(error: BaseException) -> str:
    """Format an exception on one line, scrubbed: its class, and what it says."""
    return quoted_line(f"{type(error).__name__}: {error}", 500).removesuffix(":")


def replace_surrogates(text: str) -> str:
    """Replace lone surrogates, which files cannot hold."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _of_environment() -> Iterator[tuple[str, str]]:
    """Yield the secrets of environment variables, each with the variable's name."""
    for name, value in os.environ.items():
        for secret in _secrets_in(name, value):
            yield name, secret


# Every text of every reply passes here, so a variable is looked at once.
@lru_cache(maxsize=4096)
def _secrets_in(name: str, value: str) -> tuple[str, ...]:
    """Return the secrets that an environment variable holds."""
    secrets = [value.strip()] if _NAMES.search(name) else _IN_ADDRESS.findall(value)
    return tuple(secret for secret in secrets if len(secret) >= SHORTEST)


@lru_cache(maxsize=16)
def _plain_of_all(secrets: frozenset[str]) -> tuple[str, ...]:
    return plain_spellings(secrets)
