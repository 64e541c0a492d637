"""Spellings of a secret: what servers and programs may make of one."""

from __future__ import annotations

import base64
import codecs
import html
import json
import quopri
import random
import string
from collections.abc import Callable
from urllib.parse import quote

SIGNS = string.ascii_letters + string.digits + "/+=?&<>\"'%~._-:;@ $#!*(){}[]|^`,\\äßΩ€🔑"
Spell = Callable[[str, random.Random], str]


def base64_of(text: str, rng: random.Random, encode: Callable[[bytes], bytes]) -> str:
    """Return base64 in which a text stands somewhere, as in basic authentication."""
    before = "".join(rng.choices("user:", k=rng.randrange(4)))
    return encode(f"{before}{text}{'x' * rng.randrange(3)}".encode()).decode()


def some_escaped(text: str, rng: random.Random, escape: Callable[[str], str]) -> str:
    """Escape at least one sign of a text, and whatever begins an escape."""
    chosen = {rng.randrange(len(text)), *rng.sample(range(len(text)), rng.randrange(len(text)))}
    chosen |= {at for at, sign in enumerate(text) if sign in "\\&%"}
    return "".join(escape(sign) if at in chosen else sign for at, sign in enumerate(text))


def percent(sign: str) -> str:
    return "".join(f"%{byte:02X}" for byte in sign.encode())


def json_escape(sign: str) -> str:
    units = sign.encode("utf-16-be").hex()
    return "".join(rf"\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def lines_of(text: str, width: int, end: str = "\n") -> str:
    return end.join(text[at : at + width] for at in range(0, len(text), width))


def escaped_in_c(text: str) -> str:
    return "".join(
        chr(byte) if chr(byte).isalnum() and byte < 128 else f"\\{byte:03o}"
        for byte in text.encode()
    )


def quoted_printable(text: str, rng: random.Random) -> str:
    data = f"{'x' * rng.randrange(70)}{text}".encode()
    return quopri.encodestring(data, quotetabs=True).decode()


def numbers(form: str, between: str) -> Spell:
    return lambda text, rng: between.join(form.format(byte) for byte in text.encode())


def in_base32(text: str, rng: random.Random) -> str:
    return base64_of(text, rng, base64.b32encode)


BROKEN: dict[str, Spell] = {
    f"base64 in lines of {width}, {end!r}": (
        lambda text, rng, width=width, end=end: lines_of(
            base64_of(text, rng, base64.b64encode), width, end
        )
    )
    for width, end in (
        (76, "\r\n"), (64, "\n"), (16, "\n"), (10, "\n  "), (8, "\\n"), (7, "\\r\\n"), (9, "%0A"),
        (11, "%0d%0a"), (12, "&#10;"), (8, "\\\\n"), (13, '" + "'), (10, "\\u000a"),
        (4, " "), (6, "=\n"),
    )
}  # fmt: skip
FORMS: dict[str, Spell] = {
    f"numbers {form} {between!r}": numbers(form, between)
    for form, between in (
        ("{:02x}", ":"), ("{:02X}", ":"), ("{:02x}", " "), ("{:02X}", "-"), ("{:02x}", "\n"),
        ("0x{:02x}", ", "), ("0X{:02X}", ","), ("0x{:x}", " "), (r"\x{:02x}", ""),
        (r"\\x{:02x}", ""),
        ("%{:02x}", ""), ("={:02X}", ""), (r"\u00{:02x}", ""), ("U+00{:02X}", " "),
        ("{:02x}h", " "),
        (r"\u{{{:x}}}", ""), ("&#x{:x};", ""), ("&#{:d};", ""), ("%u00{:02x}", ""),
        (r"\{:03o}", ""), (r"\0{:03o}", ""), ("{:03o}", " "), ("0o{:o}", ", "), ("{:o}", " "),
        ("{:d}", ", "), ("{:d}", " "), ("{:03d}", " "), ("chr({:d})", "+"), ("{:08b}", " "),
        ("{:08b}", ""),
    )
}  # fmt: skip
SPELLINGS: dict[str, Spell] = {
    **BROKEN,
    **FORMS,
    "base32": in_base32,
    "base32, small, in groups": lambda text, rng: lines_of(in_base32(text, rng).lower(), 4, "-"),
    "base32 of RFC 4648's other digits": lambda text, rng: base64_of(
        text, rng, base64.b32hexencode
    ),
    "base85": lambda text, rng: base64_of(text, rng, base64.b85encode),
    "Ascii85": lambda text, rng: base64_of(text, rng, base64.a85encode),
    "Ascii85 in lines": lambda text, rng: lines_of(base64_of(text, rng, base64.a85encode), 20),
    "base64 of base64": lambda text, rng: base64_of(
        base64_of(text, rng, base64.b64encode), rng, base64.b64encode
    ),
    "hex of base64": lambda text, rng: base64_of(text, rng, base64.b64encode).encode().hex(),
    "base64 of hex": lambda text, rng: base64_of(text.encode().hex(), rng, base64.b64encode),
    "base64 of UTF-16": lambda text, rng: base64.b64encode(text.encode("utf-16-le")).decode(),
    "hex of UTF-16": lambda text, rng: text.encode("utf-16-be").hex(" "),
    "reversed": lambda text, rng: text[::-1],
    "ROT13": lambda text, rng: codecs.encode(text, "rot13"),
    "small": lambda text, rng: text.lower(),
    "LARGE": lambda text, rng: text.upper(),
    "in lines": lambda text, rng: lines_of(text, 11),
    "in JSON's lines": lambda text, rng: (
        lines_of(json.dumps(text)[1:-1].replace("\\", ""), 13, r"\n")
        if "\\" not in json.dumps(text)
        else text
    ),
    "without widths between": lambda text, rng: "\u200b".join(text),
    "with zeros between": lambda text, rng: "\0".join(text),
    "full width": lambda text, rng: "".join(
        chr(ord(sign) + 0xFEE0) if "!" <= sign <= "~" else sign for sign in text
    ),
    "Latin-1": lambda text, rng: text.encode().decode("latin-1"),
    "C": lambda text, rng: escaped_in_c(text),
    "quoted-printable": quoted_printable,
    "as it is": lambda text, rng: text,
    "base64": lambda text, rng: base64_of(text, rng, base64.b64encode),
    "base64 of URLs": lambda text, rng: base64_of(text, rng, base64.urlsafe_b64encode),
    "base64 in a URL": lambda text, rng: quote(base64_of(text, rng, base64.b64encode), safe=""),
    "base64 in JSON": lambda text, rng: base64_of(text, rng, base64.b64encode).replace("/", r"\/"),
    "hex": lambda text, rng: text.encode().hex(),
    "HEX": lambda text, rng: text.encode().hex().upper(),
    "quoted": lambda text, rng: quote(text, safe=""),
    "quoted path": lambda text, rng: quote(text),
    "percent": lambda text, rng: some_escaped(text, rng, percent),
    "percent, small": lambda text, rng: some_escaped(text, rng, lambda s: percent(s).lower()),
    "percent, twice": lambda text, rng: quote(quote(text, safe=""), safe=""),
    "HTML": lambda text, rng: html.escape(text + "&")[:-5],
    "HTML numbers": lambda text, rng: some_escaped(text, rng, lambda s: f"&#{ord(s)};"),
    "HTML hex": lambda text, rng: some_escaped(text, rng, lambda s: f"&#X{ord(s):X};"),
    "HTML hex, padded": lambda text, rng: some_escaped(text, rng, lambda s: f"&#x00{ord(s):x};"),
    "HTML of HTML": lambda text, rng: html.escape(html.escape(text)),
    "JSON": lambda text, rng: json.dumps(text)[1:-1],
    "JSON escapes": lambda text, rng: some_escaped(text, rng, json_escape),
    "JSON of JSON": lambda text, rng: json.dumps(json.dumps(text)[1:-1])[1:-1],
    "Python": lambda text, rng: ascii(text)[1:-1],
}
