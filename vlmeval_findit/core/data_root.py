"""Where files lie that belong to no run: VLMEvalKit's data folder and what is kept in it."""

from __future__ import annotations

import errno
import os
from pathlib import Path

_NOT_ALLOWED = (errno.EACCES, errno.EPERM, errno.EROFS)


def lmu_data_root() -> Path:
    """VLMEvalKit's data folder, found as VLMEvalKit finds it but without importing or making it."""
    named = os.environ.get("LMUData")  # noqa: SIM112 (the host's own spelling)
    if named and os.path.exists(named):  # asked for with every name; a Path takes longer
        return Path(named)
    return Path.home() / "LMUData"


def advice(error: OSError) -> str:
    """What to do where a folder cannot be made or written to; empty for other errors."""
    if error.filename is None:
        return ""
    path, root = Path(os.fsdecode(error.filename)), lmu_data_root()
    if path.is_relative_to(root) and (error.errno in _NOT_ALLOWED or not root.is_dir()):
        return ". Set LMUData to a folder that can be written to"
    if error.errno in _NOT_ALLOWED and not os.path.exists(path):
        return (
            f". {path.parent} cannot be written to: copy it to a folder of yours, or name another"
        )
    return ""


def own_datasets_file() -> Path:
    """The file that makes datasets of one's own known; it need not exist."""
    return lmu_data_root() / "findit_datasets.json"


OWN_MODELS = "findit_models.yaml"


def own_models_file() -> Path:
    """The file of models of one's own; it need not exist."""
    return lmu_data_root() / OWN_MODELS
