"""Secrets are gone from whatever is written, in every form, and nothing else is."""

from __future__ import annotations

import base64
import html
import json
import random
import string
from collections.abc import Callable
from urllib.parse import quote

import pytest

from vlmeval_findit.core import known_secrets, quoted_line, redaction, remember_secrets, scrub

KEY = 'sk-or/v1+c0ffee="S3CRET"ß'


@pytest.fixture(autouse=True)
def empty_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "_remembered", set())


def test_every_form_of_a_secret_is_redacted() -> None:
    basic = [f"{user}{KEY}".encode() for user in ("", "u:", "us:", "use:")]
    forms = [KEY, quote(KEY, safe=""), quote(KEY), *(base64.b64encode(d).decode() for d in basic)]
    replies = [f"the key {form} is no good" for form in forms]
    assert [scrub(reply) for reply in replies] == replies, "it is no secret yet"
    remember_secrets(KEY)
    for form, reply in zip(forms, replies, strict=True):
        got = scrub(reply)
        assert form not in got
        assert "S3CRET" not in got
        assert got.startswith("the key ")
        assert got.endswith(" is no good")
        assert "***" in got


@pytest.mark.parametrize(
    "name",
    [
        "AWS_SECRET_ACCESS_KEY", "PGPASSWORD", "DB_PASS", "MY_SECRET_THING", "ssh_passphrase",
        "GITHUB_TOKEN",
    ],
)  # fmt: skip
def test_variables_that_hold_secrets_are_known_by_their_names(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "wJalrXUtnFEMI")
    assert scrub("it is wJalrXUtnFEMI") == "it is ***"
    assert known_secrets().credential_in("it is wJalrXUtnFEMI") == f"the value of {name}"
    assert known_secrets().credential_in("it is nothing") == ""
    monkeypatch.delenv(name)
    assert scrub("it is wJalrXUtnFEMI") == "it is wJalrXUtnFEMI"


def test_the_password_of_an_address_is_a_credential(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("HF_TOKEN_PATH", "MY_SECRET_FILE", "MONKEY_BARS", "TOKENIZERS"):
        monkeypatch.setenv(name, "motorcycle")
    assert scrub("a motorcycle") == "a motorcycle"
    monkeypatch.setenv("TRACKING_URI", "https://me:wJalrXUtnFEMI@tracking.example/x")
    assert scrub("tracking.example: wJalrXUtnFEMI") == "tracking.example: ***"


def test_a_variable_that_changes_is_hidden_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    for key in ("first-key-1", "second-key-2"):
        monkeypatch.setenv("SOME_API_KEY", key)
        assert scrub(f"wrong key {key}") == "wrong key ***"
    monkeypatch.delenv("SOME_API_KEY")
    assert scrub("second-key-2") == "second-key-2"


def test_short_cut_and_nested_secrets() -> None:
    remember_secrets("EMPTY", "1234", "")
    assert scrub("[1234, 5, 6, 7] EMPTY") == "[1234, 5, 6, 7] EMPTY"
    remember_secrets("abcdefgh", "abcdefghijkl")
    assert scrub("abcdefghijkl abcdefgh") == "*** ***"
    remember_secrets(KEY)
    for n in range(30):  # what is cut by us was scrubbed before
        assert KEY[:4] not in quoted_line("x" * n + KEY, 30)
    value = {"a": [KEY, {"b": f"x{KEY}"}], f"{KEY}": 1, "n": [None, 2.5, True]}
    assert known_secrets().scrubbed(value) == {
        "a": ["***", {"b": "x***"}],
        "***": 1,
        "n": [None, 2.5, True],
    }


def test_secrets_of_a_moment_are_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "wJalrXUtnFEMI")
    remember_secrets("abcdefgh")
    secrets = known_secrets()
    monkeypatch.delenv("SOME_API_KEY")
    assert secrets.scrub("wJalrXUtnFEMI abcdefgh") == "*** ***"
    assert repr(secrets) == "Secrets()"
    assert scrub("wJalrXUtnFEMI abcdefgh") == "wJalrXUtnFEMI ***"


# --- spellings ------------------------------------------------------------------------------------

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


SPELLINGS: dict[str, Spell] = {
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


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_secret_is_hidden_in_every_spelling(spelling: str) -> None:
    rng = random.Random(spelling)
    for _ in range(12):
        secret = "".join(rng.choices(SIGNS, k=rng.randrange(12, 40))).strip() + "Uniq7"
        remember_secrets(secret)
        spelt = SPELLINGS[spelling](secret, rng)
        text = f'the key {{"{spelt}"}} is no good'
        got = scrub(text)
        assert spelt not in got, secret
        assert "***" in got, secret
        assert known_secrets().credential_in(text), secret
        redaction._remembered.clear()


def test_texts_without_a_secret_stay_as_they_are() -> None:
    remember_secrets(KEY, "another+secret/of=mine")
    for text in (
        r"100 % sure: 50%25 &amp; \u00e4 \\ &notanentity; %zz %",
        '[{"bbox": [10, 20, 300, 400], "label": "caf\\u00e9 &#233; %C3%A9"}]',
        "another%2Bsecret%2fof%3Dmind",
    ):
        assert scrub(text) == text
