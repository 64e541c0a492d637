"""The script of charts is bundled once for a release of its library, and kept."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import vl_convert

from vlmeval_findit.report import kept_script as module

BUNDLE = "draw(); // <!-- </script> é"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return what the library was asked for; it returns a short script."""
    calls: list[str] = []

    def bundle(export: str) -> str:
        calls.append(export)
        return BUNDLE

    monkeypatch.setattr(vl_convert, "javascript_bundle", bundle)
    return calls


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "vlmeval_findit"


def script() -> str:
    """Return the script as another process makes it."""
    return module.chart_script.__wrapped__()


def test_a_second_process_does_not_ask_the_library(folder: Path, asked: list[str]) -> None:
    first = script()
    assert len(asked) == 1
    assert script() == first
    assert len(asked) == 1
    assert "<!--" not in first
    assert "</script" not in first
    assert [path.name[:7] for path in folder.iterdir()] == ["charts-"]


def test_another_release_has_a_script_of_its_own(
    folder: Path, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    script()
    monkeypatch.setattr(module, "version", lambda name: "99.0")
    script()
    assert len(asked) == len(list(folder.iterdir())) == 2


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-3])


def changed(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"draw", b"grab"))


def foreign_line(path: Path) -> None:
    path.write_bytes(path.read_bytes().partition(b"\n")[2])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def not_utf8(path: Path) -> None:
    path.write_bytes(b"\xff\xfe\n" * 9)


@pytest.mark.parametrize("damage", [cut, changed, foreign_line, empty, not_utf8])
def test_a_damaged_file_is_made_again(
    damage: Callable[[Path], None], folder: Path, asked: list[str]
) -> None:
    first = script()
    (path,) = folder.iterdir()
    damage(path)
    assert script() == first
    assert len(asked) == 2
    assert script() == first
    assert len(asked) == 2


def a_file_in_its_place(folder: Path) -> None:
    folder.parent.write_text("")


def a_folder_in_its_place(folder: Path) -> None:
    script()
    (path,) = folder.iterdir()
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("place", [a_file_in_its_place, a_folder_in_its_place])
def test_a_place_that_takes_no_file_costs_time_only(
    place: Callable[[Path], None], folder: Path, asked: list[str]
) -> None:
    place(folder)
    asked.clear()
    assert script() == script()
    assert len(asked) == 2


def test_who_has_no_home_gets_the_script(asked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setattr(Path, "home", no_home)
    assert BUNDLE.partition("<")[0] in script()
