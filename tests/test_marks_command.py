"""``run_findit.py marks``: the table of marks, and the sheet that shows them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from vlmeval_findit.cli import main
from vlmeval_findit.cli.marks import _CELL as CELL
from vlmeval_findit.marks.style import COLOURS, STYLES, grid

ROOT = Path(__file__).resolve().parent.parent


def test_the_table_fits_a_terminal_and_names_everything(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["marks"]) == 0
    said = capsys.readouterr().out
    assert max(len(line) for line in said.splitlines()) <= 80
    for shape, variants in STYLES.items():
        assert shape.value in said
        assert all(variant in said for variant in variants)
    assert all(colour in said for colour in COLOURS)
    assert f"= {len(grid())} marks" in said


@pytest.mark.parametrize(
    ("flags", "forbidden"),
    [
        ([], {"torch", "vlmeval", "cv2"}),
        (["--contact-sheet", "sheet.png"], {"torch", "vlmeval", "transformers"}),
    ],
)
def test_it_imports_no_model(flags: list[str], forbidden: set[str], tmp_path: Path) -> None:
    if flags:
        pytest.importorskip("cv2", reason="marks are drawn by opencv-python")
    code = (
        "import sys; from vlmeval_findit.cli import main\n"
        "assert main(['marks', *sys.argv[1:]]) == 0\n"
        f"assert not {forbidden} & set(sys.modules)"
    )
    env = {**os.environ, "VLMEVAL_FINDIT": "0", "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", code, *flags], check=True, cwd=tmp_path, env=env)


def test_the_sheet_shows_all_marks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("cv2", reason="marks are drawn by opencv-python")
    path = tmp_path / "sheet.png"
    assert main(["marks", "--contact-sheet", str(path)]) == 0
    assert capsys.readouterr().out == f"{path}: 405 marks\n"
    pixels = np.asarray(Image.open(path))
    # 17 rows of cells, and five colours of five widths; above and beside them their names.
    assert pixels.shape[0] > 17 * CELL[1]
    assert pixels.shape[1] > 25 * CELL[0]
    for rgb in COLOURS.values():
        assert np.count_nonzero((pixels == rgb).all(axis=2)) > 10_000
    again = tmp_path / "again.png"
    main(["marks", "--contact-sheet", str(again)])
    assert again.read_bytes() == path.read_bytes()
