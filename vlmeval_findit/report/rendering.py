"""Fill the templates of pages: text is escaped, and no scripts run but the package's own."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from .. import __version__
from ..core import printable, shorten_names
from ..leaderboard import breakable, legend_of

_TEMPLATES = Path(__file__).with_name("templates")
_SELECT_NAME = 32  # Letters that a select of a phone has room for


def render(
    template: str, time: str, scripts: Sequence[str], styles: Sequence[str], **values: Any
) -> str:
    """Fill the template of a whole page; control characters become visible.

    No scripts run but these, by their hashes in the page's policy; ``styles`` are files.
    """
    digests = [base64.b64encode(hashlib.sha256(code.encode()).digest()) for code in scripts]
    of_page = {
        "time": time,
        "version": __version__,
        "scripts": list(map(Markup, scripts)),
        "script_hashes": [f"sha256-{digest.decode('ascii')}" for digest in digests],
        "style": Markup("".join(map(template_text, styles))),
    }
    return str(fill(template, {**of_page, **values}))


def fill(template: str, values: Mapping[str, Any]) -> Markup:
    """Fill a template; control characters become visible."""
    return Markup(_environment().get_template(template).render(values))


@cache
def _environment() -> Environment:
    """Return the templates of this process: to compile them takes longer than to fill them."""
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["legend_of"] = legend_of
    environment.filters["breakable"] = breakable
    return environment


def _shown(value: Any) -> Any:
    """Make text of an expression printable; markup comes from this package and stays."""
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def short_names(texts: Iterable[str]) -> dict[str, str]:
    """Return the options that a phone's selects would cut, with their short forms: all differ."""
    short = shorten_names(map(printable, texts), _SELECT_NAME)
    return {text: shown for text, shown in short.items() if shown != text}


def joined_script(names: Sequence[str]) -> str:
    """Join parts of a page's script, in their order."""
    parts = "\n".join(template_text(f"{name}.js") for name in names)
    return f'"use strict";\n(() => {{\n{parts}}})();\n'


def template_text(name: str) -> str:
    """Return a file of the templates' folder."""
    return (_TEMPLATES / name).read_text(encoding="utf-8")


def json_in_html(value: Any) -> str:
    """Return JSON that cannot end its HTML element, whatever a reply contains."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    # Half a surrogate pair is no text in UTF-8, but a reply can contain it.
    return text.encode("utf-8", "replace").decode("utf-8")


def json_object(texts: Mapping[str, str]) -> str:
    """Join JSON texts of :func:`json_in_html` to an object, by their keys."""
    return "{" + ",".join(f"{json_in_html(key)}:{text}" for key, text in texts.items()) + "}"
