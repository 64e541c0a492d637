"""Of most rooms: a small world of tables, pictures and runs, and what is worked out once."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from chat_server import ChatServer, Serve
from scored_runs import World, small_world

from vlmeval_findit.core import write_once
from vlmeval_findit.data import prepare_demo


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


@pytest.fixture(scope="session", autouse=True)
def _coordinate_checks() -> Iterator[None]:
    """Equal answers are checked once a session.

    The check is most of the time of a score, and hundreds of tests score the same few runs. It sees
    nothing but the answers and the convention.
    """
    from vlmeval_findit.coords import Convention, score_check

    check = score_check.warning_of_boxes
    known: dict[bytes, str | None] = {}

    def check_once(answers: Any, declared: Convention) -> str | None:
        key = pickle.dumps((answers, declared.name))
        if key not in known:
            known[key] = check(answers, declared)
        return known[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(score_check, "warning_of_boxes", check_once)
        yield


@pytest.fixture(scope="session", autouse=True)
def _pictures() -> Iterator[None]:
    """Equal charts are drawn once a session: hundreds of reports show the same few runs."""
    import vl_convert

    draw = vl_convert.vegalite_to_svg
    known: dict[str, str] = {}

    def draw_once(spec: Any) -> str:
        key = json.dumps(spec)
        if key not in known:
            known[key] = draw(spec)
        return known[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vl_convert, "vegalite_to_svg", draw_once)
        yield


@pytest.fixture(scope="session", autouse=True)
def _probe_images() -> Iterator[None]:
    """The probe's images are drawn once a session: it takes two seconds in every data folder."""
    from vlmeval_findit.data import probe_scenes

    draw = probe_scenes._query
    drawn: dict[int, tuple[Any, bytes]] = {}

    def draw_once(folder: Path, index: int) -> Any:
        if index not in drawn:
            query = draw(folder, index)
            drawn[index] = query, (folder / query.images[0]).read_bytes()
        query, image = drawn[index]
        write_once(folder / query.images[0], image)
        return query

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(probe_scenes, "_query", draw_once)
        yield
