"""What local models rest on, without torch: rows, thoughts, batches, images, devices."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from PIL import Image

from vlmeval_findit.benchmarks.findit.dataset_names import parse
from vlmeval_findit.benchmarks.findit.run_space import reply_format
from vlmeval_findit.core.settings import Settings
from vlmeval_findit.models.local.layout import Bounds
from vlmeval_findit.models.local.machine import (
    BatchLimit,
    Machine,
    choose,
    in_batches,
    is_out_of_memory,
)
from vlmeval_findit.models.local.model_images import ImageSet, expected_length, limited
from vlmeval_findit.models.local.run_plan import RunSettings, plan
from vlmeval_findit.models.model_table import MODELS, find_model, local_names

# --- rows -----------------------------------------------------------------------------------------


def test_every_local_name_is_read_as_its_row() -> None:
    for name, (row, identifier) in local_names().items():
        assert find_model(name) is row, name
        assert "/" in identifier


@pytest.mark.parametrize(
    ("row", "dataset", "bounds"),
    [
        ("Qwen2.5-VL", "Pascal", Bounds(200_704, 1_605_632, two_step=True)),
        ("Qwen2.5-VL", "RoboTools", Bounds(200_704, 12_845_056)),
        ("Qwen3-VL", "HRInsDet_hard", Bounds(200_704, 12_845_056)),
        ("Qwen3.5", "Pascal", Bounds(200_704, 1_605_632)),
        ("InternVL3", "Pascal", Bounds(patches=12)),
        ("InternVL3", "RoboTools", Bounds(patches=64)),
        ("Gemma 4", "RoboTools", Bounds()),
        ("GLM-4.6V", "Pascal", Bounds()),
    ],
)
def test_bounds_by_task_family(row: str, dataset: str, bounds: Bounds) -> None:
    local = MODELS[row].local
    assert local is not None
    assert local.bounds(parse(f"FindIt_{dataset}_xyxy_json")) == bounds


def test_bounds_that_contradict_are_refused() -> None:
    with pytest.raises(ValueError, match="min_pixels 9 > max_pixels 4"):
        Bounds(min_pixels=9).overridden({"max_pixels": 4})


# --- thoughts -------------------------------------------------------------------------------------


def test_the_recorded_row_says_how_unconstrained_replies_are_read() -> None:
    variant = parse("FindIt_Pascal_unconstrained_text")
    named = reply_format("my-finetune", variant, Settings(), "Qwen3.5-nothink")
    assert named == reply_format("Qwen3.5-9B-nothink", variant, Settings())
    assert named.key == "bbox_2d"
    assert reply_format("my-finetune", variant, Settings()) == variant.reply


# --- batches --------------------------------------------------------------------------------------


class Memory:
    """Answers with the double; runs out of memory above a padded size."""

    def __init__(self, holds: int) -> None:
        self.holds = holds
        self.batches: list[list[int]] = []

    def answer(self, batch: list[int]) -> list[int]:
        self.batches.append(list(batch))
        if len(batch) * max(batch) > self.holds:
            raise RuntimeError("CUDA out of memory. Tried to allocate 2 GiB")
        return [2 * item for item in batch]


def halves(memory: Memory, items: list[int], limit: BatchLimit) -> list[int]:
    return in_batches(items, float, limit, memory.answer, lambda item, why: -item)


def test_batches_hold_similar_lengths_and_keep_the_order() -> None:
    memory = Memory(10**9)
    assert halves(memory, [3, 90, 1, 80, 2], BatchLimit(2)) == [6, 180, 2, 160, 4]
    assert memory.batches == [[90, 80], [3, 2], [1]]


def test_a_batch_that_does_not_fit_is_halved_and_nothing_is_lost() -> None:
    memory, limit = Memory(40), BatchLimit(8)
    items = [10] * 11
    assert halves(memory, items, limit) == [20] * 11
    assert [len(batch) for batch in memory.batches] == [8, 4, 4, 3]


def test_a_large_query_neither_fails_its_neighbours_nor_makes_their_batches_small() -> None:
    memory, limit = Memory(100), BatchLimit(4)
    assert halves(memory, [300, 10, 10, 10, 10], limit) == [-300, 20, 20, 20, 20]
    assert memory.batches == [[300, 10, 10, 10], [300, 10], [300], [10, 10, 10, 10]]


def test_other_errors_are_not_swallowed() -> None:
    def broken(batch: object) -> list[int]:
        raise RuntimeError("shapes do not match")

    with pytest.raises(RuntimeError, match="shapes"):
        in_batches([1], float, BatchLimit(2), broken, lambda item, why: 0)


@pytest.mark.parametrize(
    ("error", "is_it"),
    [
        (MemoryError(), True),
        (RuntimeError("MPS backend out of memory (MPS allocated: 9 GB)"), True),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried"), True),
        (type("OutOfMemoryError", (RuntimeError,), {})("CUDA"), True),
        (RuntimeError("device-side assert"), False),
        (ValueError("out of memory"), False),
    ],
)
def test_what_running_out_of_memory_looks_like(error: Exception, is_it: bool) -> None:
    assert is_out_of_memory(error) is is_it


# --- pictures, devices, revisions -----------------------------------------------------------------


def test_an_image_is_decoded_once_a_group(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    Image.new("RGB", (40, 30)).save(path)
    pictures = ImageSet(Bounds())
    first = pictures.get(str(path))
    path.unlink()
    assert pictures.get(str(path)) is first


def test_the_chat_interface_resizes_once_more() -> None:
    picture = limited(Image.new("RGB", (320, 200)), Bounds(two_step=True))
    assert (picture.original, picture.sent) == ((320, 200), (308, 196))


def test_lengths_are_expected_within_the_bounds(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    Image.new("RGB", (280, 280)).save(path)
    assert expected_length([str(path)], ["four" * 10], Bounds()) == 110
    assert expected_length([str(path)], [], Bounds(min_pixels=784_000)) == 1000
    assert expected_length([str(path)], [], Bounds(max_pixels=7840)) == 10


@pytest.mark.parametrize(
    ("machine", "chosen"),
    [
        (Machine(), "cpu, float32, sdpa attention"),
        (Machine(flash_attention=True), "cpu, float32, sdpa attention"),
        (Machine(mps=True), "mps, bfloat16, sdpa attention"),
        (Machine(cuda_devices=1), "cuda, bfloat16, sdpa attention"),
        (Machine(1, flash_attention=True), "cuda, bfloat16, flash_attention_2 attention"),
        (Machine(1, cuda_bfloat16=False), "cuda, float16, sdpa attention"),
        (Machine(2), "cuda (layers over all devices), bfloat16, sdpa attention"),
    ],
)
def test_device_type_and_attention_are_chosen_together(machine: Machine, chosen: str) -> None:
    assert str(choose(machine)) == chosen


def test_what_is_given_goes_before_what_would_be_chosen() -> None:
    with pytest.raises(ValueError, match="device cuda:2: this machine has 2 of cuda"):
        choose(Machine(2), device="cuda:2")
    placed = choose(Machine(2), device="cuda:1", dtype="float32", attention="eager")
    assert dataclasses.astuple(placed) == ("cuda:1", "float32", "eager", False)


@pytest.mark.parametrize(
    ("row", "bound", "instead"),
    [
        ("InternVL3", "max_pixels", r" \(there are: patches\)"),
        ("Qwen3-VL", "patches", r" \(there are: max_pixels, min_pixels\)"),
        ("Gemma 4", "patches", ""),
    ],
)
def test_a_bound_that_the_processor_does_not_take_is_refused(
    row: str, bound: str, instead: str
) -> None:
    settings = RunSettings(**{bound: 9})
    with pytest.raises(ValueError, match=f"{bound}: .* {row} takes no such bound{instead}$"):
        plan(MODELS[row], parse("FindIt_Pascal_xyxy_json"), settings)
