"""Downloads from servers that misbehave, and ``data get`` from end to end."""

from __future__ import annotations

import re
import ssl
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from failures import ARCHIVES, FILES, PHOTO, PROCESS, TLS, Failure
from paths import ROOT
from stand_ins import QUICK, SIZE, errand, files_of, jpeg
from web import Answer, Web, web_server

from vlmeval_findit.benchmarks.findit.datasets import BENCHMARK
from vlmeval_findit.core.image_files import problem
from vlmeval_findit.core.places import PlaceError
from vlmeval_findit.data.fetch.bases import BASES, SourceError, bases
from vlmeval_findit.data.fetch.download import (
    CHUNK,
    Client,
    DownloadError,
    address,
    fetch_file,
    range_start,
    validator_of,
)
from vlmeval_findit.data.fetch.images import bring
from vlmeval_findit.data.fetch.store import Store, StoreError
from vlmeval_findit.data.sources import SOURCES


@pytest.fixture
def web() -> Iterator[Web]:
    with web_server() as server:
        yield server


# --- one file ---------------------------------------------------------------------------------


@pytest.mark.parametrize("failure", FILES, ids=lambda f: f.what)
def test_a_server_that_misbehaves(tmp_path: Path, web: Web, failure: Failure) -> None:
    url = web.serve("file", *failure.answers)
    part, target = tmp_path / "part", tmp_path / "target.jpg"

    def check(path: Path) -> str | None:
        if "checksum" in failure.what:
            return f"SHA-256 is {len(path.read_bytes())}"
        return problem(path, SIZE)

    if failure.why is None:
        fetch_file(Client(QUICK), (url,), part, target, check)
        assert target.read_bytes() == PHOTO
        assert not part.exists()
    else:
        with pytest.raises(DownloadError, match=re.escape(failure.why)) as error:
            fetch_file(Client(QUICK), (url,), part, target, check)
        assert url in str(error.value)
        assert not target.exists()
        assert not (failure.outcome.endswith("nothing kept") and part.exists())
    assert web.requests == failure.requests
    if "goes on from there" in failure.outcome:
        at = range_start({"Content-Range": str(web.asked[1][1]).replace("=", " ")})
        assert at is not None
        assert len(PHOTO) // 2 - CHUNK <= at <= len(PHOTO) // 2


def test_every_failure_stands_in_the_documentation() -> None:
    rows = [(f.what, f.outcome) for f in FILES] + [*TLS, *ARCHIVES, *PROCESS]
    text = (ROOT / "docs" / "data.md").read_text(encoding="utf-8")
    missing = [f"| {what} | {outcome} |" for what, outcome in rows]
    assert [row for row in missing if row not in text] == []


def test_retry_after_stops_all_connections_to_the_host(tmp_path: Path, web: Web) -> None:
    names = [f"{i}.jpg" for i in range(8)]
    for i, name in enumerate(names):
        web.serve(name, jpeg(i))
    web.serve("0.jpg", Answer(b"", 429, {"Retry-After": "1"}), jpeg(0))
    start = time.monotonic()
    whys = bring(errand(web, tmp_path, names), SOURCES["COCO_train2014"], names, None)
    assert whys == {}
    assert time.monotonic() - start >= 1.0


@pytest.mark.parametrize("value", ["soon", "Thu, 01 Jan 2026 00:00:30 GMT", "0"])
def test_a_wait_that_says_nothing_or_is_over_is_none(tmp_path: Path, web: Web, value: str) -> None:
    url = web.serve("file", Answer(b"", 429, {"Retry-After": value}), PHOTO)
    fetch_file(Client(QUICK), (url,), tmp_path / "part", tmp_path / "a.jpg", lambda _: None)
    assert web.requests == 2


def test_headers_and_addresses() -> None:
    assert range_start({"Content-Range": "bytes 5-9/10"}) == 5
    assert range_start({}) is None
    assert validator_of({"ETag": '"a"', "Last-Modified": "b"}) == '"a"'
    assert validator_of({"ETag": 'W/"a"', "Last-Modified": "b"}) == "b"
    assert address("http://a/b/", "Santa Claus/1.jpg") == "http://a/b/Santa%20Claus/1.jpg"


def test_a_resumed_file_that_is_wrong_is_tried_from_the_start(tmp_path: Path, web: Web) -> None:
    """An ETag that a server keeps for other bytes must not spoil the file for good."""
    url = web.serve(
        "file",
        Answer(jpeg(5), cut=30_000, etag='"same"'),
        Answer(PHOTO, etag='"same"'),
    )
    target = tmp_path / "target.jpg"
    fetch_file(
        Client(QUICK),
        (url,),
        tmp_path / "part",
        target,
        lambda path: None if path.read_bytes() == PHOTO else "is not the photograph",
    )
    assert target.read_bytes() == PHOTO


def test_a_partial_file_of_another_address_is_not_gone_on_with(tmp_path: Path, web: Web) -> None:
    first = web.serve("first", Answer(jpeg(3), cut=30_000, etag='"e"'), Answer(b"", 404))
    second = web.serve("second", Answer(PHOTO, etag='"e"'))
    target = tmp_path / "target.jpg"
    fetch_file(Client(QUICK), (first, second), tmp_path / "part", target, lambda path: None)
    assert target.read_bytes() == PHOTO
    assert web.asked[-1] == ("/second", None)


# --- certificates -------------------------------------------------------------------------------


def tls_context() -> tuple[ssl.SSLContext, bytes]:
    trustme = pytest.importorskip("trustme")
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    pem: bytes = authority.cert_pem.bytes()
    return context, pem


@pytest.mark.parametrize("switched_off", [False, True])
def test_a_certificate_that_nobody_trusts_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, switched_off: bool
) -> None:
    context, _ = tls_context()
    if switched_off:  # as VLMEvalKit does for its process
        monkeypatch.setattr(
            ssl, "_create_default_https_context", ssl._create_unverified_context, raising=True
        )
    with web_server(context) as web:
        url = web.serve("file", PHOTO)
        with pytest.raises(DownloadError, match="no trusted certificate"):
            fetch_file(
                Client(QUICK), (url,), tmp_path / "part", tmp_path / "target", lambda path: None
            )
        assert web.requests == 0
    assert not (tmp_path / "target").exists()


def test_a_redirect_away_from_https_is_refused(
    tmp_path: Path, web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    context, pem = tls_context()
    (tmp_path / "ca.pem").write_bytes(pem)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "ca.pem"))
    plain = web.serve("file", PHOTO)
    with web_server(context) as secure:
        good = secure.serve("good", PHOTO)
        fetch_file(Client(QUICK), (good,), tmp_path / "p", tmp_path / "good", lambda path: None)
        bad = secure.serve("file", Answer(b"", 302, {"Location": plain}))
        with pytest.raises(DownloadError, match="away from https"):
            fetch_file(Client(QUICK), (bad,), tmp_path / "p", tmp_path / "bad", lambda path: None)
    assert not (tmp_path / "bad").exists()


# --- many files ---------------------------------------------------------------------------------


def test_no_more_connections_to_a_host_than_allowed(tmp_path: Path, web: Web) -> None:
    names = [f"{i}.jpg" for i in range(24)]
    for i, name in enumerate(names):
        web.serve(name, jpeg(i))
    web.hold = 0.03
    assert bring(errand(web, tmp_path, names), SOURCES["COCO_train2014"], names, None) == {}
    assert 1 < web.most_at_once <= QUICK.per_host


def test_visual_genome_is_looked_for_in_two_folders(tmp_path: Path, web: Web) -> None:
    web.serve("VG_100K/1.jpg", jpeg(1))
    web.serve("VG_100K_2/2.jpg", jpeg(2))
    names = ["1.jpg", "2.jpg", "3.jpg"]
    whys = bring(errand(web, tmp_path, names), SOURCES["VisualGenome"], names, None)
    assert files_of(tmp_path) == {"1.jpg": jpeg(1), "2.jpg": jpeg(2)}
    assert list(whys) == ["3.jpg"]
    assert "VG_100K_2/3.jpg: the server does not have it (404)" in whys["3.jpg"]
    assert "(sources.visual_genome in configs/datasets.yaml)" in whys["3.jpg"]


def test_openimages_names(tmp_path: Path, web: Web) -> None:
    web.serve("test/0a.jpg", jpeg())
    assert bring(errand(web, tmp_path, ["0a.jpg"]), SOURCES["OpenImages"], ["0a.jpg"], None) == {}


@pytest.mark.parametrize("name", ["../out.jpg", "/out.jpg", "a/../../out.jpg", "link/out.jpg", ""])
def test_nothing_is_written_outside_the_folder(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "link").symlink_to(tmp_path)
    with pytest.raises(StoreError):
        Store(folder, {name: None}).target(name)


# --- the table of sources -----------------------------------------------------------------------


def test_every_dataset_of_the_benchmark_has_a_source() -> None:
    for row in BENCHMARK.values():
        if row.subset is None:
            continue
        source = SOURCES[row.images]
        assert source.licence
        assert source.download
        # Either an address is shipped, or there are steps for a person.
        addressed = [BASES[origin.base] for _, origin in source.origins]
        assert source.steps or (addressed and all(addressed))


def test_ref_l4_comes_from_two_places() -> None:
    source = SOURCES["RefL4"]
    origins = [source.origin(f"{name}_0001.jpg") for name in ("COCO_train2014", "objects365_v1")]
    assert [origin.base for origin in origins if origin] == ["coco_train2014", "refl4"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("coco_train: http://a/", "did you mean coco_train2014"),
        ("findit: ftp://a/", "is not an http"),
        ("findit: 5", "sources: findit: 5 should be text"),
    ],
)
def test_a_wrong_address_names_its_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, why: str
) -> None:
    config = tmp_path / "datasets.yaml"
    config.write_text(f"sources:\n  {text}\n")
    monkeypatch.setenv("FINDIT_CONFIG", str(config))
    with pytest.raises((SourceError, PlaceError), match=why):
        bases()


def test_the_shipped_configuration_changes_no_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FINDIT_CONFIG", str(ROOT / "configs" / "datasets.yaml"))
    assert dict(bases()) == dict(BASES)


# --- verification -------------------------------------------------------------------------------


def test_a_jpeg_is_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "a.jpg"
    whole = jpeg(0, (512, 384))
    for share in (0.999, 0.9, 0.5, 0.1):
        path.write_bytes(whole[: int(len(whole) * share)])
        assert problem(path, (512, 384)) is not None, share
    path.write_bytes(whole)
    assert problem(path, (512, 384)) is None
    assert problem(path, None) is None
    assert problem(tmp_path / "b.jpg", None) == "is missing"


def test_a_host_that_never_answers_is_given_up(tmp_path: Path, web: Web) -> None:
    names = [f"{i}.jpg" for i in range(40)]
    for name in names:
        web.serve(name, Answer(b"", 500))
    whys = bring(errand(web, tmp_path, names), SOURCES["COCO_train2014"], names, None)
    assert len(whys) == 40
    given_up = [why for why in whys.values() if "not tried" in why]
    assert len(given_up) >= 40 - QUICK.hopeless - QUICK.per_host
    assert web.requests <= (QUICK.hopeless + QUICK.per_host) * QUICK.attempts


def test_the_proxy_of_the_environment_is_asked(
    tmp_path: Path, web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", web.url)
    monkeypatch.setenv("no_proxy", "")
    web.answers["http://images.invalid/a.jpg"] = [Answer(PHOTO)]
    target = tmp_path / "a.jpg"
    url = "http://images.invalid/a.jpg"
    fetch_file(Client(QUICK), (url,), tmp_path / "part", target, lambda path: None)
    assert target.read_bytes() == PHOTO
