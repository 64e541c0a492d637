"""Where the weights of the small models are: beside the code, or a package of their own."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path

from ..core import install_command, shipped_folder

_PACKAGE = "vlmeval_findit_nano"


@cache
def _weights() -> Path:
    # Nearest first: a clone runs its own weights, whichever release's are installed, too.
    beside = shipped_folder("weights")
    if beside.is_dir():
        return beside
    package = find_spec(_PACKAGE)
    if package is None or package.origin is None:
        return beside
    return Path(package.origin).parent


def shipped_weights(name: str) -> str:
    """Return the folder of a small model's checkpoint; it need not be there."""
    return str(_weights() / name)


def refuse_missing_weights(checkpoint: str) -> None:
    """Raise ValueError for a small model's checkpoint that is not installed."""
    folder = Path(checkpoint)
    if folder.parent == _weights() and not folder.is_dir():
        raise ValueError(
            f"the weights of the small models (vlmeval-findit-nano) are not installed: "
            f"{install_command('weights')}"
        )
