"""Downloads of single files, from servers that misbehave."""

from __future__ import annotations

import re
import ssl
from dataclasses import dataclass
from pathlib import Path

import pytest
from paths import ROOT
from stand_ins import QUICK, SIZE, fetch_job, files_of, jpeg
from web import Answer, Web, web_server

from vlmeval_findit.benchmarks.findit.findit_datasets import BENCHMARK
from vlmeval_findit.core.folders import FolderError
from vlmeval_findit.core.image_files import problem
from vlmeval_findit.data.fetch.download import (
    CHUNK,
    Client,
    DownloadError,
    address,
    fetch_file,
    range_start,
    validator_of,
)
from vlmeval_findit.data.fetch.fetch_images import fetch_images
from vlmeval_findit.data.fetch.store import ImageStore, StoreError
from vlmeval_findit.data.sources import BASE_ADDRESSES, SOURCES, SourceError, base_addresses

PHOTO = jpeg()
PAGE = b"<!DOCTYPE html><html><body>Please log in</body></html>"
HALF = len(PHOTO) // 2


@dataclass(frozen=True)
class Case:
    """What a server answers in order, the last again and again, and what comes of it."""

    answers: tuple[Answer | bytes, ...]
    requests: int
    why: str | None = None  # None: the file is fetched


def refused(answer: Answer | bytes, why: str, requests: int = 1) -> Case:
    return Case((answer,), requests, why)


SERVERS = {
    "slow once": Case((Answer(PHOTO, slow=0.8), PHOTO), 2),
    "slow every time": refused(Answer(PHOTO, slow=0.8), "nothing came in time (3 attempts)", 3),
    "slow but steady": Case((Answer(PHOTO, pace=0.01),), 1),
    "cut off": Case((Answer(PHOTO, cut=HALF), PHOTO), 2),
    "cut off, no ranges": Case(
        (Answer(PHOTO, cut=HALF, ranges=False), Answer(PHOTO, ranges=False)), 2
    ),
    "cut off, no validator": Case((Answer(PHOTO, cut=HALF, etag=""), Answer(PHOTO, etag="")), 2),
    "cut off, then changed": Case((Answer(jpeg(9), cut=HALF), PHOTO), 2),
    "cut off every time": refused(Answer(PHOTO, cut=HALF, ranges=False), "(3 attempts)", 3),
    "404": refused(Answer(b"", 404), "the server does not have it (404)"),
    "403": refused(Answer(b"", 403), "status 403"),
    "429": Case((Answer(b"", 429, {"Retry-After": "1"}), PHOTO), 2),
    "429, unreadable wait": Case((Answer(b"", 429, {"Retry-After": "soon"}), PHOTO), 2),
    "429, too long a wait": refused(
        Answer(b"", 429, {"Retry-After": "3600"}), "it asks to wait 3600 s"
    ),
    "500 and 503": Case((Answer(b"", 500), Answer(b"", 503), PHOTO), 3),
    "500 every time": refused(Answer(b"", 500), "status 500 (3 attempts)", 3),
    "fewer bytes than announced": refused(Answer(PHOTO, length=len(PHOTO) + 50), "(3 attempts)", 3),
    "too large": refused(Answer(PHOTO, length=1 << 40), "more than 536870912"),
    "a web page": refused(PAGE, "is a web page, not an image"),
    "empty": refused(b"", "is empty"),
    "truncated": refused(PHOTO[:-HALF], "does not decode"),
    "another size": refused(jpeg(1, (32, 32)), "is 32x32, but its annotations are for 256x192"),
}


@pytest.mark.parametrize("case", SERVERS.values(), ids=SERVERS)
def test_a_server_that_misbehaves(tmp_path, web: Web, case: Case) -> None:
    url = web.serve("file", *case.answers)
    part, target = tmp_path / "part", tmp_path / "target.jpg"

    def fetch() -> None:
        fetch_file(Client(QUICK), (url,), part, target, lambda path: problem(path, SIZE))

    if case.why is None:
        fetch()
        assert target.read_bytes() == PHOTO
        assert not part.exists()
    else:
        with pytest.raises(DownloadError, match=re.escape(case.why)) as error:
            fetch()
        assert url in str(error.value)
        assert not target.exists()
    assert web.requests == case.requests


def test_a_broken_download_is_resumed(tmp_path, web: Web) -> None:
    url = web.serve("file", Answer(PHOTO, cut=HALF), PHOTO)
    target = tmp_path / "a.jpg"
    fetch_file(Client(QUICK), (url,), tmp_path / "part", target, lambda path: None)
    start = range_start({"Content-Range": str(web.asked[1][1]).replace("=", " ")})
    assert start is not None
    assert HALF - CHUNK <= start <= HALF
    assert target.read_bytes() == PHOTO


def test_headers_and_addresses() -> None:
    assert range_start({"Content-Range": "bytes 5-9/10"}) == 5
    assert range_start({}) is None
    assert validator_of({"ETag": '"a"', "Last-Modified": "b"}) == '"a"'
    assert validator_of({"ETag": 'W/"a"', "Last-Modified": "b"}) == "b"
    assert address("http://a/b/", "Santa Claus/1.jpg") == "http://a/b/Santa%20Claus/1.jpg"


def test_a_resumed_file_that_is_wrong_is_tried_from_the_start(tmp_path, web: Web) -> None:
    """A server may give other bytes the same ETag."""
    same = {"etag": '"same"'}
    url = web.serve("file", Answer(jpeg(5), cut=30_000, **same), Answer(PHOTO, **same))
    target = tmp_path / "target.jpg"

    def check(path: Path) -> str | None:
        return None if path.read_bytes() == PHOTO else "is not the photograph"

    fetch_file(Client(QUICK), (url,), tmp_path / "part", target, check)
    assert target.read_bytes() == PHOTO


def test_a_partial_file_of_another_address_is_not_resumed(tmp_path, web: Web) -> None:
    first = web.serve("first", Answer(jpeg(3), cut=30_000, etag='"e"'), Answer(b"", 404))
    second = web.serve("second", Answer(PHOTO, etag='"e"'))
    target = tmp_path / "target.jpg"
    fetch_file(Client(QUICK), (first, second), tmp_path / "part", target, lambda path: None)
    assert target.read_bytes() == PHOTO
    assert web.asked[-1] == ("/second", None)


def test_a_link_where_a_part_is_written_is_not_followed(tmp_path, web: Web) -> None:
    outside, part = tmp_path / "secret", tmp_path / "part"
    outside.write_bytes(b"secret")
    part.symlink_to(outside)
    url = web.serve("file", PHOTO)
    part.with_name("part.json").write_text(f'{{"url": "{url}", "validator": "1"}}')
    fetch_file(Client(QUICK), (url,), part, tmp_path / "a.jpg", lambda path: None)
    assert outside.read_bytes() == b"secret"


# --- certificates -------------------------------------------------------------------------------


def tls_context() -> tuple[ssl.SSLContext, bytes]:
    trustme = pytest.importorskip("trustme")
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    pem: bytes = authority.cert_pem.bytes()
    return context, pem


def test_an_untrusted_certificate_is_refused(tmp_path, monkeypatch) -> None:
    context, _ = tls_context()
    # As VLMEvalKit does for its process.
    monkeypatch.setattr(ssl, "_create_default_https_context", ssl._create_unverified_context)
    with web_server(context) as web:
        url = web.serve("file", PHOTO)
        with pytest.raises(DownloadError, match="no trusted certificate"):
            fetch_file(Client(QUICK), (url,), tmp_path / "p", tmp_path / "a", lambda path: None)
        assert web.requests == 0


def test_a_redirect_away_from_https_is_refused(tmp_path, web: Web, monkeypatch) -> None:
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


def test_the_proxy_of_the_environment_is_used(tmp_path, web: Web, monkeypatch) -> None:
    url = "http://images.invalid/a.jpg"
    monkeypatch.setenv("http_proxy", web.url)
    monkeypatch.setenv("no_proxy", "")
    web.answers[url] = [Answer(PHOTO)]
    target = tmp_path / "a.jpg"
    fetch_file(Client(QUICK), (url,), tmp_path / "part", target, lambda path: None)
    assert target.read_bytes() == PHOTO


# --- many files ---------------------------------------------------------------------------------


def test_files_are_fetched_in_parallel_up_to_the_limit(tmp_path, web: Web) -> None:
    names = [f"{i}.jpg" for i in range(24)]
    for i, name in enumerate(names):
        web.serve(name, jpeg(i))
    web.hold = 0.03
    job = fetch_job(web, tmp_path, names)
    assert fetch_images(job, SOURCES["COCO_train2014"], names, None) == {}
    assert 1 < web.most_at_once <= QUICK.parallel


def test_a_server_that_never_answers_is_given_up(tmp_path, web: Web) -> None:
    names = [f"{i}.jpg" for i in range(40)]
    for name in names:
        web.serve(name, Answer(b"", 500))
    job = fetch_job(web, tmp_path, names)
    problems = fetch_images(job, SOURCES["COCO_train2014"], names, None)
    assert len(problems) == 40
    not_tried = [why for why in problems.values() if "not tried" in why]
    assert len(not_tried) >= 40 - QUICK.hopeless - QUICK.parallel
    assert web.requests <= (QUICK.hopeless + QUICK.parallel) * QUICK.attempts


def test_a_host_that_cannot_be_reached_is_given_up_at_once(tmp_path) -> None:
    client, reasons = Client(QUICK), set()
    for name in "ab":
        with pytest.raises(DownloadError) as caught:
            client.download(f"http://127.0.0.1:9/{name}", tmp_path / name)
        reasons.add(str(caught.value))
    assert reasons == {"127.0.0.1:9 cannot be reached: Connection refused"}


def test_an_image_is_looked_for_at_every_address_of_its_row(tmp_path, web: Web) -> None:
    web.serve("VG_100K/1.jpg", jpeg(1))
    web.serve("VG_100K_2/2.jpg", jpeg(2))
    names = ["1.jpg", "2.jpg", "3.jpg"]
    problems = fetch_images(fetch_job(web, tmp_path, names), SOURCES["VisualGenome"], names, None)
    assert files_of(tmp_path) == {"1.jpg": jpeg(1), "2.jpg": jpeg(2)}
    assert list(problems) == ["3.jpg"]
    assert "VG_100K_2/3.jpg: the server does not have it (404)" in problems["3.jpg"]
    assert "(sources.visual_genome in configs/datasets.yaml)" in problems["3.jpg"]


@pytest.mark.parametrize("name", ["../out.jpg", "/out.jpg", "a/../../out.jpg", "link/out.jpg", ""])
def test_nothing_is_written_outside_the_folder(tmp_path, name: str) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "link").symlink_to(tmp_path)
    with pytest.raises(StoreError):
        ImageStore(folder, {name: None}).target(name)


# --- the registry -------------------------------------------------------------------------------


def test_every_dataset_of_the_release_has_a_source() -> None:
    for row in BENCHMARK.values():
        if row.subset is None:
            continue
        source = SOURCES[row.images]
        assert source.licence
        assert source.download
        # Either an address is shipped, or there are steps for a person.
        shipped = [BASE_ADDRESSES[origin.base] for _, origin in source.origins]
        assert source.steps or (shipped and all(shipped))
        assert "{folder}" not in source.steps.format(folder="images")


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
def test_a_wrong_address_names_its_key(tmp_path, monkeypatch, text: str, why: str) -> None:
    config = tmp_path / "datasets.yaml"
    config.write_text(f"sources:\n  {text}\n")
    monkeypatch.setenv("FINDIT_CONFIG", str(config))
    with pytest.raises((SourceError, FolderError), match=why):
        base_addresses()


def test_the_shipped_configuration_changes_no_address(monkeypatch) -> None:
    monkeypatch.setenv("FINDIT_CONFIG", str(ROOT / "configs" / "datasets.yaml"))
    assert dict(base_addresses()) == dict(BASE_ADDRESSES)
