"""Secrets are gone from whatever is written, in every form, and nothing else is."""

from __future__ import annotations

import base64
import html
import json
import re
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmeval_findit.core import redaction
from vlmeval_findit.core.redaction import credential_in, quoted, remember, scrub, scrubbed

KEY = 'sk-or/v1+c0ffee="S3CRET"ß'


@pytest.fixture(autouse=True)
def empty_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "_remembered", set())


def in_basic(user: str) -> str:
    return base64.b64encode(f"{user}:{KEY}".encode()).decode()


FORMS = {
    "plain": KEY,
    "URL": quote(KEY, safe=""),
    "URL, with slashes": quote(KEY),
    "URL, small letters": re.sub("%..", lambda match: match[0].lower(), quote(KEY, safe="")),
    "form": quote_plus(KEY),
    "JSON": json.dumps(KEY)[1:-1],
    "JSON, not ASCII": json.dumps(KEY, ensure_ascii=False)[1:-1],
    "JSON, slashes": json.dumps(KEY)[1:-1].replace("/", "\\/"),
    "HTML": html.escape(KEY),
    "base64": base64.b64encode(KEY.encode()).decode(),
    "basic, 2": in_basic("u"),
    "basic, 3": in_basic("us"),
    "basic, 4": in_basic("use"),
    "base64 for URLs": base64.urlsafe_b64encode(KEY.encode()).decode(),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_every_form_of_a_secret_is_redacted(form: str) -> None:
    reply = f"the key {form} is no good"
    assert scrub(reply) == reply, "it is no secret yet"
    remember(KEY)
    got = scrub(reply)
    assert form not in got
    assert got.startswith("the key ")
    assert got.endswith(" is no good")
    assert "***" in got
    assert "S3CRET" not in got


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
    assert credential_in("it is wJalrXUtnFEMI") == f"the value of {name}"
    assert credential_in("it is nothing") == ""
    monkeypatch.delenv(name)
    assert scrub("it is wJalrXUtnFEMI") == "it is wJalrXUtnFEMI"


@pytest.mark.parametrize("name", ["HF_TOKEN_PATH", "MY_SECRET_FILE", "MONKEY_BARS", "TOKENIZERS"])
def test_other_variables_are_no_secrets(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "motorcycle")
    assert scrub("a motorcycle") == "a motorcycle"


def test_the_password_of_an_address_in_the_environment_is_a_secret(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TRACKING_URI", "https://me:wJalrXUtnFEMI@tracking.example/x")
    assert scrub("tracking.example: wJalrXUtnFEMI") == "tracking.example: ***"


def test_a_short_secret_is_not_redacted() -> None:
    remember("EMPTY", "1234", "")
    assert scrub("[1234, 5, 6, 7] EMPTY") == "[1234, 5, 6, 7] EMPTY"


@pytest.mark.parametrize("end", ["", ".", "...", "…", '"', "'}", " "])
@pytest.mark.parametrize("stored", [8, 9, 15, len(KEY) - 1])
def test_a_cut_secret_is_redacted_at_the_end(stored: int, end: str) -> None:
    remember(KEY)
    got = scrub(f"no user for {KEY[:stored]}{end}")
    assert got == "no user for ***"
    assert scrub(f"no user for {KEY[:7]}") == f"no user for {KEY[:7]}"


def test_what_is_cut_by_us_was_scrubbed_before() -> None:
    remember(KEY)
    for n in range(30):
        assert KEY[:4] not in quoted("x" * n + KEY, 30)


def test_one_secret_within_another() -> None:
    remember("abcdefgh", "abcdefghijkl")
    assert scrub("abcdefghijkl abcdefgh") == "*** ***"


def test_nested_values_are_scrubbed_names_included() -> None:
    remember(KEY)
    value = {"a": [KEY, {"b": f"x{KEY}"}], f"{KEY}": 1, "n": [None, 2.5, True]}
    assert scrubbed(value) == {"a": ["***", {"b": "x***"}], "***": 1, "n": [None, 2.5, True]}
    deep: object = KEY
    for _ in range(5000):
        deep = [deep]
    flat = scrubbed(deep)
    while isinstance(flat, list):
        (flat,) = flat
    assert flat == "***"


@given(st.text(), st.text(min_size=8), st.text())
def test_no_secret_stays_whatever_it_is(before: str, secret: str, after: str) -> None:
    redaction._remembered.clear()
    remember(secret)
    assert secret not in scrub(f"{before}{secret}{after}") or secret in "***" * 9
