"""Uploading a dataset's folder to the Hugging Face hub."""

from __future__ import annotations

import os
from dataclasses import dataclass
from enum import Enum
from types import ModuleType
from typing import Any

from ..core.redaction import quoted, remember
from .folder import Written


class Visibility(Enum):
    """Who sees a new repository; one that is there stays what it is."""

    PUBLIC = "public"
    PRIVATE = "private"


class UploadError(RuntimeError):
    """Nothing, or not all, was uploaded; the message says why."""


class UploadRefusedError(ValueError):
    """Nothing can be uploaded like this; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Target:
    """A dataset repository of the hub, ``owner/name``."""

    repository: str
    visibility: Visibility = Visibility.PUBLIC


def check_target(target: Target) -> None:
    """Refuse what cannot be uploaded to, before anything is written.

    Raises:
        UploadRefusedError: the name is none, or huggingface_hub is not installed.
    """
    hub = _hub()
    if target.repository.count("/") != 1:
        raise UploadRefusedError(f"--repo {target.repository}: should be OWNER/NAME")
    try:
        hub.utils.validate_repo_id(target.repository)
    except hub.errors.HFValidationError as error:
        raise UploadRefusedError(f"--repo {target.repository}: {error}") from None


def upload(written: Written, target: Target) -> str:
    """Upload the files of a dataset, and no other that lies beside them; returns its address.

    Files that the repository has already are not sent again: that is the hub's client's doing.

    Raises:
        UploadError: the hub refused, or could not be reached.
    """
    hub = _hub()
    token = hub.get_token()
    remember(*filter(None, [token]))
    # Read here and not at the client's import, so that whoever sets it later is heard.
    api = hub.HfApi(endpoint=os.environ.get("HF_ENDPOINT") or None, token=token)
    private = target.visibility is Visibility.PRIVATE
    try:
        api.create_repo(target.repository, repo_type="dataset", private=private, exist_ok=True)
        done: Any = api.upload_folder(
            folder_path=written.folder,
            repo_id=target.repository,
            repo_type="dataset",
            allow_patterns=list(written.files),
            delete_patterns=["data/*", "runs/*"],
            commit_message="Scored runs, written by findit push",
        )
    except (OSError, hub.errors.HfHubHTTPError, ValueError, RuntimeError) as error:
        help_ = "" if token else " No token is known: hf auth login, or HF_TOKEN."
        raise UploadError(f"{target.repository}: {quoted(str(error), 500)}{help_}") from None
    return str(getattr(done, "repo_url", "") or f"{api.endpoint}/datasets/{target.repository}")


def _hub() -> ModuleType:
    try:
        import huggingface_hub
        import huggingface_hub.errors
        import huggingface_hub.utils
    except ImportError:
        raise UploadRefusedError(
            "--upload needs huggingface_hub: pip install 'vlmeval-findit[publish]'"
        ) from None
    module: ModuleType = huggingface_hub
    return module
