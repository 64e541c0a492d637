"""Every argument of our classes in ``--config`` files changes what is asked or recorded."""

from __future__ import annotations

import inspect
import json
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from chat_server import ChatServer, completion

from vlmeval_findit.data import load_dataset
from vlmeval_findit.storage import ImageError, image_folder, read_identity, read_predictions

pytestmark = [pytest.mark.host, pytest.mark.usefixtures("host", "lmu")]

DATA = "FindIt_Demo_xyxy_json"
MINE = {"model": "Mine", "base_url": "SERVER", "space": "unit"}
THEIRS = {"model": "Mine", "provider": "openai", "base_url": "SERVER", "like": "GPT-5.4"}
THEIRS |= {"served": "x", "key": "k"}

# Class -> arguments, and by each argument its other value; ApiSettings have a test of their own
ARGUMENTS: Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any]]] = {
    "FindItServer": (
        MINE,
        {
            "model": "Other",
            "base_url": "SERVER/v1",
            "space": "grid1000",
            "served": "theirs",
            "extra_body": {"top_k": 3},
            "like": "Qwen3-VL",
            "key": "sk-other",
            "headers": {"x-team": "a"},
        },
    ),
    "FindItProvider": (
        THEIRS,
        {
            "provider": "anthropic",
            "base_url": "SERVER/v1",
            "space": "unit",
            "served": "theirs",
            "extra_body": {"top_p": 0.5},
            "like": "Gemini-2.5-Flash",
            "key": "sk-other",
            "headers": {"x-team": "a"},
        },
    ),
}
NOT_ASKED = {"FindItProvider": {"model"}, "FindItServer": {"provider"}}
"""The name of results where ``served`` is the one that is asked; what the other class takes."""


def arguments_of(kind: str) -> set[str]:
    import vlmeval.api

    taken = vars(sys.modules["vlmeval_findit.host.api"])["_at_address"]
    names = {*inspect.signature(getattr(vlmeval.api, kind)).parameters}
    names |= {*inspect.signature(taken).parameters}
    return names - {"arguments"}


@pytest.fixture(scope="module")
def server() -> Iterator[ChatServer]:
    with ChatServer(lambda asked, number: completion('[{"bbox": [0, 0, 1, 1]}]')) as running:
        yield running


Facts = Callable[[str, Mapping[str, Any]], tuple[Any, ...]]


@pytest.fixture
def facts(server: ChatServer, tmp_path: Path) -> Facts:
    """Return what makes the requests, the record and the replies of a model's first row."""
    from vlmeval.inference import infer_data_job

    def asked(kind: str, arguments: Mapping[str, Any]) -> tuple[Any, ...]:
        import vlmeval.api
        import vlmeval.dataset

        given = json.loads(json.dumps(arguments).replace("SERVER", server.url))
        model = getattr(vlmeval.api, kind)(**given)
        dataset = vlmeval.dataset.build_dataset(DATA)
        dataset.take(1)
        folder = tmp_path / str(len(server.asked))
        folder.mkdir()
        before = len(server.asked)
        infer_data_job(model, str(folder), "Mine", dataset, api_nproc=1)
        requests = [
            (each.path, each.body, {k: v for k, v in each.headers.items() if k != "host"})
            for each in server.asked[before:]
        ]
        assert requests
        identity = read_identity(folder / f"Mine_{DATA}.json")
        assert identity is not None
        assert [*read_predictions(folder / f"Mine_{DATA}.json")]
        return requests, asdict(identity.answering), identity.space

    return asked


@pytest.mark.parametrize("kind", ARGUMENTS)
def test_every_argument_has_a_row(kind: str) -> None:
    assert arguments_of(kind) == {*ARGUMENTS[kind][1], *NOT_ASKED[kind]}


@pytest.mark.parametrize("kind", ARGUMENTS)
def test_an_argument_changes_what_is_asked(kind: str, facts: Facts) -> None:
    base, others = ARGUMENTS[kind]
    once = facts(kind, base)
    assert facts(kind, base) == once, "nothing else changes it"
    assert [
        name for name, value in others.items() if facts(kind, {**base, name: value}) == once
    ] == []


@pytest.mark.parametrize("kind", ["FindItOpenRouter", *ARGUMENTS])
def test_an_unknown_argument_is_refused(kind: str) -> None:
    import vlmeval.api

    base = {"FindItServer": MINE, "FindItProvider": THEIRS}.get(kind, {"model": "Qwen3-VL-8B"})
    with pytest.raises(ValueError, match="unknown setting 'temperatur': did you mean temperature"):
        getattr(vlmeval.api, kind)(**{**base, "temperatur": 0.5})


# --- datasets -------------------------------------------------------------------------------------

# Argument of a dataset's class -> its other value
OF_A_DATASET: Mapping[str, Any] = {
    "dataset": "FindIt_Demo_xywh_json",
    "space": "grid1000",
    "reads_like": "Claude Sonnet 4.5",
    "encoder": "mine",
    "judge_args": '{"force": true}',
    "skip_missing": True,
    "mode": "eval",
    "limit": 3,
}
OF_THE_HOST = {"skip_noimg"}
"""Images are checked in any case."""


def built(arguments: Mapping[str, Any]) -> Any:
    """Return the settings and rows of a dataset that is built, or why it is not."""
    import vlmeval.dataset

    try:
        dataset = vlmeval.dataset.FindItObjectDetection(**{"dataset": DATA, **arguments})
    except ImageError as error:
        return str(error)
    return dataset.dataset_name, dataset.settings, dataset.left_out


def test_every_argument_of_a_dataset_has_a_row() -> None:
    import vlmeval.dataset

    taken = {*inspect.signature(vlmeval.dataset.FindItObjectDetection).parameters}
    assert taken == {*OF_A_DATASET, *OF_THE_HOST}


@pytest.mark.parametrize("name", OF_A_DATASET)
def test_an_argument_of_a_dataset_acts(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of images that are there, or where that of the first row is missing."""
    value = OF_A_DATASET[name]
    if name in ("skip_missing", "mode", "limit"):
        first = load_dataset(DATA).queries[0].images[0]
        shutil.copytree(image_folder("Demo").path, tmp_path / "some")
        (tmp_path / "some" / first).unlink()
        monkeypatch.setenv("FINDIT_IMAGES", f"Demo={tmp_path / 'some'}")
    assert built({name: value}) != built({})


@pytest.mark.parametrize(("given", "asked"), [(None, 3), (2, 2), (5, 5)])
def test_a_dataset_limit_holds_until_the_runner_has_one(
    given: int | None, asked: int, server: ChatServer, tmp_path: Path
) -> None:
    import vlmeval.api
    import vlmeval.dataset
    from vlmeval.inference import infer_data_job

    model = vlmeval.api.FindItServer(**{**MINE, "base_url": server.url})
    dataset = vlmeval.dataset.FindItObjectDetection(dataset=DATA, limit=3)
    before = len(server.asked)
    more = {} if given is None else {"limit": given}
    infer_data_job(model, str(tmp_path), "Mine", dataset, api_nproc=1, **more)
    assert len(server.asked) - before == asked
    assert len([*read_predictions(tmp_path / f"Mine_{DATA}.json")]) == asked
