"""Which figure a model is compared with."""

from __future__ import annotations

import pytest

from vlmeval_findit.models import ModelEntry, ModelOptions
from vlmeval_findit.reproduction import FigureChoiceError, choose_figure

SERVER = ModelOptions(base_url="http://localhost:1/v1")
MEAN = "RefCOCO mean of 8"


def server(model: str) -> ModelEntry:
    return SERVER.entry(model)


def here(model: str) -> ModelEntry:
    return ModelOptions().entry(model)


@pytest.mark.parametrize(
    ("entry", "set_name", "model", "chosen", "value"),
    [
        (here("FindIt-Nano"), "", "FindIt-Nano", "Scenes", 99.7),
        (here("FindIt-Nano"), "Scenes_refexp", "FindIt-Nano", "Scenes refexp", 99.8),
        # All its conditions are known: a set goes before the mean of sets.
        (here("InternVL3-8B-hf"), "", "InternVL3-8B", "RefCOCO val", 92.5),
        (here("InternVL3-8B"), MEAN, "InternVL3-8B", MEAN, 89.6),
        # What the authors measured goes before what others did, known as well.
        (here("Qwen3-VL-8B"), "", "Qwen3-VL-8B-Instruct", MEAN, 89.1),
        (server("Qwen3-VL-8B=mine"), "", "Qwen3-VL-8B-Instruct", MEAN, 89.1),
        (server("Qwen/Qwen3-VL-8B-Instruct"), "", "Qwen3-VL-8B-Instruct", MEAN, 89.1),
        (server("m=Qwen/Qwen3-VL-4B-Thinking"), "", "Qwen3-VL-4B-Thinking", MEAN, 88.2),
        (server("Qwen2.5-VL-7B-Instruct"), "RefCOCO_testA", "Qwen2.5-VL-7B", "RefCOCO testA", 92.5),
        (here("m=Qwen/Qwen2.5-VL-7B-Instruct"), "RefCOCOplusFull_testB", "Qwen2.5-VL-7B",
         "RefCOCO+ testB", 76.9),
        # What depends on the order of equal boxes is taken only where it is named.
        (server("Qwen3-VL-8B=m"), "ODinW-13", "Qwen3-VL-8B-Instruct", "ODinW-13", 44.7),
        (server("Qwen2.5-VL-7B-Instruct"), "ODinW-13 by class", "Qwen2.5-VL-7B",
         "ODinW-13 by class", 37.3),
        (server("GLM-4.5V"), "FindIt_RefL4Full_test", "GLM-4.5V", "Ref-L4 test", 89.5),
    ],
)  # fmt: skip
def test_the_figure_whose_conditions_are_known_best(
    entry: ModelEntry, set_name: str, model: str, chosen: str, value: float
) -> None:
    figure = choose_figure(entry, set_name)
    assert (figure.model, figure.set_name, figure.value) == (model, chosen, value)
    assert not figure.attempt


@pytest.mark.parametrize(
    ("entry", "set_name", "why"),
    [
        (here("FindIt-Nanoo"), "", "figure of 'FindIt-Nanoo' is known: did you mean FindIt-Nano?"),
        (here("NoModel"), "", "is known. There are figures of Qwen2.5-VL, Qwen3-VL, Gemini"),
        (here("Qwen3.5-9B-nothink"), "", "figure of 'Qwen3.5-9B-nothink' is known"),
        (here("Kimi-VL-A3B-2506"), "RefCOCO mean of val", "after --set: 'Ref-L4 test'"),
        # At a server a family's name says no size.
        (server("Qwen3-VL=mine"), "", "Of Qwen3-VL there are: Qwen3-VL-2B-Thinking, "),
        (server("Qwen3-VL=mine"), "", "reproduce NAME=SERVED"),
        (here("FindIt-Nano-px"), "", "reproduce NAME=CHECKPOINT"),
        (here("FindIt-Nano"), "Scenes_refexpp", "is known: did you mean Scenes refexp?"),
        (here("FindIt-Nano"), "RefCOCO testA", "There are: Scenes, Scenes multilabel, Scenes ref"),
        (server("Qwen3-VL-8B=m"), "RefSpatial", "which datasets it is of is not told\nType"),
    ],
)  # fmt: skip
def test_what_cannot_be_reproduced_is_refused(entry: ModelEntry, set_name: str, why: str) -> None:
    with pytest.raises(FigureChoiceError) as error:
        choose_figure(entry, set_name)
    assert why in str(error.value)
