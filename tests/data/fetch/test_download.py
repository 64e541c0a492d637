"""Downloads of single files, from servers that misbehave."""

from __future__ import annotations

import re
import ssl
from pathlib import Path

import pytest
from paths import ROOT
from stand_ins import QUICK, SIZE, fetch_job, files_of, jpeg
from web import Answer, Web, web_server

from vlmeval_findit.benchmarks.findit import BENCHMARK_DATASETS
from vlmeval_findit.data import (
    BASE_ADDRESSES,
    DOWNLOAD_CHUNK,
    SOURCES,
    Client,
    DownloadError,
    ImageStore,
    SourceError,
    StoreError,
    address_below,
    base_addresses,
    fetch_file,
    fetch_images,
)
from vlmeval_findit.storage import FolderError, image_problem

PHOTO = jpeg()
PAGE = b"<!DOCTYPE html><html><body>Please log in</body></html>"
HALF = len(PHOTO) // 2

# What a server answers in order, the last again and again; the number of requests; why it fails.
SERVERS: dict[str, tuple[list[Answer | bytes], int, str | None]] = {
    "slow once": ([Answer(PHOTO, slow=0.8), PHOTO], 2, None),
    "slow every time": ([Answer(PHOTO, slow=0.8)], 3, "timed out (3 attempts)"),
    "slow but steady": ([Answer(PHOTO, pace=0.01)], 1, None),
    "cut off": ([Answer(PHOTO, cut=HALF), PHOTO], 2, None),
    "no ranges": ([Answer(PHOTO, cut=HALF, ranges=False), Answer(PHOTO, ranges=False)], 2, None),
    "no validator": ([Answer(PHOTO, cut=HALF, etag=""), Answer(PHOTO, etag="")], 2, None),
    "cut off, then changed": ([Answer(jpeg(9), cut=HALF), PHOTO], 2, None),
    "404": ([Answer(b"", 404)], 1, "the server does not have it (404)"),
    "403": ([Answer(b"", 403)], 1, "status 403"),
    "429": ([Answer(b"", 429, {"Retry-After": "1"}), PHOTO], 2, None),
    "unreadable wait": ([Answer(b"", 429, {"Retry-After": "soon"}), PHOTO], 2, None),
    "too long a wait": ([Answer(b"", 429, {"Retry-After": "3600"})], 1, "it asks to wait 3600 s"),
    "500 every time": ([Answer(b"", 500)], 3, "status 500 (3 attempts)"),
    "fewer bytes than announced": ([Answer(PHOTO, length=len(PHOTO) + 50)], 3, "(3 attempts)"),
    "too large": ([Answer(PHOTO, length=1 << 40)], 1, "more than 536870912"),
    "two lengths": ([Answer(PHOTO, headers={"Content-Length": "12"})], 1, "unmatching values"),
    "a redirect to nowhere": ([Answer(b"", 302, {"Location": "http://[::1"})], 1, "IPv6"),
    "a redirect to a file": ([Answer(b"", 302, {"Location": "file:///x"})], 1, "file:///x"),
    "a web page": ([PAGE], 1, "is a web page, not an image"),
    "another size": ([jpeg(1, (32, 32))], 1, "is 32x32, but its annotations are for 256x192"),
}


def fetch(*urls: str, target: Path) -> None:
    """Fetch a file with its part next to it."""
    part = target.with_name("part")
    fetch_file(Client(QUICK), urls, part, target, lambda path: image_problem(path, SIZE))


@pytest.mark.parametrize(("answers", "requests", "why"), SERVERS.values(), ids=SERVERS)
def test_a_server_that_misbehaves(
    tmp_path, web: Web, answers: list[Answer | bytes], requests: int, why: str | None
) -> None:
    url = web.serve("file", *answers)
    target = tmp_path / "target.jpg"
    if why is None:
        fetch(url, target=target)
        assert target.read_bytes() == PHOTO
        assert [*tmp_path.iterdir()] == [target]
    else:
        with pytest.raises(DownloadError, match=re.escape(why)) as error:
            fetch(url, target=target)
        assert url in str(error.value)
        assert not target.exists()
    assert web.requests == requests


def test_a_broken_download_is_resumed_or_restarted(tmp_path, web: Web) -> None:
    target = tmp_path / "a.jpg"
    fetch(web.serve("whole", Answer(PHOTO, cut=HALF), PHOTO), target=target)
    asked = re.fullmatch(r"bytes=(\d+)-", str(web.asked[1][1]))
    assert asked is not None
    assert HALF - DOWNLOAD_CHUNK <= int(asked[1]) <= HALF
    # A server may give other bytes the same ETag.
    same = {"etag": '"same"'}
    wrong = web.serve("wrong", Answer(jpeg(5), cut=30_000, **same), Answer(PHOTO, **same))
    fetch_file(
        Client(QUICK),
        (wrong,),
        tmp_path / "part",
        target,
        lambda path: None if path.read_bytes() == PHOTO else "is not the photograph",
    )
    assert target.read_bytes() == PHOTO
    first = web.serve("first", Answer(jpeg(3), cut=30_000, etag='"e"'), Answer(b"", 404))
    fetch(first, web.serve("second", Answer(PHOTO, etag='"e"')), target=target)
    assert web.asked[-1] == ("/second", None)
    # A link where a part is written is not followed.
    outside, part = tmp_path / "secret", tmp_path / "part"
    outside.write_bytes(b"secret")
    part.symlink_to(outside)
    url = web.serve("file", PHOTO)
    part.with_name("part.json").write_text(f'{{"url": "{url}", "validator": "1"}}')
    fetch(url, target=target)
    assert outside.read_bytes() == b"secret"
    assert address_below("http://a/b/", "Santa Claus/1.jpg") == "http://a/b/Santa%20Claus/1.jpg"


def test_only_trusted_certificates_and_no_redirect_away_from_https(
    tmp_path, web: Web, monkeypatch
) -> None:
    trustme = pytest.importorskip("trustme")
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    # As VLMEvalKit does for its process.
    monkeypatch.setattr(ssl, "_create_default_https_context", ssl._create_unverified_context)
    with web_server(context) as secure:
        good = secure.serve("good", PHOTO)
        with pytest.raises(DownloadError, match="no trusted certificate"):
            fetch(good, target=tmp_path / "good")
        assert secure.requests == 0
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "ca.pem"))
        fetch(good, target=tmp_path / "good")
        bad = secure.serve("file", Answer(b"", 302, {"Location": web.serve("file", PHOTO)}))
        with pytest.raises(DownloadError, match="away from https"):
            fetch(bad, target=tmp_path / "bad")
    assert not (tmp_path / "bad").exists()


# --- many files ---------------------------------------------------------------------------------


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
    client, reasons = Client(QUICK), set()
    for name in "ab":
        with pytest.raises(DownloadError) as caught:
            client.download(f"http://127.0.0.1:9/{name}", tmp_path / name)
        reasons.add(str(caught.value))
    assert reasons == {"127.0.0.1:9 cannot be reached: Connection refused"}


def test_every_address_of_a_row_is_tried(tmp_path, web: Web) -> None:
    web.serve("VG_100K/1.jpg", jpeg(1))
    web.serve("VG_100K_2/2.jpg", jpeg(2))
    names = ["1.jpg", "2.jpg", "3.jpg"]
    problems = fetch_images(fetch_job(web, tmp_path, names), SOURCES["VisualGenome"], names, None)
    assert files_of(tmp_path) == {"1.jpg": jpeg(1), "2.jpg": jpeg(2)}
    assert list(problems) == ["3.jpg"]
    assert "VG_100K_2/3.jpg: the server does not have it (404)" in problems["3.jpg"]
    assert "(sources.visual_genome in configs/datasets.yaml)" in problems["3.jpg"]


@pytest.mark.parametrize("name", ["../out.jpg", "/out.jpg", "link/out.jpg"])
def test_nothing_is_written_outside_the_folder(tmp_path, name: str) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "link").symlink_to(tmp_path)
    with pytest.raises(StoreError):
        ImageStore(folder, {name: None}).target(name)


# --- the registry -------------------------------------------------------------------------------


def test_every_dataset_of_the_release_has_a_source() -> None:
    for row in BENCHMARK_DATASETS.values():
        if row.subset is None:
            continue
        source = SOURCES[row.images]
        assert source.licence
        assert source.download
        # Either an address is shipped, or there are steps for a person.
        shipped = [BASE_ADDRESSES[origin.base] for origin in source.origins.values()]
        assert source.steps or (shipped and all(shipped))
        assert "{folder}" not in source.steps.format(folder="images")


def test_addresses_of_the_configuration(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("FINDIT_CONFIG", str(ROOT / "configs" / "datasets.yaml"))
    assert dict(base_addresses()) == dict(BASE_ADDRESSES)
    config = tmp_path / "datasets.yaml"
    monkeypatch.setenv("FINDIT_CONFIG", str(config))
    for text, why in (
        ("coco_train: http://a/", "did you mean coco_train2014"),
        ("findit: ftp://a/", "should begin with http://"),
        ("findit: 5", "sources, findit: 5 should be text"),
    ):
        config.write_text(f"sources:\n  {text}\n")
        with pytest.raises((SourceError, FolderError), match=why):
            base_addresses()
