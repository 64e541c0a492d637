"""Known faults of programs: each has sources, and says in which versions it is."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import yaml
from paths import ROOT

from vlmeval_findit.core import MisplacedError
from vlmeval_findit.models import MODELS, PROGRAM_NAMES
from vlmeval_findit.reproduction import (
    FEWEST_BOXES,
    box_placement,
    engine_faults,
    faults_of,
    known_faults,
)
from vlmeval_findit.serving import PROGRAMS

FILE = ROOT / "vlmeval_findit" / "reproduction" / "engine_faults.yaml"


def file() -> Any:
    return yaml.safe_load(FILE.read_text(encoding="utf-8"))


def test_programs_and_models_are_rows_of_tables() -> None:
    assert {*PROGRAMS} <= {*PROGRAM_NAMES}
    for fault in engine_faults():
        assert fault.program in PROGRAM_NAMES
        assert {*fault.families} <= {*MODELS}
        assert fault.sources


def sources(program: str, version: str, row: str) -> list[str]:
    return [fault.sources[0] for fault in known_faults(program, version, row)]


@pytest.mark.parametrize(
    ("program", "version", "row", "expected"),
    [
        ("sglang", "0.5.14", "Qwen3.5", []),
        ("sglang", "0.5.15", "Qwen3.5", ["sgl-project/sglang#36762"]),
        ("sglang", "0.5.15.post1", "Qwen3.5-nothink", ["sgl-project/sglang#36762"]),
        ("sglang", "0.5.18+cu130", "Qwen3.5", ["sgl-project/sglang#36762"]),
        ("sglang", "0.5.19", "Qwen3.5", []),
        ("sglang", "0.6", "Qwen3.5", []),
        ("sglang", "", "Qwen3.5", ["sgl-project/sglang#36762"]),
        ("sglang", "0.5.16", "InternVL3", []),
        ("sglang", "0.5.3rc2", "Qwen3-VL", ["sgl-project/sglang#11896"]),
        ("vllm", "0.5.16", "Qwen3.5", []),
        ("vllm", "0.11", "Qwen3-VL", []),
        ("vllm", "0.11.0", "Qwen3-VL", []),
        ("vllm", "0.11.1rc6.dev12+g9fce7bee7", "Qwen3-VL", ["vllm-project/vllm#30918"]),
        ("vllm", "0.12.0", "Qwen3-VL", ["vllm-project/vllm#30918"]),
        ("vllm", "0.13.0", "Qwen3-VL", []),
        ("vllm", "0.8.1", "Qwen2.5-VL", ["vllm-project/vllm#15197"]),
        ("vllm", "0.8.2", "Qwen2.5-VL", []),
        ("transformers", "5.5.3", "Qwen2.5-VL", ["huggingface/transformers#45325"]),
        ("transformers", "5.24.0", "Qwen2.5-VL", []),
        ("llama.cpp", "b10157-abc1234", "Qwen3-VL", ["ggml-org/llama.cpp#25781"]),
        ("llama.cpp", "b10158-Debian", "Qwen3-VL", []),
        ("llama.cpp", "b6887-d261223d2", "Qwen2.5-VL", ["ggml-org/llama.cpp#16842"]),
        ("ollama", "0.12.7", "Qwen3-VL", []),
    ],
)
def test_which_versions_have_faults(
    program: str, version: str, row: str, expected: list[str]
) -> None:
    assert sources(program, version, row) == expected


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("program", "sglan", "unknown program 'sglan': did you mean sglang"),
        ("families", ["Qwen3.6"], "unknown model 'Qwen3.6'"),
        ("families", [], "families: the list is empty"),
        ("sources", [], "sources: the list is empty"),
        ("sources", ["#36762"], "'#36762' should be a thread, as owner/repository#1"),
        ("sources", None, "sources"),
        ("since", "new", "'new' should be a version"),
        ("since", 0.5, "since: 0.5 should be a text"),
        ("below", "0.5.15", "below: 0.5.15 is not after 0.5.15"),
        ("lost", "", "lost: '' should be a name"),
        ("sure", "certain", "sure"),
        ("fixed", "0.5.19", "unknown key 'fixed'"),
    ],
)
def test_what_the_program_does_not_know_is_refused(key: str, value: object, why: str) -> None:
    values = copy.deepcopy(file())
    values["faults"][0][key] = value
    with pytest.raises(MisplacedError) as error:
        faults_of(values)
    assert why in error.value.below()
    assert error.value.below().startswith("faults.0")


# --- what gives them away -------------------------------------------------------------------------


def objects(rng: np.random.Generator, count: int) -> np.ndarray:
    """(count, 4) corners of boxes in pictures of 640x480."""
    sides = rng.uniform((40, 40), (240, 240), (count, 2))
    corner = rng.random((count, 2)) * ((640, 480) - sides)
    return np.concatenate([corner, corner + sides], axis=1)


def other_objects(rng: np.random.Generator, truths: np.ndarray) -> np.ndarray:
    """(n, 4) corners of objects elsewhere in the pictures, about as large."""
    sides = (truths[:, 2:] - truths[:, :2]) * np.exp(rng.normal(0, 0.3, (len(truths), 2)))
    corner = rng.random((len(truths), 2)) * ((640, 480) - sides).clip(1)
    return np.concatenate([corner, corner + sides], axis=1)


@pytest.mark.parametrize("error", [0.03, 0.06, 0.1])
def test_boxes_of_the_right_size_elsewhere_are_lost(error: float) -> None:
    rng = np.random.default_rng(0)
    truths = objects(rng, 200)
    sides = np.tile(truths[:, 2:] - truths[:, :2], 2)
    right = truths + rng.normal(0, error, (200, 4)) * sides
    assert not box_placement(right, truths).is_lost
    for pixels in (40, 60, 95):
        away = box_placement(right + np.tile(rng.normal(0, pixels, (200, 2)), 2), truths)
        assert away.is_lost
        assert away.fits > 0.95
    # Rough boxes are near by their errors.
    rough = truths + rng.normal(0, 0.22, (200, 4)) * sides
    assert not box_placement(rough, truths).is_lost
    # As they are in a model that takes other objects
    for share in (0.1, 0.3, 0.5, 0.7, 0.95):
        is_right = rng.random((200, 1)) < share
        assert not box_placement(
            np.where(is_right, right, other_objects(rng, truths)), truths
        ).is_lost
    # Numbers without a meaning have no sizes either.
    assert not box_placement(objects(rng, 200) * 2, truths).is_lost


def test_boxes_anywhere_are_lost_if_their_sizes_are_right() -> None:
    rng = np.random.default_rng(0)
    truths = objects(rng, 200)
    sides = truths[:, 2:] - truths[:, :2]
    corner = rng.random((200, 2)) * ((640, 480) - sides)
    assert box_placement(np.concatenate([corner, corner + sides], axis=1), truths).is_lost


def test_few_boxes_show_nothing() -> None:
    truths = objects(np.random.default_rng(0), FEWEST_BOXES - 1)
    assert not box_placement(truths + 300, truths).is_lost
    assert not box_placement(np.zeros((0, 4)), np.zeros((0, 4))).is_lost


def test_placement_of_two_boxes_by_hand() -> None:
    answers = np.array([[0.0, 0, 10, 10], [5, 0, 15, 10]])
    truths = np.array([[0.0, 0, 10, 20], [0, 0, 10, 10]])
    result = box_placement(answers, truths)
    assert result.iou == pytest.approx((1 / 2 + 1 / 3) / 2)
    assert result.iou_of_sizes == pytest.approx((1 / 2 + 1) / 2)
    assert result.fits == 1.0
    # The first middle is 5 away from the object's, of sides 14.1; the second 5, of 10.
    assert result.near == 1.0
