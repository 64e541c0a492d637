"""The site: ``python -m sphinx -W docs docs/_build`` makes it of the pages in this folder."""

import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "docs"))
sys.path.append(str(ROOT))
sys.argv[0] = "findit"  # Commands are named as who installed the package types them
from written_pages import WRITTEN  # noqa: E402

project = "vlmeval_findit"
author = copyright = "The vlmeval_findit authors"
version = release = re.findall(
    r'__version__ = "(.*)"', (ROOT / "vlmeval_findit" / "__init__.py").read_text(encoding="utf-8")
)[0]

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_click",
]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented_params"

smartquotes = False  # "--model" is no dash

html_theme = "furo"
html_title = "vlmeval_findit"
html_static_path = ["style"]
html_css_files = ["site.css"]


def skip_undocumented_fields(app, what, name, obj, skip, options):
    """Leave out fields of named tuples whose only text is Python's own."""
    return skip or str(getattr(obj, "__doc__", "")).startswith("Alias for field number")


def copy_pictures(app, exception):
    """Copy the pictures that pages show in light and dark: Sphinx does not see HTML's images."""
    if exception is None:
        source = Path(app.srcdir) / "pictures"
        shutil.copytree(source, Path(app.outdir) / "pictures", dirs_exist_ok=True)


def write_pages(app):
    """Write the pages that are in no clone."""
    for name, page in WRITTEN.items():
        (ROOT / name).parent.mkdir(exist_ok=True)
        (ROOT / name).write_text(page(), encoding="utf-8")


def lead_to_copies(app, docname, source):
    """Lead links to the benchmarks' page to its copy on the site."""
    source[0] = source[0].replace("](../../benchmarks/README.md", "](../design/benchmarks.md")


def setup(app):
    """Register what Sphinx calls."""
    app.connect("builder-inited", write_pages)
    app.connect("source-read", lead_to_copies)
    app.connect("autodoc-skip-member", skip_undocumented_fields)
    app.connect("build-finished", copy_pictures)
