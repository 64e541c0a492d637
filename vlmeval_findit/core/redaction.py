"""Remove this process's secrets from texts.

Servers quote keys in errors and replies, so their texts pass here before they are logged, shown or
written. A reply that quotes a secret is not stored at all (:func:`.answers.refused_if_it_quotes`).
"""

from __future__ import annotations

import base64
import html
import json
import os
import re
import threading
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, quote_plus

HIDDEN = "***"

SHORTEST = 8  # Characters; a shorter secret could be a word or number of an answer

# Environment variables that hold a secret
_NAMES = re.compile(
    r"(?:api_?key|token|secret|password|passwd|passphrase)$|_(?:key|pass|pwd)$"
    r"|(?:^|_)secret_(?!(?:.*_)?(?:file|path|name)$)",
    re.IGNORECASE,
)

_IN_ADDRESS = re.compile(r"://[^/\s:@]*:([^/\s@]+)@")

_lock = threading.Lock()
_remembered: set[str] = set()
_looked_at: tuple[object, ...] = ()
_known: frozenset[str] = frozenset()
_forms: tuple[str, ...] = ()


def remember(*secrets: str) -> None:
    """Hide these secrets from now on, besides those in the environment."""
    with _lock:
        _remembered.update(secret for secret in secrets if len(secret) >= SHORTEST)


def scrub(text: str) -> str:
    """Remove secrets in every encoding, even a secret that is cut off by the end of the text."""
    forms = _forms_now()
    for form in forms:
        if form in text:
            text = text.replace(form, HIDDEN)
    return _without_cut_end(text, forms) if forms else text


def credential_in(text: str) -> str:
    """Say which secret a text quotes, in the user's terms; "" if none."""
    if scrub(text) == text:
        return ""
    for name, secret in _of_environment():
        if any(form in text for form in _forms_of(secret)):
            return f"the value of {name}"
    return "a key of this run"


def scrubbed(value: Any) -> Any:
    """Remove secrets from a nested JSON value, keys included."""
    if isinstance(value, str):
        return scrub(value)
    try:
        if isinstance(value, dict):
            return {scrubbed(key): scrubbed(each) for key, each in value.items()}
        if isinstance(value, list | tuple):
            return [scrubbed(each) for each in value]
    except RecursionError:
        # JSON's writer could not write it either.
        return HIDDEN
    return value


def quoted(text: str, limit: int) -> str:
    """Quote others' text on one line: scrubbed first, then cut."""
    return " ".join(scrub(of_whole_characters(text)).split())[:limit]


def of_whole_characters(text: str) -> str:
    """Replace lone surrogates, which files cannot hold."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


# --- encodings of secrets -------------------------------------------------------------------------


def _forms_now() -> tuple[str, ...]:
    """Return all forms of all secrets, longest first, as a form may contain another."""
    global _looked_at, _known, _forms
    with _lock:
        # Undecoded: to decode it for every reply would take longer than all else.
        environment = getattr(os.environ, "_data", os.environ)
        if (_remembered, environment) == _looked_at:
            return _forms
        now = frozenset(_remembered), dict(environment)
        secrets = _remembered.union(secret for _, secret in _of_environment())
        if secrets != _known:
            result = {form for secret in secrets for form in _forms_of(secret)}
            _forms = tuple(sorted(result, key=lambda form: (-len(form), form)))
            _known = frozenset(secrets)
        _looked_at = now
        return _forms


def _of_environment() -> Iterator[tuple[str, str]]:
    for name, value in os.environ.items():
        result = [value.strip()] if _NAMES.search(name) else _IN_ADDRESS.findall(value)
        yield from ((name, secret) for secret in result if len(secret) >= SHORTEST)


_QUOTED_BYTE = re.compile("%[0-9A-F]{2}")


def _forms_of(secret: str) -> Iterator[str]:
    """Yield a secret as it is, in a URL, in JSON, in HTML and in base64."""
    data = secret.encode("utf-8", "surrogatepass")
    yield secret
    for in_url in (quote(data, safe=""), quote(data), quote_plus(data)):
        yield in_url
        yield _QUOTED_BYTE.sub(lambda match: match[0].lower(), in_url)
    for ascii_only in (True, False):
        in_json = json.dumps(secret, ensure_ascii=ascii_only)[1:-1]
        yield in_json
        yield in_json.replace("/", "\\/")
    yield html.escape(secret)
    yield from _in_base64(data)


def _in_base64(data: bytes) -> Iterator[str]:
    """Yield it in base64, at any offset in a longer text (as in basic authentication)."""
    for before in range(3):
        encoded = base64.b64encode(bytes(before) + data).decode("ascii")
        # Characters at the ends also depend on the neighbours' bits.
        whole = encoded[-(-before * 8 // 6) : (before + len(data)) * 8 // 6]
        yield whole
        yield whole.replace("+", "-").replace("/", "_")


_AFTER_A_CUT = " \t\r\n.…,;:'\"`)]}>*\\"


def _without_cut_end(text: str, forms: tuple[str, ...]) -> str:
    end = text[-2 * len(forms[0]) - 100 :].rstrip(_AFTER_A_CUT)
    for form in forms:
        at = end.find(form[:SHORTEST], max(len(end) - len(form), 0))
        while at >= 0:
            if form.startswith(end[at:]):
                return text[: max(len(text) - 2 * len(forms[0]) - 100, 0)] + end[:at] + HIDDEN
            at = end.find(form[:SHORTEST], at + 1)
    return text
