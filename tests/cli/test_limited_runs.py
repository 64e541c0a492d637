"""What is asked of N rows needs their images only, and is the beginning of a full run."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from chat_server import Answer, Asked, ChatServer, completion
from custom_data import data_folder
from few_fast import few_fast
from host_runs import STOCK, environment, require_host, run
from PIL import Image

from vlmeval_findit.benchmarks import benchmark_of, parse
from vlmeval_findit.cli import main
from vlmeval_findit.engine import CellBuilder
from vlmeval_findit.protocol import PictureSample
from vlmeval_findit.storage import ImageError, RunFiles

DATA = "FindIt_Three_xyxy_json"
MODEL = "Qwen3-VL"
ROWS = 3


def told_apart(asked: Asked, number: int) -> Answer:
    """Answer every row with a box of its own."""
    row = re.findall(r"thing (\d)", json.dumps(asked.body))[-1]
    return completion(f'[{{"bbox": [0, 0, 50{row}, 900]}}]')


@pytest.fixture
def images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Import three rows over three images, of which the last two are then moved away."""
    monkeypatch.setenv("FINDIT_SKIP_MISSING", "")
    data_folder(tmp_path, monkeypatch)
    folder = tmp_path / "images"
    folder.mkdir()
    lines = []
    for row in range(ROWS):
        Image.new("RGB", (100 + row, 80)).save(folder / f"{row}.png")
        query = {"image": f"{row}.png", "expression": f"thing {row}", "boxes": [[1, 2, 30, 40]]}
        lines.append(json.dumps(query))
    (folder / "three.jsonl").write_text("\n".join(lines))
    assert main(["data", "import", str(folder / "three.jsonl"), "--name", "Three"]) == 0
    move_away(folder)
    return folder


def move_away(folder: Path) -> None:
    for row in range(1, ROWS):
        (folder / f"{row}.png").rename(folder / f"away{row}.png")


def bring_back(folder: Path) -> None:
    for row in range(1, ROWS):
        (folder / f"away{row}.png").rename(folder / f"{row}.png")


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer(told_apart) as chat:
        yield chat


def run_words(server: ChatServer, folder: str, *more: str) -> list[str]:
    at = ["--model", MODEL, "--base-url", server.url, "--work-dir", folder]
    return ["run", "--data", DATA, *at, *more]


def replies(folder: Path) -> dict[int, str]:
    rows = json.loads((folder / MODEL / f"{MODEL}_{DATA}.json").read_text())
    return {row["index"]: row["prediction"] for row in rows}


COMMANDS: dict[str, Callable[[ChatServer], list[str]]] = {
    "run": lambda server: run_words(server, "out"),
    "dry run": lambda server: run_words(server, "out", "--dry-run"),
    "samples": lambda server: run_words(server, "out", "--samples", "2", "--temperature", "0.7"),
    "search": lambda server: [
        "search", "--data", "Three", "--model", MODEL, "--base-url", server.url,
        "--work-dir", "out", "--out", "best.yaml",
    ],
    "sweep": lambda server: ["sweep", "sweep.yaml", "--base-url", server.url],
}  # fmt: skip


@pytest.mark.parametrize("name", few_fast(COMMANDS, 3))
def test_only_images_of_asked_rows_are_needed(
    name: str, images: Path, server: ChatServer, capsys: pytest.CaptureFixture[str]
) -> None:
    def typed(limit: int) -> list[str]:
        text = f"models: {MODEL}\ndatasets: Three\nrepresentations: xyxy\nlimit: {limit}\n"
        Path("sweep.yaml").write_text(text)
        return [*COMMANDS[name](server), *(["--limit", str(limit)] if name != "sweep" else [])]

    assert main(typed(2)) == 2
    assert "1 of 2 rows have no usable image; the first is row 1" in capsys.readouterr().err
    assert not server.asked
    assert main(typed(1)) == 0
    output = capsys.readouterr()
    assert "left out" not in output.out + output.err
    assert bool(server.asked) == (name != "dry run")


def test_a_longer_run_goes_on_and_equals_a_full_one(
    images: Path, server: ChatServer, tmp_path: Path
) -> None:
    assert main(run_words(server, "out", "--limit", "1")) == 0
    first = replies(Path("out"))
    bring_back(images)
    assert main(run_words(server, "out")) == 0
    assert len(server.asked) == ROWS, "nothing is asked twice"
    assert main(run_words(server, "whole")) == 0
    assert replies(Path("out")) == replies(Path("whole"))
    assert first.items() <= replies(Path("whole")).items()
    assert len(set(replies(Path("whole")).values())) == ROWS


@pytest.mark.parametrize("limit", [1, 2])
def test_a_shorter_run_is_told_what_to_type(
    limit: int, images: Path, server: ChatServer, capsys: pytest.CaptureFixture[str]
) -> None:
    bring_back(images)
    assert main(run_words(server, "out")) == 0
    assert main(run_words(server, "out", "--limit", str(limit))) == 2
    said = capsys.readouterr().err
    assert f"leave --limit {limit} out to go on with it, or type another --work-dir" in said
    assert "--force goes on all the same" in said
    assert "FINDIT_FORCE" not in said
    assert main(run_words(server, "out")) == 0


@pytest.mark.sees("run --skip-missing-images", "FINDIT_SKIP_MISSING")
def test_left_out_are_only_rows_before_the_last_asked(
    images: Path, server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    (images / "away2.png").rename(images / "2.png")

    def left_out(folder: str) -> str:
        identity = RunFiles(Path(f"{folder}/{MODEL}/{MODEL}_{DATA}.json")).identity
        return str(json.loads(identity.read_text())["left_out"])

    for limit, rows in ((1, ""), (2, "1")):
        words = run_words(server, "out", "--limit", str(limit), "--skip-missing-images")
        assert main(words) == 0
        assert left_out("out") == rows
    assert list(replies(Path("out"))) == [0, 2]
    words = run_words(server, "there", "--limit", "2")
    monkeypatch.setenv("FINDIT_SKIP_MISSING", "")
    assert main(words) == 2
    monkeypatch.setenv("FINDIT_SKIP_MISSING", "1")
    assert main(words) == 0
    assert left_out("there") == "1"


@pytest.mark.sees("key skip_missing_images")
def test_the_file_of_a_sweep_leaves_rows_out(images: Path, server: ChatServer) -> None:
    file = {"models": {"name": MODEL, "base_url": server.url}, "datasets": DATA}
    for key, status in (({}, 2), ({"skip_missing_images": True}, 0)):
        Path("sweep.yaml").write_text(json.dumps({**file, **key}))
        assert main(["sweep", "sweep.yaml", "--work-dir", "out"]) == status
    assert len(server.asked) == 1


def test_a_sample_of_pictures_needs_its_images_only(images: Path) -> None:
    """As `reproduce` asks."""
    variant = parse(DATA)
    whole = CellBuilder(skip_missing=None)
    for seed in range(8):
        sample = PictureSample(1, seed)
        (row,) = whole.asked(variant, None, sample).rows
        builder = CellBuilder(skip_missing=False)
        if row:
            with pytest.raises(ImageError, match=rf"1 of 1 rows .* row {row}"):
                builder.asked(variant, None, sample)
        else:
            assert builder.asked(variant, None, sample).rows == (0,)
        # Those that may be left out are not drawn
        assert CellBuilder(skip_missing=True).asked(variant, None, sample) == ((0,), (1, 2))


@pytest.mark.slow
@pytest.mark.host
@pytest.mark.parametrize("spelled", ["flags", "configuration"])
def test_under_the_other_runner(
    spelled: str, images: Path, server: ChatServer, tmp_path: Path
) -> None:
    require_host()
    if spelled == "flags":
        words = ["--data", DATA, "--model", "FullImage"]
    else:
        cls = benchmark_of(DATA).host_class(parse(DATA))
        config = {
            "model": {"FullImage": {"class": "FindItBaseline", "baseline": "FullImage"}},
            "data": {DATA: {"class": cls, "dataset": DATA}},
        }
        Path("config.json").write_text(json.dumps(config))
        words = ["--config", "config.json"]
    words += ["--work-dir", "out"]
    path = tmp_path / "out" / "FullImage" / f"FullImage_{DATA}.json"

    def asked(*more: str) -> int:
        done = run(STOCK, [*words, *more], tmp_path, environment(tmp_path / "lmu"))
        assert ("no usable image" in done.stdout) is (done.returncode != 0), done.stdout
        return len(json.loads(path.read_text())) if path.exists() else 0

    assert asked("--limit", "2") == 0
    assert asked("--limit", "1") == 1
    assert asked() == 1
    bring_back(images)
    assert asked() == ROWS
