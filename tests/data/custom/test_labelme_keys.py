"""Which keys of labelme's shapes are said to be unread: those that say something."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PIL import Image

from vlmeval_findit.cli import main


@pytest.mark.parametrize(
    ("key", "value", "is_told"),
    [
        ("description", "A red rectangle", True),
        ("description", "", False),
        ("description", None, False),
        ("mask", None, False),
        ("mask", "iVBOR", True),
    ],
)
def test_only_keys_that_say_something_are_told(
    key: str,
    value: str | None,
    is_told: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("LMUData", str(tmp_path / "lmu"))
    monkeypatch.setenv("COLUMNS", "1000")
    folder = tmp_path / "set"
    folder.mkdir()
    Image.new("RGB", (200, 160)).save(folder / "a.png")
    corners = [[20, 16], [99, 79]]
    shape = {"label": "cup", "points": corners, "shape_type": "rectangle", key: value}
    page = {"shapes": [shape], "imagePath": "a.png", "imageHeight": 160, "imageWidth": 200}
    (folder / "a.json").write_text(json.dumps(page))
    assert main(["data", "import", str(folder), "--name", "Cups"]) == 0
    said = "".join(capsys.readouterr())
    assert (f"not read: shapes: {key} (1)" in said) == is_told, said
    assert "not needed: shapes" not in said
