r"""Spellings of a secret: in base64 and hexadecimal digits, and as URLs, HTML and JSON escape it.

Few texts have an escape, so plain spellings are looked for as they are. A text with an escape is
unescaped first: only if a secret is there afterwards, its spelling is searched for, sign by sign.
"""

from __future__ import annotations

import base64
import html
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache, lru_cache
from html.entities import html5
from urllib.parse import quote_plus, unquote

_ESCAPE = re.compile(r"[%&\\]")
_BACKSLASHED = re.compile(
    r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|U(000[0-9a-fA-F]{5})|(.))", re.DOTALL
)
_ROUNDS = 3  # Escapes of escapes that are looked behind: %252F in a JSON text


def plain_spellings(secrets: Iterable[str]) -> tuple[str, ...]:
    """Return the spellings without escapes of secrets, the longest first: one may hold another."""
    spellings = set[str]().union(*map(_plain, secrets))
    return tuple(sorted(spellings, key=len, reverse=True))


def hide_escaped(text: str, secrets: frozenset[str], hidden: str) -> str:
    r"""Replace the spellings of secrets in which signs are escaped.

    >>> secrets = frozenset(["my/secret+"])
    >>> [hide_escaped(text, secrets, "***") for text in ("a my%2fsecret%2B", r"my\/secret&plus;")]
    ['a ***', '***']
    """
    if not _ESCAPE.search(text):
        return text
    found = _found(text, secrets)
    if not found:
        return text
    replaced = re.sub("|".join(map(_spelt, found)), lambda spelling: hidden, text)
    # Escaped in a way that is not known: no word of it is shown.
    return hidden if _found(replaced, secrets) else replaced


def _found(text: str, secrets: frozenset[str]) -> list[str]:
    """Return the plain spellings that are in a text once it is unescaped."""
    texts = _unescaped(text)
    return [plain for plain in _plain_of_all(secrets) if _is_in(texts, plain)]


def has_secret(text: str, secret: str) -> bool:
    """Return whether a text has a secret in any spelling."""
    texts = _unescaped(text)
    return any(_is_in(texts, plain) for plain in _plain(secret))


def _is_in(texts: Iterable[str], plain: str) -> bool:
    return any(plain in text for text in texts)


@lru_cache(maxsize=16)
def _plain_of_all(secrets: frozenset[str]) -> tuple[str, ...]:
    return plain_spellings(secrets)


@cache
def _plain(secret: str) -> frozenset[str]:
    data = secret.encode("utf-8", "surrogatepass")
    digits = data.hex()
    found = {secret, quote_plus(data), digits, digits.upper()}
    for encoded in _in_base64(data):
        found |= {encoded, encoded.replace("+", "-").replace("/", "_")}
    return frozenset(found)


def _in_base64(data: bytes) -> Iterator[str]:
    """Yield it in base64, at any offset in a longer text (as in basic authentication)."""
    for before in range(3):
        encoded = base64.b64encode(bytes(before) + data).decode("ascii")
        # Characters at the ends also depend on the neighbours' bits.
        yield encoded[-(-before * 8 // 6) : (before + len(data)) * 8 // 6]


def _unescaped(text: str) -> set[str]:
    """Return a text, and what it is without its escapes, in any order of them.

    A secret may have such signs itself, so no order is right for all.
    """
    texts = {text}
    latest = [text]
    for _ in range(_ROUNDS):
        further = []
        for each in latest:
            further += [unescape(each) for unescape in _UNESCAPES]
        latest = [each for each in dict.fromkeys(further) if each not in texts]
        texts.update(latest)
    return texts


def _without_backslashes(text: str) -> str:
    return _replaced(text, lambda match: _sign(match) or match[4])


def _without_numbers(text: str) -> str:
    """Unescape numbers alone: a backslash of the secret may stand as it is."""
    return _replaced(text, lambda match: _sign(match) or match[0])


def _replaced(text: str, sign: Callable[[re.Match[str]], str]) -> str:
    plain = _BACKSLASHED.sub(sign, text)
    if plain.isascii():
        return plain
    # JSON has signs beyond 65,536 as two escapes.
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _sign(match: re.Match[str]) -> str:
    """Return the sign of an escape with its number; "" of another."""
    digits = match[1] or match[2] or match[3]
    number = int(digits, 16) if digits else 0
    return chr(number) if 0 < number <= sys.maxunicode else ""


_UNESCAPES = (unquote, html.unescape, _without_numbers, _without_backslashes)


def _spelt(plain: str) -> str:
    """Return the pattern of a spelling in which any sign may be escaped."""
    return "".join(map(_sign_pattern, plain))


@cache
def _sign_pattern(sign: str) -> str:
    data = sign.encode("utf-8", "surrogatepass")
    number = ord(sign)
    ways = [rf"\\*{re.escape(sign)}"]
    ways.append("".join(f"%(?:25)*{_digits(f'{byte:02x}')}" for byte in data))
    ways.append(rf"&(?:amp;)*#0*{number};?")
    ways.append(rf"&(?:amp;)*#[xX]0*{_digits(f'{number:x}')};?")
    units = sign.encode("utf-16-be", "surrogatepass").hex()
    ways.append("".join(rf"\\+u{_digits(units[at : at + 4])}" for at in range(0, len(units), 4)))
    ways.append(rf"\\+U{_digits(f'{number:08x}')}")
    if number < 256:
        ways.append(rf"\\+x{_digits(f'{number:02x}')}")
    ways += [rf"&(?:amp;)*{re.escape(name)}" for name in _names().get(sign, ())]
    return f"(?:{'|'.join(ways)})"


def _digits(digits: str) -> str:
    """Return the pattern of hexadecimal digits, whose letters have either case."""
    return "".join(f"[{each}{each.upper()}]" if each.isalpha() else each for each in digits)


@cache
def _names() -> dict[str, list[str]]:
    """Return the names of signs in HTML, the longest first: some also end without a semicolon."""
    names: dict[str, list[str]] = {}
    for name in sorted(html5, key=len, reverse=True):
        names.setdefault(html5[name], []).append(name)
    return names
