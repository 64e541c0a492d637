"""What a sweep's file says of a model, and of calls, reaches VLMEvalKit's class and Ray."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from vlmeval_findit.cli import main
from vlmeval_findit.engine import CallOptions, LocalBackend

pytestmark = pytest.mark.host

NAME = "llava_v1.5_7b"
"""Of a model of VLMEvalKit's, in whose place another class answers."""

Made = list[dict[str, Any]]


@pytest.fixture
def made(host: SimpleNamespace, lmu: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Made:
    """Return the arguments with which models are made, as they come."""
    arguments: Made = []

    class Model:
        def __init__(self, **given: Any) -> None:
            arguments.append(given)

        def generate(self, message: Any, dataset: str) -> str:
            return "[]"

    monkeypatch.setitem(host.config.supported_VLM, NAME, Model)
    monkeypatch.chdir(tmp_path)
    return arguments


def typed(model: dict[str, Any], *flags: str, **more: Any) -> int:
    """Ask a model by a sweep's file, and return the exit status."""
    grid = {"models": {"name": NAME, "space": "unit", **model}, "limit": 1}
    file = {**grid, "datasets": "FindIt_Demo_xyxy_json", **more}
    Path("sweep.yaml").write_text(json.dumps(file))
    return main(["sweep", "sweep.yaml", *flags])


@pytest.mark.sees("key device", "key resources")
def test_settings_and_resources_are_arguments_of_its_class(made: Made) -> None:
    inner = {"settings": {"top_k": 3}, "resources": {"shards": 4}}
    outer = {"temperature": 0.5, "dtype": "float16", "device": "cpu", "batch_size": 2}
    assert typed({**inner, **outer}) == 0
    assert made == [{"top_k": 3, "shards": 4, **outer}]


@pytest.mark.sees("sweep --executor", "sweep --replicas")
def test_options_of_calls_reach_ray(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[CallOptions] = []

    def here(load: Any, options: CallOptions) -> LocalBackend:
        seen.append(options)
        return LocalBackend(load)

    kinds = import_module("vlmeval_findit.engine.deployment_kinds")
    monkeypatch.setattr(kinds, "RayBackend", here)
    inner = {"threads": 2, "replicas": 5, "cpus": 6.0, "gpus": 7.0}
    assert typed({}, "--executor", "ray", inference=inner) == 0
    flags = ["--replicas", "8", "--gpus", "9", "--work-dir", "other"]
    assert typed({}, "--executor", "ray", *flags, inference=inner) == 0
    overridden = {**inner, "replicas": 8, "gpus": 9.0}
    assert seen == [CallOptions(**inner), CallOptions(**overridden)]
    assert len(made) == 2
