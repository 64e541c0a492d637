"""Hosts that cannot be looked up, are not there, or have no certificate that holds: nothing is
sent, nothing is charged, and the words say what to type."""

from __future__ import annotations

import datetime
import ssl
from dataclasses import replace
from typing import Any

import aiohttp
import pytest
from asking import KEY, QUICK, ask_call, service
from web import web_server

from vlmeval_findit.models import Endpoint

trustme = pytest.importorskip("trustme")

ONCE = replace(QUICK, attempts=1, refusals=1)
LONG = "a" * 64


@pytest.mark.parametrize(
    "host",
    [
        *("127.1", "256.1.1.1", "1.2.3", "1.2.3.4.5", "2130706433", "010.0.0.1", "1.2.3.04"),
        *("0.0.0.256", "1..2.3", "...", ".1.2.3", "a..b", ".a", "a.b..", LONG, f"{LONG}.org"),
        *(f"a.{LONG}", f"x.{LONG}.y", "..", "127.0.0.1000", "1.2.3.4.", "١.٢.٣.٤"),
    ],
)
def test_a_host_that_cannot_exist_is_refused_before_a_call(host: str) -> None:
    with pytest.raises(ValueError, match=r"host that cannot exist: .*127\.0\.0\.1"):
        Endpoint(f"http://{host}:8000/v1", KEY)


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "0.0.0.0", "255.255.255.255", "[::1]", "[fe80::1%25lo]", "localhost", "a"),
        *("a.b.", "under_score.org", "-x-", LONG[:63], "1.2.3.4.example", "ü.org", "xn--tda.org"),
        *("7.example", "host-1", "A.B"),
    ],
)
def test_hosts_that_may_exist_are_asked(host: str) -> None:
    assert Endpoint(f"http://{host}:8000/v1", KEY).at("x") == f"http://{host}:8000/v1/x"


@pytest.mark.parametrize("host", ["no-such-host.invalid", "ü.invalid", "xn--tda.invalid", "[::1]"])
def test_a_host_that_is_not_there_is_named(host: str) -> None:
    asked = service(f"http://{host}:9/v1", policy=ONCE)
    said = ask_call(asked).error or ""
    assert "is the server running, and is its address (--base-url) right?" in said
    assert asked.budget.spent == 0.0


# --- certificates ---------------------------------------------------------------------------------

DAY = datetime.timedelta(days=1)
NOW = datetime.datetime.now(datetime.UTC)
WITHIN = {"not_before": NOW - 9 * DAY, "not_after": NOW + 9 * DAY}
PAST = {"not_before": NOW - 9 * DAY, "not_after": NOW - DAY}
FUTURE = {"not_before": NOW + DAY, "not_after": NOW + 9 * DAY}


@pytest.fixture
def authority(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return an authority that the client trusts."""
    mine = trustme.CA()
    context = ssl.create_default_context()
    mine.configure_trust(context)
    # The client reads SSL_CERT_FILE when it is imported.
    monkeypatch.setattr(aiohttp.connector, "_SSL_CONTEXT_VERIFIED", context)
    return mine


@pytest.mark.parametrize(
    ("name", "times", "words"),
    [
        ("127.0.0.1", PAST, "certificate has expired): its owner must renew it"),
        ("127.0.0.1", FUTURE, "not yet valid): its owner must renew it, unless the clock"),
        ("127.0.0.2", WITHIN, "a name that the certificate has"),
        ("example.org", WITHIN, "a name that the certificate has"),
        ("localhost", WITHIN, "a name that the certificate has"),
    ],
)
def test_a_certificate_that_does_not_hold_says_why(
    name: str, times: dict[str, Any], words: str, authority: Any
) -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name, **times).configure_cert(tls)
    with web_server(tls) as web:
        asked = service(f"{web.url}v1", policy=ONCE)
        said = ask_call(asked).error or ""
    assert "no trusted certificate (" in said
    assert words in said
    assert "SSL_CERT_FILE" not in said, "the authority is trusted"
    assert asked.budget.spent == 0.0


def test_https_at_a_server_of_http_says_so() -> None:
    with web_server() as web:
        asked = service(web.url.replace("http:", "https:") + "v1", policy=ONCE)
        said = ask_call(asked).error or ""
    assert "https fails at 127.0.0.1:" in said
    assert "should its address (--base-url) begin with http://?" in said
    assert "not permitted" not in said
    assert asked.budget.spent == 0.0
