"""Every row of the plug-in passes ``findit check``: ``pip install . pytest``, then ``pytest``."""

from pathlib import Path

import pytest
from findit_plates.__main__ import main as draw_data

from vlmeval_findit.cli import main

ROWS = ("Plates_Few", "PlateReader", "longer1000", "AcmePlates --from data")


@pytest.mark.parametrize("words", ROWS)
def test_nothing_is_missing(words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Try a row over the data that the package draws."""
    draw_data(tmp_path / "data")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FINDIT_TABLES", "data")
    monkeypatch.setenv("FINDIT_IMAGES", "Plates=data/Plates")
    assert main(["check", *words.split()]) == 0
