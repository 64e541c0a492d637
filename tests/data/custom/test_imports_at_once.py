"""Two imports of one name at once: one is refused, and the other is whole."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PIL import Image

from vlmeval_findit.cli import main
from vlmeval_findit.core import Lock
from vlmeval_findit.data import unpacked_images
from vlmeval_findit.data.custom import build


@pytest.fixture
def words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("LMUData", str(tmp_path / "lmu"))
    Image.new("RGB", (9, 9)).save(tmp_path / "a.png")
    line = {"image": "a.png", "label": "cat", "boxes": [[1, 1, 5, 5]]}
    (tmp_path / "a.jsonl").write_text(json.dumps(line))
    words = ["data", "import", str(tmp_path / "a.jsonl"), "--image-root", str(tmp_path)]
    return [*words, "--name", "Mine", "--units", "pixels"]


def test_an_import_is_refused_while_another_is_at_work(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with Lock(unpacked_images.unpacked_folder("Mine").with_name(".Mine.lock"), ""):
        assert main(words) == 2
        assert "another import is at work there" in capsys.readouterr().err
        assert main([word.replace("Mine", "Other") for word in words]) == 0
    assert main(words) == 0


def test_an_import_of_a_name_made_meanwhile_is_refused(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Another ends between the first look and the lock."""
    real = build.check_samples

    def check_samples(*arguments: object) -> None:
        monkeypatch.setattr(build, "check_samples", real)
        assert main(words) == 0
        real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(build, "check_samples", check_samples)
    assert main(words) == 2
    assert "--replace" in capsys.readouterr().err
