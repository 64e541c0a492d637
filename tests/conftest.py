"""Of most rooms: a small world of tables, pictures and runs, and what is worked out once."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from chat_server import ChatServer, Serve, completion
from once import once_a_session
from report_browser import start_browser
from scored_runs import World, small_world

from vlmeval_findit.coords import Convention
from vlmeval_findit.data import prepare_demo


@pytest.fixture(scope="session")
def folder_for_tests(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder in which each test of a worker gets its :func:`own_folder`."""
    return tmp_path_factory.mktemp("folders")


@pytest.fixture(autouse=True)
def own_folder(folder_for_tests: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Begin each test in an empty folder: what commands write by default is seen by no other test.

    A test that writes there changes to ``tmp_path``, which its assertions can name.
    """
    folder = folder_for_tests / "own"
    folder.mkdir()
    monkeypatch.chdir(folder)
    yield
    left = sorted(path.name for path in folder.iterdir())
    shutil.rmtree(folder)
    assert not left, f"the test left files in the folder that it began in: {left}"


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """Return a world of the test's own, in its folder."""
    return small_world(tmp_path, monkeypatch)


@pytest.fixture(scope="session")
def demo_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a data folder in which the demonstration's images lie: no test need write them."""
    folder = tmp_path_factory.mktemp("demo")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LMUData", str(folder))
        prepare_demo()
    return folder


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Return what starts a server for a script; all end with the test."""
    with ExitStack() as servers:
        yield lambda script: servers.enter_context(ChatServer(script))


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Return the browser in which all pages of the session are opened, one after the other."""
    driver = start_browser()
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def server() -> Iterator[ChatServer]:
    """Return a server of the file's tests, whose every reply is one box.

    A file whose server answers otherwise has a ``server`` of its own.
    """
    with ChatServer(lambda asked, number: completion('[{"bbox": [0, 0, 1, 1]}]')) as running:
        yield running


def _answers_and_convention(answers: Any, declared: Convention) -> bytes:
    return pickle.dumps((answers, declared.name))


# Most of the time of a score, and hundreds of tests score the same few runs.
_coordinate_checks = once_a_session(
    "vlmeval_findit.coords.score_check", "warning_of_boxes", _answers_and_convention
)

# Two seconds in every data folder.
_probe_images = once_a_session("vlmeval_findit.data.probe_scenes", "_drawn", int)
