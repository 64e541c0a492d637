"""A batch is what the user says, in every command and however it is said."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from every_pair import every_pair

from vlmeval_findit.cli import main, watch_checkpoints
from vlmeval_findit.engine import Asking, CallOptions, deployment_of
from vlmeval_findit.models import (
    NANO,
    SHIPPED,
    WINDOW,
    LocalRunner,
    ModelEntry,
    ModelRow,
    RunSettings,
)
from vlmeval_findit.models.local import local_client
from vlmeval_findit.protocol import CallResult, ReplyRecord

FORMAT = "FindIt_Scenes_mini_xyxy_json_bbox_2d"
SWEEP = {"models": [NANO], "datasets": ["Scenes_mini"], "outputs": "json", "keys": "bbox_2d"}
ONE = {**SWEEP, "representations": "xyxy"}
TWO = {**SWEEP, "representations": ["xyxy", "xywh"]}
FEW = ("--limit", "15")
RUN = ("run", "--data", FORMAT, "--model", NANO, *FEW)


@pytest.fixture(autouse=True)
def sizes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Note how many queries FindIt-Nano answers at once, without loading it."""
    together: list[int] = []

    def counted(self: Any, batch: Sequence[Any], generation: Any) -> list[CallResult]:
        together.append(len(batch))
        record = ReplyRecord(space=generation.space, finish_reason="stop")
        return [CallResult("[]", record)] * len(batch)

    def load(checkpoint: str, row: ModelRow, settings: RunSettings) -> LocalRunner:
        return LocalRunner(Mock(record={}), row, settings, checkpoint, Mock(device="cpu"))

    monkeypatch.setattr(LocalRunner, "_answer", counted)
    monkeypatch.setattr(local_client, "load_local", load)
    monkeypatch.chdir(tmp_path)
    return together


def swept(file: Mapping[str, Any]) -> tuple[str, ...]:
    path = Path(f"sweep{len([*Path().iterdir()])}.json")
    path.write_text(json.dumps(file))
    return ("sweep", str(path), *FEW)


def stated(size: int, file: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Return the ways to say it: lines of commands."""
    flag = ("--batch-size", str(size))
    of_model = {"name": NANO, "batch_size": size}
    return {
        "run": (*RUN, *flag),
        "sweep": (*swept(file), *flag),
        "inference": swept({**file, "inference": {"batch_size": size}}),
        "model": swept({**file, "models": [of_model]}),
        "model before inference": swept(
            {**file, "models": [of_model], "inference": {"batch_size": 3}}
        ),
        "flag before model": (*swept({**file, "models": [{**of_model, "batch_size": 3}]}), *flag),
        "search": ("search", "--data", "Scenes_mini", "--model", NANO, *FEW, *flag),
    }


WAYS = (
    *("run", "sweep", "inference", "model", "model before inference", "flag before model"),
    "search",
)


FILES = {"one format": ONE, "two formats": TWO}


@pytest.mark.sees("key batch_size")
@every_pair("way, size, formats", WAYS, list(product((1, 7, 128), FILES)))
def test_as_many_are_answered_together_as_stated(
    way: str, size: int, formats: str, sizes: list[int]
) -> None:
    file = FILES[formats]
    line = stated(size, file)[way]
    assert main(line) == 0
    if way == "search":
        assert max(sizes) == size if size < 128 else max(sizes) > 32
        return
    calls = 15 if file is ONE or way == "run" else 30
    whole, rest = divmod(calls, size)
    assert sizes == [size] * whole + [rest] * (rest > 0)


def test_128_are_128_over_50_images_in_three_formats(sizes: list[int]) -> None:
    command, path, *_ = swept({**SWEEP, "representations": ["xyxy", "xywh", "cxcywh"]})
    assert main((command, path, "--batch-size", "128")) == 0
    assert sizes == [128, 22]


def test_a_sweep_has_the_default_of_a_run(sizes: list[int]) -> None:
    assert main(RUN) == 0
    of_run = sizes.copy()
    sizes.clear()
    assert main((*swept(ONE), "--work-dir", "swept")) == 0
    assert sizes == of_run == [8, 7]


@pytest.mark.parametrize("stated", [None, 1, 128])
def test_a_model_is_handed_several_batches(stated: int | None) -> None:
    """Of the size that a GPU has by default, 32; a replica on Ray gets one at a time."""
    calls = CallOptions(batch_size=stated)
    here = deployment_of(ModelEntry(NANO), Asking(calls=calls))
    assert here.window == WINDOW * (stated or 32)
    on_ray = deployment_of(ModelEntry(NANO), Asking(calls=calls, on_ray=True))
    assert on_ray.window == (stated or 32)


def test_checkpoints_that_are_watched_are_run_so(monkeypatch: pytest.MonkeyPatch) -> None:
    flags: list[str] = []

    def evaluate(checkpoint: Any, name: str, given: Sequence[str]) -> int:
        flags.extend(given)
        return 0

    monkeypatch.setattr(watch_checkpoints, "evaluate_checkpoint", evaluate)
    folder = Path("training")
    folder.mkdir()
    (folder / "checkpoint-1").symlink_to(SHIPPED[NANO])
    line = ["watch-checkpoints", "training", "--like", NANO, "--data", FORMAT, "--once"]
    main([*line, "--batch-size", "128"])
    assert flags[flags.index("--batch-size") + 1] == "128"
