"""Which extra of this package brings what an import did not find."""

from __future__ import annotations

EXTRAS = {
    "anthropic": "providers",
    "av": "video",
    "cv2": "marks",
    "huggingface_hub": "publish",
    "llguidance": "local",
    "mlflow": "track",
    "openai": "providers",
    "pycocotools": "confidences",
    "ray": "cluster",
    "supervision": "notebook",
    "torch": "local",
    "transformers": "local",
    "vlmeval": "run",
}
"""Imported name -> the extra that brings it (setup.py)."""


def install(extra: str) -> str:
    """The command that adds an extra.

    >>> install("run")
    "pip install 'vlmeval-findit[run]'"
    """
    return f"pip install 'vlmeval-findit[{extra}]'"


def missing(error: ImportError) -> str | None:
    """One line for an import that failed for want of an extra; None for any other.

    >>> missing(ModuleNotFoundError("No module named 'cv2'", name="cv2"))
    "cv2 is not installed: pip install 'vlmeval-findit[marks]'"
    """
    module = (error.name or "").partition(".")[0]
    if not isinstance(error, ModuleNotFoundError) or module not in EXTRAS:
        return None
    return f"{module} is not installed: {install(EXTRAS[module])}"
