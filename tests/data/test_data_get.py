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

from vlmeval_findit.benchmarks.findit import release_subsets
from vlmeval_findit.cli import main
from vlmeval_findit.core.lock import Lock
from vlmeval_findit.data.fetch.fetch_images import BY_HAND, fetch_images
from vlmeval_findit.data.fetch.store import PARTS
from vlmeval_findit.data.sources import SOURCES


@pytest.fixture
def release(tmp_path, monkeypatch, web: Web) -> None:
    set_up_release(tmp_path, monkeypatch, web)


# --- the command --------------------------------------------------------------------------------


def test_a_dataset_is_ready_and_the_second_run_asks_nothing(
    release, tmp_path, web: Web, capsys
) -> None:
    assert main(["data", "get", "Mini"]) == 0
    first = capsys.readouterr().out
    assert "licence: COCO" in first
    assert re.search(r"Mini +5 +0 +5 +0", first)
    assert f"1 tables in {tmp_path / 'lmu'}, where runs find them" in first
    folder = tmp_path / "lmu" / "images" / "COCO_train2014"
    assert len(files_of(folder)) == IMAGES - 1
    assert not (folder / PARTS).exists()
    before = web.requests
    assert main(["data", "get", "all"]) == 0
    second = capsys.readouterr().out
    assert web.requests == before
    assert "licence" not in second
    assert re.search(r"Mini +5 +5 +0 +0", second)


def test_a_table_that_is_gone_or_edited_is_made_of_what_was_fetched(
    release, tmp_path, web: Web, capsys
) -> None:
    assert main(["data", "check", "Mini"]) == 1
    assert "data get Mini" in " ".join(capsys.readouterr().out.split())
    assert main(["data", "get", "Mini"]) == 0
    table, before = tmp_path / "lmu" / "Mini.tsv", web.requests
    whole = table.read_bytes()
    for spoil in (table.unlink, lambda: table.write_bytes(whole.replace(b"thing", b"other"))):
        spoil()
        assert main(["data", "check", "Mini"]) == 1
        assert main(["data", "get", "Mini"]) == 0
        assert table.read_bytes() == whole
    assert web.requests == before


def test_what_is_wrong_is_fetched_again_and_check_finds_it(
    release, tmp_path, web: Web, capsys
) -> None:
    main(["data", "get", "Mini"])
    folder = tmp_path / "lmu" / "images" / "COCO_train2014"
    spoilt = folder / "COCO_train2014_000000000002.jpg"
    spoilt.write_bytes(spoilt.read_bytes()[:-900])
    before = web.requests
    capsys.readouterr()
    assert main(["data", "check", "Mini"]) == 1
    assert "000000000002.jpg: does not decode" in capsys.readouterr().out
    assert web.requests == before
    assert main(["data", "get", "Mini"]) == 0
    assert web.requests == before + 1
    assert main(["data", "check", "Mini"]) == 0


def test_a_failure_is_counted_and_the_rest_is_fetched(release, web: Web, capsys) -> None:
    web.serve("coco/COCO_train2014_000000000001.jpg", Answer(b"", 404))
    assert main(["data", "get", "Mini"]) == 1
    output = capsys.readouterr().out
    assert re.search(r"Mini +5 +0 +4 +1", output)
    assert "does not have it (404) (sources.coco_train2014 in configs/datasets.yaml)" in output


def test_annotations_of_another_checksum_make_no_table(release, tmp_path, web: Web, capsys) -> None:
    web.serve("subsets/mini.parquet", b"other")
    assert main(["data", "get", "Mini"]) == 1
    assert "SHA-256 is" in capsys.readouterr().out
    assert not list(tmp_path.rglob("Mini.tsv"))
    assert set(web.counts()) == {"/subsets/mini.parquet"}


def test_annotations_from_a_folder(release, tmp_path, web: Web) -> None:
    assert main(["data", "get", "Mini", "--from", str(tmp_path / "release")]) == 0
    assert (tmp_path / "lmu" / "Mini.tsv").is_file()
    assert not any(path.startswith("/subsets") for path in web.counts())
    assert main(["data", "check", "Mini"]) == 0


def test_what_must_be_got_by_hand_says_so(tmp_path, web: Web) -> None:
    names = ["a_f000001.jpg"]
    problems = fetch_images(fetch_job(web, tmp_path, names), SOURCES["iGround"], names, None)
    assert problems == {"a_f000001.jpg": BY_HAND}
    assert web.requests == 0


def test_check_imports_no_network_library() -> None:
    code = (
        "import sys\n"
        "from vlmeval_findit.cli import main\n"
        "main(['data', 'check', 'Pascal'])\n"
        "import vlmeval_findit.cli.data_import, vlmeval_findit.publish.coco\n"
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
url, folder, row = sys.argv[2:5]
names = sys.argv[5:]
what = fetch_job(Web(url), Path(folder), names, (512, 384))
missing = list(what.store.problems())
print(fetch_images(what, SOURCES[row], missing, None))
"""


def child(web: Web, folder: Path, row: str, names: list[str]) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", CHILD, str(SUPPORT), web.url, str(folder), row, *names]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def bytes_below(folder: Path) -> int:
    """Return how many bytes lie there; files that are moved meanwhile count or do not."""
    total = 0
    for path in folder.rglob("*"):
        with suppress(FileNotFoundError):
            total += path.stat().st_size if path.is_file() else 0
    return total


def kill_when(process: subprocess.Popen[str], there: float, folder: Path) -> None:
    """Kill as soon as more bytes than that lie below the folder."""
    until(lambda: bytes_below(folder) > there)
    assert process.poll() is None
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()


@pytest.mark.slow
@pytest.mark.parametrize("there", [0, 70_000, 200_000])
def test_killed_in_the_middle_of_files(tmp_path, web: Web, there: int) -> None:
    names = [f"{i}.jpg" for i in range(4)]
    whole = {name: jpeg(i, (512, 384)) for i, name in enumerate(names)}
    assert len(whole["0.jpg"]) > 100_000
    for name, body in whole.items():
        web.serve(name, Answer(body, pace=0.02))
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


@pytest.mark.parametrize("command", ["get", "check"])
def test_a_dataset_without_a_source_is_refused_before_anything_is_fetched(
    command: str, tmp_path, web: Web, monkeypatch, capsys
) -> None:
    mini = set_up_release(tmp_path, monkeypatch, web)
    lost = replace(mini, name="Lost", images="COCO_train2015")
    monkeypatch.setattr(release_subsets, "BENCHMARK", {"Mini": mini, "Lost": lost})
    assert main(["data", command, "Mini", "Lost"]) == 2
    error = capsys.readouterr().err
    assert "Lost: nothing says where the images 'COCO_train2015' come from" in error
    assert "did you mean COCO_train2014?" in error
    assert web.requests == 0
    assert files_of(tmp_path / "lmu") == {}


def test_two_runs_in_one_folder(release, tmp_path, capsys) -> None:
    parts = tmp_path / "lmu" / "images" / "COCO_train2014" / PARTS
    with Lock(parts / "lock", ""):
        assert main(["data", "get", "Mini"]) == 2
    error = capsys.readouterr().err
    assert f"{parts / 'lock'} is held by process {os.getpid()} on " in error
    assert "another data get is downloading there" in error
    assert main(["data", "get", "Mini"]) == 0
