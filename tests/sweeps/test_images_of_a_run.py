"""What a run shows: transparent images on white, and just the images that it planned."""

from __future__ import annotations

import io
import json
from base64 import b64decode
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chat_server import Asked, ChatServer, completion
from custom_data import data_folder
from engine_fakes import FakeDeployment, FakeModel, demo_sweep, go, records
from PIL import Image, ImageDraw

from vlmeval_findit.cli import main
from vlmeval_findit.core import file_sha256
from vlmeval_findit.engine import calls
from vlmeval_findit.storage import TRANSPARENT
from vlmeval_findit.sweeps import Sweep

Capsys = pytest.CaptureFixture[str]
BOX = [20, 20, 60, 60]
SQUARES = ("clear.png", "opaque.png", "key.png", "photo.jpg")
"""A black square on black that is clear, on white, on a clear colour, on white."""
REFERENCES = ("photo.jpg", "clear.png", "opaque.png", "opaque.png")


@pytest.fixture
def icons(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capsys) -> str:
    """Import icons, two of which are transparent, as references of each other too; return what is
    printed."""
    data_folder(tmp_path, monkeypatch)
    folder = tmp_path / "icons"
    folder.mkdir()
    for name, mode, ground in zip(
        SQUARES,
        ("RGBA", "RGBA", "RGB", "RGB"),
        ((0, 0, 0, 0), (255, 255, 255, 255), (1, 2, 3), (255, 255, 255)),
        strict=True,
    ):
        image = Image.new(mode, (80, 80), ground)
        ImageDraw.Draw(image).rectangle(BOX, fill=(0, 0, 0, 255)[: len(mode)])
        image.save(folder / name, **({"transparency": (1, 2, 3)} if name == "key.png" else {}))
    lines = [
        {"image": name, "references": [reference], "boxes": [BOX]}
        for name, reference in zip(SQUARES, REFERENCES, strict=True)
    ]
    (folder / "a.jsonl").write_text("\n".join(map(json.dumps, lines)))
    assert main(["data", "import", str(folder / "a.jsonl"), "--name", "Icons"]) == 0
    return " ".join(capsys.readouterr().out.split())


def sweep(folder: Path) -> Sweep:
    text = "{models: FullImage, datasets: [Icons], representations: [xyxy], outputs: json}"
    return demo_sweep(folder, text)


def test_they_are_counted_at_import_and_by_check(icons: str, capsys: Capsys) -> None:
    assert "transparent images: models are shown them on white (2)" in icons
    assert main(["check", "FindIt_Icons_xyxy_json"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "2 of 4 images are transparent: models are shown them on white" in printed


@pytest.mark.parametrize("space", ["grid1000", "pixels"], ids=["as they are", "as to providers"])
def test_servers_get_them_on_white_references_too(
    icons: str, tmp_path: Path, space: str, capsys: Capsys
) -> None:
    sent: list[np.ndarray[Any, Any]] = []

    def answer(asked: Asked, number: int) -> Any:
        for part in asked.body["messages"][0]["content"]:
            if part["type"] == "image_url":
                data = b64decode(part["image_url"]["url"].partition(",")[2])
                sent.append(np.asarray(Image.open(io.BytesIO(data)).convert("RGB")))
        return completion("[]", model="mine")

    with ChatServer(answer) as server:
        out = ["--work-dir", str(tmp_path / "o"), "--journal", str(tmp_path / "o.jsonl")]
        text = f"{{models: [{{name: mine, space: {space}}}], datasets: [FindIt_Icons_xyxy_json]}}"
        (tmp_path / "s.yaml").write_text(text)
        assert main(["sweep", str(tmp_path / "s.yaml"), *out, "--base-url", server.url]) == 0
    assert len(sent) == 2 * len(SQUARES)
    for pixels in sent:
        assert pixels[0, 0].min() > 250, "white around the square"
        assert pixels[40, 40].max() < 5, "which is black"
    capsys.readouterr()


def row_contents(folder: Path) -> list[Mapping[str, str]]:
    (path,) = [p for p in folder.rglob("*_json.json") if "_FindIt_" in p.name]
    return [json.loads(row["image_sha256"]) for row in json.loads(path.read_text())]


def test_predictions_and_details_say_which_are_transparent(icons: str, tmp_path: Path) -> None:
    go(sweep(tmp_path), FakeDeployment(FakeModel()))
    shown = {
        name: content for row in row_contents(tmp_path / "out") for name, content in row.items()
    }
    clear = {name for name, content in shown.items() if content.endswith(TRANSPARENT)}
    assert clear == {"clear.png", "key.png"}
    (details,) = (tmp_path / "out").rglob("*_details.jsonl")
    lines = [json.loads(line)["image_sha256"] for line in details.read_text().splitlines()]
    assert lines == row_contents(tmp_path / "out")


def as_of_1_0(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Answer all rows as version 1.0 did, which knew nothing of transparency."""
    with monkeypatch.context() as patch:
        patch.setattr(calls, "content_of", file_sha256)
        go(sweep(folder), FakeDeployment(FakeModel()))
    (path,) = [p for p in (folder / "out").rglob("*_json.json") if "_FindIt_" in p.name]
    rows = json.loads(path.read_text())
    for row in rows:
        del row["image_sha256"]
    path.write_text(json.dumps(rows))


def imported_by_1_0(folder: Path) -> None:
    """Forget the contents of imported images, which 1.0 did not store."""
    (path,) = (folder / "lmu").glob("*.images.json")
    path.unlink()


@pytest.mark.parametrize("journal", [True, False], ids=["from the journal", "from predictions"])
def test_answers_of_1_0_about_transparent_images_are_asked_again(
    icons: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    journal: bool,
) -> None:
    imported_by_1_0(tmp_path)
    as_of_1_0(tmp_path, monkeypatch)
    if not journal:
        (tmp_path / "calls.jsonl").unlink()
    model = FakeModel()
    go(sweep(tmp_path), FakeDeployment(model))
    again = [row for row in row_contents(tmp_path / "out") if any("+" in c for c in row.values())]
    assert model.calls == len(again) == 3
    assert "3 rows show transparent images, which are laid on white now" in caplog.text
    assert len(list(records(tmp_path / "calls.jsonl"))) == 4 + 3 * journal


def test_a_call_whose_image_changes_fails_and_is_asked_again(icons: str, tmp_path: Path) -> None:
    def change(number: int, text: str) -> None:
        if number == 2:
            Image.new("RGB", (80, 80), "blue").save(tmp_path / "icons" / "photo.jpg")

    imported_by_1_0(tmp_path)
    go(sweep(tmp_path), FakeDeployment(FakeModel(change)))
    failed = [record for record in records(tmp_path / "calls.jsonl") if record["error"]]
    path = tmp_path / "icons" / "photo.jpg"
    assert [record["error"] for record in failed] == [f"image changed during the run: {path}"]
    again = FakeModel()
    go(sweep(tmp_path), FakeDeployment(again))
    assert again.calls == 2, "the first row shows it too, and was answered before"
