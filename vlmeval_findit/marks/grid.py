"""Every mark that we draw: shapes, variants, line widths, colours."""

from __future__ import annotations

from typing import NamedTuple

from .style import COLOURS, CONTRAST, DEFAULT_WIDTH, STYLES, Style

WIDTHS = (1, 2, 3, 4, 6)
"""In pixels.  Those of the release are not published."""

# The paper counts 355 marks.  So do five widths and five colours if a tag is a digit or a letter,
# whatever its plate: 14 styles with a width x 5 x 5, and 5 plain masks.  We tell four tags apart.


class Entry(NamedTuple):
    """One mark of the grid; its colour may be :data:`.style.CONTRAST`."""

    style: Style
    colour: str


def styles() -> tuple[Style, ...]:
    """Every variant with every width; one whose width does not show has but one.

    >>> len(styles())
    81
    """
    return tuple(
        Style(shape, variant, width)
        for shape, variants in STYLES.items()
        for variant, look in variants.items()
        for width in (WIDTHS if look.has_width else (DEFAULT_WIDTH,))
    )


def grid() -> tuple[Entry, ...]:
    """Every style in every colour: 16 variants x 5 widths x 5 colours, and 5 plain masks.

    >>> len(grid())
    405
    """
    return tuple(Entry(style, colour) for style in styles() for colour in (*COLOURS, CONTRAST))
