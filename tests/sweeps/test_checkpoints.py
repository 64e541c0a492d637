"""Checkpoints of a training: complete folders, by their step."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from vlmeval_findit.models import SHIPPED
from vlmeval_findit.sweeps import checkpoints_in, unfinished_in, what_is_missing

NANO = Path(SHIPPED["FindIt-Nano"])
SHARDS = json.dumps({"weight_map": {"a": "model.safetensors", "b": "model-00002.safetensors"}})
WEIGHTS = (NANO / "model.safetensors").read_bytes()

DEEP = "[" * 100_000

INCOMPLETE: dict[str, Callable[[Path], object]] = {
    "no configuration": lambda folder: (folder / "config.json").unlink(),
    "no weights": lambda folder: (folder / "model.safetensors").unlink(),
    "weights cut off": lambda folder: (folder / "model.safetensors").write_bytes(WEIGHTS[:-1]),
    "weights without a header": lambda folder: (folder / "model.safetensors").write_bytes(b""),
    "a shard is missing": lambda folder: (folder / "a.index.json").write_text(SHARDS),
    "an index that is nested": lambda folder: (folder / "a.index.json").write_text(DEEP),
    "an index without shards": lambda folder: (folder / "a.index.json").write_text("[1]"),
    "the first shard of two, before their index": lambda folder: (
        folder / "model.safetensors"
    ).rename(folder / "model-00001-of-00002.safetensors"),
    "the last shard of two, before their index": lambda folder: (
        folder / "model.safetensors"
    ).rename(folder / "pytorch_model-00002-of-00002.bin"),
    "a shard that is a FIFO": lambda folder: os.mkfifo(folder / "b.safetensors"),
    "an index cut off": lambda folder: (folder / "a.index.json").write_text("{"),
    "the trainer still writes": lambda folder: (folder / "training_args.bin").write_bytes(b"0"),
}


@pytest.mark.parametrize("change", INCOMPLETE.values(), ids=INCOMPLETE)
def test_a_checkpoint_that_is_being_written_is_left_alone(
    tmp_path: Path, change: Callable[[Path], object]
) -> None:
    folder = Path(shutil.copytree(NANO, tmp_path / "checkpoint-100"))
    assert [each.step for each in checkpoints_in(tmp_path)] == [100]
    change(folder)
    assert checkpoints_in(tmp_path) == []
    assert what_is_missing(folder)
    begun = (folder / "config.json").exists()
    assert [each.path for each in unfinished_in(tmp_path)] == [folder] * begun


def test_shards_need_their_index(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(NANO, tmp_path / "checkpoint-100"))
    first, last = (folder / f"model-0000{number}-of-00002.safetensors" for number in (1, 2))
    (folder / "model.safetensors").rename(first)
    last.write_bytes(WEIGHTS)
    assert [each.path for each in unfinished_in(tmp_path)] == [folder]
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a": first.name, "b": last.name}}))
    assert [each.step for each in checkpoints_in(tmp_path)] == [100]
    assert unfinished_in(tmp_path) == []
    last.unlink()
    assert what_is_missing(folder) == f"{last.name} missing"
    index.unlink()
    assert what_is_missing(folder) == "shards without their index"
    first.rename(folder / "model-00001-of-00001.safetensors")
    assert [each.step for each in checkpoints_in(tmp_path)] == [100]


def test_checkpoints_are_sorted_and_equal_steps_refused(tmp_path: Path) -> None:
    for name in ("checkpoint-1000", "checkpoint-200", "step_30", "7", "runs", "checkpoint-9-old"):
        shutil.copytree(NANO, tmp_path / name)
    assert [each.step for each in checkpoints_in(tmp_path)] == [7, 30, 200, 1000]
    assert checkpoints_in(tmp_path / "nowhere") == []
    shutil.copytree(NANO, tmp_path / "checkpoint-30")
    with pytest.raises(ValueError, match=r"are both step 30: move one of them away"):
        checkpoints_in(tmp_path)


@pytest.mark.parametrize(
    ("length", "header"),
    [
        (2**63 + 5, b""),
        (2**64 - 1, b"{}"),
        (10**9, b"{" * 99),
        (5, b"[1,2]"),
        (9, b'{"a":"b"}'),
        (23, b'{"a":{"data_offsets":1}}'),
        (28, b'{"a":{"data_offsets":["x"]}}'),
        (100_000, DEEP.encode()),
    ],
)
def test_weights_with_any_header_are_incomplete_and_end_nothing(
    tmp_path: Path, length: int, header: bytes
) -> None:
    shutil.copytree(NANO, tmp_path / "checkpoint-1")
    shutil.copytree(NANO, tmp_path / "checkpoint-2")
    path = tmp_path / "checkpoint-2" / "model.safetensors"
    path.write_bytes(length.to_bytes(8, "little") + header)
    assert [checkpoint.step for checkpoint in checkpoints_in(tmp_path)] == [1]
