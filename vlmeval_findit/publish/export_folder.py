"""A folder that an export makes again: whole or not at all, and nothing of others in it.

``checksums.json`` holds the SHA-256 of every file; by it a folder is known to be ours.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ..core.files import atomic_write, file_sha256
from ..core.run_files import CHECKSUMS, WRITTEN_BY
from .targets import NotExportableError


@contextmanager
def rewrite_folder(out: Path, target: str) -> Iterator[Path]:
    """Yield an empty folder, whose files are those of ``out`` at the end of the block.

    Files that an earlier export wrote are replaced or deleted; others, such as a clone's ``.git``,
    stay.  The same files are left as they are.

    Raises:
        NotExportableError: ``out`` is somebody else's, or its files were changed.
    """
    before = _checksums(out, target)
    out.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=f".{out.name}.", dir=out.parent) as temporary:
        made = Path(temporary) / "made"
        made.mkdir()
        yield made
        files = sorted(path for path in made.rglob("*") if path.is_file())
        now = {path.relative_to(made).as_posix(): file_sha256(path) for path in files}
        with atomic_write(made / CHECKSUMS) as f:
            json.dump(_marker(target, now), f, indent=1, ensure_ascii=False)
        _check_unchanged(out, before, now)
        _put(made, out, before, now)


def make_store(out: Path, target: str) -> None:
    """Make the folder of a tracker's store, which others may write to as well."""
    out.mkdir(parents=True, exist_ok=True)
    if not (out / CHECKSUMS).exists():
        with atomic_write(out / CHECKSUMS) as f:
            json.dump(_marker(target, {}), f)


def written_files(checksums: Path, target: str) -> tuple[str, ...]:
    """Return the files that a ``checksums.json`` of ours lists, and itself.

    Raises:
        NotExportableError: an export to this target did not write it.
    """
    return (*_listed(checksums, target), CHECKSUMS)


def _marker(target: str, files: Mapping[str, str]) -> Mapping[str, Any]:
    return {"written by": f"{WRITTEN_BY} --to {target}", "sha256": files}


def _checksums(out: Path, target: str) -> Mapping[str, str]:
    """Return what an earlier export wrote into a folder; nothing if it is empty or new."""
    if out.exists() and not out.is_dir():
        raise NotExportableError(f"{out} is no folder: name another with --out")
    if not out.exists() or not any(out.iterdir()):
        return {}
    return _listed(out / CHECKSUMS, target)


def _listed(checksums: Path, target: str) -> Mapping[str, str]:
    try:
        values = json.loads(checksums.read_text(encoding="utf-8"))
        if values["written by"] == _marker(target, {})["written by"]:
            return {str(name): str(checksum) for name, checksum in values["sha256"].items()}
    except (AttributeError, FileNotFoundError, KeyError, TypeError, ValueError):
        pass
    raise NotExportableError(
        f"{checksums.parent} holds what findit export --to {target} did not write: name a new "
        "folder with --out"
    )


def _check_unchanged(out: Path, before: Mapping[str, str], now: Mapping[str, str]) -> None:
    for name in {**before, **now}:
        path = out / name
        if path.is_file() and file_sha256(path) not in (before.get(name), now.get(name)):
            raise NotExportableError(
                f"{path} was changed after findit export wrote it: move it away, or name a new "
                "folder with --out"
            )


def _put(made: Path, out: Path, before: Mapping[str, str], now: Mapping[str, str]) -> None:
    """Bring files into place: a new folder at once, an old one file by file."""
    if not out.exists():
        made.replace(out)
        return
    for name in (*now, CHECKSUMS):
        if name not in now or before.get(name) != now[name] or not (out / name).is_file():
            (out / name).parent.mkdir(parents=True, exist_ok=True)
            (made / name).replace(out / name)
    for name in before:
        # A name from a file that anybody may have written leads nowhere else.
        if name not in now and (out / name).resolve().is_relative_to(out.resolve()):
            (out / name).unlink(missing_ok=True)
