"""Every option of calls acts where calls are made: no answer and no score depends on it."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from unittest.mock import Mock

import pytest
from batch_server import BatchServer
from engine_fakes import FakeDeployment, demo_sweep, go, servers

from vlmeval_findit.cli import main
from vlmeval_findit.engine import CallOptions, HttpBackend, RayBackend
from vlmeval_findit.models import ModelEntry
from vlmeval_findit.sweeps import UnfinishedError


@pytest.fixture(autouse=True, scope="module")
def _tables(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LMUData", str(tmp_path_factory.mktemp("lmu")))
        yield


AT_A_SERVER = ("threads", "timeout")
# Key -> its value, and (CPUs, GPUs) of each replica on a cluster of four CPUs
ON_RAY: Mapping[str, tuple[float, list[tuple[float, float]]]] = {
    "replicas": (3, [(1.0, 0.0)] * 3),
    "cpus": (2.0, [(2.0, 0.0)] * 2),
    "gpus": (0.5, [(1.0, 0.5)]),
}


def test_every_option_has_a_test() -> None:
    """That of ``batch_size``: ``cli/test_batch_size.py``."""
    assert {*AT_A_SERVER, *ON_RAY, "poll", "batch_size"} == {
        key.name for key in fields(CallOptions)
    }


@pytest.mark.sees("key threads", "key timeout")
def test_a_server_gets_so_many_calls_for_so_long() -> None:
    host = servers("http://127.0.0.1:9/v1", threads=3, timeout=77.0)
    made = host.of(ModelEntry("Qwen3-VL")).backend()
    assert isinstance(made, HttpBackend)
    assert (made.calls, made.service.timeout) == (3, 77.0)


@pytest.mark.sees("key replicas", "key cpus", "key gpus")
@pytest.mark.parametrize("key", [None, *ON_RAY])
def test_replicas_are_asked_for(
    key: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a cluster of four CPUs where none of them starts."""
    cluster = Mock()
    cluster.is_initialized.return_value = True
    cluster.cluster_resources.return_value = {"CPU": 4.0}
    for name in ("ray", "ray.util.placement_group", "ray.util.scheduling_strategies"):
        monkeypatch.setitem(sys.modules, name, cluster)
    value, expected = ON_RAY[key] if key else (0, [(1.0, 0.0)] * 4)
    grid = {"models": "FullImage", "datasets": "FindIt_Demo_xyxy_json"}
    file = {**grid, "inference": {key: value} if key else {}}
    sweep = demo_sweep(tmp_path, json.dumps(file))
    with pytest.raises(UnfinishedError):
        go(sweep, FakeDeployment(None, lambda _: RayBackend(Mock(), sweep.inference)))
    made = cluster.remote.return_value.options.call_args_list
    assert [(each.kwargs["num_cpus"], each.kwargs["num_gpus"]) for each in made] == expected


@pytest.mark.sees("key poll")
def test_a_batch_is_looked_at_that_often(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    slept: list[float] = []
    sleep = asyncio.sleep

    async def noted(seconds: float) -> None:
        if seconds:
            slept.append(seconds)
        await sleep(0)

    monkeypatch.setattr(asyncio, "sleep", noted)
    mine = {"models": [{"name": "Mine", "space": "grid1000"}], "datasets": "FindIt_Demo_xyxy_json"}
    for inference, expected in (({}, [1, 2, 4, 8]), ({"poll": 3.0}, [1, 2, 3, 3])):
        slept.clear()
        Path("sweep.yaml").write_text(json.dumps({**mine, "limit": 1, "inference": inference}))
        line = ["sweep", "sweep.yaml", "--batch", "openai", "--journal", f"{len(inference)}.jsonl"]
        with BatchServer(polls=4) as server:
            assert main([*line, "--base-url", server.url, "--work-dir", str(len(inference))]) == 0
        assert slept == expected
