"""Secrets are gone from whatever is written, in every form, and nothing else is."""

from __future__ import annotations

import base64
from urllib.parse import quote

import pytest

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
    "base64": base64.b64encode(KEY.encode()).decode(),
    "basic, 2": in_basic("u"),
    "basic, 3": in_basic("us"),
    "basic, 4": in_basic("use"),
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
