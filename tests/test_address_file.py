"""``--endpoints @FILE``: addresses that come and go while they are asked."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from vlmeval_findit.models.http.address_file import AddressFile
from vlmeval_findit.models.http.endpoint import Endpoint


def names(followed: AddressFile) -> list[str]:
    return [one.name for one in followed()]


def test_it_is_followed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "servers"
    followed = AddressFile(path, Endpoint)
    assert "not there yet" in caplog.text
    assert names(followed) == []
    path.write_text("# of job 7\nhttp://a:1/v1\n\nhttp://b:2/v1  # node 2\nhttp://a:1/v1\nhttp://c")
    assert names(followed) == ["http://a:1/v1", "http://b:2/v1"], "the last line is not written yet"
    with path.open("a") as file:
        file.write(":3/v1\n")
    assert names(followed) == ["http://a:1/v1", "http://b:2/v1", "http://c:3/v1"]
    path.write_text("http://c:3/v1\n")
    assert names(followed) == ["http://c:3/v1"]
    path.unlink()
    assert names(followed) == []
    path.write_text("http://d:4/v1\n")
    assert names(followed) == ["http://d:4/v1"]


def test_it_is_read_when_it_changed_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "servers"
    path.write_text("http://a:1/v1\n")
    followed = AddressFile(path, Endpoint)
    monkeypatch.setattr(Path, "read_text", lambda *a, **k: pytest.fail("read again"))
    assert names(followed) == names(followed) == ["http://a:1/v1"]


def test_a_line_that_is_no_address(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "servers"
    path.write_text("http://a:1/v1\nnode7:8000\n")
    with pytest.raises(
        ValueError, match=r"line 2: the base URL 'node7:8000' should"
    ):
        AddressFile(path, Endpoint)
    path.write_text("http://a:1/v1\n")
    followed = AddressFile(path, Endpoint)
    path.write_text("http://a:1/v1\nnode7:8000\n")
    with caplog.at_level(logging.WARNING):
        assert names(followed) == names(followed) == ["http://a:1/v1"]
    assert caplog.text.count("line 2: ") == 1
    path.write_text("http://a:1/v1\nhttp://node7:8000/v1\n")
    assert len(names(followed)) == 2


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"--endpoints @.*: no such folder"):
        AddressFile(tmp_path / "servrs" / "file", Endpoint)
