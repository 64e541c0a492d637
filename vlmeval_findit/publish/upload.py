"""Uploading a dataset's folder to the Hugging Face hub, and to no repository of somebody else's."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ..core.redaction import quoted, remember
from ..core.run_files import CHECKSUMS
from .export_folder import written_files
from .targets import ExportError, NotExportableError


@dataclass(frozen=True, slots=True)
class Repository:
    """A dataset repository of the hub as it was found."""

    name: str
    address: str
    private: bool
    commit: str | None = None  # The newest; None: there is no such repository yet
    files: frozenset[str] = frozenset()
    ours: frozenset[str] = frozenset()  # What an earlier export wrote, by its checksums.json


def look_at(name: str, private: bool) -> Repository:
    """Look at the repository ``owner/name`` before anything is written anywhere.

    It need not be there.  A ``private`` one is refused if it is there and public.

    Raises:
        NotExportableError: the name is none, the repository holds what export did not write, or is
            public and should be private.
        ExportError: the hub refused, or could not be reached.
    """
    from huggingface_hub.errors import RepositoryNotFoundError

    if name.count("/") != 1:
        raise NotExportableError(f"--upload {name}: should be OWNER/NAME")
    with _client(name) as api:
        address = f"{api.endpoint}/datasets/{name}"
        try:
            found: Any = api.repo_info(name, repo_type="dataset")
        except RepositoryNotFoundError:
            return Repository(name, address, private)
        if private and not found.private:
            raise NotExportableError(
                f"--private: {address} is there and public, and stays so: make it private in its "
                "settings, name a new repository with --upload, or leave --private out"
            )
        there: Any = api.list_repo_files(name, repo_type="dataset", revision=found.sha)
        # What the hub itself puts into every new repository.
        files = frozenset(there) - {".gitattributes"}
        ours = _of_ours(api, name, found.sha) if CHECKSUMS in files else frozenset()
    if files and not ours:
        raise NotExportableError(
            f"{address} holds what findit export did not write ({min(files)}): name a new "
            "repository with --upload"
        )
    return Repository(name, address, bool(found.private), found.sha, files, ours)


def changes(written: Sequence[str], repository: Repository) -> Mapping[str, list[str]]:
    """Return the files that an upload would bring, replace and delete.

    Raises:
        NotExportableError: it would replace files that export did not write.
    """
    now = set(written)
    alien = sorted((now & repository.files) - repository.ours)
    if alien:
        raise NotExportableError(
            f"{repository.address} holds {alien[0]}, which findit export did not write and would "
            "replace: rename it there, or name a new repository with --upload"
        )
    return {
        "new": sorted(now - repository.files),
        "replaced": sorted(now & repository.files),
        "deleted": sorted((repository.ours & repository.files) - now),
    }


def upload(folder: Path, planned: Mapping[str, list[str]], repository: Repository) -> None:
    """Upload what :func:`changes` planned, and no other file that lies beside it.

    It is one commit: readers of the repository see the old dataset or the new one.

    Raises:
        ExportError: the hub refused, could not be reached, or somebody changed the repository since
            it was looked at.
    """
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete

    written = sorted(planned["new"] + planned["replaced"])
    operations = [
        *map(CommitOperationDelete, planned["deleted"]),
        *(CommitOperationAdd(name, folder / name) for name in written),
    ]
    with _client(repository.name) as api:
        before = repository.commit
        if before is None:
            api.create_repo(repository.name, repo_type="dataset", private=repository.private)
            made = api.repo_info(repository.name, repo_type="dataset")
            if repository.private and not made.private:
                raise ExportError(f"{repository.address}: the hub made it public; nothing is there")
            before = str(made.sha)
        api.create_commit(
            repository.name,
            operations,
            repo_type="dataset",
            commit_message="Scored runs, written by findit export",
            parent_commit=before,
        )


def _of_ours(api: Any, name: str, commit: str) -> frozenset[str]:
    """Return the files that an earlier export wrote; none if the list is somebody else's."""
    where = {"repo_type": "dataset", "revision": commit}
    with TemporaryDirectory() as folder, suppress(NotExportableError):
        path = api.hf_hub_download(name, CHECKSUMS, cache_dir=folder, **where)
        return frozenset(written_files(Path(path), "hub"))
    return frozenset()


@contextmanager
def _client(name: str) -> Iterator[Any]:
    """Yield the hub's client; its errors become ours, without the token."""
    import huggingface_hub as hub

    token = hub.get_token()
    remember(*filter(None, [token]))
    try:
        # Read here and not at the client's import, so that whoever sets it later is heard.
        yield hub.HfApi(endpoint=os.environ.get("HF_ENDPOINT") or None, token=token)
    except (ExportError, NotExportableError):
        raise
    except hub.errors.HFValidationError as error:
        raise NotExportableError(f"--upload {name}: {error}") from None
    except (OSError, hub.errors.HfHubHTTPError, ValueError, RuntimeError) as error:
        help_ = "" if token else " No token is known: hf auth login, or HF_TOKEN."
        raise ExportError(f"{name}: {quoted(str(error), 500)}{help_}") from None
