"""Every mark that can be drawn: shapes, variants, line widths and colours."""

from __future__ import annotations

from vlmeval_findit.marks.style import COLOURS, CONTRAST, DEFAULT_WIDTH, STYLES, Style

WIDTHS = (1, 2, 3, 4, 6)
"""In pixels; those of the release are not published."""


def grid() -> list[tuple[Style, str]]:
    """16 variants x 5 widths x 5 colours, and 5 plain masks, which have no width: 405.

    The paper counts 355 marks: with two tags (digit, letter) instead of four these are as many.
    """
    return [
        (Style(shape, variant, width), colour)
        for shape, variants in STYLES.items()
        for variant, look in variants.items()
        for width in (WIDTHS if look.has_width else (DEFAULT_WIDTH,))
        for colour in (*COLOURS, CONTRAST)
    ]
