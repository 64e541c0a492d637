"""Headers that a user states of every request: how they meet, and how they are recorded.

A header may decide who answers (``x-portkey-provider``, ``Helicone-Target-Url``,
``OpenAI-Organization``, ``anthropic-beta``), so all of them are part of the record of a run.
Names have no case.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence

from ...core import (
    TextError,
    is_secret_header,
    parse_json,
    scrub,
    secret_field,
    sha256_of,
    without_credentials,
)

HEADERS_VARIABLE = "FINDIT_SERVER_HEADERS"

Headers = Sequence[str] | Mapping[str, str]  # ``NAME: VALUE`` lines, or by name

_FLAG = "--header"
# In a value: how a credential is announced, how keys of services begin, and what nobody types
_SECRET_VALUE = re.compile(
    r"^\s*(?:bearer|basic|digest|negotiate|token)\s"
    r"|\b(?:(?:sk|pk|rk|gsk|xai)-|(?:hf|ghp|github_pat)_|AIza|eyJ)\w{6}"
    r"|(?:key|token|secret|passw\w*)[\"']?\s*[:=]"
    r"|(?=[a-z]*\d)(?=\d*[a-z])[a-z0-9]{20}",
    re.IGNORECASE,
)


# What HTTP takes as the name of a header (a token of RFC 9110)
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


def header_lines(given: Headers, what: str = _FLAG) -> dict[str, str]:
    """Return headers by name.

    Raises ValueError, without a value, for a line or value that is none, and for a name that is
    stated twice; ``what`` is where they are stated.
    """
    if isinstance(given, Mapping):
        pairs = [*given.items()]
    else:
        lines = [line.partition(":") for line in given]
        if not all(colon and name.strip() for name, colon, _ in lines):
            raise ValueError(f"{what} should be 'NAME: VALUE'")
        pairs = [(name.strip(), value.strip()) for name, _, value in lines]
    _refuse_equal_names([name for name, _ in pairs], what)
    for name, value in pairs:
        if not _NAME.fullmatch(name):
            raise ValueError(
                f"{what}: {name} is no name of a header: letters, digits and -, as x-a"
            )
        if not isinstance(value, str):
            raise ValueError(f"{what}: the value of {name} should be a text")
    return dict(pairs)


def _refuse_equal_names(names: Iterable[str], what: str) -> None:
    by_lower = dict[str, str]()
    for name in names:
        first = by_lower.setdefault(name.lower(), name)
        if first is not name:
            both = name if first == name else f"{first} and {name}, which are one header,"
            raise ValueError(f"{what} names {both} twice: leave one out")


def joined_headers(of_command: Headers, of_entry: Headers | None) -> dict[str, str]:
    """Return the headers of a command and of a model's entry.

    Raises ValueError for a header that both state with different values, which it does not show.
    """
    flags = header_lines(of_command)
    entry = header_lines(of_entry or {}, "headers")
    by_lower = {name.lower(): name for name in flags}
    for name, value in entry.items():
        other = by_lower.get(name.lower())
        if other is not None and flags[other] != value:
            raise ValueError(
                f"{_FLAG} {other} and `headers` of its entry have different values: leave one out"
            )
    return _overridden(flags, entry)


def server_headers(given: Headers = ()) -> dict[str, str]:
    """Return the headers of servers: the environment's, overridden by ``given``."""
    usual = 'should be a JSON object, as {"api-key": "…"}'
    try:
        of_environment = parse_json(os.environ.get(HEADERS_VARIABLE) or "{}")
    except TextError as error:
        raise ValueError(f"{HEADERS_VARIABLE}: {error}. It {usual}") from None
    if not isinstance(of_environment, dict):
        raise ValueError(f"{HEADERS_VARIABLE} {usual}")
    return _overridden(header_lines(of_environment, HEADERS_VARIABLE), header_lines(given))


def _overridden(usual: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """Return headers, the given ones in place of the usual ones of their names."""
    names = {name.lower() for name in given}
    remaining = {name: value for name, value in usual.items() if name.lower() not in names}
    return {**remaining, **given}


def recorded_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return headers as a run records them: a value that may be a secret is a hash.

    >>> recorded_headers({"X-Team": "a", "api-key": "k"})
    {'api-key': 'sha256:60feac02', 'x-team': 'a'}
    """
    by_name = {name.lower(): value for name, value in headers.items()}
    return {name: _recorded(name, by_name[name]) for name in sorted(by_name)}


def _recorded(name: str, value: str) -> str:
    if not (is_secret_header(name) or _may_be_secret(value)):
        return value
    # With its name: equal secrets of two headers are not told
    return f"sha256:{sha256_of(f'{name}: {value}'.encode())[:8]}"


def _may_be_secret(value: str) -> bool:
    if _SECRET_VALUE.search(value) or without_credentials(value) != value or scrub(value) != value:
        return True
    try:
        return secret_field(parse_json(value)) is not None
    except TextError:
        return False
