"""How many files a process may open, and errors that come of it."""

from __future__ import annotations

import errno
import resource
from collections.abc import Iterator

import pytest

from vlmeval_findit.core import open_file_limit, room_for_files, too_many_files

_FILES = resource.RLIMIT_NOFILE


@pytest.fixture
def limits() -> Iterator[tuple[int, int]]:
    before = resource.getrlimit(_FILES)
    yield before
    resource.setrlimit(_FILES, before)


def test_the_soft_limit_is_raised_only_if_too_low(limits: tuple[int, int]) -> None:
    _, hard = limits
    resource.setrlimit(_FILES, (256, hard))
    assert room_for_files(8, 8) == 8
    assert open_file_limit() == 256
    assert room_for_files(300, 8) == 300
    assert open_file_limit() > 256


def test_within_a_hard_limit_fewer_are_possible(
    limits: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vlmeval_findit.core.open_files._open_now", lambda: 20)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (64, 64))
    assert room_for_files(100, 32) == 12
    assert room_for_files(5, 32) == 5
    assert room_for_files(100, 60) == 0


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE])
def test_an_error_is_known_by_its_causes(number: int) -> None:
    def raised(*, hides: bool) -> ValueError:
        try:
            try:
                raise OSError(number, "of the system")
            except OSError as error:
                if hides:
                    raise ValueError("a.jpg cannot be opened") from None
                raise ValueError("a.jpg cannot be opened") from error
        except ValueError as error:
            return error

    for hides in (True, False):
        assert "ulimit -n" in too_many_files(raised(hides=hides))
    assert "ulimit -n" in too_many_files(OSError(number, "of the system"))
    assert too_many_files(OSError(errno.EIO, "of the disk")) == ""
