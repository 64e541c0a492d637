"""What local models rest on, without torch: rows, batches, images, devices."""

from __future__ import annotations

import math
from itertools import groupby
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from PIL import Image

from vlmeval_findit.benchmarks.findit import parse, reply_format
from vlmeval_findit.models import (
    MODELS,
    Asked,
    BatchLimit,
    Bounds,
    ImageSet,
    LocalRunner,
    Machine,
    RunSettings,
    choose_placement,
    expected_length,
    find_model,
    in_batches,
    in_order,
    is_out_of_memory,
    local_names,
    plan_generation,
)
from vlmeval_findit.protocol import Settings, image, text


def test_every_local_name_is_read_as_its_row() -> None:
    for name, (row, identifier) in local_names().items():
        assert find_model(name) is row, name
        assert "/" in identifier


@pytest.mark.parametrize(
    ("row", "dataset", "bounds"),
    [
        ("Qwen3-VL", "HRInsDet_hard", Bounds(200_704, 12_845_056)),
        ("InternVL3", "Pascal", Bounds(patches=12)),
        ("InternVL3", "RoboTools", Bounds(patches=64)),
        ("Gemma 4", "RoboTools", Bounds()),
    ],
)
def test_bounds_by_task_family(row: str, dataset: str, bounds: Bounds) -> None:
    assert (
        plan_generation(MODELS[row], parse(f"FindIt_{dataset}_xyxy_json"), RunSettings()).bounds
        == bounds
    )


@pytest.mark.parametrize(
    ("row", "bounds", "why"),
    [
        ("Qwen3-VL", {"min_pixels": 9, "max_pixels": 4}, "min_pixels 9 > max_pixels 4"),
        ("Qwen3-VL", {"patches": 9}, r"patches: .* no patches \(there are: max_pixels, min_"),
        ("Gemma 4", {"patches": 9}, "patches: .* Gemma 4 takes no patches$"),
    ],
)
def test_bounds_that_are_refused(row: str, bounds: dict[str, int], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        plan_generation(MODELS[row], parse("FindIt_Pascal_xyxy_json"), RunSettings(**bounds))


def test_the_recorded_row_says_how_unconstrained_replies_are_read() -> None:
    variant = parse("FindIt_Pascal_unconstrained_text")
    named = reply_format("my-finetune", variant, Settings(), "Qwen3.5-nothink")
    assert named == reply_format("Qwen3.5-9B-nothink", variant, Settings())
    assert named.key == "bbox_2d"
    assert reply_format("my-finetune", variant, Settings()) == variant.reply


@pytest.mark.parametrize(
    ("items", "most", "memory", "batches"),
    [
        ([3, 90, 1, 80, 2], 2, 10**9, [[90, 80], [3, 2], [1]]),
        ([10] * 11, 8, 40, [[10] * 8, [10] * 4, [10] * 4, [10] * 3]),
        # A large query neither fails its neighbours nor makes their batches small.
        (
            [300, 10, 10, 10, 10], 4, 100,
            [[300, 10, 10, 10], [300, 10], [300], [10, 10, 10, 10]],
        ),
    ],
)  # fmt: skip
def test_batches_hold_similar_lengths_and_are_halved_until_they_fit(
    items: list[int],
    most: int,
    memory: int,
    batches: list[list[int]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # It looks at all objects of the session, for each batch that did not fit.
    monkeypatch.setattr("vlmeval_findit.models.local.machine.gc", Mock())
    asked = []

    def doubled(batch: Any) -> list[int]:
        asked.append(batch)
        if len(batch) * max(batch) > memory:
            raise RuntimeError("CUDA out of memory. Tried to allocate 2 GiB")
        return [2 * item for item in batch]

    actual = in_batches(items, alone, BatchLimit(most), doubled, lambda item, why: -item)
    assert actual == [2 * item if item <= memory else -item for item in items]
    assert asked == batches


def alone(item: int) -> Asked:
    """Return what is known of a number, which shows an image of its own."""
    return Asked(item, object())


@pytest.mark.parametrize(
    ("images", "sharing", "padded", "together"),
    [
        ("abcdefghijkl", 1, math.inf, 8),
        ("aaaaaaaaaaaa", 1, math.inf, 8),
        ("abcdefghijkl", 4, math.inf, 8),
        ("a" * 40, 4, math.inf, 32),
        ("aabbccddeeffgghhii", 4, math.inf, 16),
        ("aaaabbbb", 4, 20, 8),  # of ten tokens each: room for two images
        ("aaaabbbb", 4, 19, 4),
        ("aabb", 1, 29, 2),
        ("ab", 1, 1, 1),
    ],
)
def test_queries_over_one_image_share_its_pixels(
    images: str, sharing: int, padded: float, together: int
) -> None:
    limit = BatchLimit(8, padded, sharing)
    assert limit.fitting(images, 10) == together
    limit.did_not_fit(together, 10)
    assert 1 <= limit.fitting(images, 10) <= max(1, together // 2)


def test_those_over_one_image_stay_together_by_size() -> None:
    queries = [Asked(at % 7, "abcabdacd"[at]) for at in range(9)]
    shown = [queries[at].images for at in in_order(queries)]
    longest = [max(q.length for q in queries if q.images == name) for name in dict.fromkeys(shown)]
    assert longest == sorted(longest, reverse=True)
    assert len([*groupby(shown)]) == 4


def test_other_errors_are_not_swallowed() -> None:
    def broken(batch: object) -> list[int]:
        raise RuntimeError("shapes do not match")

    with pytest.raises(RuntimeError, match="shapes"):
        in_batches([1], alone, BatchLimit(2), broken, lambda item, why: 0)


@pytest.mark.parametrize(
    ("error", "is_it"),
    [
        (MemoryError(), True),
        (RuntimeError("MPS backend out of memory (MPS allocated: 9 GB)"), True),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried"), True),
        (type("OutOfMemoryError", (RuntimeError,), {})("CUDA"), True),
        (ValueError("out of memory"), False),
    ],
)
def test_what_running_out_of_memory_looks_like(error: Exception, is_it: bool) -> None:
    assert is_out_of_memory(error) is is_it


def test_images_are_decoded_once_a_group(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    Image.new("RGB", (280, 280)).save(path)
    shown = (image(str(path)), text("four" * 10))
    assert expected_length(shown, Bounds()) == 110
    assert expected_length(shown[:1], Bounds(min_pixels=784_000)) == 1000
    assert expected_length(shown[:1], Bounds(max_pixels=7840)) == 10
    Image.new("RGB", (320, 200)).save(path)
    pictures = ImageSet(Bounds(two_step=True))
    first = pictures.get(str(path))
    assert (first.original, first.sent) == ((320, 200), (308, 196))
    path.unlink()
    assert pictures.get(str(path)) is first
    assert expected_length(shown, Bounds()) == 10


@pytest.mark.parametrize(
    ("machine", "chosen"),
    [
        (Machine(flash_attention=True), "cpu, float32, sdpa attention"),
        (Machine(mps=True), "mps, bfloat16, sdpa attention"),
        (Machine(1, flash_attention=True), "cuda, bfloat16, flash_attention_2 attention"),
        (Machine(1, cuda_bfloat16=False), "cuda, float16, sdpa attention"),
        (Machine(2), "cuda (layers over all devices), bfloat16, sdpa attention"),
    ],
)
def test_device_type_and_attention_are_chosen_together(machine: Machine, chosen: str) -> None:
    assert str(choose_placement(machine)) == chosen


def test_what_is_given_goes_before_what_would_be_chosen() -> None:
    with pytest.raises(ValueError, match="device cuda:2: this machine has 2 cuda devices"):
        choose_placement(Machine(2), device="cuda:2")
    assert choose_placement(Machine(2), "cuda:1", "float32", "eager") == (
        "cuda:1",
        "float32",
        "eager",
        False,
    )


@pytest.mark.parametrize(("stated", "queries", "formats"), [(None, 8, 32), (1, 1, 1), (5, 5, 5)])
def test_no_more_is_decoded_at_once_than_stated(
    stated: int | None, queries: int, formats: int
) -> None:
    row = MODELS["Qwen3-VL"]
    here = Mock(device="cpu")
    runner = LocalRunner(Mock(record={}), row, RunSettings(batch_size=stated), "mine", here)
    different = [(text(f"Find {at}"),) for at in range(40)]
    shown = image("one.png")
    asked = parse("FindIt_Pascal_xyxy_json"), parse("FindIt_Pascal_xywh_text")
    variants = [asked[at % 2] for at in range(40)]
    assert max(map(len, runner.batches(different, variants))) == queries
    about_one = [(shown, *words) for words in different]
    assert max(map(len, runner.batches(about_one, variants))) == formats
