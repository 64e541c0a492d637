"""Which extra of this package brings what an import did not find."""

from __future__ import annotations

import shlex
from pathlib import Path

from .shipped import clone

EXTRAS = {
    "av": "video",
    "cv2": "marks",
    "huggingface_hub": "publish",
    "llguidance": "local",
    "mlflow": "track",
    "pycocotools": "confidences",
    "ray": "cluster",
    "supervision": "notebook",
    "torch": "local",
    "transformers": "local",
    "vlmeval": "run",
}
"""Imported name -> the extra that brings it (setup.py)."""


def install(extra: str) -> str:
    """The command that adds an extra: to the clone that the package is imported from, if it is.

    >>> install("run").endswith("[run]'")
    True
    """
    beside = clone()
    if beside is None:
        return f"pip install 'vlmeval-findit[{extra}]'"
    where = "." if beside == Path.cwd() else str(beside)
    return f"pip install -e {shlex.quote(f'{where}[{extra}]')}"


def missing(error: ImportError) -> str | None:
    """One line for an import that failed for want of an extra; None for any other.

    >>> str(missing(ModuleNotFoundError("No module named 'cv2'", name="cv2")))[:34]
    'cv2 is not installed: pip install '
    """
    module = (error.name or "").partition(".")[0]
    if not isinstance(error, ModuleNotFoundError) or module not in EXTRAS:
        return None
    return f"{module} is not installed: {install(EXTRAS[module])}"
