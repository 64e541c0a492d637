"""Addresses of `data get` that cannot exist, are not there, or have no certificate that holds."""

from __future__ import annotations

import datetime
import ssl
from pathlib import Path
from typing import Any

import pytest
from web import Web, web_server

from vlmeval_findit.data import Client, DownloadError, Policy, SourceError, base_addresses

trustme = pytest.importorskip("trustme")

ONCE = Policy(attempts=1, connections=1, first_wait=0.0, connect=2.0, read=2.0)
IMPOSSIBLE = [
    *("http://::1:80/", "http://[::1:80/", "http://[::g]:80/", "http://[]:80/", "http://[::1]x/"),
    *("http://a b/", "http://a\tb/", "http://127.0.0.1:99999/", "http://127.0.0.1:abc/"),
    *("http://127.0.0.1:-1/", "http:///a/", "http://:80/", "127.0.0.1/", "ftp://a/", "file:///a/"),
    *("http://256.1.1.1/", "http://127.1/", "http://a..b/", f"http://{'a' * 64}/", "https://"),
    "http:a/",
]


@pytest.mark.parametrize("address", IMPOSSIBLE)
def test_an_address_that_cannot_exist_is_refused_with_its_key(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "datasets.yaml"
    config.write_text(f'sources:\n  findit: "{address}"\n'.replace("\t", "\\t"))
    monkeypatch.setenv("FINDIT_CONFIG", str(config))
    with pytest.raises(SourceError) as refused:
        base_addresses()
    assert str(refused.value).startswith(f"{config}, sources.findit: {address!r} ")


@pytest.mark.parametrize(
    "host",
    ["[::1]", "[0:0:0:0:0:0:0:1]", "[::ffff:127.0.0.1]", "127.0.0.1", "localhost", "a.invalid"],
)
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_host_that_is_not_there_is_named(scheme: str, host: str, tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match="cannot be reached: ") as failed:
        Client(ONCE).download(f"{scheme}://{host}:9/a", tmp_path / "part")
    assert host in str(failed.value)
    assert "object at" not in str(failed.value)


DAY = datetime.timedelta(days=1)
NOW = datetime.datetime.now(datetime.UTC)
WITHIN = {"not_before": NOW - 9 * DAY, "not_after": NOW + 9 * DAY}
PAST = {"not_before": NOW - 9 * DAY, "not_after": NOW - DAY}
FUTURE = {"not_before": NOW + DAY, "not_after": NOW + 9 * DAY}


@pytest.mark.parametrize(
    ("name", "times", "trusted", "words"),
    [
        ("127.0.0.1", PAST, True, "certificate has expired): its owner must renew it"),
        ("127.0.0.1", FUTURE, True, "not yet valid): its owner must renew it, unless the clock"),
        ("127.0.0.2", WITHIN, True, "a name that the certificate has"),
        ("example.org", WITHIN, True, "a name that the certificate has"),
        ("127.0.0.1", WITHIN, False, "if the authority is yours, name its file in REQUESTS_CA"),
    ],
)
def test_a_certificate_that_does_not_hold_says_why(
    name: str,
    times: dict[str, Any],
    trusted: bool,
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    if trusted:
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "ca.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name, **times).configure_cert(context)
    with web_server(context) as secure, pytest.raises(DownloadError) as failed:
        Client(ONCE).download(secure.serve("a", b"a"), tmp_path / "part")
    said = str(failed.value)
    assert "no trusted certificate (" in said
    assert words in said
    assert "_ssl.c" not in said


@pytest.fixture
def web() -> Any:
    with web_server() as running:
        yield running


def test_https_at_a_server_of_http_says_so(web: Web, tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match=r"https fails .* begin with http://\?"):
        Client(ONCE).download(web.url.replace("http:", "https:"), tmp_path / "part")
