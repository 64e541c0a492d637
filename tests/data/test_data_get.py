"""``data get`` and ``data check`` from end to end, and killed in the middle."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from paths import ROOT, SUPPORT
from stand_ins import IMAGES, fetch_job, files_of, jpeg, set_up_release
from waits import until
from web import Answer, Web

from vlmeval_findit.benchmarks.findit import Dataset, release_subsets
from vlmeval_findit.cli import data_get, main
from vlmeval_findit.core import Lock
from vlmeval_findit.data import (
    DOWNLOAD_PARTS,
    FETCHED_BY_HAND,
    SOURCES,
    fetch_images,
    parquet_folder,
)


@pytest.fixture
def mini(tmp_path, monkeypatch, web: Web) -> Dataset:
    return set_up_release(tmp_path, monkeypatch, web)


def test_only_damaged_files_are_fetched_again(mini, tmp_path, web: Web, capsys) -> None:
    assert main(["data", "check", "Mini"]) == 1
    assert "data get Mini" in " ".join(capsys.readouterr().out.split())
    assert main(["data", "get", "Mini"]) == 0
    first = capsys.readouterr().out
    assert "licence: COCO" in first
    assert re.search(r"Mini +5 +0 +5 +0", first)
    said = " ".join(first.split())
    assert f"1 table in {tmp_path / 'lmu'}, where runs find them" in said
    folder = tmp_path / "lmu" / "images" / "COCO_train2014"
    assert len(files_of(folder)) == IMAGES - 1
    assert not (folder / DOWNLOAD_PARTS).exists()
    before = web.requests
    assert main(["data", "get", "all"]) == 0
    second = capsys.readouterr().out
    assert "licence" not in second
    assert re.search(r"Mini +5 +5 +0 +0", second)
    # A table that is gone or edited is made of what was fetched.
    table = tmp_path / "lmu" / "Mini.tsv"
    whole = table.read_bytes()
    for spoil in (table.unlink, lambda: table.write_bytes(whole.replace(b"thing", b"other"))):
        spoil()
        assert main(["data", "check", "Mini"]) == 1
        assert main(["data", "get", "Mini"]) == 0
        assert table.read_bytes() == whole
    spoilt = folder / "COCO_train2014_000000000002.jpg"
    spoilt.write_bytes(spoilt.read_bytes()[:-900])
    capsys.readouterr()
    assert main(["data", "check", "Mini"]) == 1
    assert "000000000002.jpg: does not decode" in capsys.readouterr().out
    assert web.requests == before
    assert main(["data", "get", "Mini"]) == 0
    assert web.requests == before + 1
    assert main(["data", "check", "Mini"]) == 0


@pytest.mark.sees("data get --limit", "data check --limit")
def test_images_of_the_first_rows_only(mini, tmp_path, web: Web, capsys) -> None:
    # The first two rows are about one image
    assert main(["data", "get", "Mini", "--limit", "2"]) == 0
    assert re.search(r"Mini +1 +0 +1 +0", capsys.readouterr().out)
    folder = tmp_path / "lmu" / "images" / "COCO_train2014"
    assert list(files_of(folder)) == ["COCO_train2014_000000000000.jpg"]
    assert main(["data", "check", "Mini", "--limit", "2"]) == 0
    assert main(["data", "check", "Mini", "--limit", "3"]) == 1
    table = (tmp_path / "lmu" / "Mini.tsv").read_bytes()
    before = web.requests
    assert main(["data", "get", "Mini"]) == 0
    assert web.requests == before + IMAGES - 2, "nothing is fetched twice"
    assert (tmp_path / "lmu" / "Mini.tsv").read_bytes() == table
    assert main(["data", "get", "Mini", "--limit", "99"]) == 0


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["Mini", "--no-images"], "Leave one out"),
        (["SelfRetrieval", "--from", "x"], "come from your files. Leave it out"),
        (["COCO_val2017", "--from", "x"], "come from your files. Leave it out"),
    ],
)
def test_a_limit_is_for_images_that_are_fetched(words: list[str], says: str, mini, capsys) -> None:
    assert main(["data", "get", *words, "--limit", "2"]) == 2
    assert says in capsys.readouterr().err


def test_a_failure_is_counted_and_the_rest_is_fetched(mini, web: Web, capsys) -> None:
    web.serve("coco/COCO_train2014_000000000001.jpg", Answer(b"", 404))
    assert main(["data", "get", "Mini"]) == 1
    output = capsys.readouterr().out
    assert re.search(r"Mini +5 +0 +4 +1", output)
    assert "does not have it (404) (sources.coco_train2014 in configs/datasets.yaml)" in output


def test_annotations_of_another_checksum_make_no_table(mini, tmp_path, web: Web, capsys) -> None:
    web.serve("subsets/mini.parquet", b"other")
    assert main(["data", "get", "Mini"]) == 1
    assert "SHA-256 is" in capsys.readouterr().out
    assert not list(tmp_path.rglob("Mini.tsv"))
    assert set(web.counts()) == {"/subsets/mini.parquet"}
    # Those of a folder need no server.
    assert main(["data", "get", "Mini", "--from", str(tmp_path / "release")]) == 0
    assert web.counts()["/subsets/mini.parquet"] == 1
    assert main(["data", "check", "Mini"]) == 0


def test_a_dataset_without_a_source_is_refused_before_fetching(
    mini: Dataset, tmp_path, web: Web, monkeypatch, capsys
) -> None:
    names = ["a_f000001.jpg"]
    problems = fetch_images(fetch_job(web, tmp_path, names), SOURCES["iGround"], names, None)
    assert problems == {"a_f000001.jpg": FETCHED_BY_HAND}
    lost = replace(mini, name="Lost", images="COCO_train2015")
    monkeypatch.setattr(release_subsets, "BENCHMARK_DATASETS", {"Mini": mini, "Lost": lost})
    for command in ("get", "check"):
        assert main(["data", command, "Mini", "Lost"]) == 2
        error = capsys.readouterr().err
        assert "Lost: nothing says where the images 'COCO_train2015' come from" in error
        assert "did you mean COCO_train2014?" in error
    assert web.requests == 0
    assert files_of(tmp_path / "lmu") == {}


def test_two_runs_in_one_folder(mini, tmp_path, capsys) -> None:
    parts = tmp_path / "lmu" / "images" / "COCO_train2014" / DOWNLOAD_PARTS
    with Lock(parts / "lock", ""):
        assert main(["data", "get", "Mini"]) == 2
    error = capsys.readouterr().err
    assert f"{parts / 'lock'} is held by process {os.getpid()} on " in error
    assert "another data get is downloading there" in error
    assert main(["data", "get", "Mini"]) == 0


@pytest.mark.parametrize(
    ("other", "there", "fetched"),
    [(["data", "get", "Mini", "--no-images"], 1, 0), (["--version"], 0, 1)],
    ids=["fetched", "gave up"],
)
def test_who_waited_says_what_was_there_at_its_turn(
    other: list[str], there: int, fetched: int, mini, web: Web, monkeypatch, capsys
) -> None:
    """Another command holds the lock; it ends when ours says that it waits."""
    first = Lock(parquet_folder() / ".lock", "")

    def end_of_the_other(note: str) -> None:
        assert "waiting for it" in note
        first.release()
        assert main(other) == 0
        capsys.readouterr()

    monkeypatch.setattr(data_get, "print_note", end_of_the_other)
    assert main(["data", "get", "Mini", "--no-images"]) == 0
    output = capsys.readouterr().out
    assert re.search(rf"annotations +1 +{there} +{fetched} +0", output)
    assert web.requests == 1


def test_check_imports_no_network_library() -> None:
    code = (
        "import sys\n"
        "from vlmeval_findit.cli import main\n"
        "main(['data', 'check', 'Pascal'])\n"
        "import vlmeval_findit.cli.data_import, vlmeval_findit.export.coco_results\n"
        "assert not {'requests', 'urllib3', 'torch', 'vlmeval'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT, stdout=subprocess.DEVNULL)


# --- interrupted --------------------------------------------------------------------------------

CHILD = """
import sys
from pathlib import Path
sys.path[:0] = [sys.argv[1], str(Path(sys.argv[1]).parent)]
from stand_ins import fetch_job
from web import Web
from vlmeval_findit.data.fetch.fetch_images import fetch_images
from vlmeval_findit.data.sources import SOURCES
url, folder, *names = sys.argv[2:]
what = fetch_job(Web(url), Path(folder), names, (512, 384))
print(fetch_images(what, SOURCES["COCO_train2014"], list(what.store.problems()), None))
"""


def bytes_below(folder: Path) -> int:
    """Return how many bytes lie there; files that are moved meanwhile count or do not."""
    total = 0
    for path in folder.rglob("*"):
        with suppress(FileNotFoundError):
            total += path.stat().st_size if path.is_file() else 0
    return total


@pytest.mark.slow
@pytest.mark.parametrize("there", [0, 70_000, 200_000])
def test_killed_in_the_middle_of_files(tmp_path, web: Web, there: int) -> None:
    whole = {f"{i}.jpg": jpeg(i, (512, 384)) for i in range(4)}
    assert len(whole["0.jpg"]) > 100_000
    command = [sys.executable, "-c", CHILD, str(SUPPORT), web.url, str(tmp_path), *whole]

    def child() -> subprocess.Popen[str]:
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    for name, body in whole.items():
        web.serve(name, Answer(body, pace=0.02))
    with child() as process:
        until(lambda: bytes_below(tmp_path) > there)
        assert process.poll() is None
        os.kill(process.pid, signal.SIGKILL)
    assert all(whole[name] == body for name, body in files_of(tmp_path).items())
    for name, body in whole.items():
        web.serve(name, body)
    killed_at = web.requests
    assert child().communicate()[0].strip() == "{}"
    assert files_of(tmp_path) == whole
    assert there == 0 or any(given for _, given in web.asked[killed_at:])
    before = web.requests
    assert child().communicate()[0].strip() == "{}"
    assert web.requests == before
