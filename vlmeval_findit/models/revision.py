"""Which weights answered: the revision of a checkpoint, from the hub or a local folder."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from ..core import FileHashes, HashedFile, file_sha256, not_there, read_json, write_text_once
from ..storage import FolderError, lmu_data_root, make_lmu_data_root
from .adapter import HUB_IDENTIFIER, adapter_of, refuse_adapter
from .checkpoint_settings import refuse_settings_files
from .loading_report import refuse_wrapped
from .shipped_weights import refuse_missing_weights
from .weight_files import names_of_weights, refuse_untied

log = logging.getLogger(__name__)

# Cached hashes of large files, in VLMEvalKit's data folder; it may be deleted
HASH_CACHE = "findit_checkpoints.json"
_LARGE = 1 << 20  # bytes from which on a file's hash is cached
_WORTH_SAYING = 4 << 30  # bytes from which on hashing is logged
_HUB = " (an identifier of the Hugging Face hub is OWNER/NAME)"
_AT_ONCE = 8  # files hashed in parallel: hashing releases the GIL


def fingerprint(folder: Path) -> str:
    """Hash a local checkpoint: names and whole contents of its files.

    Checkpoints may differ in a few tensors, so every byte is read; files with unchanged size, times
    and inode are not read again. Hidden files (``.git``, the hub's ``.cache``) are ignored.
    """
    files = []
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        hidden = any(part.startswith(".") for part in name.parts)
        if not hidden and name.suffix != ".md" and path.is_file():
            files.append(path)
    digest = hashlib.sha256()
    for path, sha256 in zip(files, _hashes(folder, files), strict=True):
        digest.update(f"{path.relative_to(folder).as_posix()}\0{sha256}\0".encode())
    return f"sha256:{digest.hexdigest()[:16]}"


def _hashes(folder: Path, files: Sequence[Path]) -> Sequence[str]:
    """Return the SHA-256 of files; those that changed are read, in parallel."""
    hashes = FileHashes(_remembered())
    unread = sum(path.stat().st_size for path in files if hashes.known(path) is None)
    if unread > _WORTH_SAYING:
        log.info("Hashing %s: %.1f GB, read once and remembered", folder.name, unread / 1e9)
    with ThreadPoolExecutor(min(_AT_ONCE, os.cpu_count() or 1)) as threads:
        result = list(threads.map(partial(hashes, read=file_sha256), files))
    seen = sorted({**_remembered(), **hashes.seen}.items()) if unread else ()
    large = {at: state for at, state in seen if state.size > _LARGE and os.path.exists(at)}
    if large:
        with suppress(OSError, FolderError):
            write_text_once(make_lmu_data_root() / HASH_CACHE, json.dumps(large, indent=0))
    return result


def _remembered() -> Mapping[str, HashedFile]:
    try:
        stored = read_json(lmu_data_root() / HASH_CACHE)
        return {path: HashedFile(*values) for path, values in stored.items()}
    except (AttributeError, OSError, TypeError, ValueError):
        return {}


def known_revision(checkpoint: str, requested: str | None = None) -> str | None:
    """Return a folder's hash, or the ``requested`` commit of an identifier if it is a hash.

    An adapter's hash covers its base too, where that is a folder; else it covers the base's name.
    """
    folder = Path(checkpoint)
    if folder.is_dir():
        adapter = adapter_of(checkpoint)
        if adapter is None or adapter.base_folder is None:
            return fingerprint(folder)
        both = fingerprint(folder) + fingerprint(adapter.base_folder)
        return f"sha256:{hashlib.sha256(both.encode()).hexdigest()[:16]}"
    return requested if requested and re.fullmatch("[0-9a-f]{40}", requested) else None


def base_settings(checkpoint: str, revision: str | None, merges: bool | None) -> dict[str, Any]:
    """Return what the identity of an adapter's run says of its base; nothing of other checkpoints.

    Args:
        checkpoint: a folder or identifier.
        revision: of the base at the hub, if the user named any.
        merges: whether the adapter is merged into its base (None: the user did not say).

    Raises ValueError as :func:`.adapter_of`.
    """
    adapter = adapter_of(checkpoint, merges)
    if adapter is None:
        return {}
    of_base = known_revision(adapter.base, adapter.base_revision(revision))
    how = {"adapter_merged": merges is not False}
    if adapter.base_folder is not None:
        return {"base": of_base, **how}
    return {"base": adapter.base, "base_revision": of_base, **how}


def refuse_missing(checkpoint: str) -> None:
    """Raise ValueError for a checkpoint that is neither a model's folder nor a hub identifier.

    So does a folder whose files tell that weights are not there; what they do not tell, the loading
    does (:mod:`.loading_report`).
    """
    refuse_missing_weights(checkpoint)
    adapter = adapter_of(checkpoint)
    if adapter is not None:
        refuse_adapter(adapter)
        names_of_weights(adapter.folder)
        if adapter.base_folder is not None:
            _refuse_weights(adapter.base)
    elif Path(checkpoint).is_dir():
        if not Path(checkpoint, "config.json").is_file():
            raise ValueError(
                f"{checkpoint}: no config.json in this folder, so it is not a checkpoint"
            )
        _refuse_weights(checkpoint)
    elif not HUB_IDENTIFIER.fullmatch(checkpoint):
        raise ValueError(f"{checkpoint}: the folder {not_there(Path(checkpoint), _HUB)}")


def _refuse_weights(folder: str) -> None:
    refuse_settings_files(Path(folder))
    refuse_wrapped(folder, names_of_weights(Path(folder)))
    refuse_untied(Path(folder))


def refuse_unreachable(checkpoint: str) -> None:
    """Raise ValueError for a checkpoint neither on this machine nor at a hub that can be reached.

    Transformers would try the hub again for minutes, file by file.
    """
    import requests
    from huggingface_hub import constants
    from huggingface_hub.file_download import repo_folder_name

    named = HUB_IDENTIFIER.fullmatch(checkpoint) and not Path(checkpoint).is_dir()
    if constants.HF_HUB_OFFLINE or not named:
        return
    cache = Path(constants.HF_HUB_CACHE, repo_folder_name(repo_id=checkpoint, repo_type="model"))
    if any(cache.glob("snapshots/*/*")):  # Of any revision
        return
    try:
        requests.head(constants.ENDPOINT, timeout=10)
    except requests.exceptions.SSLError:
        return  # It answers; the client of the hub may know its certificate.
    except requests.RequestException as error:
        raise ValueError(
            f"{checkpoint} is not on this machine, and {constants.ENDPOINT} cannot be reached "
            f"({type(error).__name__}). Name its folder: --model NAME=FOLDER, or a mirror of the "
            "hub: HF_ENDPOINT=URL"
        ) from None


def revision_of(checkpoint: str, resolved_file: str | None) -> str:
    """Return the revision at which a checkpoint was loaded.

    ``resolved_file`` is one of its files in the hub's cache; its path has the commit.
    """
    revision = known_revision(checkpoint)
    if revision is not None:
        return revision
    match = re.search(r"/snapshots/([0-9a-f]{40})/", (resolved_file or "").replace("\\", "/"))
    return match[1] if match else "unknown"
