"""Every format of the leaderboard, in one folder."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from ..core.files import atomic_write
from ..core.spelling import as_csv
from .board import HOME, Board
from .openvlm import NO_META, Meta, as_openvlm
from .sheet import write_sheet
from .tables import tables_of
from .text import as_latex, as_markdown


def folder_of(board: Board, out: Path) -> Path:
    """Where the files of a leaderboard go: FindIt's into the folder itself, others below it."""
    return out if board.benchmark.name == HOME else out / board.benchmark.name


def write_board(board: Board, out: Path, time: datetime, meta: Meta = NO_META) -> list[Path]:
    """Write the leaderboard into a folder, which is made; returns the files.

    Slices have a file where there are any.
    """
    out.mkdir(parents=True, exist_ok=True)
    tables = tables_of(board)
    texts = {
        "leaderboard.csv": as_csv(tables.figures),
        "formats.csv": as_csv(tables.formats),
        "anatomy.csv": as_csv(tables.anatomy),
        "not_compared.csv": as_csv(tables.apart),
        "leaderboard.json": as_openvlm(board, time, meta),
        "leaderboard.md": as_markdown(board),
        "leaderboard.tex": as_latex(board),
    }
    if tables.slices:
        texts["slices.csv"] = as_csv(tables.slices)
    for name, text in texts.items():
        with atomic_write(out / name) as f:
            f.write(text)
    sheet = out / "leaderboard.xlsx"
    write_sheet(board, tables, sheet)
    return [sheet, *(out / name for name in texts)]
