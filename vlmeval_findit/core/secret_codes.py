"""Codes of a secret: base64, base32, base85, digits and numbers of its bytes, in lines or groups.

Also base58 and other large numbers, Z85, uuencode and other digits of base64; what is reversed
before or after it is coded; lists of its letters.

Programs break codes with line ends, colons or commas, so texts are compared without what stands
between letters and digits. Only if a code is there, it is searched for sign by sign.
"""

from __future__ import annotations

import base64
import re
import string
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

_SIGNS = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_NO_SIGNS = bytes(set(range(256)) - set(_SIGNS))
_SPACES = bytes(range(33)) + b"\x7f"
# Signs without a width: a soft hyphen, joiners, marks of direction, a byte order mark
_UNSEEN = re.compile("[\xad\u200b-\u200f\u2028\u2029\u2060\ufeff]")

_SHORTEST = 8  # signs of a code; fewer could stand in any text


class _Code(NamedTuple):
    """A code, without what may stand between its signs."""

    signs: bytes
    is_any_case: bool = False
    is_alnum: bool = True  # False: only white space may stand between


class _Squeezed(NamedTuple):
    """A text without what may stand between the signs of a code."""

    exact: bytes
    small: bytes  # in small letters
    packed: bytes  # without white space alone

    def has(self, code: _Code) -> bool:
        """Return whether a code is in it."""
        if code.is_any_case:
            return code.signs in self.small
        return code.signs in (self.exact if code.is_alnum else self.packed)


def codes_in(texts: Iterable[str], secrets: frozenset[str]) -> list[_Code]:
    """Return the codes of secrets that are in one of several texts."""
    known = _known(secrets)
    found: list[_Code] = []
    for text in texts:
        if len(text) >= known.shortest:
            squeezed = _squeezed(text)
            if known.may_be_in(squeezed):
                found += [code for code in known.codes if squeezed.has(code)]
    return list(dict.fromkeys(found))


# What may stand between the signs of a code; a line end may be escaped, once or twice
_BETWEEN = r"(?:[^0-9A-Za-z]|(?<=\\)[nrt])*?"
_SPACE_BETWEEN = rf"(?:[\s\x00-\x20\x7f]|{_UNSEEN.pattern}|(?<!\\)\\++[nrt])*?"


def pattern_of(code: _Code) -> str:
    """Return the pattern of a code in which other signs stand."""
    signs = code.signs.decode("utf-8", "surrogatepass")
    if not code.is_alnum:
        return _SPACE_BETWEEN.join(map(re.escape, signs))
    return _BETWEEN.join(map(_of_any_case if code.is_any_case else str, signs))


def _of_any_case(sign: str) -> str:
    return f"[{sign}{sign.upper()}]" if sign.isalpha() else sign


def _squeezed(text: str) -> _Squeezed:
    shown = text if text.isascii() else _UNSEEN.sub("", text)
    data = shown.encode("utf-8", "surrogatepass")
    exact = data.translate(None, _NO_SIGNS)
    return _Squeezed(exact, exact.lower(), data.translate(None, _SPACES))


# --- the codes of a secret ------------------------------------------------------------------------


_GRAM = 8  # signs that are compared at once, at each eighth place of a text


class _Known(NamedTuple):
    """The codes of secrets, with what finds out quickly that a text has none of them."""

    codes: tuple[_Code, ...]
    shortest: int  # signs
    short: tuple[_Code, ...]  # those that may lie between the places that are looked at
    grams: tuple[frozenset[bytes], ...]  # of the others, for each field of a squeezed text

    def may_be_in(self, squeezed: _Squeezed) -> bool:
        """Return whether a text may have one of the codes; most have none."""
        for data, grams in zip(squeezed, self.grams, strict=True):
            places = range(0, len(data) - _GRAM + 1, _GRAM)
            if not grams.isdisjoint(data[at : at + _GRAM] for at in places):
                return True
        return any(map(squeezed.has, self.short))


@lru_cache(maxsize=16)
def _known(secrets: frozenset[str]) -> _Known:
    codes = tuple(set[_Code]().union(*map(_codes_of, secrets)))
    grams: tuple[set[bytes], ...] = (set(), set(), set())
    short = []
    for code in codes:
        if len(code.signs) < 2 * _GRAM - 1:
            short.append(code)
        field = 1 if code.is_any_case else 0 if code.is_alnum else 2
        grams[field].update(code.signs[at : at + _GRAM] for at in range(_GRAM))
    shortest = min((len(code.signs) for code in codes), default=0)
    return _Known(codes, shortest, tuple(short), tuple(map(frozenset, grams)))


def _codes_of(secret: str) -> set[_Code]:
    data = secret.encode("utf-8", "surrogatepass")
    wide = [secret.encode(f"utf-16-{order}", "surrogatepass") for order in ("le", "be")]
    codes = {_Code(_squeezed(secret).packed, is_alnum=False)}
    codes |= {*_in_base64(data), *_in_base32(data), *_in_base85(data), *_in_numbers(data)}
    codes |= {*_in_other_digits(data), *_as_large_numbers(data)}
    for each in [*wide, *_once_coded(data)]:
        codes |= {*_in_base64(each), _in_digits(each)}
    backwards = secret[::-1].encode("utf-8", "surrogatepass")
    codes |= {*_in_base64(backwards), *_in_base32(backwards), *_in_numbers(backwards)}
    for code in [*_in_base64(data), *_in_base32(data), _in_digits(data)]:
        codes.add(code._replace(signs=code.signs[::-1]))
    codes |= {*_in_letters(data)}
    return {code for code in codes if len(code.signs) >= _SHORTEST}


def _once_coded(data: bytes) -> Iterator[bytes]:
    """Yield what is coded a second time: base64 and hexadecimal digits."""
    for encoded in base64_of(data):
        yield encoded.encode("ascii")
        yield encoded.translate({ord("+"): "-", ord("/"): "_"}).encode("ascii")
    yield data.hex().encode("ascii")
    yield data.hex().upper().encode("ascii")


def base64_of(data: bytes) -> Iterator[str]:
    """Yield data in base64, at any offset in longer data (as in basic authentication)."""
    for before in range(3):
        encoded = base64.b64encode(bytes(before) + data).decode("ascii")
        # Signs at the ends also depend on the neighbours' bits.
        yield encoded[-(-before * 8 // 6) : (before + len(data)) * 8 // 6]


def _in_base64(data: bytes) -> Iterator[_Code]:
    for encoded in base64_of(data):
        yield _Code(encoded.encode("ascii").translate(None, _NO_SIGNS))


_LARGE = string.ascii_uppercase
_SMALL = string.ascii_lowercase
_BASE64 = _LARGE + _SMALL + string.digits + "+/"
# Digits of base64 elsewhere: uuencode (two), xxencode, crypt, bcrypt
_OTHER_DIGITS = (
    "".join(map(chr, range(32, 96))),
    "`" + "".join(map(chr, range(33, 96))),
    "+-" + string.digits + _LARGE + _SMALL,
    "./" + string.digits + _LARGE + _SMALL,
    "./" + _LARGE + _SMALL + string.digits,
)


def _in_other_digits(data: bytes) -> Iterator[_Code]:
    for encoded in base64_of(data):
        for digits in _OTHER_DIGITS:
            signs = encoded.translate(str.maketrans(_BASE64, digits)).encode("ascii")
            yield _Code(signs.translate(None, _SPACES), is_alnum=False)


# Digits of base58 (Bitcoin, Flickr, Ripple), of base62 and base36, and of decimal numbers
_OF_NUMBERS = (
    "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz",
    "123456789abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ",
    "rpshnaf39wBUDNEGHJKLM4PQRST7VWXYZ2bcdeCg65jkm8oFqi1tuvAxyz",
    string.digits + _LARGE + _SMALL,
    string.digits + _SMALL + _LARGE,
    _LARGE + _SMALL + string.digits,
    string.digits + _SMALL,
    string.digits + _LARGE,
    string.digits,
)


def _as_large_numbers(data: bytes) -> Iterator[_Code]:
    """Yield all of it as one number, the highest byte first."""
    for digits in _OF_NUMBERS:
        number = int.from_bytes(data, "big")
        signs = []
        while number:
            number, place = divmod(number, len(digits))
            signs.append(digits[place])
        yield _Code("".join(reversed(signs)).encode("ascii"))


def _in_base32(data: bytes) -> Iterator[_Code]:
    for before in range(5):
        padded = bytes(before) + data
        for encoded in (base64.b32encode(padded), base64.b32hexencode(padded)):
            whole = encoded[-(-before * 8 // 5) : len(padded) * 8 // 5]
            yield _Code(whole.lower(), is_any_case=True)


_BASE85 = string.digits + _LARGE + _SMALL + "!#$%&()*+-;<=>?@^_`{|}~"
_Z85 = string.digits + _SMALL + _LARGE + ".-:+=^!/*?&<>()[]{}@%$#"
_TO_Z85 = bytes.maketrans(_BASE85.encode("ascii"), _Z85.encode("ascii"))


def _in_base85(data: bytes) -> Iterator[_Code]:
    """Yield its groups of four bytes that are whole, wherever it begins."""
    for skipped in range(4):
        whole = data[skipped : skipped + (len(data) - skipped) // 4 * 4]
        mails = base64.b85encode(whole)
        for encoded in (base64.a85encode(whole), mails, mails.translate(_TO_Z85)):
            if len(encoded) > _SHORTEST:
                yield _Code(encoded, is_alnum=False)


_FEWEST_LETTERS = 16  # of a secret that is told by its letters and digits alone


def _in_letters(data: bytes) -> Iterator[_Code]:
    """Yield its letters and digits, as in a list of them: few, or digits alone, could be boxes."""
    signs = data.translate(None, _NO_SIGNS)
    if len(signs) >= _FEWEST_LETTERS and not signs.isdigit():
        yield _Code(signs)


def _in_digits(data: bytes) -> _Code:
    return _Code(data.hex().encode("ascii"), is_any_case=True)


# How programs write a byte in a list of them: od, xxd, C, Python, JSON, U+, HTML, assembler
_FORMS = (
    "{:02x}", "0x{:02x}", "x{:02x}", "u00{:02x}", "u{:02x}", "{:02x}h", "0x{:x}", "000000{:02x}",
    "{:d}", "{:03d}", "chr{:d}", "{:o}", "{:03o}", "0{:03o}", "0o{:o}", "{:08b}", "0b{:b}",
)  # fmt: skip


def _in_numbers(data: bytes) -> Iterator[_Code]:
    for form in _FORMS:
        signs = "".join(map(form.format, data))
        yield _Code(signs.encode("ascii"), is_any_case=True)
