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


def known_revision(checkpoint: str, wanted: str | None = None) -> str | None:
    """The revision of a checkpoint as far as it is known without asking the hub.

    Of a folder it is the hash of its files, of an identifier the commit that was ``wanted``, or
    None.
    """
    folder = Path(checkpoint)
    if folder.is_dir():
        return fingerprint(folder)
    return wanted if wanted and re.fullmatch("[0-9a-f]{40}", wanted) else None


def refuse_missing(checkpoint: str) -> None:
    """Refuse a checkpoint that is neither a folder with a model nor a hub's identifier.

    Raises:
        ValueError: at once, and not after seconds in a library that takes it for an identifier.
    """
    folder = Path(checkpoint)
    if folder.is_dir():
        if not (folder / "config.json").is_file():
            raise ValueError(f"{checkpoint}: no config.json there, so it is no checkpoint")
        return
    if not re.fullmatch(r"[A-Za-z0-9][\w.-]*/[\w.-]+", checkpoint):
        raise ValueError(
            f"{checkpoint}: no such folder (an identifier of the Hugging Face hub is OWNER/NAME)"
        )


def revision_of(checkpoint: str, resolved_file: str | None) -> str:
    """The revision that a checkpoint was loaded at.

    ``resolved_file`` is the path of one of its files in the hub's cache, which names the commit.
    """
    folder = Path(checkpoint)
    if folder.is_dir():
        return fingerprint(folder)
    found = re.search(r"/snapshots/([0-9a-f]{40})/", (resolved_file or "").replace("\\", "/"))
    return found[1] if found else "unknown"
