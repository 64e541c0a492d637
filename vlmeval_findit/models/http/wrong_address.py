"""What to type where a server answers that nothing is at the address, or that it lacks a model."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple
from urllib.parse import SplitResult, urljoin, urlsplit, urlunsplit

from ...core import object_or_empty, objects_of, quoted_line
from .call_errors import CallError

NOTHING_THERE = frozenset({404, 405, 410})  # the path, or the model, does not exist

_LISTED = 5  # names that are shown
_NAME = 80  # characters of each

# What users copy along with the address
_PATHS = re.compile(
    r"/+(?:(?:chat/)?completions|responses|messages|models|embeddings|generate|docs|health)$"
)
_VERSION = re.compile(r"/v\d\w*(?:/|$)")
_MODEL_WORDS = re.compile(
    r"not (?:a )?(?:found|valid|exist|available|supported|served)|invalid|unknown|no such|does not"
    r"|unrecognized",
    re.IGNORECASE,
)


class Listing(NamedTuple):
    """The models that a server lists below an address."""

    base_url: str
    names: Sequence[str]


class Advice(NamedTuple):
    """What to say of a wrong address, and whether no other call can be answered."""

    words: str
    is_certain: bool


def redirect_error(status: int, url: str, location: str | None) -> CallError:
    """Return the error of a reply with a status of 300 to 399.

    >>> str(redirect_error(308, "http://a.example/v1/chat/completions",
    ...                    "https://a.example/v1/chat/completions"))
    'HTTP 308: http://a.example/v1/chat/completions redirects to \
https://a.example/v1/chat/completions: give https://a.example/v1 as the address (--base-url)'
    """
    asked = shown(url)
    if not location:
        why = f"HTTP {status}: {asked} redirects, and does not say where"
    else:
        target = shown(urljoin(url, location))
        why = f"HTTP {status}: {asked} redirects to {target}: {_new_address(asked, target)}"
    error = CallError(why, status, hopeless=True)
    error.certain = True  # a key must not follow, so every call ends here
    return error


def _new_address(asked: str, target: str) -> str:
    base = _without_path(target)
    is_login = base == target.rstrip("/") and not _PATHS.search(urlsplit(target).path)
    if is_login or base == _without_path(asked):
        return "see that the address (--base-url) is that of the API"
    return f"give {base} as the address (--base-url)"


def shown(url: str) -> str:
    """Return a URL without its query and credentials."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return quoted_line(urlunsplit((parts.scheme, host, parts.path, "", "")), 300)


def _without_path(url: str) -> str:
    parts = urlsplit(url.rstrip("/"))
    return _at(parts, _PATHS.sub("", parts.path))


def _at(parts: SplitResult, path: str) -> str:
    return urlunsplit((parts.scheme, parts.netloc, path.rstrip("/"), parts.query, ""))


def other_addresses(base_url: str) -> list[str]:
    """Return the addresses that a user may have meant.

    >>> other_addresses("http://h:1/v1/chat/completions")
    ['http://h:1/v1']
    >>> other_addresses("http://h:1/api")
    ['http://h:1/api/v1', 'http://h:1/v1']
    """
    parts = urlsplit(base_url)
    path = parts.path.rstrip("/")
    paths = [_PATHS.sub("", path)]
    if not _VERSION.search(paths[0]):
        paths.append(f"{paths[0]}/v1")
    paths.append("/v1")
    return [_at(parts, each) for each in dict.fromkeys(paths) if each != path]


def is_about_model(error: CallError, served: str) -> bool:
    """Return whether a server says that it lacks the model."""
    words = str(error)
    names_it = "model" in words.lower() and served.lower() in words.lower()
    return error.status in (400, 404, 422) and names_it and bool(_MODEL_WORDS.search(words))


def names_in(body: bytes) -> list[str] | None:
    """Return the names in a list of models: OpenAI's, Anthropic's or Google's; None if it is none.

    >>> names_in(b'{"data": [{"id": "mine"}]}')
    ['mine']
    """
    try:
        reply = object_or_empty(json.loads(body))
    except (ValueError, RecursionError):
        return None
    listed = reply.get("data", reply.get("models"))
    if not isinstance(listed, list):
        return None
    names = (_name(each) for each in objects_of(listed))
    return [name for name in names if name]


def _name(model: Mapping[str, object]) -> str:
    name = model.get("id", model.get("name"))
    return quoted_line(name, _NAME).removeprefix("models/") if isinstance(name, str) else ""


def advise(asked: str, base_url: str, name: str, served: str, listing: Listing | None) -> Advice:
    """Say what to type.

    Args:
        asked: the URL that was asked.
        base_url: the address that was given.
        name: of the model, as results have it.
        served: of the model, as the server was asked for it.
        listing: of the first of the given address and :func:`other_addresses` that lists models;
            None if none does.
    """
    where = f"asked: {shown(asked)}"
    given = base_url.rstrip("/")
    if listing is None:
        guess = next(iter(other_addresses(base_url)), "")
        path = urlsplit(given).path
        is_odd = _PATHS.search(path) or not _VERSION.search(path)
        words = f"{where}; is it --base-url {shown(guess)}?" if guess and is_odd else where
        return Advice(words, is_certain=False)
    if listing.base_url.rstrip("/") != given:
        typed = f"--base-url {shown(listing.base_url)}"
        return Advice(f"{where}; the API is at another address: {typed}", is_certain=True)
    if listing.names and served not in listing.names:
        return Advice(f"{where}; {_served_names(name, served, listing.names)}", is_certain=True)
    return Advice(where, is_certain=False)


def _served_names(name: str, served: str, names: Sequence[str]) -> str:
    def similarity(candidate: str) -> float:
        return SequenceMatcher(None, served.lower(), candidate.lower()).ratio()

    near = sorted(names, key=similarity, reverse=True)[:_LISTED]
    more = f" and {len(names) - len(near)} more" if len(names) > len(near) else ""
    typed = f"--model {name}={near[0]} (in a file, `served: {near[0]}`)"
    called = f"the server calls no model {quoted_line(served, _NAME)!r}"
    return f"{called}; it has {', '.join(near)}{more}: {typed}"
