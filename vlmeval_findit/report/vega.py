"""Vega-Lite's renderer: charts as pictures, and the script that draws them in a page."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from html import escape
from typing import Any

Spec = Mapping[str, Any]
"""A chart in the grammar of Vega-Lite."""

# Text and lines have the colour of the text around them; in a file that is black.
INK = "currentColor"
_TEXT = {"labelColor": INK, "titleColor": INK, "labelFontSize": 12, "titleFontSize": 12}

CONFIG: Spec = {
    "font": "system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif",
    "background": "white",  # Of files; the page has another
    "view": {"stroke": None},
    "axis": {
        **_TEXT, "domainColor": INK, "tickColor": INK, "gridColor": INK, "gridOpacity": 0.13,
        "domainOpacity": 0.4, "tickOpacity": 0.4, "labelLimit": 190, "titleFontWeight": "normal",
    },
    "legend": {
        **_TEXT, "columns": 4, "labelLimit": 240, "titleFontWeight": "normal", "titleLimit": 400,
    },
    "header": {"labelColor": INK, "labelFontSize": 13, "labelFontWeight": "bold"},
    "title": {"color": INK},
}  # fmt: skip


@cache
def script() -> str:
    """Return the script that draws charts in a page; it sets ``vegaEmbed``.

    It takes a second and a half, once for each process.
    """
    import vl_convert

    bundle: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    # Its names are private, and nothing in it ends its element.
    return "(() => {\n" + re.sub(r"<(?=/script|!--)", r"\\x3c", bundle) + "\n})();\n"


def svg(spec: Spec, name: str = "chart") -> str:
    """Draw a chart as an ``<svg>`` element; its ids begin with ``name``, unique on a page."""
    import vl_convert

    drawn: str = vl_convert.vegalite_to_svg(dict(spec))
    # The library's ids depend on earlier charts: the same runs would not give the same page.
    ids = dict.fromkeys(re.findall(r'\bid="([^"]+)"', drawn))
    for at, old in enumerate(ids):
        drawn = re.sub(rf'(\bid="|url\(#){re.escape(old)}(?=["\)])', rf"\g<1>{name}-{at}", drawn)
    label = escape(str(spec.get("description", "")))
    return drawn.replace("<svg", f'<svg role="graphics-document" aria-label="{label}"', 1)


def png(spec: Spec) -> bytes:
    """Draw a chart as a PNG, on white."""
    import vl_convert

    drawn: bytes = vl_convert.vegalite_to_png(dict(spec), scale=1.6)
    return drawn
