"""The script that draws charts in a page, which is kept for later reports.

The library bundles it in a second and a half and 80 MiB, for one release of it always the same.
"""

from __future__ import annotations

import os
import re
from functools import cache
from importlib.metadata import version
from pathlib import Path

from ..core import read_bytes, replacing, sha256_of

_LIBRARY = "vl-convert-python"
_EXPORT = "window.vegaEmbed = vegaEmbed;"


@cache
def chart_script() -> str:
    """Return the script that draws charts in a page; it sets ``vegaEmbed``."""
    path = _place()
    bundle = _read(path) if path is not None else None
    if bundle is None:
        import vl_convert

        bundle = vl_convert.javascript_bundle(_EXPORT)
        if path is not None:
            _keep(path, bundle)
    # Its names are private, and nothing in it ends its element.
    return "(() => {\n" + re.sub(r"<(?=/script|!--)", r"\\x3c", bundle) + "\n})();\n"


def _place() -> Path | None:
    """Return the file that keeps the bundle of this release; None: the user has no folder."""
    stated = os.environ.get("XDG_CACHE_HOME", "")
    try:
        # As XDG's specification says, a relative path counts as none.
        folder = Path(stated) if os.path.isabs(stated) else Path.home() / ".cache"
    except RuntimeError:
        return None
    of_export = sha256_of(_EXPORT.encode())[:8]
    return folder / "vlmeval_findit" / f"charts-{version(_LIBRARY)}-{of_export}.js"


def _read(path: Path) -> str | None:
    """Return a bundle that was kept; None where there is none, or not all of it."""
    try:
        kept = read_bytes(path)
    except OSError:
        return None
    digest, _, bundle = kept.partition(b"\n")
    if digest != _digest_line(bundle):
        return None
    return bundle.decode("utf-8")


def _keep(path: Path, bundle: str) -> None:
    """Keep a bundle below a line with its hash; a folder that takes none costs time only."""
    content = bundle.encode("utf-8")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as temporary:
            temporary.write_bytes(_digest_line(content) + b"\n" + content)
    except OSError:
        return


def _digest_line(bundle: bytes) -> bytes:
    return f"// {sha256_of(bundle)}".encode()
