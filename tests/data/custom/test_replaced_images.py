"""Images that were replaced since they were imported: boxes were drawn on others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from chat_server import ChatServer, completion, in_turn
from PIL import Image

from vlmeval_findit.benchmarks.findit import find_table
from vlmeval_findit.cli import main
from vlmeval_findit.storage import contents_path

pytestmark = pytest.mark.usefixtures("data_root")

NAME = "FindIt_Mine_xyxy_json"


@pytest.fixture
def images(tmp_path) -> Path:
    """Import two images, each with a box."""
    folder = tmp_path / "images"
    folder.mkdir()
    for at, colour in enumerate(("red", "blue")):
        Image.new("RGB", (200, 100), colour).save(folder / f"{at}.png")
    lines = [{"image": f"{at}.png", "label": "x", "boxes": [[10, 10, 50, 50]]} for at in (0, 1)]
    (folder / "mine.jsonl").write_text("\n".join(map(json.dumps, lines)))
    assert main(["data", "import", str(folder / "mine.jsonl"), "--name", "Mine"]) == 0
    return folder


def run(url: str, work_dir: Path) -> int:
    command = ["run", "--data", NAME, "--model", "M=m", "--space", "grid1000"]
    return main([*command, "--base-url", url, "--work-dir", str(work_dir)])


def test_a_replaced_image_is_noticed_by_check_and_run(tmp_path, images: Path, capsys) -> None:
    assert main(["check", NAME]) == 0
    before = (images / "1.png").read_bytes()
    Image.new("RGB", (200, 100), "green").save(images / "1.png")
    capsys.readouterr()
    assert main(["check", NAME]) == 1
    output = " ".join(capsys.readouterr().out.split())
    assert f"1 images are not those that were imported, the first: {images / '1.png'}" in output
    with ChatServer(in_turn(completion("[]"))) as server:
        assert run(server.url, tmp_path / "out") == 2
        error = capsys.readouterr().err
        assert "1 images are not those that were imported" in error
        assert "--replace" in error
        assert server.asked == []
        (images / "1.png").write_bytes(before)
        assert run(server.url, tmp_path / "out") == 0
        assert len(server.asked) == 2
    assert main(["check", NAME]) == 0


def test_check_notices_missing_images_and_other_sizes(images: Path, capsys) -> None:
    Image.new("RGB", (100, 50), "red").save(images / "0.png")
    (images / "1.png").unlink()
    assert main(["check", NAME]) == 1
    output = capsys.readouterr().out
    assert "2 of 2 rows have no usable image" in output
    assert "is 100x50, but its annotations are for 200x100" in output


def test_contents_are_those_of_the_last_import(images: Path) -> None:
    path = contents_path(find_table("Mine"))
    assert json.loads(path.read_text()).keys() == {"0.png", "1.png"}
    Image.new("RGB", (200, 100), "green").save(images / "1.png")
    command = ["data", "import", str(images / "mine.jsonl"), "--name", "Mine", "--replace"]
    assert main(command) == 0
    assert main(["check", NAME]) == 0
