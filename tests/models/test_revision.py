"""Which weights answered: a checkpoint with any byte changed is another checkpoint."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from unittest.mock import Mock

import pytest
import requests

from vlmeval_findit.core import SETTLED_NS
from vlmeval_findit.models import (
    HASH_CACHE,
    fingerprint,
    known_revision,
    refuse_unreachable,
    revision,
    revision_of,
)

SIZE = 3 << 20
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture(autouse=True)
def lmu_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "LMUData"
    folder.mkdir()
    monkeypatch.setenv("LMUData", str(folder))
    return folder


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    (folder / "model-1.safetensors").write_bytes(bytes(SIZE))
    (folder / "model-2.safetensors").write_bytes(b"\1" * SIZE)
    return folder


def overwrite(path: Path, at: int, data: bytes) -> None:
    """Change bytes in place; size and time of modification stay."""
    was = path.stat()
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)
    os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))


def test_only_what_changed_is_read_again(
    checkpoint: Path, lmu_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = Mock(wraps=revision.file_sha256)
    monkeypatch.setattr(revision, "file_sha256", read)

    def names() -> list[str]:
        actual = sorted(call.args[0].name for call in read.call_args_list)
        read.reset_mock()
        return actual

    every = ["config.json", "model-1.safetensors", "model-2.safetensors"]
    first = fingerprint(checkpoint)
    assert names() == every
    # Times do not tell two writings within a tick of the file system's clock apart.
    assert not (lmu_data / HASH_CACHE).exists()
    now = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: now() + 2 * SETTLED_NS)
    assert [fingerprint(checkpoint), names()] == [first, every]
    assert [fingerprint(checkpoint), names()] == [first, every[:1]], "small files are always read"
    overwrite(checkpoint / "model-2.safetensors", SIZE // 2, b"\7")
    assert fingerprint(checkpoint) != first
    assert names() == ["config.json", "model-2.safetensors"]


def test_the_same_files_elsewhere_are_the_same_checkpoint(checkpoint: Path) -> None:
    other = shutil.copytree(checkpoint, checkpoint.with_name("other"))
    # What git and the hub store next to the files is no part of them, nor is a card.
    (other / ".cache" / "huggingface").mkdir(parents=True)
    (other / ".cache" / "huggingface" / "model.metadata").write_text("downloaded today")
    (other / ".gitattributes").write_text("*.safetensors filter=lfs")
    (other / "README.md").write_text("a card")
    assert fingerprint(other) == fingerprint(checkpoint)
    (other / "config.json").rename(other / "generation_config.json")
    assert fingerprint(other) != fingerprint(checkpoint)


def test_a_folder_has_a_hash_a_cached_file_a_commit(checkpoint: Path) -> None:
    assert revision_of(str(checkpoint), None) == fingerprint(checkpoint)
    assert known_revision(str(checkpoint)) == fingerprint(checkpoint)
    assert revision_of("Qwen/X", f"/cache/snapshots/{COMMIT}/config.json") == COMMIT
    assert revision_of("Qwen/X", None) == "unknown"
    assert known_revision("Qwen/X", COMMIT) == COMMIT
    assert known_revision("Qwen/X", "main") is None


def test_a_checkpoint_of_an_unreachable_hub_is_refused_at_once(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    constants = pytest.importorskip("huggingface_hub.constants")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:1")
    refuse_unreachable(str(checkpoint))
    with pytest.raises(ValueError, match=r"is not on this .*be reached [(]Conn.*NAME=FOLDER"):
        refuse_unreachable("nobody/nothing")
    pytest.importorskip("torch")
    from vlmeval_findit.models import checkpoint_revision

    with pytest.raises(ValueError, match="nobody/nothing is not on this machine"):
        checkpoint_revision("nobody/nothing")
    for answers in (None, requests.exceptions.SSLError):  # left to the hub's client
        with monkeypatch.context() as patch:
            patch.setattr(requests, "head", Mock(side_effect=answers))
            refuse_unreachable("nobody/nothing")
    # What the cache has may be of a revision that the user names.
    cached = tmp_path / "hub" / "models--nobody--nothing" / "snapshots" / COMMIT / "config.json"
    cached.parent.mkdir(parents=True)
    cached.touch()
    refuse_unreachable("nobody/nothing")
