"""``run_findit.py marks``: the visual marks that can be drawn, as a table or as a sheet."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..core.files import write_once
from ..marks.region import Region
from ..marks.style import COLOURS, CONTRAST, STYLES, WIDTHS, grid, styles
from .parsing import Parser

if TYPE_CHECKING:
    from ..marks.shapes import Canvas


def main(argv: Sequence[str]) -> int:
    """The grid of marks: shapes, variants, line widths, colours; or a picture of them all."""
    parser = Parser(prog="run_findit.py marks", description=__doc__)
    parser.add_argument(
        "--contact-sheet", type=Path, metavar="PNG", help="write a sheet of all marks"
    )
    parser.add_argument(
        "--best",
        type=Path,
        nargs="+",
        metavar="RUNS",
        help="write which marks models see best, by their scored stage 1 runs: stage 2 asks by it",
    )
    parser.add_argument(
        "--at-least",
        type=int,
        default=20,
        metavar="N",
        help="of --best: questions that a shape or a colour needs (default 20)",
    )
    args = parser.parse_args(argv)
    if args.best is not None:
        from .best_marks import write_best_marks

        return write_best_marks(args.best, args.at_least)
    if args.contact_sheet is None:
        print(_table())
        return 0
    _write_sheet(args.contact_sheet)
    print(f"{args.contact_sheet}: {len(grid())} marks")
    return 0


_LINE = "{:<10}{:<32}{}"


def _table() -> str:
    """The grid, a line for what is called alike."""
    lines = [_LINE.format("shape", "variants", "called")]
    for shape, variants in STYLES.items():
        name = shape.value
        for called, alike in groupby(variants, key=lambda variant: variants[variant].words):
            lines.append(_LINE.format(name, ", ".join(alike) or "–", called))
            name = ""
    widths = ", ".join(str(width) for width in WIDTHS)
    colours = ", ".join(f"{name} {'/'.join(map(str, rgb))}" for name, rgb in COLOURS.items())
    lines += [
        "",
        f"widths    {widths} pixels (a plain mask has none)",
        f"colours   {colours},",
        f"          {CONTRAST} (the one that differs most from what lies under the mark)",
        f"grid      {len(styles())} styles x {len(COLOURS) + 1} colours = {len(grid())} marks",
    ]
    return "\n".join(lines)


_CELL = (132, 116)
"""Width and height of one mark's picture: the largest tag fits, and an arrow from the left."""


def _rendered() -> tuple[Canvas, Region]:
    """A pebble on a rendered background, and its outline."""
    import cv2

    from ..data.rendered.drawing import as_pixels, background
    from ..data.rendered.scene import Stream, rng_of

    pixels = as_pixels(background(rng_of(Stream.SCENE, 11), *_CELL))
    turn = np.linspace(0, 2 * np.pi, 24, endpoint=False)
    reach = 1 + 0.12 * np.cos(2 * turn + 1) - 0.1 * np.sin(3 * turn)
    outline = np.stack([75 + 22 * reach * np.cos(turn), 58 + 18 * reach * np.sin(turn)], axis=1)
    # In sixteenths of a pixel: its edge is smooth, those of marks are not.
    sixteenths = (outline * 16).astype(np.int32)
    cv2.fillPoly(pixels, [sixteenths], (150, 205, 245), cv2.LINE_AA, shift=4)
    (x1, y1), (x2, y2) = outline.min(axis=0).tolist(), (outline.max(axis=0) + 1).tolist()
    return pixels, Region((x1, y1, x2 - x1, y2 - y1), (tuple(outline.ravel().tolist()),))


def _write_sheet(path: Path) -> None:
    from PIL import Image

    from ..marks.render import sheet

    file = BytesIO()
    Image.fromarray(sheet(*_rendered())).save(file, "PNG")
    write_once(path, file.getvalue())
