r"""Spellings of a secret: plain ones, codes, and as URLs, mails, HTML, JSON and C escape it.

Few texts have an escape, so plain spellings are looked for as they are. A text with an escape is
unescaped first: only if a secret is there afterwards, its spelling is searched for, sign by sign.
Codes (base64, digits) may be broken anywhere: :mod:`.secret_codes`. Dumps, whose lines have more
than the code, are hidden whole: :mod:`.secret_dumps`.
"""

from __future__ import annotations

import codecs
import html
import re
import sys
import unicodedata
from collections.abc import Callable, Iterable
from functools import cache, lru_cache
from html.entities import html5
from urllib.parse import quote_plus, unquote

from .secret_codes import base64_of, codes_in, pattern_of
from .secret_dumps import dumps_in

_ESCAPE = re.compile(r"[%&\\]|=[0-9A-Fa-f\r\n]")
_BACKSLASHED = re.compile(
    r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|U(000[0-9a-fA-F]{5})|u\{0*([0-9a-fA-F]{1,6})\}"
    r"|0?([0-3][0-7]{2})|(.))",
    re.DOTALL,
)
_PERCENT_U = re.compile(r"%u([0-9a-fA-F]{4})")  # of old JavaScript
_QUOTED_PRINTABLE = re.compile(r"=(?:([0-9A-Fa-f]{2})|[ \t]*\r?\n)")
# A run of backslashes is read once, from its beginning: from each of a million would take hours.
_SLASHES = r"(?<!\\)\\++"
_LINE_END = re.compile(r"(?<!\\)\\+[nrt]")
_ROUNDS = 3  # Escapes of escapes that are looked behind: %252F in a JSON text
_MOST_UNESCAPED = 8_000_000  # signs of all texts that are looked behind: of megabytes, fewer


def plain_spellings(secrets: Iterable[str]) -> tuple[str, ...]:
    """Return the spellings without escapes of secrets, the longest first: one may hold another."""
    spellings = set[str]().union(*map(_plain, secrets))
    return tuple(sorted(spellings, key=len, reverse=True))


def hide_escaped(text: str, secrets: frozenset[str], hidden: str) -> str:
    r"""Replace the spellings of secrets in which signs are escaped, and codes of them.

    >>> secrets = frozenset(["my/secret+"])
    >>> [hide_escaped(text, secrets, "***") for text in ("a my%2fsecret%2B", r"my\/secret&plus;")]
    ['a ***', '***']
    >>> hide_escaped("bXkvc2\nVjcmV0Kw==, 6d:79:2f:73:65:63:72:65:74:2b", secrets, "***")
    '***w==, ***'
    """
    for dump in _dumps_with(text, secrets):
        text = text.replace(dump, hidden)
    patterns = _patterns_in(text, secrets)
    if not patterns:
        return text
    replaced = re.sub("|".join(patterns), lambda spelling: hidden, text)
    # Escaped in a way that is not known: no word of it is shown.
    return hidden if _patterns_in(replaced, secrets) else replaced


# A part of a path or of a sentence could be a word of any text.
_KEY = re.compile(r"[\w.~+=-]{20,}", re.ASCII)


def hide_parts(text: str, secret: str, hidden: str) -> str:
    """Replace half of a key or more, from its beginning or to its end: somebody cut it off.

    The few signs by which services name a key stay.

    >>> [hide_parts(text, "sk-0123456789abcdefgh", "***") for text in ("sk-0…fgh", "sk-012345678…")]
    ['sk-0…fgh', '***…']
    """
    if not _KEY.fullmatch(secret):
        return text
    half = (len(secret) + 1) // 2
    for part, whole in ((secret[:half], secret), (secret[-half:], secret[::-1])):
        is_end = part != secret[:half]
        while (at := text.find(part)) >= 0:
            end = at + half
            if is_end:
                while at > 0 and text[at - 1] == whole[end - at : end - at + 1]:
                    at -= 1
            else:
                while text[end : end + 1] and text[end] == whole[end - at : end - at + 1]:
                    end += 1
            text = f"{text[:at]}{hidden}{text[end:]}"
    return text


def _dumps_with(text: str, secrets: frozenset[str]) -> list[str]:
    """Return the dumps of a text that have a secret."""
    plain = _plain_of_all(secrets)
    found = []
    for dump in dumps_in(text):
        is_plain = any(_is_in(dump.readings, spelling) for spelling in plain)
        if is_plain or codes_in(dump.readings, secrets):
            found.append(dump.text)
    return found


def _patterns_in(text: str, secrets: frozenset[str]) -> list[str]:
    """Return the patterns of the spellings that are in a text once it is unescaped."""
    texts = _unescaped(text)
    patterns = [pattern_of(code) for code in codes_in(texts, secrets)]
    if len(texts) > 1:  # others stand in it as they are
        patterns += [_spelt(plain) for plain in _plain_of_all(secrets) if _is_in(texts, plain)]
    return patterns


def has_secret(text: str, secret: str) -> bool:
    """Return whether a text has a secret in any spelling."""
    texts = _unescaped(text)
    if any(_is_in(texts, plain) for plain in _plain(secret)):
        return True
    only = frozenset([secret])
    return bool(codes_in(texts, only) or _dumps_with(text, only))


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
    # As others turn it: reversed, in one case, by ROT13, or its bytes as Latin-1
    found |= {secret[::-1], secret.lower(), secret.upper(), codecs.encode(secret, "rot13")}
    found.add(data.decode("latin-1"))
    for encoded in base64_of(data):
        found |= {encoded, encoded.replace("+", "-").replace("/", "_")}
    return frozenset(found)


def _unescaped(text: str) -> set[str]:
    """Return a text, and what it is without its escapes, in any order of them.

    A secret may have such signs itself, so no order is right for all.
    """
    texts = {text}
    if not text.isascii():
        texts.add(unicodedata.normalize("NFKC", text))
    if not _ESCAPE.search(text):
        return texts
    latest = list(texts)
    room = _MOST_UNESCAPED
    for _ in range(_ROUNDS):
        further: dict[str, None] = {}
        for each in latest:
            for unescape in _UNESCAPES:
                if room > 0:
                    further[unescape(each)] = None
                    room -= len(each)
        latest = [each for each in further if each not in texts]
        texts.update(latest)
    return texts


def _without_backslashes(text: str) -> str:
    return _replaced(text, lambda match: _sign(match) or match[6] or match[5])


def _without_numbers(text: str) -> str:
    """Unescape numbers alone: a backslash of the secret may stand as it is."""
    return _replaced(text, lambda match: _sign(match) or match[0])


def _replaced(text: str, sign: Callable[[re.Match[str]], str]) -> str:
    plain = _PERCENT_U.sub(lambda match: chr(int(match[1], 16)), text)
    plain = _BACKSLASHED.sub(sign, plain)
    if plain.isascii():
        return plain
    # JSON has signs beyond 65,536 as two escapes.
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _sign(match: re.Match[str]) -> str:
    """Return the sign of an escape with its number; "" of another."""
    if match[5]:
        return chr(int(match[5], 8)) if int(match[5], 8) else ""
    digits = match[1] or match[2] or match[3] or match[4]
    number = int(digits, 16) if digits else 0
    return chr(number) if 0 < number <= sys.maxunicode else ""


def _without_quoted_printable(text: str) -> str:
    """Unescape what mails escape; their lines end with the sign of an escape."""
    if "=" not in text:
        return text
    # As Latin-1, which percents turn into what its bytes say
    percents = text.replace("%", "%25")
    return unquote(
        _QUOTED_PRINTABLE.sub(lambda match: f"%{match[1]}" if match[1] else "", percents)
    )


def _without_line_ends(text: str) -> str:
    r"""Remove line ends and tabs that are escaped: of a \n, else the letter would remain."""
    return _LINE_END.sub("", text)


_UNESCAPES = (
    unquote,
    html.unescape,
    _without_numbers,
    _without_backslashes,
    _without_quoted_printable,
    _without_line_ends,
)


def _spelt(plain: str) -> str:
    """Return the pattern of a spelling in which any sign may be escaped."""
    return "".join(map(_sign_pattern, plain))


@cache
def _sign_pattern(sign: str) -> str:
    data = sign.encode("utf-8", "surrogatepass")
    number = ord(sign)
    ways = [rf"(?:{_SLASHES})?{re.escape(sign)}" if sign != "\\" else r"\\+"]
    ways.append("".join(f"%(?:25)*{_digits(f'{byte:02x}')}" for byte in data))
    ways.append("".join(f"={_digits(f'{byte:02x}')}" for byte in data))
    ways.append("".join(rf"{_SLASHES}0?{byte:03o}" for byte in data))
    ways.append(rf"{_SLASHES}u\{{0*{_digits(f'{number:x}')}\}}")
    ways.append(rf"&(?:amp;)*#0*{number};?")
    ways.append(rf"&(?:amp;)*#[xX]0*{_digits(f'{number:x}')};?")
    units = sign.encode("utf-16-be", "surrogatepass").hex()
    fours = [_digits(units[at : at + 4]) for at in range(0, len(units), 4)]
    ways.append("".join(rf"(?:{_SLASHES}|%)u{four}" for four in fours))
    ways.append(rf"{_SLASHES}U{_digits(f'{number:08x}')}")
    if number < 256:
        ways.append(rf"{_SLASHES}x{_digits(f'{number:02x}')}")
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
