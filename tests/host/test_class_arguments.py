"""Every argument of our classes in ``--config`` files changes what is asked or recorded."""

from __future__ import annotations

import inspect
import json
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from chat_server import ChatServer
from fake_program import Machine

from vlmeval_findit.benchmarks import parse
from vlmeval_findit.core import names_of_arguments
from vlmeval_findit.data import load_dataset
from vlmeval_findit.engine import ApiSettings
from vlmeval_findit.models import Budget, RunSettings, names_of_settings
from vlmeval_findit.protocol import text
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


# --- classes whose arguments are seen without a call ----------------------------------------------

VARIANT = parse("FindIt_Pascal_xyxy_json_bbox_2d")
QWEN = "Qwen/Qwen3-VL-8B-Instruct"

# Class -> arguments, and by each argument its other value
MADE_OTHERWISE: Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any]]] = {
    "FindItBaseline": ({}, {"baseline": "SceneDescriber"}),
    "FindItLocalModel": (
        {"like": "Qwen3-VL", "model_path": QWEN},
        {
            "like": "InternVL3",
            "model_path": "a/b",
            "revision": "abc123",
            "space": "unit",
            "device": "cuda:1",
            "dtype": "float64",
            "attention": "eager",
            "engine": "numpy",
            "min_pixels": 123_456,
            "max_pixels": 654_321,
            "patches": 7,
            "max_new_tokens": 77,
            "max_tokens": 77,
            "max_completion_tokens": 77,
            "batch_size": 3,
            "temperature": 0.7,
            "merge_adapter": True,
            "template": {"add_vision_id": True},
        },
    ),
    "FindItOpenRouter": (
        {"model": "GPT-5.4"},
        {
            "model": "Gemini-2.5-Flash",
            "retry": 9,
            "timeout": 77.0,
            "max_usd": 3.5,
            "budget": Budget(1.5),
            "max_new_tokens": 77,
            "max_tokens": 77,
            "max_completion_tokens": 77,
            "temperature": 0.7,
            "prices": [1.0, 2.0],
        },
    ),
    "FindItServed": (
        {"model": "Mine", "checkpoint": QWEN, "like": "Qwen3-VL"},
        {
            "model": "Other",
            "serve": {"program": "vllm", "arguments": ["--quantization", "fp8"]},
            "checkpoint": "a/b",
            "like": "InternVL3",
            "space": "unit",
            "work_dir": "elsewhere",
            "retry": 9,
            "timeout": 77.0,
            "revision": "abc123",
            "dtype": "float64",
            "min_pixels": 123_456,
            "max_pixels": 654_321,
            "max_new_tokens": 77,
            "max_tokens": 77,
            "max_completion_tokens": 77,
            "temperature": 0.7,
            "template": {"add_vision_id": True},
        },
    ),
}
# Settings of models here that a server here decides, or that the model or its processor has not
REFUSED = {
    "FindItServed": {"device", "attention", "engine", "batch_size", "patches", "merge_adapter"}
}


def known_arguments(kind: str) -> set[str]:
    own = {*names_of_arguments(class_called(kind).__init__)}
    match kind:
        case "FindItLocalModel" | "FindItServed":
            own |= {*names_of_settings(RunSettings)}
        case "FindItOpenRouter":
            own |= {*names_of_settings(ApiSettings)}
    return own | ({"retry", "timeout"} if kind == "FindItServed" else set())


def class_called(kind: str) -> Any:
    import vlmeval.api
    import vlmeval.vlm

    return getattr(vlmeval.api, kind, None) or getattr(vlmeval.vlm, kind)


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Facts]:
    """Return all that a class makes of its arguments, as text."""
    machine = Machine(tmp_path)
    for name, value in {**machine.environment, "OPENROUTER_API_KEY": "k"}.items():
        monkeypatch.setenv(name, value)
    local = import_module("vlmeval_findit.models.local.local_client")
    loaded: list[Any] = []
    monkeypatch.setattr(local, "load_local", lambda *given: loaded.append(given))
    monkeypatch.setattr(local, "row_to_run", lambda like, path, space: (like, path))
    monkeypatch.setattr(local, "refuse_settings", lambda *given: None)

    def facts(kind: str, arguments: Mapping[str, Any]) -> tuple[Any, ...]:
        model = class_called(kind)(**arguments)
        if kind == "FindItLocalModel":
            return tuple(loaded[-1])
        if kind == "FindItBaseline":
            return (vars(model)["_name"],)
        if kind == "FindItOpenRouter":
            asked = model.service
            body = asked.model.request((text("where?"),), VARIANT, ()).body
            how = asked.timeout, asked.budget.limit, asked.policy.attempts
            return body, model.name, asked.model.prices, how
        entry, asking = model.asked.entry, model.asked.asking
        how = asking.calls.timeout, asking.policy.attempts, asking.work_dir, asking.serving
        return replace(entry, where=""), how

    yield facts
    assert machine.ends()


@pytest.mark.parametrize("kind", MADE_OTHERWISE)
def test_every_argument_of_a_class_has_a_row(kind: str) -> None:
    rows = {*MADE_OTHERWISE[kind][1]}
    assert known_arguments(kind) == rows | REFUSED.get(kind, set())


@pytest.mark.parametrize("kind", MADE_OTHERWISE)
def test_an_argument_of_a_class_acts(kind: str, made: Facts) -> None:
    base, others = MADE_OTHERWISE[kind]
    once = made(kind, base)
    assert made(kind, base) == once, "nothing else changes it"
    assert [n for n, value in others.items() if made(kind, {**base, n: value}) == once] == []


@pytest.mark.parametrize("name", sorted(REFUSED["FindItServed"]))
def test_a_setting_that_a_server_here_decides_is_refused(name: str, made: Facts) -> None:
    base, _ = MADE_OTHERWISE["FindItServed"]
    value = MADE_OTHERWISE["FindItLocalModel"][1][name]
    deployment = class_called("FindItServed")(**base, **{name: value}).asked
    with pytest.raises(ValueError, match=name):
        deployment.describe(VARIANT)


# A class, a mistyped argument, and what was meant: of any record that it takes
MISTYPED = [
    ("FindItServer", "serve_d", "served"),
    ("FindItServer", "header", "headers"),
    ("FindItServer", "extra_bdy", "extra_body"),
    ("FindItServer", "temperatur", "temperature"),
    ("FindItProvider", "base_ur", "base_url"),
    ("FindItOpenRouter", "time_out", "timeout"),
    ("FindItServed", "work_dirr", "work_dir"),
    ("FindItServed", "retrys", "retry"),
    ("FindItServed", "max_pixel", "max_pixels"),
    ("FindItLocalModel", "model_pth", "model_path"),
    ("FindItLocalModel", "max_token", "max_tokens"),
]


@pytest.mark.parametrize(("kind", "typed", "meant"), MISTYPED)
def test_the_nearest_of_all_arguments_is_named(
    kind: str, typed: str, meant: str, made: Facts
) -> None:
    bases = {**{name: base for name, (base, _) in MADE_OTHERWISE.items()}}
    bases |= {"FindItServer": MINE, "FindItProvider": THEIRS}
    with pytest.raises(ValueError, match=rf"unknown setting '{typed}': did you mean {meant}\?"):
        class_called(kind)(**{**bases[kind], typed: "x"})


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
