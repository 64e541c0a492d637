"""Which weights answered: the revision of a checkpoint, from the hub or of a local folder."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

_WHOLE = 1 << 20
_ENDS = 1 << 16


def fingerprint(folder: Path) -> str:
    """A hash of a local checkpoint: names, sizes and contents of its files.

    Of files above 1 MiB the first and the last 64 KiB are read: that holds a safetensors file's
    table of tensors and some of their values, and takes no time for sixty gigabytes.
    """
    digest = hashlib.sha256()
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        size = path.stat().st_size
        digest.update(f"{path.relative_to(folder).as_posix()}\0{size}\0".encode())
        with path.open("rb") as file:
            if size <= _WHOLE:
                digest.update(file.read())
            else:
                digest.update(file.read(_ENDS))
                file.seek(-_ENDS, 2)
                digest.update(file.read())
    return f"files-sha256:{digest.hexdigest()[:16]}"


def revision_of(checkpoint: str, resolved_file: str | None) -> str:
    """The revision that a checkpoint was loaded at.

    ``resolved_file`` is the path of one of its files in the hub's cache, which names the commit.
    """
    folder = Path(checkpoint)
    if folder.is_dir():
        return fingerprint(folder)
    found = re.search(r"/snapshots/([0-9a-f]{40})/", (resolved_file or "").replace("\\", "/"))
    return found[1] if found else "unknown"
