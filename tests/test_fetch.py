"""Downloads from servers that misbehave, and ``run_findit.py fetch`` from end to end."""

from __future__ import annotations

import os
import re
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from failures import ARCHIVES, FILES, PHOTO, PROCESS, TLS, Failure
from stand_ins import IMAGES, QUICK, SIZE, errand, files_of, jpeg, set_up_release
from web import Answer, Web, web_server

from vlmeval_findit.cli import main
from vlmeval_findit.datasets import BENCHMARK
from vlmeval_findit.fetch.download import (
    CHUNK,
    Client,
    DownloadError,
    address,
    fetch_file,
    range_start,
    retry_after,
    validator_of,
)
from vlmeval_findit.fetch.images import BY_HAND, bring
from vlmeval_findit.fetch.sources import BASES, SOURCES, SourceError, bases
from vlmeval_findit.fetch.store import PARTS, Store, StoreError
from vlmeval_findit.fetch.verify import problem

ROOT = Path(__file__).resolve().parent.parent


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


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, None),
        ("7", 7.0),
        ("Thu, 01 Jan 2026 00:00:30 GMT", 30.0),
        ("Wed, 31 Dec 2025 00:00:00 GMT", 0.0),
        ("soon", None),
    ],
)
def test_retry_after_is_seconds_or_a_date(value: str | None, seconds: float | None) -> None:
    assert retry_after(value, datetime(2026, 1, 1, tzinfo=UTC)) == seconds


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
        ("findit: 5", "is not an http"),
    ],
)
def test_a_wrong_address_names_its_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, why: str
) -> None:
    config = tmp_path / "datasets.yaml"
    config.write_text(f"sources:\n  {text}\n")
    monkeypatch.setenv("FINDIT_CONFIG", str(config))
    with pytest.raises(SourceError, match=why):
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


# --- the command --------------------------------------------------------------------------------


def test_fetch_leaves_a_dataset_ready_and_the_second_run_asks_nothing(
    tmp_path: Path,
    web: Web,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    set_up_release(tmp_path, monkeypatch, web)
    assert main(["fetch", "Mini"]) == 0
    first = capsys.readouterr().out
    assert "licence: COCO" in first
    assert re.search(r"Mini +5 +0 +5 +0", first)
    assert (tmp_path / "datasets_tsv" / "Mini.tsv").is_file()
    folder = tmp_path / "lmu" / "images" / "COCO_train2014"
    assert len(files_of(folder)) == IMAGES - 1
    assert not (folder / PARTS).exists()
    before = web.requests
    assert main(["fetch", "all"]) == 0
    second = capsys.readouterr().out
    assert web.requests == before
    assert "licence" not in second
    assert re.search(r"Mini +5 +5 +0 +0", second)


def test_what_is_wrong_is_fetched_again_and_check_finds_it(
    tmp_path: Path,
    web: Web,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    set_up_release(tmp_path, monkeypatch, web)
    main(["fetch", "Mini"])
    folder = tmp_path / "lmu" / "images" / "COCO_train2014"
    spoilt = folder / "COCO_train2014_000000000002.jpg"
    spoilt.write_bytes(spoilt.read_bytes()[:-900])
    before = web.requests
    capsys.readouterr()
    assert main(["fetch", "--check", "Mini"]) == 1
    assert "000000000002.jpg: does not decode" in capsys.readouterr().out
    assert web.requests == before
    assert main(["fetch", "Mini"]) == 0
    assert web.requests == before + 1
    assert main(["fetch", "--check", "Mini"]) == 0


def test_a_failure_is_counted_and_said_and_the_rest_comes(
    tmp_path: Path,
    web: Web,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    set_up_release(tmp_path, monkeypatch, web)
    web.serve("coco/COCO_train2014_000000000001.jpg", Answer(b"", 404))
    assert main(["fetch", "Mini"]) == 1
    said = capsys.readouterr().out
    assert re.search(r"Mini +5 +0 +4 +1", said)
    assert "does not have it (404) (sources.coco_train2014 in configs/datasets.yaml)" in said


def test_annotations_of_another_checksum_make_no_table(
    tmp_path: Path,
    web: Web,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    set_up_release(tmp_path, monkeypatch, web)
    web.serve("subsets/mini.parquet", b"other")
    assert main(["fetch", "Mini"]) == 1
    assert "SHA-256 is" in capsys.readouterr().out
    assert not (tmp_path / "datasets_tsv").exists()
    assert set(web.counts()) == {"/subsets/mini.parquet"}


def test_annotations_from_a_folder_into_a_folder(
    tmp_path: Path, web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_up_release(tmp_path, monkeypatch, web)
    release, out = str(tmp_path / "release"), str(tmp_path / "tables")
    assert main(["fetch", "Mini", "--subsets", release, "--out", out]) == 0
    assert (tmp_path / "tables" / "Mini.tsv").is_file()
    assert not any(path.startswith("/subsets") for path in web.counts())
    assert main(["fetch", "--check", "Mini", "--out", out]) == 0


def test_an_unknown_name_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fetch", "RefCOCOs"]) == 2
    assert "did you mean RefCOCO" in capsys.readouterr().err


def test_what_must_be_got_by_hand_says_how(
    tmp_path: Path, web: Web, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ["a_f000001.jpg"]
    assert bring(errand(web, tmp_path, names), SOURCES["iGround"], names, None) == {
        "a_f000001.jpg": BY_HAND
    }
    for source in SOURCES.values():
        assert source.steps.format(folder=tmp_path) == source.steps.replace(
            "{folder}", str(tmp_path)
        )
    assert web.requests == 0


def test_check_imports_no_network_library() -> None:
    code = (
        "import sys\n"
        "from vlmeval_findit.cli import main\n"
        "main(['fetch', '--check', 'Pascal'])\n"
        "import vlmeval_findit.cli.import_data, vlmeval_findit.cli.export_coco\n"
        "assert not {'requests', 'urllib3', 'torch', 'vlmeval'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT, stdout=subprocess.DEVNULL)


# --- interrupted --------------------------------------------------------------------------------

CHILD = """
import sys
from pathlib import Path
sys.path[:0] = [sys.argv[1], str(Path(sys.argv[1]).parent)]
from stand_ins import errand
from web import Web
from vlmeval_findit.fetch.images import bring
from vlmeval_findit.fetch.sources import SOURCES
url, folder, row = sys.argv[2:5]
names = sys.argv[5:]
what = errand(Web(url), Path(folder), names, (512, 384))
missing = list(what.store.look())
print(bring(what, SOURCES[row], missing, None))
"""


def child(web: Web, folder: Path, row: str, names: list[str]) -> subprocess.Popen[str]:
    tests = str(Path(__file__).parent)
    command = [sys.executable, "-c", CHILD, tests, web.url, str(folder), row, *names]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def kill_when(process: subprocess.Popen[str], there: float, folder: Path) -> None:
    """Kill as soon as more bytes than that lie below the folder."""
    end = time.monotonic() + 20
    while sum(p.stat().st_size for p in folder.rglob("*") if p.is_file()) <= there:
        assert time.monotonic() < end
        assert process.poll() is None
        time.sleep(0.002)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()


@pytest.mark.parametrize("there", [0, 70_000, 200_000])
def test_killed_in_the_middle_of_files(tmp_path: Path, web: Web, there: int) -> None:
    names = [f"{i}.jpg" for i in range(4)]
    whole = {name: jpeg(i, (512, 384)) for i, name in enumerate(names)}
    assert len(whole["0.jpg"]) > 100_000
    for name, body in whole.items():
        web.serve(name, Answer(body, pace=0.002))
    kill_when(child(web, tmp_path, "COCO_train2014", names), there, tmp_path)
    assert all(whole[name] == body for name, body in files_of(tmp_path).items())
    for name, body in whole.items():
        web.serve(name, body)
    killed_at = web.requests
    process = child(web, tmp_path, "COCO_train2014", names)
    assert process.communicate()[0].strip() == "{}"
    assert files_of(tmp_path) == whole
    assert there == 0 or any(given for _, given in web.asked[killed_at:])
    assert child(web, tmp_path, "COCO_train2014", names).communicate()[0].strip() == "{}"
    assert web.requests == killed_at + len(web.asked[killed_at:])


def test_two_runs_in_one_folder(
    tmp_path: Path,
    web: Web,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from filelock import FileLock

    set_up_release(tmp_path, monkeypatch, web)
    parts = tmp_path / "lmu" / "images" / "COCO_train2014" / PARTS
    parts.mkdir(parents=True)
    with FileLock(parts / "lock"):
        assert main(["fetch", "Mini"]) == 2
    assert "another fetch is at work there" in capsys.readouterr().err
    assert main(["fetch", "Mini"]) == 0
