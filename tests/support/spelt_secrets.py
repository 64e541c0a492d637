"""Spellings of a secret: what servers and programs may make of one."""

from __future__ import annotations

import base64
import binascii
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


# --- columns, as programs write them --------------------------------------------------------------


def dump_of(line: Callable[[int, bytes], str], width: int = 16) -> Spell:
    """Return a spelling in lines of so many bytes, behind words that move it."""

    def spell(text: str, rng: random.Random) -> str:
        data = f"{'Bearer: '[: rng.randrange(9)]}{text}\n".encode()
        places = range(0, len(data), width)
        return "\n".join(line(at, data[at : at + width]) for at in places)

    return spell


def shown(data: bytes) -> str:
    return "".join(chr(byte) if 32 <= byte < 127 else "." for byte in data)


def words_of(data: bytes, size: int, form: str, order: str = "little") -> str:
    padded = data + bytes(-len(data) % size)
    places = range(0, len(padded), size)
    numbers = [int.from_bytes(padded[at : at + size], order) for at in places]  # type: ignore[arg-type]
    return " ".join(map(form.format, numbers))


def xxd(at: int, data: bytes) -> str:
    return f"{at:08x}: {words_of(data, 1, '{:02x}'):<47}  {shown(data)}"


def xxd_in_pairs(at: int, data: bytes) -> str:
    return f"{at:08x}: {data.hex(' ', -2):<39}  {shown(data)}"


def hexdump_c(at: int, data: bytes) -> str:
    halves = f"{data[:8].hex(' ')}  {data[8:].hex(' ')}"
    return f"{at:08x}  {halves:<49} |{shown(data)}|"


def wireshark(at: int, data: bytes) -> str:
    return f"{at:04x}   {data[:8].hex(' ')}  {data[8:].hex(' '):<25}  {shown(data)}"


def cells(at: int, data: bytes) -> str:
    """Return a line of ``od -c``."""
    signs = [r"\n" if byte == 10 else f"{byte:03o}" if byte > 126 else chr(byte) for byte in data]
    return f"{at:07o}" + "".join(f"{sign:>4}" for sign in signs)


def in_two_forms(at: int, data: bytes) -> str:
    """Return lines of ``od -t x1c``."""
    numbers = data.hex(" ").replace(" ", "  ")
    return f"{at:07o}  {numbers}\n{' ' * 7}{cells(at, data)[7:]}"


DUMPS: dict[str, Spell] = {
    "xxd": dump_of(xxd_in_pairs),
    "xxd -g1": dump_of(xxd),
    "xxd -c 10": dump_of(xxd_in_pairs, 10),
    "xxd -e": dump_of(lambda at, data: f"{at:08x}: {words_of(data, 4, '{:08x}')}  {shown(data)}"),
    "xxd -b": dump_of(
        lambda at, data: f"{at:08x}: {words_of(data, 1, '{:08b}')}  {shown(data)}", 6
    ),
    "hexdump": dump_of(lambda at, data: f"{at:07x} {words_of(data, 2, '{:04x}')}"),
    "hexdump -C": dump_of(hexdump_c),
    "hexdump -d": dump_of(
        lambda at, data: f"{at:07x}   {words_of(data, 2, '{:05d}').replace(' ', '   ')}"
    ),
    "od": dump_of(lambda at, data: f"{at:07o} {words_of(data, 2, '{:06o}')}"),
    "od -c": dump_of(cells),
    "od -tx1z": dump_of(lambda at, data: f"{at:07o} {data.hex(' '):<47}  >{shown(data)}<"),
    "od -t x1c": dump_of(in_two_forms),
    "od -b": dump_of(lambda at, data: f"{at:07o} {words_of(data, 1, '{:03o}')}"),
    "od -tu1": dump_of(lambda at, data: f"{at:07o} {words_of(data, 1, '{:3d}')}"),
    "od -tx8": dump_of(lambda at, data: f"{at:07o} {words_of(data, 8, '{:016x}')}"),
    "od -Ad -tx1": dump_of(lambda at, data: f"{at:07d} {data.hex(' ')}"),
    "Wireshark": dump_of(wireshark),
    "gdb": dump_of(
        lambda at, data: f"0x{at + 0x7FFE00:x}:\t0x{data.hex('-').replace('-', ' 0x')}", 8
    ),
    "Format-Hex": dump_of(
        lambda at, data: f"{at:08X}   {data.hex(' ').upper():<47}  {shown(data)}"
    ),
    "xxd in JSON": lambda text, rng: json.dumps(dump_of(xxd)(text, rng))[1:-1],
}


# --- other digits ---------------------------------------------------------------------------------


def digits_of(text: str, digits: str) -> str:
    """Return all bytes of a text as one number, in these digits."""
    number = int.from_bytes(text.encode(), "big")
    signs = ""
    while number:
        number, place = divmod(number, len(digits))
        signs = digits[place] + signs
    return signs


def uuencoded(text: str, rng: random.Random, *, backtick: bool = False) -> str:
    data = f"{'Bearer: ' * 5}{text}".encode()[rng.randrange(40) :]
    places = range(0, len(data), 45)
    lines = [binascii.b2a_uu(data[at : at + 45], backtick=backtick).decode() for at in places]
    return "begin 644 key\n" + "".join(lines) + "`\nend"


B58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
ALNUM = string.digits + string.ascii_uppercase + string.ascii_lowercase
B85 = string.digits + string.ascii_uppercase + string.ascii_lowercase + "!#$%&()*+-;<=>?@^_`{|}~"
Z85 = string.digits + string.ascii_lowercase + string.ascii_uppercase + ".-:+=^!/*?&<>()[]{}@%$#"
B64 = string.ascii_uppercase + string.ascii_lowercase + string.digits + "+/"


def base64_in(digits: str) -> Spell:
    table = str.maketrans(B64, digits)
    return lambda text, rng: base64_of(text, rng, base64.b64encode).rstrip("=").translate(table)


DIGITS: dict[str, Spell] = {
    "base58": lambda text, rng: digits_of(text, B58),
    "base58 of Flickr": lambda text, rng: digits_of(text, B58[:9] + B58[33:] + B58[9:33]),
    "base62": lambda text, rng: digits_of(text, ALNUM),
    "base62, small first": lambda text, rng: digits_of(
        text, ALNUM[:10] + ALNUM[36:] + ALNUM[10:36]
    ),
    "base36": lambda text, rng: digits_of(text, ALNUM[:36].lower()),
    "a decimal number": lambda text, rng: digits_of(text, string.digits),
    "Z85": lambda text, rng: base64_of(
        text + "xxxx", rng, lambda data: base64.b85encode(data)
    ).translate(str.maketrans(B85, Z85)),
    "uuencode": uuencoded,
    "uuencode with backticks": lambda text, rng: uuencoded(text, rng, backtick=True),
    "uuencode, a line": lambda text, rng: base64_in("".join(map(chr, range(32, 96))))(text, rng),
    "xxencode": base64_in("+-" + ALNUM),
    "crypt": base64_in("./" + ALNUM),
    "bcrypt": base64_in("./" + B64[:62]),
}
# --- reversed, and in lists -----------------------------------------------------------------------


def reversed_after(encode: Callable[[bytes], bytes]) -> Spell:
    return lambda text, rng: base64_of(text, rng, encode)[::-1]


def reversed_before(encode: Callable[[bytes], bytes]) -> Spell:
    return lambda text, rng: base64_of(text[::-1], rng, encode)


def listed(size: int, write: Callable[[list[str]], str]) -> Spell:
    """Return a list of the parts of a text; of one with few letters, which could be any, itself."""

    def spell(text: str, rng: random.Random) -> str:
        letters = [sign for sign in text if sign.isascii() and sign.isalnum()]
        if len(letters) < 16:
            return text
        return write([text[at : at + size] for at in range(0, len(text), size)])

    return spell


ENCODES: dict[str, Callable[[bytes], bytes]] = {
    "base64": base64.b64encode,
    "base64 of URLs": base64.urlsafe_b64encode,
    "base32": base64.b32encode,
    "hex": binascii.hexlify,
}
REVERSED: dict[str, Spell] = {
    **{f"{name}, reversed": reversed_after(encode) for name, encode in ENCODES.items()},
    **{f"{name} of it reversed": reversed_before(encode) for name, encode in ENCODES.items()},
    "numbers of it reversed": lambda text, rng: ", ".join(map(str, text[::-1].encode())),
}
LISTS: dict[str, Spell] = {
    "a list": listed(1, json.dumps),
    "a list without spaces": listed(1, lambda parts: json.dumps(parts, separators=(",", ":"))),
    "a list in lines": listed(1, lambda parts: json.dumps(parts, indent=2)),
    "a list in JSON": listed(1, lambda parts: json.dumps(json.dumps(parts))[1:-1]),
    "a list of Python": listed(1, repr),
    "a list of pairs": listed(2, json.dumps),
    "a sum of letters": listed(1, lambda parts: " + ".join(map(json.dumps, parts))),
    "letters with dashes": listed(1, "-".join),
    "letters in lines of a list": listed(1, lambda parts: "\n".join(f"- {it}" for it in parts)),
}
SPELLINGS: dict[str, Spell] = {
    **REVERSED,
    **LISTS,
    **BROKEN,
    **FORMS,
    **DUMPS,
    **DIGITS,
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
