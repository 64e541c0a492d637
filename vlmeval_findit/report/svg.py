"""What matplotlib draws as SVG for a page: own ids, and the page's colours for text and lines.

Text stays text, so it can be read out, searched and shown in light and dark.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from html import escape
from io import StringIO
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from ..core.spelling import visible

INK = "#010203"
"""Stands for the page's text colour while matplotlib draws; nothing else has this colour."""

_INKED = (
    "text.color",
    "axes.edgecolor",
    "axes.labelcolor",
    "axes.titlecolor",
    "xtick.color",
    "ytick.color",
    "grid.color",
)

STYLE: dict[str, Any] = {
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.alpha": 0.25,
    "hatch.color": INK,
    # A dollar sign in a name is a dollar sign.
    "text.parse_math": False,
    **dict.fromkeys(_INKED, INK),
}


@dataclass(frozen=True, slots=True)
class Plot:
    """A plot: ``svg`` is markup that is safe to put into a page, ``alt`` says what it shows."""

    svg: str
    alt: str


def as_plot(figure: Figure, name: str, alt: str) -> Plot:
    """A figure as an ``<svg>`` element: no prologue, own ids, the page's text colour.

    Args:
        name: of the plot, unique on its page.
        alt: what it shows, for those who do not see it.
    """
    out = StringIO()
    with mpl.rc_context({"svg.hashsalt": name, "svg.id": None}), warnings.catch_warnings():
        # Text stays text: the page's reader has the letters that matplotlib's own font lacks.
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        figure.savefig(
            out,
            format="svg",
            transparent=True,
            metadata={"Date": None, "Creator": None, "Format": None, "Type": None},
        )
    text = out.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'\bid="([^"]*)"', rf'id="{name}-\1"', text)
    text = re.sub(r'(xlink:href="#|url\(#)', rf"\g<1>{name}-", text)
    text = text.replace(INK, "currentColor")
    label = f'role="img" aria-label="{escape(visible(alt))}"'
    return Plot(text.replace("<svg", f"<svg {label}", 1), alt)
