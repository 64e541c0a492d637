"""Uploading a dataset's folder to the Hugging Face hub, and to no repository of somebody else's."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

from ..core.command import install
from ..core.redaction import quoted, remember
from .folder import CHECKSUMS, FolderError, Written, written_names


class Visibility(Enum):
    """Who sees a repository."""

    PUBLIC = "public"
    PRIVATE = "private"


class UploadError(RuntimeError):
    """Nothing was uploaded; the message says why."""


class UploadRefusedError(ValueError):
    """Nothing can be uploaded like this; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Repository:
    """A dataset repository of the hub as it was found.

    ``commit`` is the newest one, None where there is no such repository yet.  ``files`` are all of
    its files, ``ours`` those that an earlier push wrote: its ``checksums.json`` says so.
    """

    name: str
    address: str
    visibility: Visibility
    commit: str | None = None
    files: frozenset[str] = frozenset()
    ours: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Changes:
    """What an upload does to a repository, by the names of files."""

    new: tuple[str, ...]
    replaced: tuple[str, ...]
    deleted: tuple[str, ...]


def look_at(name: str, visibility: Visibility) -> Repository:
    """Look at the repository ``owner/name`` before anything is written anywhere.

    Args:
        name: of the repository, which need not be there.
        visibility: that of a new one; PRIVATE is refused of one that is there and public.

    Raises:
        UploadRefusedError: huggingface_hub is not installed, the name is none, the repository
            holds what push did not write, or is public and should be private.
        UploadError: the hub refused, or could not be reached.
    """
    hub = _hub()
    if name.count("/") != 1:
        raise UploadRefusedError(f"--repo {name}: should be OWNER/NAME")
    try:
        hub.utils.validate_repo_id(name)
    except hub.errors.HFValidationError as error:
        raise UploadRefusedError(f"--repo {name}: {error}") from None
    with _client(hub, name) as api:
        address = f"{api.endpoint}/datasets/{name}"
        try:
            found: Any = api.repo_info(name, repo_type="dataset")
        except hub.errors.RepositoryNotFoundError:
            return Repository(name, address, visibility)
        if visibility is Visibility.PRIVATE and not found.private:
            raise UploadRefusedError(
                f"--private: {address} is there and public, and stays so: make it private in its "
                "settings, name a new repository with --repo, or leave --private out"
            )
        there: Any = api.list_repo_files(name, repo_type="dataset", revision=found.sha)
        files = frozenset(there) - _OF_THE_HUB
        ours = _of_push(api, name, found.sha) if CHECKSUMS in files else frozenset()
    if files and not ours:
        raise UploadRefusedError(
            f"{address} holds what findit push did not write ({min(files)}): name a new "
            "repository with --repo"
        )
    visible_to = Visibility.PRIVATE if found.private else Visibility.PUBLIC
    return Repository(name, address, visible_to, found.sha, files, ours)


_OF_THE_HUB = frozenset({".gitattributes"})
"""What the hub itself puts into every new repository."""


def changes(written: Written, repository: Repository) -> Changes:
    """What uploading a dataset would do to a repository.

    Raises:
        UploadRefusedError: it would replace files that push did not write.
    """
    now = set(written.files)
    alien = sorted((now & repository.files) - repository.ours)
    if alien:
        raise UploadRefusedError(
            f"{repository.address} holds {alien[0]}, which findit push did not write and would "
            "replace: rename it there, or name a new repository with --repo"
        )
    return Changes(
        new=tuple(sorted(now - repository.files)),
        replaced=tuple(sorted(now & repository.files)),
        deleted=tuple(sorted((repository.ours & repository.files) - now)),
    )


def upload(written: Written, repository: Repository) -> str:
    """Upload the files of a dataset, and no other that lies beside them; returns its address.

    It is one commit: readers of the repository see the old dataset or the new one.  Of what was
    there, only files that an earlier push wrote are replaced or deleted.  Contents that the
    repository has already are not sent again: that is the hub's client's doing.

    Raises:
        UploadRefusedError: it would replace files that push did not write.
        UploadError: the hub refused, could not be reached, or somebody changed the repository since
            it was looked at.
    """
    hub = _hub()
    deleted = changes(written, repository).deleted
    operations = [
        *(hub.CommitOperationDelete(path_in_repo=name) for name in deleted),
        *(hub.CommitOperationAdd(name, written.folder / name) for name in written.files),
    ]
    commit = repository.commit
    with _client(hub, repository.name) as api:
        if commit is None:
            commit = _create(api, repository)
        api.create_commit(
            repository.name,
            operations,
            repo_type="dataset",
            commit_message="Scored runs, written by findit push",
            parent_commit=commit,
        )
    return repository.address


def _create(api: Any, repository: Repository) -> str:
    """Make a repository; returns its first commit."""
    private = repository.visibility is Visibility.PRIVATE
    api.create_repo(repository.name, repo_type="dataset", private=private)
    made = api.repo_info(repository.name, repo_type="dataset")
    if private and not made.private:
        raise UploadError(f"{repository.address}: the hub made it public; nothing was uploaded")
    return str(made.sha)


def _of_push(api: Any, name: str, commit: str) -> frozenset[str]:
    """The files that an earlier push wrote; none where its list is somebody else's."""
    with TemporaryDirectory() as folder:
        path = api.hf_hub_download(
            name, CHECKSUMS, repo_type="dataset", revision=commit, cache_dir=folder
        )
        try:
            return frozenset(written_names(Path(path)))
        except FolderError:
            return frozenset()


@contextmanager
def _client(hub: ModuleType, name: str) -> Iterator[Any]:
    """The hub's client; its errors become ours, without the token."""
    token = hub.get_token()
    remember(*filter(None, [token]))
    try:
        # Read here and not at the client's import, so that whoever sets it later is heard.
        yield hub.HfApi(endpoint=os.environ.get("HF_ENDPOINT") or None, token=token)
    except (UploadError, UploadRefusedError):
        raise
    except (OSError, hub.errors.HfHubHTTPError, ValueError, RuntimeError) as error:
        help_ = "" if token else " No token is known: hf auth login, or HF_TOKEN."
        raise UploadError(f"{name}: {quoted(str(error), 500)}{help_}") from None


def _hub() -> ModuleType:
    try:
        import huggingface_hub
        import huggingface_hub.errors
        import huggingface_hub.utils
    except ImportError:
        raise UploadRefusedError(f"--upload needs huggingface_hub: {install('publish')}") from None
    module: ModuleType = huggingface_hub
    return module
