"""Secrets are gone from whatever is written, in every form, and nothing else is."""

from __future__ import annotations

import base64
import random
import string
import time
from urllib.parse import quote

import pytest
from few_fast import every_nth_fast
from spelt_secrets import BROKEN, FORMS, SIGNS, SPELLINGS, lines_of

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


@pytest.mark.parametrize("spelling", every_nth_fast(SPELLINGS, 4))
def test_a_secret_is_hidden_in_every_spelling(spelling: str) -> None:
    rng = random.Random(spelling)
    for _ in range(3):
        secret = "".join(rng.choices(SIGNS, k=rng.randrange(12, 40))).strip() + "Uniq7"
        remember_secrets(secret)
        spelt = SPELLINGS[spelling](secret, rng)
        text = f'the key {{"{spelt}"}} is no good'
        got = scrub(text)
        assert spelt not in got, secret
        assert "***" in got, secret
        assert known_secrets().credential_in(text), secret
        redaction._remembered.clear()


@pytest.mark.parametrize("length", [20, 51, 164])
def test_a_part_of_a_key_is_hidden(length: int) -> None:
    key = "sk-proj-" + "".join(random.Random(length).choices(string.ascii_letters, k=length - 8))
    remember_secrets(key)
    for masked in (f"{key[:8]}****{key[-4:]}", f"{key[:4]}…", f"…{key[-6:]}"):
        assert scrub(f"Incorrect key: {masked}.") == f"Incorrect key: {masked}."
    for shown in range((length + 1) // 2, length):
        assert scrub(f"Incorrect key: {key[:shown]}…") == "Incorrect key: ***…"
        assert scrub(f"Incorrect key: …{key[-shown:]}, sorry") == "Incorrect key: …***, sorry"
    assert known_secrets().credential_in(key[:-5]) == "a key of this run"


def test_a_part_of_a_path_is_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TLS_KEY", "/home/somebody/certificates/key.pem")
    assert scrub("/home/somebody/certificates/other") == "/home/somebody/certificates/other"


def test_texts_without_a_secret_stay_as_they_are() -> None:
    remember_secrets(KEY, "another+secret/of=mine")
    for text in (
        "".join(random.Random(1).choices(string.printable, k=300_000)),
        "[" + ", ".join(str(number % 1000) for number in range(50_000)) + "]",
        r"100 % sure: 50%25 &amp; \u00e4 \\ &notanentity; %zz %",
        '[{"bbox": [10, 20, 300, 400], "label": "caf\\u00e9 &#233; %C3%A9"}]',
        "another%2Bsecret%2fof%3Dmind",
    ):
        assert scrub(text) == text


@pytest.mark.parametrize("kept", ["[1, 2, 3]", "# Results\nF1@0.5: 24.0", "ab" * 50])
def test_a_text_keeps_what_is_beside_a_secret(kept: str) -> None:
    remember_secrets(KEY)
    rng = random.Random(kept)
    for name in ("base64", "hex", "base32", *FORMS, *BROKEN):
        spelt = SPELLINGS[name](KEY, rng)
        assert scrub(f"{kept} <{spelt}> {kept}").startswith((kept, "***")), name
    assert scrub(f"{kept}|{lines_of(KEY.encode().hex(), 8)}|{kept}") == f"{kept}|***|{kept}"


LARGE = {
    "boxes": '[{"bbox":[10,20,300,400]}]' * 40_000,
    "escapes": r'{"label":"caf\u00e9 \n &amp; %20 =3D x"}' * 25_000,
    "escapes of escapes": r"%252525 &amp;amp; \\\\u0041 =3D3D " * 30_000,
    "spaces": " " * 1_000_000,
    "one sign": "s" * 1_000_000,
    "backslashes": "\\" * 1_000_000,
    "numbers": "53 6b 2f " * 110_000,
    "a dump": "".join(f"{at:08x}: {'536b 2f39 ' * 4} Sk/9Sk/9Sk/9Sk/9\n" for at in range(15_000)),
    "dumps": "0000 53 6b 2f\n\n" * 60_000,
    "lines of uuencode": ("M" + "A" * 60 + "\n") * 16_000,
    "halves": f"{KEY[:14]} " * 60_000,
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", LARGE)
def test_a_text_of_a_megabyte_is_read_quickly(kind: str) -> None:
    remember_secrets(KEY, "another+secret/of=mine", "s" * 20)
    begun = time.process_time()
    scrub(LARGE[kind])
    scrub(f"{LARGE[kind]}{lines_of(base64.b64encode(KEY.encode()).decode(), 10)}{LARGE[kind]}")
    assert time.process_time() - begun < 60, (
        "seconds of processor; 3 are usual, and hours where it is quadratic"
    )
